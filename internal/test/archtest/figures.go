package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Figure is one number about the product code that a newcomer feels.
type Figure struct {
	Name  string
	Value int
	// Limit is the worst that is allowed: the most, or the least where More is
	// better. It is only ever made stricter.
	Limit int
	More  bool
	Why   string
	// Places are what was counted, for who wants to have less of it.
	Places []string
}

// limits has each figure with the limit that it keeps to, and why it is counted.
var limits = []struct {
	name  string
	limit int
	why   string
	count func(*census) (int, []string)
}{
	{"lines of code", 116399, "what is there has to be read: a feature takes out what it replaces", func(c *census) (int, []string) { return c.lines, nil }},
	{"lines of the largest room", 3500, "a room is held in one head; what has two subjects becomes two", func(c *census) (int, []string) { return largest(c.rooms), above(c.rooms, 3000) }},
	{"rooms over 3,500 lines", 0, "as above, for those that follow", func(c *census) (int, []string) { return counted(above(c.rooms, 3500)) }},
	{"most methods of a type", 60, "a type with so many is a name space: nobody can say what it is for", func(c *census) (int, []string) { return largest(c.methods), above(c.methods, 40) }},
	{"types over 60 methods", 0, "as above, for those that follow", func(c *census) (int, []string) { return counted(above(c.methods, 60)) }},
	{"structs of 25 fields or more", 5, "nobody fills in so many fields rightly: fields that belong together are a struct", func(c *census) (int, []string) { return counted(above(c.fields, 24)) }},
	{"unexported functions whose name is one word", 31, "a name says what is done to what: chooseStrategy, not choose", func(c *census) (int, []string) { return counted(c.oneWord) }},
	{"one-word names that more than five rooms have", 0, "settle is another thing in each of its eighteen rooms", func(c *census) (int, []string) { return counted(c.sharedNames(5)) }},
	{"letters in 100 names of functions", 1006, "short names are read fast and understood late", func(c *census) (int, []string) { return 100 * c.letters / max(1, c.functions), nil }},
	{"comments that say what a name should have said", 46, "X is what …, X says why …: the sentence has the better name in it", func(c *census) (int, []string) { return counted(c.riddles) }},
	{"private words in comments", 140, "told, settled and heard mean something in this house alone: use the field's word", func(c *census) (int, []string) { return counted(c.private) }},
	{"lines over 120 columns", 215, "the end of a long line is not read; a tab is four columns", func(c *census) (int, []string) { return counted(c.long) }},
	{"lines that mix && and ||", 86, "who reads them counts brackets: give the half a name", func(c *census) (int, []string) { return counted(c.mixed) }},
}

// moreIsBetter are the figures whose limit is the least that is allowed.
var moreIsBetter = []string{"letters in 100 names of functions"}

// Figures counts the product code of a tree: no tests, no generated files and
// nothing that is in no program. It gives the lines of each room, too.
func Figures(fsys fs.FS) (figures []Figure, rooms map[string]int, err error) {
	t, err := load(fsys)
	if err != nil {
		return nil, nil, err
	}
	c := &census{tree: t, rooms: map[string]int{}, methods: map[string]int{}, fields: map[string]int{}, oneWordRooms: map[string][]string{}}
	t.each(func(p *pkg, f *file) {
		if p.floor != Testing && (p.internal() || within(p.dir, "cmd")) && !f.generated {
			c.addFile(p, f)
		}
	})
	for _, l := range limits {
		value, places := l.count(c)
		figures = append(figures, Figure{l.name, value, l.limit, slices.Contains(moreIsBetter, l.name), l.why, places})
	}
	return figures, c.rooms, nil
}

// IsBroken is true if the code is worse than the limit allows.
func (f Figure) IsBroken() bool {
	if f.More {
		return f.Value < f.Limit
	}
	return f.Value > f.Limit
}

// IsLoose is true if the code has become so much better that the limit allows
// to lose what was won: by a twentieth.
func (f Figure) IsLoose() bool {
	slack := f.Limit / 20
	if f.More {
		return f.Value > f.Limit+slack
	}
	return f.Value < f.Limit-slack
}

