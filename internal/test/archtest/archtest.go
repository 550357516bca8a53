package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"slices"
)

// Problem is one place where the tree and the map differ.
type Problem struct {
	File string // slash-separated, relative to the root of the tree
	Line int    // 1-based; 0 when the whole file or folder is meant
	Rule string // name of the rule
	What string // what was found
	Why  string // why the rule is there and what to do instead
}

// String gives the place, the finding and the lesson.
func (p Problem) String() string {
	return p.Finding() + "\n\t" + p.Why
}

// Finding gives the place and the finding in one line.
func (p Problem) Finding() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", p.File, p.Rule, p.What)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Rule, p.What)
}

// rule is one thing that holds everywhere in the tree.
type rule struct {
	name  string
	why   string
	check func(*tree, report)
}

// report takes one finding of a rule; pos is a [token.Pos] in the tree.
type report func(file string, line int, format string, args ...any)

// rules is every rule, in the order in which a reader should hear of them.
var rules = []rule{
	{"room", "the folder of a package says on which floor it lives and so what it may import: internal/ask, decide, do, keep or test; a room on no floor becomes a corridor", checkRooms},
	{"imports", "asking may use doing, doing may use remembering, all may use deciding, and nobody calls upward: see rooms.go; pass data down or declare a small interface where it is needed", checkImports},
	{"dependency", "every module that pawl pulls in is one that its users must trust; rooms.go lists the few and where they may be used", checkDependencies},
	{"stdlib", "what touches the world is kept in few rooms, so that each touch has one owner: see rooms.go", checkStdlib},
	{"pure", "deciding packages take data and return data, so that a decision can be replayed, fuzzed and simulated; time, results and the seed come in with the event", checkPure},
	{"order", "the order of a map changes from run to run, and a recorded decision must come out the same: sort the keys, or say `// order does not show: <reason>` on the line or the line before", checkOrder},
	{"go", "who starts a goroutine must wait for it; few rooms may start one, so that this can be seen: see rooms.go", checkGo},
	{"env", "configuration comes from one place with its provenance; only config reads the environment for it: see rooms.go", checkEnv},
	{"git", "the user's git has hooks, filters and configuration that pawl must switch off; internal/do/git/command does that for every call", checkGit},
	{"opens", "an agent may put a link, a pipe or another file's name in the place of any file that it can write: package files opens what lies below a work tree or a .git; opens.go lists what else may be opened", checkOpens},
	{"sql", "all the SQL there is lives in internal/keep/store and below, one file per noun, so that a migration sees every reader", checkSQL},
	{"plural", "1 file(s) reads like a form; fault.Numbered says 1 file and 2 files", checkPlural},
	{"name", "packages are nouns of the domain; a drawer without a label collects everything", checkNames},
	{"length", "a file tells one story in at most 500 lines", checkLength},
	{"machine", "paths and addresses of one machine do not work on another, and say more about it than they should; a registry is the user's own choice", checkMachine},
	{"readme", "README.md is read by someone who has two minutes; at most 200 lines, the rest belongs into docs/", checkReadme},
	{"map", "ARCHITECTURE.md is the map for people, and a map without a room misleads; name the package there as `name/`", checkMap},
}

// Check holds a tree against the map and returns the problems in the order
// of rules, then files. An error means that the tree could not be read; a
// file that does not parse is an error too.
func Check(fsys fs.FS) ([]Problem, error) {
	t, err := load(fsys)
	if err != nil {
		return nil, err
	}
	var all []Problem
	for _, r := range rules {
		var found []Problem
		r.check(t, func(file string, line int, format string, args ...any) {
			found = append(found, Problem{file, line, r.name, fmt.Sprintf(format, args...), r.why})
		})
		slices.SortStableFunc(found, func(a, b Problem) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		all = append(all, found...)
	}
	return all, nil
}

// inspect walks the syntax of f and gives each node with its line.
func (t *tree) inspect(f *file, visit func(n ast.Node, line int)) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n != nil {
			visit(n, t.line(n.Pos()))
		}
		return true
	})
}

func (t *tree) line(pos token.Pos) int { return t.fset.Position(pos).Line }
