//go:build e2e && e2e_all

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// acpArgs start a program as one that speaks the Agent Client Protocol.
var acpArgs = map[string]string{"gemini": "--acp", "opencode": "acp"}

// A program that speaks the Agent Client Protocol works without an adapter of
// its own: what it writes passes the gate, and what it says completes the run.
func TestACP(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		arg, ok := acpArgs[p.name]
		if !ok {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			if p.name == "gemini" {
				p.model = "gemini-2.5-pro" // over ACP it offers fewer
			}
			u, model := scene(t, p, "")
			u.overACP(arg)
			model.set(u.writes("done.txt")...)
			r, s := u.run(nil)
			if r.code != 0 || s.Status != "completed" || !s.Success || len(s.Iterations) != 1 || !s.Iterations[0].Complete {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			if s.TokensIn != 200 || s.TokensOut != 20 {
				t.Errorf("it used %d tokens in and %d out\n%s", s.TokensIn, s.TokensOut, r.stderr)
			}
			if b, err := os.ReadFile(filepath.Join(u.repo, "done.txt")); err != nil || string(b) != "x\n" {
				t.Errorf("the file is %q, %v", b, err)
			}
		})
	}
}

// overACP changes the configuration to the same program over the protocol.
func (u *user) overACP(arg string) {
	u.t.Helper()
	file := filepath.Join(u.repo, "pawl.yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		u.t.Fatal(err)
	}
	before, after, ok := strings.Cut(string(b), `"], model`)
	if !ok {
		u.t.Fatalf("the configuration has no command:\n%s", b)
	}
	keep(u.t, file, before+`", "`+arg+`"], output: acp, model`+after)
}