// census is what was counted.
type census struct {
	tree                      *tree
	lines, functions, letters int
	rooms, methods, fields    map[string]int // by room, type, struct
	oneWordRooms              map[string][]string
	oneWord, riddles, private []string
	long, mixed               []string
}

// riddle is a doc comment that says in a clause what the name should have said.
var riddle = regexp.MustCompile(`^\w+ (is|are|says|tells|holds|has) (what|why|that|true for|true of|those|whatever|whoever|one that|where|when|whether)\b`)

// privateWord is a word that is used here in a sense of its own.
var privateWord = regexp.MustCompile(`(?i)\b(told|tells?|nobody|whoever|whatever comes|goes on|comes to|taken up|settle[sd]?|heard|wish(es)?|stumbled|wary|hasty|hastily|homeless|likewise|thrown says|of whom|whose they are)\b`)

func (c *census) addFile(p *pkg, f *file) {
	lines := strings.Split(string(f.src), "\n")
	code, operators := scanLines(f.src)
	c.lines += len(code)
	c.rooms[p.room] += len(code)
	for _, line := range slices.Sorted(maps.Keys(code)) {
		at := fmt.Sprintf("%s:%d", f.path, line)
		if utf8.RuneCountInString(strings.ReplaceAll(lines[line-1], "\t", "    ")) > 120 {
			c.long = append(c.long, at)
		}
		if operators[line] == 3 {
			c.mixed = append(c.mixed, at)
		}
	}
	for _, group := range f.ast.Comments {
		for _, word := range privateWord.FindAllString(group.Text(), -1) {
			c.private = append(c.private, fmt.Sprintf("%s:%d %s", f.path, c.tree.line(group.Pos()), word))
		}
	}
	for _, d := range f.ast.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.addFunction(p, f, d)
		case *ast.GenDecl:
			c.addStructs(p, d)
		}
	}
}

func (c *census) addStructs(p *pkg, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		named, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		if fields, ok := named.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				c.fields[p.room+"."+named.Name.Name] += max(1, len(field.Names))
			}
		}
	}
}

func (c *census) addFunction(p *pkg, f *file, d *ast.FuncDecl) {
	name := d.Name.Name
	if slices.Contains([]string{"main", "init", "_"}, name) {
		return
	}
	at := fmt.Sprintf("%s:%d %s", f.path, c.tree.line(d.Name.Pos()), name)
	c.functions++
	c.letters += len(name)
	if d.Doc != nil && riddle.MatchString(d.Doc.Text()) {
		c.riddles = append(c.riddles, at)
	}
	if !d.Name.IsExported() {
		if isOneWord(name) {
			c.oneWord = append(c.oneWord, at)
			if !slices.Contains(c.oneWordRooms[name], p.room) {
				c.oneWordRooms[name] = append(c.oneWordRooms[name], p.room)
			}
		}
	}
	if d.Recv != nil {
		c.methods[p.room+"."+receiver(d.Recv.List[0].Type)]++
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// isOneWord is true for take, and false for takeSlot; an abbreviation is one word.
func isOneWord(name string) bool {
	before := 'A'
	for i, r := range name {
		if i > 0 && (r == '_' || unicode.IsUpper(r) && !unicode.IsUpper(before)) {
			return false
		}
		before = r
	}
	return true
}

// sharedNames are the one-word names of functions that more than so many rooms have.
func (c *census) sharedNames(most int) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.oneWordRooms)) {
		if rooms := c.oneWordRooms[name]; len(rooms) > most {
			out = append(out, name+": "+strings.Join(rooms, " "))
		}
	}
	return out
}

// scanLines returns the lines that hold code, and which of && (1) and || (2) each has.
func scanLines(text []byte) (code map[int]bool, operators map[int]int) {
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

// largest is the largest number in m.
func largest(m map[string]int) int {
	most := 0
	for _, n := range m {
		most = max(most, n)
	}
	return most
}

// above are the names in m with more than limit, the largest first.
func above(m map[string]int, limit int) []string {
	names := slices.DeleteFunc(slices.Collect(maps.Keys(m)), func(name string) bool { return m[name] <= limit })
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%5d %s", m[name], name)
	}
	return names
}

func counted(places []string) (int, []string) { return len(places), places }
