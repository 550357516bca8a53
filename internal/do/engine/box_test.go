package engine

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// What the box refused is told as that: trying again, waiting longer or other
// owners of files do not help. What it has nothing to do with stays.
func TestRefusalsAreNamed(t *testing.T) {
	t.Parallel()
	closed := &sandbox.Policy{Level: sandbox.Paranoid, Closed: true, Write: []string{"/work"}}
	open := &sandbox.Policy{Level: sandbox.Normal, Write: []string{"/work"}}
	guarded := &sandbox.Policy{Level: sandbox.Normal, Write: []string{"/srv"}, Keep: []string{"/srv/tests/a.sh"}}
	for _, c := range []struct {
		name, output string
		box          *sandbox.Policy
		unreached    []string
		class        failure.Class
		transient    bool
		summary      string
	}{
		{"the network of paranoid", "OSError: [Errno 101] Network is unreachable", closed, nil,
			failure.Permission, false, "refused by pawl's sandbox, level paranoid; only a lower --safety opens the network"},
		{"what the proxy refused", "curl: (56) CONNECT tunnel failed, connection refused", closed, []string{"example.com:443"},
			failure.Permission, false, "agents.NAME.endpoints allows it"},
		{"a server of the work itself", "dial tcp 127.0.0.1:4000: connect: connection refused", closed, nil,
			failure.Network, true, "connection refused"},
		{"an open network", "OSError: [Errno 101] Network is unreachable", open, nil, failure.Network, true, "unreachable"},
		{"what no rule knows", "error: could not write config file /etc/gitconfig: Operation not permitted", open, nil,
			failure.Permission, false, "not permitted (refused by pawl's sandbox, level normal; safety.write or --unsandboxed allows it)"},
		{"a key that the provider refuses", "sh: 1: cannot create /etc/motd: Read-only file system\nError: 401 Unauthorized: invalid API key",
			open, nil, failure.Auth, false, "invalid API key"},
		{"a write", "sh: 1: cannot create /etc/motd: Read-only file system", open, nil,
			failure.Permission, false, "safety.write or --unsandboxed allows it"},
		{"a gate that writes a test", "sh: 1: cannot create tests/a.sh: Read-only file system", guarded, nil,
			failure.Permission, false, "it is a protected file; allow of the procedure lets it change"},
	} {
		f := failure.Analyse(failure.Evidence{Source: "gate", ExitCode: 1, Output: c.output})
		c.box.NameRefusals(&f, c.output, c.unreached)
		advice := strings.Join(f.Actions, " ")
		wrong := c.class == failure.Auth && strings.Contains(f.Summary, "sandbox")
		wrong = wrong || strings.Contains(advice, "owner and mode")
		again := f.Class == failure.Permission && strings.Contains(advice, "Try again")
		if f.Class != c.class || f.Transient != c.transient || !strings.Contains(f.Summary, c.summary) || wrong || again {
			t.Errorf("%s: %s, transient %v, %q, %q", c.name, f.Class, f.Transient, f.Summary, f.Actions)
		}
	}
}
