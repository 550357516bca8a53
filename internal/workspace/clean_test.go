package workspace

import (
	"path/filepath"
	"slices"
	"testing"
)

// What is believed of a fresh checkout is what a look at it shows, and so is what
// comes after it.
func TestACleanCheckoutIsBelieved(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]string{
		"plain":        {"a", "1\n", "d/b", "2\n"},
		"rules":        {"a", "1\n", ".gitignore", "*.log\nbuild/\n", "kept.log", "tracked though ignored\n", "d/.gitignore", "!x.log\n"},
		"attributes":   {"a", "1\n", ".gitattributes", "* text=auto\n", "d/b", "2\n"},
		"line endings": {"a", "1\r\n", ".gitattributes", "a text eol=crlf\n"},
		"ours":         {"a", "1\n", ".pawl/x", "tracked\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, pairs...)
			p.git("rm", "-q", "-r", "--cached", ".")
			p.git("reset", "-q", "--hard")
			head := p.git("rev-parse", "HEAD")
			want := p.snap(0)
			state := p.state
			p.state = filepath.Join(filepath.Dir(state), "believed")
			p.open(Options{Repo: p.c.Repo, Clean: head})
			run := func(n int) Snapshot {
				t.Helper()
				s, err := p.c.Snapshot(t.Context(), "r2", n, SnapshotOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			got := run(0)
			if got.Tree != want.Tree || got.Head != want.Head || got.Branch != want.Branch || !slices.Equal(got.Skipped, want.Skipped) {
				t.Errorf("believed %+v\nseen     %+v", got, want)
			}
			p.write("a", "changed\n")
			p.write("new.log", "new\n")
			p.write("d/x.log", "new\n")
			p.write("build/out", "new\n")
			p.write(".gitignore", "nothing\n")
			after := run(1)
			p.state = state
			p.open(Options{})
			if s := p.snap(1); s.Tree != after.Tree {
				t.Errorf("after a change: %v\nwant %v", p.names(after), p.names(s))
			}
		})
	}
}

// It is believed once, of the commit that it was said of, and of no run that has a
// past.
func TestACleanCheckoutIsBelievedOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1\n")
	head := p.git("rev-parse", "HEAD")
	p.open(Options{Clean: head})
	before := p.snap(0)
	p.write("a", "2\n")
	if s := p.snap(1); s.Tree == before.Tree {
		t.Error("a change was not seen")
	}
	p.open(Options{Clean: head}) // wrong: the file was changed since
	if s := p.snap(2); s.Tree == before.Tree {
		t.Error("a run that had begun was believed to be at its start")
	}
	p.write("b", "new\n")
	p.git("add", "-A")
	p.git("commit", "-qm", "second")
	p.open(Options{Clean: head})
	tree, _, err := p.c.Look(t.Context(), "other")
	if want := p.git("rev-parse", "HEAD^{tree}"); err != nil || tree != want {
		t.Errorf("the tree of another commit was believed: %s, %v; want %s", tree, err, want)
	}
}
