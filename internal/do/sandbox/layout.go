package sandbox

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// sort of a placement.
type sort int

const (
	writable sort = iota // the original, writable
	readable             // the original, read-only
	hidden               // nothing
	bound                // another folder, writable
	layered              // folders over each other, whose changes go elsewhere
	linked               // a symbolic link
)

// placement is what a path of the box shows.
type placement struct {
	path string
	sort sort
	from string // where the original is, if not at path; where a link leads
	made bool   // the mount point has to be made: it lies in a hidden folder
	in   string // the folder for temporary files in which the mount point has to be made
	lax  bool   // left out where there is no place for it
	over Over   // of a layered one
}

// pinFolders makes each folder between a writable one and what is kept in it a mount of
// its own, so that it cannot be renamed together with what is kept.
func pinFolders(kept []string, byPath map[string]placement) {
	for _, path := range kept {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			if _, known := byPath[dir]; known {
				break
			}
			over, ok := enclosingPlacement(byPath, dir)
			if !ok {
				continue
			}
			if over.sort == writable || over.sort == bound {
				byPath[dir] = placement{path: dir, sort: writable}
			}
		}
	}
}

// layOutMounts is the placements of a policy in the order in which they are mounted,
// a folder before what lies in it, and the root. Paths are resolved and exist. What
// would change nothing is left out.
func layOutMounts(p Policy, links map[string]string) (all []placement, root placement) {
	byPath := map[string]placement{"/": {path: "/", sort: readable}}
	for path, to := range links {
		byPath[path] = placement{path: path, sort: linked, from: to}
	}
	add := func(s sort, paths ...string) {
		for _, path := range paths {
			byPath[path] = placement{path: path, sort: s}
		}
	}
	add(writable, p.Write...)
	add(hidden, p.Hide...)
	add(readable, p.Keep...)
	add(readable, p.Show...)
	for _, b := range p.Temp {
		byPath[b.To] = placement{path: b.To, sort: bound, from: b.From}
	}
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
	pinFolders(p.Keep, byPath)
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		over, _ := enclosingPlacement(byPath, path)
		if byPath[path].sort == hidden && isTempFolder(p.Temp, over.path) {
			delete(byPath, path) // nothing is there
		}
	}
	root = byPath["/"]
	for path, one := range byPath {
		if path == "/" {
			continue
		}
		if b, ok := innermostBindOf(p.Binds, path); ok && one.from == "" {
			one.from = b.From + strings.TrimPrefix(path, b.To)
			byPath[path] = one
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b placement) int {
		return cmp.Or(strings.Count(a.path, "/")-strings.Count(b.path, "/"), strings.Compare(a.path, b.path))
	})
	return withoutRedundant(all, byPath, p), root
}

func isTempFolder(temp []Bind, path string) bool {
	return slices.ContainsFunc(temp, func(b Bind) bool { return b.To == path })
}

// withoutRedundant leaves out what shows the same as what it lies in.
func withoutRedundant(all []placement, byPath map[string]placement, p Policy) []placement {
	var out []placement
	for _, one := range all {
		over, inside := enclosingPlacement(byPath, one.path)
		one.made = inside && over.sort == hidden
		if inside && isTempFolder(p.Temp, over.path) {
			one.in = over.path
		}
		switch one.sort {
		case hidden:
			if one.made {
				continue
			}
		case linked:
			if !one.made && one.in == "" {
				continue
			}
		case writable:
			if inside && over.sort == writable && !holdsAnyOf(one.path, p.Keep) {
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

// innermostBindOf is the innermost bind that path lies in: what is seen at path is not
// what the machine has there.
func innermostBindOf(binds []Bind, path string) (in Bind, ok bool) {
	for _, b := range binds {
		if isWithin(b.To, path) && len(b.To) >= len(in.To) {
			in, ok = b, true
		}
	}
	return in, ok
}

// enclosingPlacement is the nearest placement that path lies in.
func enclosingPlacement(byPath map[string]placement, path string) (placement, bool) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if one, ok := byPath[dir]; ok && dir != path {
			return one, true
		}
		if dir == "/" || dir == "." {
			return placement{}, false
		}
	}
}

// holdsAnyOf is whether one of paths lies in dir.
func holdsAnyOf(dir string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return isWithin(dir, p) && p != dir })
}

// isWithin is whether path is dir or lies in it.
func isWithin(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// writableTargets are the paths at which something else is shown that may be written.
func writableTargets(p Policy) []string {
	out := lists.Pick(slices.Concat(p.Temp, p.Binds), func(b Bind) (string, bool) { return b.To, !b.ReadOnly })
	out = append(out, lists.Each(p.Over, func(o Over) string { return o.To })...)
	return out
}
