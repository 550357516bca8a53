package safety

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// This file lists the simple commands of a shell text, without running
// anything. mvdan.cc/sh parses the text; what is here expands words as far as
// their values are known. The rules are:
//   - every byte is paid for from a budget, also those of text that is read
//     again (eval, sh -c, variables), so the work is linear in the input;
//   - nesting has a limit; what is nested deeper, or has used the budget up,
//     is tangled, and that alone is a finding;
//   - what cannot be known stays as "$NAME" or "$()" in the text.

const (
	// maxDepth is how deeply texts and substitutions may be nested.
	maxDepth = 40
	// maxNesting is how many brackets and keywords a text may have.
	maxNesting = 1 << 15
	// maxCompound is how deeply loops and the like may be nested.
	maxCompound = 200
	// maxChain is how many commands may be joined by &&, || and pipes.
	maxChain = 2000
	// maxText is as much of a command as is read.
	maxText = 1 << 20
	// maxZsh is the length up to which text that is no bash is tried as zsh.
	maxZsh = 64 << 10
	// maxBraces is how many words one word with braces may become.
	maxBraces = 64
	// perText is what reading a text costs beside its length.
	perText = 32
)

// command is one simple command.
type command struct {
	words     []word
	redirects []redirect
	text      string   // what is on its stdin, when known
	fed       bool     // text is known
	from      *command // what is piped into it; nil
	drained   bool     // its output is piped on
	mark      byte     // '(' or ')' of a subshell, which has a working folder of its own; 0 for a command
	defines   string   // the name of a function; its body follows
	env       []string // NAME=value of the variables that say what sort of run it is
}

type word struct {
	text   string
	unread bool // it is what a command prints that fetches or decodes text
}

type redirect struct {
	op     string
	target word
}

// shell is what all text of one command shares.
type shell struct {
	budget  int
	tangled bool
	vars    map[string]string
	lists   map[string]bool // variables of a for loop
	env     []string        // NAME=value of the variables that say what sort of run it is
	out     []*command      // all commands, those of substitutions before the command that they are in
	depth   int
}

func newShell(size int) *shell {
	return &shell{budget: 6*size + 1<<15, vars: map[string]string{"IFS": " "}, lists: map[string]bool{}}
}

// pay takes n bytes of work from the budget; false when there is none.
func (s *shell) pay(n int) bool {
	s.budget -= n
	if s.budget < 0 {
		s.tangled = true
	}
	return !s.tangled
}

// nest does something one level deeper, if that is allowed.
func (s *shell) nest(limit int, do func()) {
	if s.depth >= limit {
		s.tangled = true
	}
	if s.tangled {
		return
	}
	s.depth++
	do()
	s.depth--
}

// read adds the commands of a text to s.out.
func (s *shell) read(text string, depth int) {
	if depth > maxDepth || nesting(text) > maxNesting || !s.pay(len(text)+perText) {
		s.tangled = true
		return
	}
	before := s.depth
	s.depth = depth
	stmts, end, err := parse(text, syntax.LangBash)
	if err != nil && len(text) < maxZsh {
		if all, _, err := parse(text, syntax.LangZsh); err == nil {
			stmts, end = all, len(text)
		}
	}
	s.stmts(stmts)
	if err != nil {
		s.pieces(text[end:])
	}
	s.depth = before
}

// pieces reads what no shell can parse as a whole: another shell may, so each
// part that is a command by itself counts.
func (s *shell) pieces(text string) {
	for piece := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == '\n' || c == ';' }) {
		if stmts, _, err := parse(piece, syntax.LangBash); err == nil && s.pay(perText) {
			s.stmts(stmts)
		}
	}
}

// nesting is at most how often the parser calls itself for a text. The stack
// of a program is limited, so it is known before the text is parsed.
func nesting(text string) (n int) {
	for _, opens := range []string{"(", "{", "[", "if", "while", "until", "for", "case", "select", "time", "coproc"} {
		n += strings.Count(text, opens)
	}
	return n
}

// parse returns the statements before the first error, and where they end.
func parse(text string, lang syntax.LangVariant) (stmts []*syntax.Stmt, end int, err error) {
	for stmt, problem := range syntax.NewParser(syntax.Variant(lang)).StmtsSeq(strings.NewReader(text)) {
		if err == nil {
			err = problem
		}
		if err != nil {
			continue // to the end: the parser calls again also after a loop was left, which is a panic
		}
		stmts = append(stmts, stmt)
		end = min(int(stmt.End().Offset()), len(text)) //nolint:gosec // a text is short
	}
	return stmts, end, err
}

// stmts returns the commands of a list's own level.
func (s *shell) stmts(list []*syntax.Stmt) []*command {
	var all []*command
	for _, stmt := range list {
		if !s.tangled {
			all = append(all, s.stmt(stmt)...)
		}
	}
	return all
}

func (s *shell) stmt(stmt *syntax.Stmt) []*command {
	cmd := &command{}
	var all []*command
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		s.assign(c.Assigns)
		cmd.words = s.words(c.Args)
		s.environ(cmd, c.Assigns, len(c.Args) == 0)
	case *syntax.DeclClause:
		cmd.words = append(cmd.words, word{text: c.Variant.Value})
		s.assign(c.Args)
		s.environ(cmd, c.Args, true)
	case *syntax.BinaryCmd:
		all = s.chain(c)
	case nil:
	default:
		all = s.compound(c)
	}
	s.redirects(cmd, stmt.Redirs)
	if len(cmd.words) > 0 && cmd.words[0].text == "read" {
		for _, w := range cmd.words[1:] {
			delete(s.vars, w.text)
		}
	}
	if len(cmd.words) == 0 && len(cmd.redirects) == 0 && !cmd.fed {
		return all
	}
	s.out = append(s.out, cmd)
	return append(all, cmd)
}

