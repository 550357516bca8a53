package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the project's own import path.
const module = "github.com/pawl-dev/pawl"

// tree is the project as read: its packages and its text files.
type tree struct {
	fset  *token.FileSet
	pkgs  []*pkg
	texts []text
}

// pkg is one folder with Go files.
type pkg struct {
	dir   string // relative to the root, such as "internal/decide/loop"
	floor Floor  // 0 if the folder is on no floor
	room  string // name on the map: dir without "internal/" and the floor
	files []*file
}

// file is one Go file.
type file struct {
	path      string
	src       []byte
	ast       *ast.File
	test      bool
	generated bool
}

// text is one text file of any sort, Go files included.
type text struct {
	path string
	data []byte
}

// skipped are folders that are built or fetched, never written by hand.
var skipped = []string{".git", ".pawl", ".cache", "bin", "node_modules", "dist"}

// load reads the whole tree. Go files under testdata are text only, as for
// the go command.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	byDir := map[string]*pkg{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular() || name == ".git": // of a linked work tree
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return fmt.Errorf("cannot read the tree: %w", err)
		}
		if !isText(data) {
			return nil
		}
		t.texts = append(t.texts, text{name, data})
		if path.Ext(name) != ".go" || inTestdata(name) || inOtherModule(fsys, name) {
			return nil
		}
		return t.add(byDir, name, data)
	})
	return t, err
}

// inOtherModule is true for a file of a module of its own, which pawl's is not built with.
func inOtherModule(fsys fs.FS, name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(fsys, dir+"/go.mod"); err == nil {
			return true
		}
	}
	return false
}

func (t *tree) add(byDir map[string]*pkg, name string, data []byte) error {
	syntax, err := parser.ParseFile(t.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("cannot parse: %w", err)
	}
	dir := path.Dir(name)
	p := byDir[dir]
	if p == nil {
		p = &pkg{dir: dir}
		p.floor, p.room = placeOf(dir)
		byDir[dir] = p
		t.pkgs = append(t.pkgs, p)
	}
	p.files = append(p.files, &file{
		path:      name,
		src:       data,
		ast:       syntax,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
	})
	return nil
}

// code returns the package's files that go into a program.
func (p *pkg) code() []*file {
	var out []*file
	for _, f := range p.files {
		if !f.test {
			out = append(out, f)
		}
	}
	return out
}

// internal is true for a package below internal/.
func (p *pkg) internal() bool { return strings.HasPrefix(p.dir, "internal/") }

// each calls visit for every Go file that goes into a program.
func (t *tree) each(visit func(*pkg, *file)) {
	for _, p := range t.pkgs {
		for _, f := range p.code() {
			visit(p, f)
		}
	}
}

// imported is one import of a file.
type imported struct {
	path string
	line int
}

func (t *tree) imports(f *file) []imported {
	var out []imported
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser has checked it
		}
		out = append(out, imported{p, t.line(spec.Pos())})
	}
	return out
}

// callee returns the package and the name of a call such as time.Now(), as
// the file's imports name the package; both are empty for other calls.
// A value's method has an empty package.
func (f *file) callee(call *ast.CallExpr) (pkgPath, name string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	return f.qualifier(sel), sel.Sel.Name
}

// qualifier returns the import path that sel's left side names, or "".
func (f *file) qualifier(sel *ast.SelectorExpr) string {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	for _, spec := range f.ast.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if (spec.Name != nil && spec.Name.Name == id.Name) || (spec.Name == nil && baseName(p) == id.Name) {
			return p
		}
	}
	return ""
}

// baseName is the package name that an import path suggests: math/rand/v2 is rand.
func baseName(importPath string) string {
	base := path.Base(importPath)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		return path.Base(path.Dir(importPath))
	}
	return base
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// isText is true for files without a NUL in their first 8,000 bytes, as git sees it.
func isText(data []byte) bool {
	return !bytes.Contains(data[:min(len(data), 8000)], []byte{0})
}

func inTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// lineOf returns the 1-based line of an offset.
func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}
