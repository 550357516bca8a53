package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// impure are the packages of the standard library that a deciding package
// does without, with all below them.
var impure = []string{
	"context", "crypto/rand", "database/sql", "io", "log", "math/rand", "net", "os",
	"plugin", "runtime", "sync/atomic", "syscall", "testing", "unsafe", "C",
}

// clocked are functions of otherwise harmless packages that look at the
// world: the clock, the disk, the terminal, the zone files.
var clocked = map[string][]string{
	"time": {
		"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "NewTimer", "NewTicker",
		"Tick", "LoadLocation", "Local",
	},
	"fmt":           {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"html/template": {"ParseFiles", "ParseGlob"},
	"text/template": {"ParseFiles", "ParseGlob"},
}

// lazy is what a deciding package may use of sync: a constant that is
// computed when it is first needed, since start time counts.
var lazy = []string{"OnceValue", "OnceValues"}

func checkPure(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if p.floor != Deciding {
			return
		}
		for _, imp := range t.imports(f) {
			for _, prefix := range impure {
				if within(imp.path, prefix) {
					found(f.path, imp.line, "%s imports %s", p.room, imp.path)
				}
			}
		}
		t.inspect(f, func(n ast.Node, line int) {
			if what := impurity(f, n); what != "" {
				found(f.path, line, "%s %s", p.room, what)
			}
		})
	})
}

// impurity says what a node does that a decision must not; "" for nothing.
func impurity(f *file, n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		q := f.qualifier(n)
		if slices.Contains(clocked[q], n.Sel.Name) {
			return "uses " + q + "." + n.Sel.Name
		}
		if q == "sync" && !slices.Contains(lazy, n.Sel.Name) {
			return "uses sync." + n.Sel.Name
		}
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.SelectStmt:
		return "selects, which is random when two cases are ready"
	case *ast.ChanType:
		return "has a channel"
	case *ast.ExprStmt: // a call whose result is used is no builtin
		call, ok := n.X.(*ast.CallExpr)
		if !ok {
			return ""
		}
		if id, ok := call.Fun.(*ast.Ident); ok && slices.Contains([]string{"print", "println"}, id.Name) {
			return "prints"
		}
	}
	return ""
}

func checkGo(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if _, may := starters[p.room]; may || p.floor == Testing {
			return
		}
		t.inspect(f, func(n ast.Node, line int) {
			switch n := n.(type) {
			case *ast.GoStmt:
				found(f.path, line, "%s starts a goroutine", p.room)
			case *ast.CallExpr:
				q, name := f.callee(n)
				switch {
				case name == "Go" && q == "" && len(n.Args) == 1:
					found(f.path, line, "%s starts a goroutine with a group's Go", p.room)
				case name == "AfterFunc" && slices.Contains([]string{"time", "context"}, q):
					found(f.path, line, "%s starts a goroutine with %s.AfterFunc", p.room, q)
				}
			}
		})
	})
}

func checkEnv(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if p.floor >= Starting {
			return
		}
		t.inspect(f, func(n ast.Node, line int) {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return
			}
			q := f.qualifier(sel)
			if q != "os" && q != "syscall" {
				return
			}
			_, reads := readers[p.room]
			switch name := sel.Sel.Name; {
			case slices.Contains([]string{"Getenv", "LookupEnv", "ExpandEnv"}, name) && !reads,
				name == "Environ" && !slices.Contains(inheritors, p.room),
				slices.Contains([]string{"Setenv", "Unsetenv", "Clearenv"}, name):
				found(f.path, line, "%s uses %s.%s", p.room, q, name)
			}
		})
	})
}

func checkGit(t *tree, found report) {
	t.each(func(p *pkg, f *file) {
		if p.room == "git/command" || p.floor == Testing {
			return
		}
		t.inspect(f, func(n ast.Node, line int) {
			switch n := n.(type) {
			case *ast.CallExpr:
				_, name := f.callee(n)
				if strings.HasPrefix(name, "Command") && slices.ContainsFunc(n.Args[:min(2, len(n.Args))], isGit) {
					found(f.path, line, "%s runs git", p.room)
				}
			case *ast.CompositeLit:
				if isStrings(n.Type) && len(n.Elts) > 1 && isGit(n.Elts[0]) {
					found(f.path, line, "%s has a command line of git", p.room)
				}
			}
		})
	})
}

func isGit(e ast.Expr) bool {
	s, ok := literal(e)
	return ok && s == "git"
}

// isStrings is true for the type []string.
func isStrings(e ast.Expr) bool {
	array, ok := e.(*ast.ArrayType)
	if !ok {
		return false
	}
	id, ok := array.Elt.(*ast.Ident)
	return ok && id.Name == "string"
}