// chain reads commands that are joined by &&, || or pipes. The parser nests
// such lists to the left.
func (s *shell) chain(last *syntax.BinaryCmd) []*command {
	list := []*syntax.BinaryCmd{last}
	first := last.X
	for next, ok := first.Cmd.(*syntax.BinaryCmd); ok && len(first.Redirs) == 0; next, ok = first.Cmd.(*syntax.BinaryCmd) {
		list = append(list, next)
		first = next.X
	}
	if len(list) > maxChain {
		s.tangled = true
		return nil
	}
	all := s.stmt(first)
	for i := len(list) - 1; i >= 0; i-- {
		next := s.stmt(list[i].Y)
		pipe := list[i].Op == syntax.Pipe || list[i].Op == syntax.PipeAll
		if pipe && len(all) > 0 && len(next) > 0 {
			from := all[len(all)-1]
			from.drained = true
			next[0].from = from
		}
		all = append(all, next...)
	}
	return all
}

// compound reads what holds other commands.
func (s *shell) compound(c syntax.Command) (all []*command) {
	s.nest(maxCompound, func() {
		switch c := c.(type) {
		case *syntax.Subshell:
			all = s.subshell(c.Stmts)
		case *syntax.Block:
			all = s.stmts(c.Stmts)
		case *syntax.IfClause:
			for part := c; part != nil; part = part.Else {
				all = append(all, s.stmts(part.Cond)...)
				all = append(all, s.stmts(part.Then)...)
			}
		case *syntax.WhileClause:
			all = append(s.stmts(c.Cond), s.stmts(c.Do)...)
		case *syntax.ForClause:
			s.loop(c.Loop)
			all = s.stmts(c.Do)
		case *syntax.CaseClause:
			s.words([]*syntax.Word{c.Word})
			for _, item := range c.Items {
				s.words(item.Patterns)
				all = append(all, s.stmts(item.Stmts)...)
			}
		case *syntax.FuncDecl:
			if c.Name != nil {
				s.out = append(s.out, &command{defines: c.Name.Value})
			}
			all = s.stmt(c.Body)
		case *syntax.TimeClause:
			if c.Stmt != nil {
				all = s.stmt(c.Stmt)
			}
		case *syntax.CoprocClause:
			all = s.stmt(c.Stmt)
		default:
			s.substitutions(c)
		}
	})
	return all
}

// subshell reads what runs in a subshell.
func (s *shell) subshell(list []*syntax.Stmt) (all []*command) {
	s.nest(maxDepth, func() {
		s.out = append(s.out, &command{mark: '('})
		all = s.stmts(list)
		s.out = append(s.out, &command{mark: ')'})
	})
	return all
}

// loop keeps the values of a loop's variable.
func (s *shell) loop(l syntax.Loop) {
	each, ok := l.(*syntax.WordIter)
	if !ok {
		s.substitutions(l)
		return
	}
	if each.InPos.IsValid() {
		s.set(each.Name.Value, joined(s.words(each.Items)))
		s.lists[each.Name.Value] = true
	}
}

// assign takes NAME=value and NAME+=value.
func (s *shell) assign(list []*syntax.Assign) {
	for _, a := range list {
		switch {
		case a.Name == nil || a.Naked:
		case a.Array != nil:
			s.substitutions(a.Array)
		default:
			value := ""
			if a.Value != nil {
				value = s.text(a.Value)
			}
			if a.Append {
				value = s.vars[a.Name.Value] + value
			}
			s.set(a.Name.Value, value)
		}
	}
}

// environ notes the variables that say what sort of run a command is: those in
// front of it, and those that stay.
func (s *shell) environ(cmd *command, list []*syntax.Assign, stay bool) {
	cmd.env = s.env[:len(s.env):len(s.env)]
	for _, a := range list {
		if a.Name != nil && slices.Contains(words()["kind of run"], a.Name.Value) {
			cmd.env = append(cmd.env, a.Name.Value+"="+s.vars[a.Name.Value])
		}
	}
	if stay && len(cmd.env) < 100 {
		s.env = cmd.env
	}
}

func (s *shell) set(name, value string) {
	if s.pay(len(value)) {
		s.vars[name] = value
		delete(s.lists, name)
	}
}

func (s *shell) redirects(cmd *command, list []*syntax.Redirect) {
	for _, r := range list {
		op := r.Op.String()
		switch {
		case r.Hdoc != nil:
			cmd.text, cmd.fed = s.document(r), true
			continue
		case r.Word == nil:
			continue
		}
		for i, w := range s.words([]*syntax.Word{r.Word}) {
			if op == "<<<" && i == 0 {
				cmd.text, cmd.fed = w.text, true
			}
			cmd.redirects = append(cmd.redirects, redirect{op, w})
		}
	}
}

// substitutions reads the commands that are somewhere in a part of the tree.
func (s *shell) substitutions(in syntax.Node) {
	if in == nil || in.End().Offset()-in.Pos().Offset() > maxText/16 {
		s.tangled = s.tangled || in != nil // a long chain would need a deep stack
		return
	}
	syntax.Walk(in, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s.subshell(n.Stmts)
			return false
		case *syntax.ProcSubst:
			s.subshell(n.Stmts)
			return false
		}
		return true
	})
}
