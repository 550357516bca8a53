package archtest

import (
	"path"
	"slices"
	"strings"
)

func checkRooms(t *tree, found report) {
	for _, p := range t.pkgs {
		if len(p.code()) == 0 && !p.internal() {
			continue // a folder of tests only, e.g. of examples
		}
		if p.floor == 0 {
			found(p.dir, 0, "the package %s is on no floor", p.room)
		}
	}
}

func checkImports(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if p.floor == 0 {
			return // checkRooms says so
		}
		for _, imp := range t.imports(f) {
			dir, own := strings.CutPrefix(imp.path, module+"/")
			if !own {
				continue
			}
			if why := reasonNotToImport(p, dir); why != "" {
				_, name := placeOf(dir)
				found(f.path, imp.line, "%s (%s) imports %s: %s", p.room, p.floor, name, why)
			}
		}
	})
}

// reasonNotToImport says why a package may not import the one in dir; "" when it may.
func reasonNotToImport(from *pkg, dir string) string {
	floor, name := placeOf(dir)
	switch {
	case floor == 0:
		return "it is on no floor"
	case floor == Testing && from.floor != Testing:
		return "it is for tests only"
	case floor > from.floor:
		return "that is calling upward, from " + from.floor.String() + " to " + floor.String()
	case floor == Deciding, from.floor == Testing, mayUse(from.room, name):
		return ""
	case within(from.room, "config"):
		return "config makes a checked value and calls nobody who acts"
	case from.floor >= Asking && floor < from.floor:
		return ""
	}
	return "the line of " + from.room + " in rooms.go does not name it"
}

// mayUse is true if the line of a room, or else of its folder, names the other.
func mayUse(room, other string) bool {
	names, own := uses[room]
	if !own {
		names = uses[path.Dir(room)+"/*"]
	}
	return slices.Contains(names, other) || slices.Contains(names, path.Dir(other)+"/*")
}

func checkDependencies(t *tree, found report) {
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, imp := range t.imports(f) {
				if why := refuseModule(p, f.test, imp.path); why != "" {
					found(f.path, imp.line, "%s imports %s: %s", p.room, imp.path, why)
				}
			}
		}
	}
}

func refuseModule(p *pkg, test bool, importPath string) string {
	first, _, _ := strings.Cut(importPath, "/")
	if !strings.Contains(first, ".") || within(importPath, module) {
		return ""
	}
	for mod, entry := range modules {
		if !within(importPath, mod) {
			continue
		}
		if test || slices.Contains(entry.rooms, p.room) || p.floor == Testing {
			return ""
		}
		return entry.why
	}
	return "the module is not in the table of modules"
}

func checkStdlib(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if p.floor == Testing {
			return
		}
		for _, imp := range t.imports(f) {
			for prefix, entry := range stdlib {
				if within(imp.path, prefix) && !slices.Contains(entry.rooms, p.room) {
					found(f.path, imp.line, "%s imports %s: %s", p.room, imp.path, entry.why)
				}
			}
		}
	})
}

// within is true for an import path that is prefix or below it.
func within(importPath, prefix string) bool {
	rest, ok := strings.CutPrefix(importPath, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// drawers are names that say nothing about what is inside.
var drawers = []string{
	"util", "utils", "common", "helper", "helpers", "type", "types", "model", "models",
	"manager", "managers", "misc", "shared", "base", "lib", "pkg",
}

func checkNames(t *tree, found report) {
	for _, p := range t.pkgs {
		names := []string{path.Base(p.dir)}
		for _, f := range p.files {
			names = append(names, strings.TrimSuffix(f.ast.Name.Name, "_test"))
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			if slices.Contains(drawers, name) || strings.HasSuffix(name, "util") || strings.HasSuffix(name, "utils") {
				found(p.dir, 0, "a package named %s", name)
			}
		}
	}
}
