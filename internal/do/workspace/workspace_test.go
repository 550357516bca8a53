package workspace

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// TestMain gives git a home of its own, so that the settings of whoever runs
// the tests do not matter.
func TestMain(m *testing.M) {
	if run := os.Getenv("PAWL_TEST_REWIND"); run != "" {
		os.Exit(rewindChild(run))
	}
	os.Exit(gittest.Run(m))
}

// place is a repository with a checkout of pawl's.
type place struct {
	t     testing.TB
	top   string
	state string
	c     *Checkout
}

// newPlace makes a repository; each pair is a path and its content, committed.
func newPlace(t testing.TB, pairs ...string) *place {
	t.Helper()
	p := barePlace(t)
	p.git("init", "-q")
	for i := 0; i < len(pairs); i += 2 {
		p.write(pairs[i], pairs[i+1])
	}
	if len(pairs) > 0 {
		p.git("add", "-A", "-f")
		p.git("commit", "-qm", "first")
	}
	p.open(Options{})
	return p
}

func barePlace(t testing.TB) *place {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, top: filepath.Join(dir, "work tree"), state: filepath.Join(dir, "state")}
	if err := os.Mkdir(p.top, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) open(o Options) {
	p.t.Helper()
	o.StateDir = p.state
	c, err := Open(p.t.Context(), p.top, o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.c = c
}

func (p *place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.top
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (p *place) path(name string) string { return filepath.Join(p.top, name) }

func (p *place) write(name, content string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(names ...string) {
	p.t.Helper()
	for _, n := range names {
		if err := os.RemoveAll(p.path(n)); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *place) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(target, p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) chmod(name string, mode os.FileMode) {
	p.t.Helper()
	if err := os.Chmod(p.path(name), mode); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) read(name string) string {
	data, err := os.ReadFile(p.path(name))
	if err != nil {
		return "(" + err.Error()[strings.LastIndex(err.Error(), ": ")+2:] + ")"
	}
	return string(data)
}

func (p *place) snap(n int) Snapshot {
	p.t.Helper()
	s, err := p.c.Snapshot(p.t.Context(), "r1", n, SnapshotOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// back goes back to snapshot n from whatever the files are now.
func (p *place) back(n int) Rewound {
	p.t.Helper()
	return p.backTo(snapshotRef("r1", n, ""))
}

func (p *place) backTo(ref string) Rewound {
	p.t.Helper()
	seen, err := p.c.See(p.t.Context(), "r1")
	if err != nil {
		p.t.Fatal(err)
	}
	b, err := p.c.rewindTo(p.t.Context(), "r1", ref, seen.Tree)
	if err != nil || b.Refused != "" {
		p.t.Fatal(err, b.Refused)
	}
	return b
}

// clone makes the workspace of a run: a clone with the files of p.
func (p *place) clone() *place {
	p.t.Helper()
	ctx := p.t.Context()
	seen, err := p.c.See(ctx, "person")
	if err != nil {
		p.t.Fatal(err)
	}
	dir := p.t.TempDir()
	at := Place{Top: filepath.Join(dir, "work"), Own: filepath.Join(dir, "own"), Base: seen.Head.Commit}
	at.Root = at.Top
	for _, d := range []string{at.Top, at.Own} {
		if err := os.Mkdir(d, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	q := &place{t: p.t, top: at.Top, state: at.Own}
	if _, err := git.OpenClone(ctx, p.c.Repo, at.Top, at.Own, nil, p.c.Store.Objects); err != nil {
		p.t.Fatal(err)
	}
	if q.c, err = OpenClone(ctx, p.c.Repo, at, q.cloneOptions(p)); err != nil {
		p.t.Fatal(err)
	}
	if err := q.c.Fill(ctx, "r1", "", seen.Tree); err != nil {
		p.t.Fatal(err)
	}
	if err := q.c.Clone().NewRepository(ctx, nil); err != nil {
		p.t.Fatal(err)
	}
	return q
}

func (p *place) cloneOptions(of *place) Options {
	return Options{StateDir: filepath.Join(p.state, "tree"), Store: of.c.Store.Dir}
}

// stored runs git in pawl's own repository.
func (p *place) stored(args ...string) string {
	p.t.Helper()
	return p.git(append([]string{"--git-dir=" + p.c.Store.Dir}, args...)...)
}

// names lists the paths of a snapshot.
func (p *place) names(s Snapshot) []string {
	out := p.stored("ls-tree", "-r", "-z", "--name-only", s.Commit)
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(s string) bool { return s == "" })
}

// files is the work tree: path to kind, mode and content. Of permissions only
// the owner's execute bit counts. Empty folders do not.
func (p *place) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, _ := filepath.Rel(p.top, name)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			all[rel] = "-> " + target
			return err
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			all[rel] = fmt.Sprintf("%t %s", info.Mode()&0o100 != 0, data)
			return err
		default:
			all[rel] = info.Mode().Type().String()
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// private is all that is in the user's git directory.
func (p *place) private() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	top := p.path(".git")
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(top, name)
		if d.Type().IsRegular() {
			data, err := os.ReadFile(name)
			all[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

func sameMap(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if g, ok := got[k]; !ok {
			t.Errorf("%s: %q is gone", what, k)
		} else if g != want[k] {
			t.Errorf("%s: %q is %.200q, want %.200q", what, k, g, want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: %q is new", what, k)
		}
	}
}

func sameList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func gitCommand(p *place, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = p.top
	return cmd
}

// many writes n files of about 6 KB, 100 to a folder, that look older than the
// next index.
func many(n int, p *place) {
	p.t.Helper()
	old := time.Now().Add(-time.Hour)
	for i := range n {
		name := fmt.Sprintf("d%02d/f%02d", i/100, i%100)
		p.write(name, strings.Repeat(fmt.Sprintf("line %d of a file\n", i), 300))
		if err := os.Chtimes(p.path(name), old, old); err != nil {
			p.t.Fatal(err)
		}
	}
}
