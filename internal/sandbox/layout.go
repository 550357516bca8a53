package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// sort of a placement.
type sort int

const (
	writable sort = iota // the original, writable
	readable             // the original, read-only
	hidden               // nothing
	bound                // another folder, writable
	layered              // folders over each other, whose changes go elsewhere
)

// placement is what a path of the box shows.
type placement struct {
	path string
	sort sort
	from string // where the original is, if not at path
	made bool   // the mount point has to be made: it lies in a hidden folder
	lax  bool   // left out where there is no place for it
	over Over   // of a layered one
}

// layout is the placements of a policy in the order in which they are mounted,
// a folder before what lies in it. Paths are resolved and exist. What would
// change nothing is left out.
func layout(p Policy) []placement {
	byPath := map[string]placement{}
	add := func(s sort, paths ...string) {
		for _, path := range paths {
			byPath[path] = placement{path: path, sort: s}
		}
	}
	add(writable, p.Write...)
	add(hidden, p.Hide...)
	add(readable, p.Keep...)
	add(readable, p.Show...)
	for _, b := range p.Binds {
		one := placement{path: b.To, sort: bound, from: b.From}
		if b.ReadOnly {
			one.sort, one.lax = readable, true
		}
		byPath[b.To] = one
	}
	for _, o := range p.Over {
		byPath[o.To] = placement{path: o.To, sort: layered, over: o}
	}
	// A folder between a writable one and what is kept in it becomes a mount
	// of its own, so that it cannot be renamed together with what is kept.
	for _, path := range p.Keep {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			if _, known := byPath[dir]; known {
				break
			}
			over, ok := around(byPath, dir)
			if !ok {
				continue
			}
			if over.sort == writable || over.sort == bound {
				byPath[dir] = placement{path: dir, sort: writable}
			}
		}
	}
	all := make([]placement, 0, len(byPath))
	for path, one := range byPath {
		if b, ok := shownBy(p.Binds, path); ok && one.from == "" {
			one.from = b.From + strings.TrimPrefix(path, b.To)
			byPath[path] = one
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b placement) int {
		return cmp.Or(strings.Count(a.path, "/")-strings.Count(b.path, "/"), strings.Compare(a.path, b.path))
	})
	return needed(all, byPath, p.Keep)
}

// needed leaves out what shows the same as what it lies in.
func needed(all []placement, byPath map[string]placement, keep []string) []placement {
	var out []placement
	for _, one := range all {
		over, inside := around(byPath, one.path)
		one.made = inside && over.sort == hidden
		switch one.sort {
		case hidden:
			if one.made {
				continue
			}
		case writable:
			if inside && over.sort == writable && !holds(one.path, keep) {
				continue
			}
		case readable:
			readableAnyway := !inside || over.sort == readable
			if one.from == "" && readableAnyway {
				continue
			}
		}
		out = append(out, one)
	}
	return out
}

// shownBy is the innermost bind that path lies in: what is seen at path is not
// what the machine has there.
func shownBy(binds []Bind, path string) (in Bind, ok bool) {
	for _, b := range binds {
		if within(b.To, path) && len(b.To) >= len(in.To) {
			in, ok = b, true
		}
	}
	return in, ok
}

// around is the nearest placement that path lies in.
func around(byPath map[string]placement, path string) (placement, bool) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if one, ok := byPath[dir]; ok && dir != path {
			return one, true
		}
		if dir == "/" || dir == "." {
			return placement{}, false
		}
	}
}

// holds is whether one of paths lies in dir.
func holds(dir string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return within(dir, p) && p != dir })
}

// within is whether path is dir or lies in it.
func within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
