package engine

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// guarded is a gate's box in which the content of protected files stays: the gate runs
// what the agent wrote, which could change a test before it is read. What the box needs
// for that goes to the folder scratch.
func (w *worker) guarded(ctx context.Context, p sandbox.Policy, scratch string) (sandbox.Policy, error) {
	if w.o.Tree == nil || !p.Means.Mounts || len(w.plan.Protect.Patterns) == 0 {
		return p, nil
	}
	names, err := w.o.Tree.Names(ctx, w.id)
	if err != nil {
		return p, err
	}
	names = slices.AppendSeq(names, maps.Keys(w.beyond(ctx)))
	from := w.o.Tree.Repo.Top
	top := from
	if at := slices.IndexFunc(p.Binds, func(b sandbox.Bind) bool { return b.From == from }); at >= 0 {
		top = p.Binds[at].To // the box shows a copy there
	}
	p.Keep, p.Binds = slices.Clone(p.Keep), slices.Clone(p.Binds)
	g := guard{policy: &p, from: from, top: top, scratch: filepath.Join(scratch, "protected")}
	for _, path := range w.protected().Covers("", names) {
		if err := g.file(path); err != nil {
			return p, err
		}
	}
	if w.plan.Protect.New {
		for _, dir := range g.dirs {
			if w.protected().CoversOne(filepath.Join(dir, "new")) { // as any name in it is
				p.Keep = append(p.Keep, filepath.Join(top, dir))
			}
		}
	}
	return p, nil
}

// guard adds to a policy what keeps protected files.
type guard struct {
	policy             *sandbox.Policy
	from, top, scratch string
	dirs               []string // that hold protected files
	copies             int
}

// file keeps one file. What other names of it could change, or what a link leads to, is
// shown as a copy.
func (g *guard) file(name string) error {
	path := filepath.Join(g.from, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // it is missing, and that is found by who compares
	}
	to := filepath.Join(g.top, name)
	switch {
	case info.Mode().IsRegular() && !hasOtherNames(info):
		g.policy.Keep = append(g.policy.Keep, to)
	case info.Mode().IsRegular():
		if err := g.copy(path, to, info.Mode()); err != nil {
			return err
		}
	case info.Mode()&fs.ModeSymlink != 0:
		if err := g.target(path); err != nil {
			return err
		}
	}
	return g.folder(filepath.Dir(name))
}

// hasOtherNames asks whether another name leads to the same bytes.
func hasOtherNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink > 1
}

// target keeps what a protected link leads to, where that is a file of the work tree.
func (g *guard) target(path string) error {
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil //nolint:nilerr // it leads nowhere
	}
	name, inside := files.Below(g.from, to)
	info, err := os.Stat(to)
	if !inside || err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // see above
	}
	if hasOtherNames(info) {
		return g.copy(to, filepath.Join(g.top, name), info.Mode())
	}
	g.policy.Keep = append(g.policy.Keep, filepath.Join(g.top, name))
	return nil
}

// copy shows a copy of a file in its place.
func (g *guard) copy(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(g.scratch, 0o700)
	}
	g.copies++
	as := filepath.Join(g.scratch, strconv.Itoa(g.copies))
	_ = os.Remove(as) // of the gate before
	if err == nil {
		err = os.WriteFile(as, data, mode.Perm())
	}
	if err != nil {
		return fmt.Errorf("cannot keep the protected file %s from gates: %w", from, err)
	}
	g.policy.Binds = append(g.policy.Binds, sandbox.Bind{From: as, To: to, ReadOnly: true})
	return nil
}

// folder notes a folder of protected files. Python runs what it once compiled of a test,
// so such a cache is an empty one.
func (g *guard) folder(name string) error {
	if slices.Contains(g.dirs, name) {
		return nil
	}
	g.dirs = append(g.dirs, name)
	path := filepath.Join(g.from, name, "__pycache__")
	if _, err := os.Lstat(path); err != nil {
		return nil //nolint:nilerr // there is none
	}
	empty := filepath.Join(g.scratch, "compiled", strings.ReplaceAll(name, "/", "-"))
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return fmt.Errorf("cannot keep compiled tests from gates: %w", err)
	}
	g.policy.Binds = append(g.policy.Binds, sandbox.Bind{From: empty, To: filepath.Join(g.top, name, "__pycache__")})
	return nil
}
