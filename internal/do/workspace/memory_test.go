package workspace

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryChangesNoAnswer compares a checkout that remembers with one that
// is opened anew for every look, over random edits of files and ignore rules.
func TestMemoryChangesNoAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "a", "1", "d/a", "1", "d/e/log", "1", "kept.log", "1", ".gitignore", "*.log\n", "d/.gitignore", "tmp\n")
	other := filepath.Join(filepath.Dir(p.state), "other")
	look := func(c *Checkout) string {
		t.Helper()
		seen, err := c.See(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		return seen.Tree
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	folder := func() string { return pick("", "d/", "d/e/", "new/", "new/x/") }
	for step := range 30 {
		if got, want := look(p.c), look(reopen(t, p.top, other)); got != want {
			t.Fatalf("step %d: the tree is %s, without memory %s:\n%s", step, got, want, p.git("diff-tree", "-r", want, got))
		}
		switch name := folder() + pick("a", "b.log", "tmp", "log", "kept.log"); rnd.IntN(6) {
		case 0:
			p.write(folder()+".gitignore", pick("*.log\n", "tmp\n", "log\n!kept.log\n", "", "e/\n", "*\n!.gitignore\n"))
		case 1:
			p.remove(name)
		case 2:
			p.remove(folder() + ".gitignore")
		case 3:
			p.write(".git/info/exclude", pick("", "a\n", "new/\n"))
		case 4:
			if quiet(p, "add", "-f", "--", name) == nil { // it need not be there
				p.git("commit", "-q", "--allow-empty", "-m", "more")
			}
		default:
			p.write(name, fmt.Sprint(step))
		}
	}
}

// counted counts the git processes that do runs.
func counted(t *testing.T, do func()) int {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho >>'%s'\nexec '%s' \"$@\"\n", calls, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	before := os.Getenv("PATH")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+before)
	do()
	t.Setenv("PATH", before)
	data, err := os.ReadFile(calls)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// TestFewProcesses holds what an iteration costs: starting git is most of it.
func TestFewProcesses(t *testing.T) {
	p := newPlace(t, "a", "1", "d/b", "1")
	first := p.snap(0)
	var last Snapshot
	for _, c := range []struct {
		name string
		most int
		do   func()
	}{
		{"an unchanged look", 4, func() { p.snap(1) }},
		{"an edit", 7, func() { p.write("a", "2"); last = p.snap(2) }},
		{"a new file in a new folder", 8, func() { p.write("n/f", "2"); last = p.snap(3) }},
		{"a look after it", 4, func() { p.snap(4) }},
		{"a file that goes", 7, func() { p.remove("n/f"); last = p.snap(5) }},
		{"a rule that changes", 8, func() { p.write(".gitignore", "x\n"); last = p.snap(6) }},
		{"changes", 1, func() { p.compare(first.Tree, last.Tree) }},
	} {
		if n := counted(t, c.do); n > c.most {
			t.Errorf("%s: %d processes, want at most %d", c.name, n, c.most)
		}
	}
}

func (p *place) compare(from, to string) {
	p.t.Helper()
	if _, _, err := p.c.Changes(p.t.Context(), from, to); err != nil {
		p.t.Fatal(err)
	}
}
