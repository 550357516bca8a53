package sandbox

import "testing"

// BenchmarkEnter is one start in a box; "none" is the same without one.
func BenchmarkEnter(b *testing.B) {
	best := Judge(Normal, offer(), false).Means
	for _, c := range []struct {
		name string
		Means
	}{
		{name: "none"},
		{name: "landlock", Means: Means{Landlock: best.Landlock, Seccomp: best.Seccomp}},
		{name: "mounts", Means: Means{User: best.User, Mounts: best.Mounts}},
		{name: "best", Means: best},
		{name: "from nothing", Means: best},
		{name: "own loopback", Means: best},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := newPlace(b)
			pol := p.policy(c.Means)
			if c.name == "from nothing" || c.name == "own loopback" {
				pol = p.fromNothing(c.Means)
			}
			if pol.Own = c.name == "own loopback"; pol.Own && !best.Tun {
				b.Skip("no /dev/net/tun")
			}
			for b.Loop() {
				if r := run(b, pol, p.work, "true"); r.code != 0 {
					b.Fatal(r.out)
				}
			}
		})
	}
}
