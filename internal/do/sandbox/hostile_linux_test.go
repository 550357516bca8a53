package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A repository that was made to get out: links in the place of git's folders, a
// path that no table of mounts can show, folders without end.
func TestHostileRepository(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			root := p.work + "/a\nb \\040 ,:"
			deep := filepath.Join(root, strings.Repeat("d/", 1000))
			if err := os.MkdirAll(deep, 0o755); err != nil {
				t.Skip(err) // paths of that length cannot be made here
			}
			for link, to := range map[string]string{
				".git": p.secret, ".pawl": p.outside, "tmp": "/", "loop": "loop", "fd": "/proc/self/fd",
			} {
				if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
					t.Fatal(err)
				}
			}
			place := Place{Root: root, Home: filepath.Dir(p.secret), Shown: p.fromNothing(tier.Means).Show}
			pol := place.Policy(Normal, Verdict{Means: tier.Means}, Limits{}, nil, nil)
			// The test itself may lie among temporary files.
			pol.Temp, pol.Write = nil, slices.DeleteFunc(pol.Write, func(path string) bool { return path == "/dev/shm" })
			pol.Show = append(pol.Show, os.Args[0])
			p.work = root
			key := filepath.Join(p.secret, "id_rsa")
			for _, path := range []string{".git/id_rsa", "tmp" + key, "fd/../root" + key} {
				control(t, root, "read", path)
				p.try(t, pol, "read", path)
				p.try(t, pol, "append", path)
			}
			p.try(t, pol, "append", ".pawl/file")
			p.try(t, pol, "create", ".git")
			if r := run(t, pol, root, "sh", "-c", "echo a >new; cat new"); r.code != 0 {
				t.Errorf("exit %d: %s", r.code, r.out)
			}
			if got := read(t, key); got != "before\n" {
				t.Errorf("the key is %q", got)
			}
		})
	}
}

// Where folders are allowed one by one, a link beside what is hidden, which an
// agent may have left, does not show it.
func TestLinkBesideWhatIsHidden(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.name, func(t *testing.T) {
			p := newPlace(t)
			home := filepath.Dir(p.secret)
			for link, to := range map[string]string{"link": p.secret, "up": "/"} {
				if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
					t.Fatal(err)
				}
			}
			key := filepath.Join(home, "link", "id_rsa")
			control(t, p.work, "read", key)
			p.try(t, p.policy(tier.Means), "read", key)
			p.try(t, p.policy(tier.Means), "read", filepath.Join(p.secret, "id_rsa"))
		})
	}
}
