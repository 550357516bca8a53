// Command size prints how large the product code is, by room, and how it reads:
// lines of code (neither blank nor comment), long lines, lines that mix && and
// ||, and how long functions are.  go run ./scripts/size
//
// Product code is every Go file of cmd and internal but tests, generated files
// and the rooms that are tools for tests.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// room is what is counted of one package.
type room struct {
	code, long, mixed int
	functions         []int // lines of each
}

func main() {
	rooms := map[string]*room{}
	for _, root := range []string{"cmd", "internal"} {
		if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "internal/")
			if strings.HasPrefix(name, "test/") { // in no program
				return nil
			}
			if rooms[name] == nil {
				rooms[name] = &room{}
			}
			return rooms[name].count(path)
		}); err != nil {
			fmt.Fprintln(os.Stderr, "cannot measure:", err)
			os.Exit(1)
		}
	}
	show(rooms)
}

func show(rooms map[string]*room) {
	var all room
	names := make([]string, 0, len(rooms))
	for name, r := range rooms {
		names = append(names, name)
		all.code, all.long, all.mixed = all.code+r.code, all.long+r.long, all.mixed+r.mixed
		all.functions = append(all.functions, r.functions...)
	}
	slices.SortFunc(names, func(a, b string) int { return rooms[b].code - rooms[a].code })
	for _, name := range names {
		fmt.Printf("%7d  %s\n", rooms[name].code, name)
	}
	slices.Sort(all.functions)
	n := len(all.functions)
	fmt.Printf("%7d  lines of product code\n", all.code)
	fmt.Printf("%7.1f  in 1,000 lines are over 120 columns\n", 1000*float64(all.long)/float64(all.code))
	fmt.Printf("%7.1f  in 1,000 lines mix && and ||\n", 1000*float64(all.mixed)/float64(all.code))
	fmt.Printf("%7d  functions: half have at most %d lines, nine in ten %d, the longest %d\n",
		n, all.functions[n/2], all.functions[n*9/10], all.functions[n-1])
}

// count adds the file at path.
func (r *room) count(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			r.functions = append(r.functions, files.Position(f.End()).Line-files.Position(f.Pos()).Line+1)
		}
	}
	lines := strings.Split(string(text), "\n")
	code, operators := tokens(text)
	r.code += len(code)
	for line := range code {
		if utf8.RuneCountInString(lines[line-1]) > 120 {
			r.long++
		}
		if operators[line] == 3 {
			r.mixed++
		}
	}
	return nil
}

// tokens returns the lines that hold code, and which of && (1) and || (2) each has.
func tokens(text []byte) (code map[int]bool, operators map[int]int) {
	code, operators = map[int]bool{}, map[int]int{}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return code, operators
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		for n := range 1 + strings.Count(literal, "\n") { // a raw string has many lines
			code[first+n] = true
		}
		switch tok {
		case token.LAND:
			operators[first] |= 1
		case token.LOR:
			operators[first] |= 2
		}
	}
}
