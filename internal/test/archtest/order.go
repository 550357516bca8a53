package archtest

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// excused is the mark of a range whose order cannot be seen; it carries the reason.
var excused = regexp.MustCompile(`^//\s*order does not show: \S`)

func checkOrder(t *tree, found report) {
	findStandard()
	known := &checker{tree: t, done: map[string]*types.Package{}, std: importer.ForCompiler(token.NewFileSet(), "source", nil)}
	for _, p := range t.pkgs {
		if p.floor != Deciding || !p.internal() {
			continue
		}
		info := known.check(p)
		for _, f := range p.code() {
			marks := t.excuses(f)
			sorted := sortedArgs(f)
			t.inspect(f, func(n ast.Node, line int) {
				what := unordered(f, info, n, sorted)
				if what != "" && !slices.Contains(marks, line) && !slices.Contains(marks, line-1) {
					found(f.path, line, "%s %s", p.room, what)
				}
			})
		}
	}
}

// unordered says how a node walks over a map; "" when it does not.
func unordered(f *file, info *types.Info, n ast.Node, sorted map[ast.Node]bool) string {
	switch n := n.(type) {
	case *ast.RangeStmt:
		if isMap(info.TypeOf(n.X)) {
			return "ranges over a map"
		}
	case *ast.CallExpr:
		q, name := f.callee(n)
		if q == "maps" && slices.Contains([]string{"Keys", "Values", "All"}, name) && !sorted[n] {
			return "takes maps." + name + " without sorting it"
		}
	}
	return ""
}

// isMap is true for maps and for type parameters that are maps.
func isMap(typ types.Type) bool {
	if typ == nil {
		return false
	}
	if param, ok := types.Unalias(typ).(*types.TypeParam); ok {
		iface, _ := param.Constraint().Underlying().(*types.Interface)
		for i := range iface.NumEmbeddeds() {
			union, ok := iface.EmbeddedType(i).(*types.Union)
			if ok && union.Len() == 1 && isMap(union.Term(0).Type()) {
				return true
			}
		}
		return false
	}
	_, ok := typ.Underlying().(*types.Map)
	return ok
}

// sortedArgs are the calls whose result is sorted at once, as in
// slices.Sorted(maps.Keys(m)).
func sortedArgs(f *file) map[ast.Node]bool {
	out := map[ast.Node]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if q, name := f.callee(call); q == "slices" && strings.HasPrefix(name, "Sorted") && len(call.Args) > 0 {
				out[call.Args[0]] = true
			}
		}
		return true
	})
	return out
}

// excuses are the lines of f that carry the mark.
func (t *tree) excuses(f *file) []int {
	var lines []int
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if excused.MatchString(c.Text) {
				// the mark may open a comment of several lines
				lines = append(lines, t.line(c.Pos()), t.line(group.End()))
			}
		}
	}
	return lines
}

// findStandard tells the importer where the standard library is: a test that is
// built with -trimpath does not know it by itself. `go test` puts that
// installation's folder first into PATH.
var findStandard = sync.OnceFunc(func() {
	if build.Default.GOROOT != "" {
		return
	}
	if tool, err := exec.LookPath("go"); err == nil {
		if tool, err = filepath.EvalSymlinks(tool); err == nil {
			build.Default.GOROOT = filepath.Dir(filepath.Dir(tool))
		}
	}
})

// checker finds the types of deciding packages. It is forgiving: what it
// cannot resolve has no type and so is no map. Of the standard library it
// reads package maps alone.
type checker struct {
	tree *tree
	done map[string]*types.Package
	std  types.Importer
}

func (c *checker) check(p *pkg) *types.Info {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	var files []*ast.File
	for _, f := range p.code() {
		files = append(files, f.ast)
	}
	conf := types.Config{Importer: c, Error: func(error) {}}
	// The compiler reports errors; here a package with errors still has types.
	typed, _ := conf.Check(module+"/"+p.dir, c.tree.fset, files, info)
	c.done[module+"/"+p.dir] = typed
	return info
}

// Import implements [types.Importer].
func (c *checker) Import(importPath string) (*types.Package, error) {
	if typed, ok := c.done[importPath]; ok {
		return typed, nil
	}
	dir, own := strings.CutPrefix(importPath, module+"/")
	switch {
	case importPath == "maps":
		return c.std.Import(importPath)
	case !own:
		// Other packages of the standard library hand out no maps that a
		// decision would range over, and reading them takes seconds.
		return types.NewPackage(importPath, baseName(importPath)), nil
	}
	for _, p := range c.tree.pkgs {
		if p.dir == dir {
			c.done[importPath] = types.NewPackage(importPath, "") // an import cycle ends here
			c.check(p)
		}
	}
	return c.done[importPath], nil
}
