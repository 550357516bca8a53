package safety

import (
	"cmp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// This file goes through a shell text, without running anything, and has each
// simple command judged. mvdan.cc/sh parses the text; word.go expands words as
// far as their values are known. The rules are:
//   - every byte is paid for from a budget, also those of text that is read
//     again (eval, sh -c, variables), so the work is linear in the input;
//   - nesting has a limit; what is nested deeper, or has used the budget up,
//     is tangled, and that alone is a finding;
//   - what cannot be known stays as "$NAME" or "$()" in the text.

const (
	// maxDepth is how deeply texts, commands and substitutions may be nested.
	maxDepth = 40
	// maxNesting is how many brackets and keywords a text may have.
	maxNesting = 1 << 15
	// maxChain is how many commands may be joined by &&, || and pipes.
	maxChain = 2000
	// maxText is as much of a command as is read.
	maxText = 1 << 20
	// maxSettings is how many variables that were set are remembered as settings.
	maxSettings = 100
	// perText is the cost of reading a text, in addition to its length.
	perText = 32
)

// command is one simple command.
type command struct {
	words    []string
	settings []string // NAME=value of the variables that were set for it
	text     string   // what is on its stdin, when known
	fed      bool     // text is known
	from     *command // what is piped into it; nil
	kept     bool     // what it prints goes into a pipe or a file
}

// shell judges the commands of one text.
type shell struct {
	rules     Rules
	found     *Finding
	budget    int
	depth     int
	tangled   bool
	vars      map[string]string
	loops     map[string]bool // variables of a for loop
	settings  []string        // NAME=value of the variables that stay set
	functions map[string]bool
	cwd       string // "" when it is not known
	contained bool   // files are a container's own
}

// payBudget takes n bytes of work from the budget; false when there is none.
func (s *shell) payBudget(n int) bool {
	s.budget -= n
	s.tangled = s.tangled || s.budget < 0
	return !s.tangled
}

// runOneLevelDeeper calls do one level deeper, if that is allowed.
func (s *shell) runOneLevelDeeper(do func()) {
	s.tangled = s.tangled || s.depth >= maxDepth
	if s.tangled || s.found != nil {
		return
	}
	s.depth++
	do()
	s.depth--
}

func (s *shell) judgeText(text string) {
	s.runOneLevelDeeper(func() {
		if countBrackets(text) > maxNesting || !s.payBudget(len(text)+perText) {
			s.tangled = true
			return
		}
		stmts, end, err := parseText(text)
		s.judgeStatements(stmts, nil, false)
		if err == nil {
			return
		}
		// Another shell may know what this one cannot parse, so each line that is a command by itself counts.
		for piece := range strings.FieldsFuncSeq(text[end:], func(c rune) bool { return c == '\n' || c == ';' }) {
			if stmts, _, err := parseText(piece); err == nil && s.payBudget(perText) {
				s.judgeStatements(stmts, nil, false)
			}
		}
	})
}

// countBrackets is at most how often the parser calls itself for a text. The stack
// of a program is limited, so it is known before the text is parsed.
func countBrackets(text string) (n int) {
	for _, opens := range []string{"(", "{", "[", "if", "while", "until", "for", "case", "select", "time", "coproc"} {
		n += strings.Count(text, opens)
	}
	return n
}

// parseText returns the statements before the first error, and where they end.
func parseText(text string) (stmts []*syntax.Stmt, end int, err error) {
	for stmt, problem := range syntax.NewParser().StmtsSeq(strings.NewReader(text)) {
		err = cmp.Or(err, problem)
		if err != nil {
			continue // to the end: the parser calls again also after a loop was left, which is a panic
		}
		stmts = append(stmts, stmt)
		end = min(int(stmt.End().Offset()), len(text)) //nolint:gosec // a text is short
	}
	return stmts, end, err
}

// judgeStatements judges a list, the first of which gets what from prints, and returns its last
// command; kept is true if their output goes into a pipe or a file.
func (s *shell) judgeStatements(list []*syntax.Stmt, from *command, kept bool) (last *command) {
	for _, stmt := range list {
		if s.tangled || s.found != nil {
			break
		}
		if c := s.judgeStatement(stmt, from, kept); c != nil {
			last = c
		}
		from = nil
	}
	return last
}

func (s *shell) judgeStatement(stmt *syntax.Stmt, from *command, kept bool) *command {
	cmd := &command{from: from, kept: kept || len(stmt.Redirs) > 0, settings: s.settings}
	last := cmd
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		set := s.readAssignments(c.Assigns)
		cmd.settings = append(slices.Clip(s.settings), set...)
		cmd.words = s.expandWords(c.Args)
		s.keepSettings(cmd, len(c.Args) == 0)
	case *syntax.DeclClause:
		cmd.settings = append(slices.Clip(s.settings), s.readAssignments(c.Args)...)
		s.keepSettings(cmd, true)
	case *syntax.BinaryCmd:
		last = s.judgeChain(c, from, kept)
	case nil:
	default:
		last = s.judgeCompound(c, from, cmd.kept)
	}
	s.judgeRedirects(cmd, stmt.Redirs)
	if len(cmd.words) > 0 {
		isItself := from != nil && len(from.words) > 0 && from.words[0] == cmd.words[0]
		if isItself && s.functions[cmd.words[0]] {
			s.reportFinding(finding{pattern: "fork-bomb", why: "starts processes without end", danger: High}, cmd.words)
		}
		s.judgeCommand(cmd, cmd.words)
	}
	return last
}

