//go:build e2e

package e2e

import "testing"

// At the level paranoid a program has no network but its model's endpoint, no
// sockets, and a copy of the workspace.
func TestParanoid(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			u, model := scene(t, p, "")
			model.set(u.writes("done.txt")...)
			r, s := u.run(nil, "--safety", "paranoid")
			if r.code != 0 || s.Status != "completed" || !s.Success {
				t.Fatalf("exit %d, %+v\n%s", r.code, s, r.stderr)
			}
			if apply := u.do(nil, "apply", "fix"); apply.code != 0 {
				t.Errorf("pawl apply: exit %d\n%s", apply.code, apply.stderr)
			}
		})
	}
}
