package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change of one line.
type mutant struct {
	file     string
	line     int
	change   string
	from, to int // bytes, in whose place comes text
	text     string
}

func (m mutant) key() string { return fmt.Sprint(m.file, ":", m.line) }

// swapped are words and what is put in their place.
var swapped = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
	"true": "false", "false": "true",
}

// mutants are the lines of a file that can be broken, each with the ways.
func mutants(name string, text []byte) (lines [][]mutant, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.ParseComments)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	byLine := make([][]mutant, files.File(parsed.Pos()).LineCount()+1)
	change := func(from, to token.Pos, format string) {
		a, b := files.Position(from), files.Position(to).Offset
		was := string(text[a.Offset:b])
		put := strings.ReplaceAll(format, "%s", was)
		what := fmt.Sprintf("%s → %s", was, put)
		if put == "" {
			what = "without " + was
		}
		what = strings.Join(strings.Fields(what), " ")
		byLine[a.Line] = append(byLine[a.Line], mutant{name, a.Line, what, a.Offset, b, put})
	}
	swap := func(at token.Pos, word string) {
		if put, ok := swapped[word]; ok {
			change(at, at+token.Pos(len(word)), put)
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT
		case *ast.FuncDecl:
			if n.Body != nil && n.Type.Results == nil && len(n.Body.List) > 1 {
				change(n.Body.Lbrace, n.Body.Lbrace+1, "{ return;")
			}
		case *ast.IfStmt:
			change(n.Cond.Pos(), n.Cond.End(), "!(%s)")
		case *ast.BinaryExpr:
			swap(n.OpPos, n.Op.String())
		case *ast.Ident:
			swap(n.Pos(), n.Name)
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt:
			change(n.Pos(), n.End(), "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				change(n.Pos(), n.End(), "")
			}
		case *ast.BasicLit:
			if number, err := strconv.Atoi(n.Value); err == nil {
				change(n.Pos(), n.End(), strconv.Itoa(number+1))
			}
		case *ast.ReturnStmt:
			if last := len(n.Results) - 1; last >= 0 {
				if id, ok := n.Results[last].(*ast.Ident); ok && id.Name == "err" {
					change(id.Pos(), id.End(), "nil")
				}
			}
		}
		return true
	})
	return slices.DeleteFunc(byLine, func(l []mutant) bool { return len(l) == 0 }), nil
}