// keepSettings has the commands that follow run with the variables of this one.
func (s *shell) keepSettings(cmd *command, stay bool) {
	if stay && len(cmd.settings) < maxSettings {
		s.settings = cmd.settings
	}
}

// judgeChain judges commands that are joined by &&, || or pipes. The parser nests such lists to the
// left.
func (s *shell) judgeChain(c *syntax.BinaryCmd, from *command, kept bool) (last *command) {
	list := []*syntax.BinaryCmd{c}
	first := c.X
	for next, ok := first.Cmd.(*syntax.BinaryCmd); ok && len(first.Redirs) == 0; next,
		ok = first.Cmd.(*syntax.BinaryCmd) {
		list = append(list, next)
		first = next.X
	}
	if len(list) > maxChain {
		s.tangled = true
		return nil
	}
	isPiped := func(i int) bool { // into the one after it
		return i >= 0 && (list[i].Op == syntax.Pipe || list[i].Op == syntax.PipeAll)
	}
	last = s.judgeStatement(first, from, kept || isPiped(len(list)-1))
	for i := len(list) - 1; i >= 0; i-- {
		from = nil
		if isPiped(i) {
			from = last
		}
		last = s.judgeStatement(list[i].Y, from, kept || isPiped(i-1))
	}
	return last
}

// judgeCompound judges a command that contains others.
func (s *shell) judgeCompound(c syntax.Command, from *command, kept bool) (last *command) {
	s.runOneLevelDeeper(func() {
		switch c := c.(type) {
		case *syntax.Subshell:
			last = s.judgeSubshell(c.Stmts, from, kept)
		case *syntax.Block:
			last = s.judgeStatements(c.Stmts, from, kept)
		case *syntax.IfClause:
			for part := c; part != nil; part = part.Else {
				s.judgeStatements(part.Cond, nil, kept)
				last = s.judgeStatements(part.Then, nil, kept)
			}
		case *syntax.WhileClause:
			s.judgeStatements(c.Cond, from, kept)
			last = s.judgeStatements(c.Do, nil, kept)
		case *syntax.ForClause:
			if each, ok := c.Loop.(*syntax.WordIter); ok && len(each.Items) > 0 {
				s.setVariable(each.Name.Value, strings.Join(s.expandWords(each.Items), " "))
				s.loops[each.Name.Value] = true
			} else {
				s.judgeSubstitutions(c.Loop)
			}
			last = s.judgeStatements(c.Do, nil, kept)
		case *syntax.CaseClause:
			s.expandWords([]*syntax.Word{c.Word})
			for _, item := range c.Items {
				last = s.judgeStatements(item.Stmts, nil, kept)
			}
		case *syntax.FuncDecl:
			if c.Name != nil { // some have none
				s.functions[c.Name.Value] = true
			}
			s.judgeStatement(c.Body, nil, kept)
		case *syntax.TimeClause:
			if c.Stmt != nil {
				last = s.judgeStatement(c.Stmt, from, kept)
			}
		case *syntax.CoprocClause:
			last = s.judgeStatement(c.Stmt, from, kept)
		default:
			s.judgeSubstitutions(c)
		}
	})
	return last
}

// judgeSubshell judges commands in a subshell, which has a working folder of its own.
func (s *shell) judgeSubshell(list []*syntax.Stmt, from *command, kept bool) (last *command) {
	s.runOneLevelDeeper(func() {
		cwd := s.cwd
		last = s.judgeStatements(list, from, kept)
		s.cwd = cwd
	})
	return last
}

// readAssignments takes NAME=value and NAME+=value, and returns them.
func (s *shell) readAssignments(list []*syntax.Assign) (set []string) {
	for _, a := range list {
		switch {
		case a.Name == nil || a.Naked:
		case a.Array != nil:
			s.judgeSubstitutions(a.Array)
		default:
			value := ""
			if a.Value != nil {
				value = s.expandText(a.Value)
			}
			if a.Append {
				value = s.vars[a.Name.Value] + value
			}
			s.setVariable(a.Name.Value, value)
			set = append(set, a.Name.Value+"="+cutToLine(value, 200))
		}
	}
	return set
}

func (s *shell) setVariable(name, value string) {
	if s.payBudget(len(value)) {
		s.vars[name] = value
		delete(s.loops, name)
	}
}

// judgeRedirects records what a command reads, and judges the files that it writes.
func (s *shell) judgeRedirects(cmd *command, list []*syntax.Redirect) {
	for _, r := range list {
		op := r.Op.String()
		switch {
		case r.Hdoc != nil:
			cmd.text, cmd.fed = s.expandDocument(r), true
			continue
		case r.Word == nil:
			continue
		}
		target := s.expandText(r.Word)
		switch {
		case op == "<<<":
			cmd.text, cmd.fed = target, true
		case strings.Contains(op, ">"):
			shown := append(slices.Clone(cmd.words[:min(len(cmd.words), 20)]), op, target)
			s.judgeByTable(&call{name: ">", args: []string{target}, words: shown, cmd: cmd})
		case strings.Contains(target, fetched):
			cmd.from = &command{words: []string{op, target}}
		}
	}
}

// judgeSubstitutions judges the commands that are somewhere in a part of the tree.
func (s *shell) judgeSubstitutions(in syntax.Node) {
	if in == nil || in.End().Offset()-in.Pos().Offset() > maxText/16 {
		s.tangled = s.tangled || in != nil // a long chain would need a deep stack
		return
	}
	syntax.Walk(in, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			s.judgeSubshell(n.Stmts, nil, true)
			return false
		case *syntax.ProcSubst:
			s.judgeSubshell(n.Stmts, nil, true)
			return false
		}
		return true
	})
}
