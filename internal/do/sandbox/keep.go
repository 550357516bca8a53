package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// KeepContent is p in which the content of files stays, whatever links to them: names
// below from, which the box shows at top. What the box needs for that goes to the folder
// scratch. It returns the folders of the files, by names.
func (p Policy) KeepContent(from, top, scratch string, names []string) (_ Policy, folders []string, err error) {
	p.Keep, p.Binds = slices.Clone(p.Keep), slices.Clone(p.Binds)
	g := guard{policy: &p, from: from, top: top, scratch: scratch}
	for _, name := range names {
		if err := g.keepFile(name); err != nil {
			return p, nil, err
		}
	}
	return p, g.dirs, nil
}

// guard adds to a policy what keeps protected files.
type guard struct {
	policy             *Policy
	from, top, scratch string
	dirs               []string // that hold protected files
	copies             int
}

// keepFile keeps one file. What other names of it could change, or what a link leads to, is
// shown as a copy.
func (g *guard) keepFile(name string) error {
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
		if err := g.showCopy(path, to, info.Mode()); err != nil {
			return err
		}
	case info.Mode()&fs.ModeSymlink != 0:
		if err := g.keepTarget(path); err != nil {
			return err
		}
	}
	return g.emptyCompiled(filepath.Dir(name))
}

// hasOtherNames asks whether another name leads to the same bytes.
func hasOtherNames(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink > 1
}

// keepTarget keeps what a protected link leads to, where that is a file of the work tree.
func (g *guard) keepTarget(path string) error {
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil //nolint:nilerr // it leads nowhere
	}
	info, err := os.Stat(to)
	if err != nil || !isWithin(g.from, to) || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // see above
	}
	shown := g.top + to[len(g.from):]
	if hasOtherNames(info) {
		return g.showCopy(to, shown, info.Mode())
	}
	g.policy.Keep = append(g.policy.Keep, shown)
	return nil
}

// showCopy shows a copy of a file in its place.
func (g *guard) showCopy(from, to string, mode fs.FileMode) error {
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
	g.policy.Binds = append(g.policy.Binds, Bind{From: as, To: to, ReadOnly: true})
	return nil
}

// emptyCompiled notes a folder of protected files. Python runs what it once compiled of a test,
// so such a cache is an empty one.
func (g *guard) emptyCompiled(name string) error {
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
	g.policy.Binds = append(g.policy.Binds, Bind{From: empty, To: filepath.Join(g.top, name, "__pycache__")})
	return nil
}

// ShowRules is p in which the git folder from is shown at the path to with the rules that are laid in scratch. One
// that is a file, and leads to other rules, is an empty file: git finds no repository.
func (p Policy) ShowRules(from, to, scratch string, isFolder bool) Policy {
	if isFolder {
		p.Over = append(slices.Clone(p.Over), Over{From: from, To: to, Scratch: scratch, Whole: true})
	} else {
		p.Binds = append(slices.Clone(p.Binds), Bind{From: os.DevNull, To: to, ReadOnly: true})
	}
	return p
}
