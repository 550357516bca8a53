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
		if _, ok := rooms[p.room]; !ok {
			found(p.dir, 0, "the package %s is not on the map", p.room)
		}
	}
}

func checkImports(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		from, known := rooms[p.room]
		if !known {
			return // checkRooms says so
		}
		for _, imp := range t.imports(f) {
			rel, own := strings.CutPrefix(imp.path, module+"/")
			if !own {
				continue
			}
			name := roomOf(rel)
			if why := refuse(p.room, from, name); why != "" {
				found(f.path, imp.line, "%s (%s) imports %s: %s", p.room, from.floor, name, why)
			}
		}
	})
}

// refuse says why a room may not import another; "" when it may.
func refuse(name string, from room, target string) string {
	to, known := rooms[target]
	switch {
	case !known:
		return "it is not on the map"
	case slices.Contains(from.uses, target):
		return ""
	case to.floor == Testing:
		return "it is for tests only"
	case to.floor > from.floor:
		return "that is calling upward, from " + from.floor.String() + " to " + to.floor.String()
	case to.floor == Deciding:
		return ""
	case from.floor >= Asking && to.floor < from.floor && name != "config":
		return ""
	case name == "config":
		return "config makes a checked value and calls nobody who acts"
	}
	return "the line of " + name + " on the map does not name it"
}

func checkDependencies(t *tree, found report) {
	for _, p := range t.pkgs {
		for _, f := range p.files {
			for _, imp := range t.imports(f) {
				if why := refuseModule(p.room, f.test, imp.path); why != "" {
					found(f.path, imp.line, "%s imports %s: %s", p.room, imp.path, why)
				}
			}
		}
	}
}

func refuseModule(name string, test bool, importPath string) string {
	first, _, _ := strings.Cut(importPath, "/")
	if !strings.Contains(first, ".") || within(importPath, module) {
		return ""
	}
	for mod, entry := range modules {
		if !within(importPath, mod) {
			continue
		}
		if test || slices.Contains(entry.rooms, name) || rooms[name].floor == Testing {
			return ""
		}
		return entry.why
	}
	return "the module is not in the table of modules"
}

func checkStdlib(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if rooms[p.room].floor == Testing {
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
