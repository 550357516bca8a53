//go:build e2e && e2e_all

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// TestNetworkAway takes the network between each program and its model away, in each way that it
// goes, with pawl's gateway between and without. It is waited for: no iteration is used, nobody is
// asked. What the programs print is kept in the folder PAWL_SCENES.
func TestNetworkAway(t *testing.T) {
	t.Parallel()
	broken := modelserver.Reply{Text: words(120), Cut: 1}
	for _, p := range metered {
		for _, way := range []string{"gateway", "direct"} {
			for name, away := range map[string]struct {
				url   string
				reply modelserver.Reply
			}{
				"refused":  {url: "http://127.0.0.1:9"},
				"no name":  {url: "http://api.no-such-name.invalid"},
				"reset":    {url: resetting(t)},
				"broken":   {reply: broken},
				"a portal": {reply: page},
			} {
				t.Run(p.name+"/"+way+"/"+name, func(t *testing.T) {
					t.Parallel()
					if p.name == "claude" && name == "broken" {
						t.Skip("it asks once more without a stream, which works")
					}
					settings := "loop: {max_waits: 0, retry_timeout: 10s, iteration_timeout: 150s}"
					by := p.withKey()
					if way == "direct" {
						if p.setUp == nil {
							t.Skip("it has no configuration of its own here")
						}
						by, settings = p, settings+"\ngateway: {enabled: never}"
					}
					server := serve(t, modelserver.Scenario{Asides: true, Replies: []modelserver.Reply{away.reply}})
					url := server.URL()
					if away.url != "" {
						url = away.url
					}
					u := newUserAt(t, by, server, url, settings)
					r, got := u.run(nil, "-n", "1")
					ok := got.Status == "paused" && r.code == 4 && len(got.Iterations) > 0
					for _, i := range got.Iterations {
						ok = ok && i.Outcome == "waited" && i.Failure != nil && i.Failure.Kind == "transient"
					}
					if !ok {
						t.Errorf("exit %d, %+v\n%s", r.code, got, r.stderr)
					}
					for _, i := range got.Iterations {
						if i.Failure != nil {
							t.Logf("%s: %+v", i.Ended, *i.Failure)
						}
					}
					if dir := os.Getenv("PAWL_SCENES"); dir != "" {
						name := filepath.Join(dir, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
						keep(t, name, u.do(nil, "logs", got.Run, "-i", "1").stdout)
					}
				})
			}
		}
	}
}

// words are n different ones: a program may take what comes again for a loop.
func words(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "this is line %d, ", i)
	}
	return b.String()
}

// resetting is the address of a server that resets each connection.
func resetting(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}
