package statedir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// history is the commits of a repository, the newest last.
type history []string

func (h history) find(name string) string {
	switch {
	case name == "HEAD" && len(h) > 0:
		return h[len(h)-1]
	case slices.Contains(h, name):
		return name
	}
	return ""
}

// user has repositories, and uses pawl in them.
type user struct {
	t   *testing.T
	top string
	env []string
}

func (u user) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}

// make makes a repository.
func (u user) make(name string) string {
	u.t.Helper()
	root := filepath.Join(u.top, name)
	u.must(os.MkdirAll(filepath.Join(root, ".git"), 0o700))
	return root
}

// use starts pawl in a root, and returns the name of its state folder.
func (u user) use(root string, h history) (dir, movedFrom string) {
	u.t.Helper()
	u.must(Claim(root, u.env, h.find))
	dir, movedFrom = Of(root, u.env), RootBefore(root, u.env)
	u.must(os.MkdirAll(dir, 0o700))
	u.must(KeepRoot(root, u.env, h.find))
	return dir, movedFrom
}

func (u user) rename(from, to string) { u.must(os.Rename(from, to)) }

// State belongs to a repository, wherever it is, and to no other one at its path.
func TestStateBelongsToARepository(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	u := user{t, top, []string{"XDG_STATE_HOME=" + filepath.Join(top, "state")}}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the state is in %q, not in %q", what, got, want)
		}
	}
	a := u.make("a")
	mine := history{"first", "second"}
	of, _ := u.use(a, mine)
	again, _ := u.use(a, append(mine, "third"))
	expect("used again", again, of)

	kept := filepath.Join(top, "kept")
	u.rename(a, kept)
	u.make("a")
	others := history{"another"}
	ofOther, _ := u.use(a, others)
	expect("another one at its path", ofOther, of+"-2")
	if got := OfOthers(a, u.env); !slices.Equal(got, []string{of}) {
		t.Errorf("others' state is in %q", got)
	}
	u.must(os.MkdirAll(firstStateDir(kept, u.env), 0o700)) // a process was killed as it took the state along
	moved, from := u.use(kept, mine)
	expect("moved", moved, of)
	if from != a {
		t.Errorf("it was moved from %q", from)
	}
	moved, _ = u.use(kept, mine)
	expect("moved, and used again", moved, of)
	if got := Roots(u.env); !slices.Equal(got, []string{a, kept}) && !slices.Equal(got, []string{kept, a}) {
		t.Errorf("the roots are %q", got)
	}

	u.must(os.Rename(filepath.Join(kept, ".git"), filepath.Join(top, "old.git")))
	u.make("kept")
	cloned, _ := u.use(kept, append(mine, "third"))
	expect("cloned again", cloned, of)

	u.must(os.RemoveAll(a))
	u.rename(kept, a)
	back, from := u.use(a, mine)
	expect("moved back", back, of)
	if from != kept {
		t.Errorf("it was moved back from %q", from)
	}

	u.make("fresh")
	fresh, from := u.use(filepath.Join(top, "fresh"), history{"new"})
	if fresh == of || from != "" {
		t.Errorf("a new one has the state in %q, from %q", fresh, from)
	}
	b := u.make("b")
	_, _ = u.use(b, history{})
	_, _ = u.use(b, history{"one"})
	u.must(os.RemoveAll(filepath.Join(b, ".git")))
	u.make("b")
	after, _ := u.use(b, history{"one", "two"})
	expect("its first commit came later", after, firstStateDir(b, u.env))
	pkg := filepath.Join(a, "pkg")
	u.must(os.Mkdir(pkg, 0o700))
	if below, from := u.use(pkg, mine); below == of || from != "" {
		t.Errorf("a package has the state of the whole: %q, from %q", below, from)
	}
	// A copy is another repository.
	copied := u.make("copied")
	if dir, from := u.use(copied, mine); dir == of || from != "" {
		t.Errorf("a copy has the state of the original: %q, from %q", dir, from)
	}
}
