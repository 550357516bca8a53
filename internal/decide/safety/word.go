package safety

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// This file expands the words of commands, as far as their values are known.

// fetched stands for what a command prints that fetches or decodes text.
const fetched = "$(fetched)"

// maxBraces is how many words one word with braces may become.
const maxBraces = 64

// builder collects the words that one word of a command becomes.
type builder struct {
	*shell

	cur   strings.Builder
	has   bool // there is a word, also when it is empty
	words []string
}

func (b *builder) appendText(s string) {
	b.has = true
	b.cur.WriteString(s)
}

// addFields adds text that splits at blanks, as an expansion without quotes does.
func (b *builder) addFields(s string) {
	for i, field := range strings.FieldsFunc(s, isBlankRune) {
		if i > 0 || isBlankRune(rune(s[0])) {
			b.finishWord()
		}
		b.appendText(field)
	}
	if s != "" && isBlankRune(rune(s[len(s)-1])) {
		b.finishWord()
	}
}

func isBlankRune(c rune) bool { return c == ' ' || c == '\t' || c == '\n' }

func (b *builder) finishWord() {
	if b.has {
		b.words = append(b.words, b.cur.String())
	}
	b.cur.Reset()
	b.has = false
}

// expandWords expands words as a shell does, as far as that is known.
func (s *shell) expandWords(list []*syntax.Word) []string {
	b := &builder{shell: s}
	for _, w := range list {
		if countBraces(w) <= maxBraces {
			syntax.SplitBraces(w)
		}
		n := 0
		for one, err := range expand.BracesSeq(nil, w) {
			if n++; err != nil || n > maxBraces || !s.payBudget(1) {
				break
			}
			b.addParts(one.Parts, unquoted, b.addFields)
			b.finishWord()
		}
	}
	return b.words
}

// countBraces counts the braces that open in a word.
func countBraces(w *syntax.Word) (n int) {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// The characters that a backslash takes the meaning of.
const (
	inQuotes   = "$`\"\\"
	inDocument = "$`\\"
	unquoted   = "" // all
)

// expandText expands a word that stays one.
func (s *shell) expandText(w *syntax.Word) string {
	b := &builder{shell: s}
	b.addParts(w.Parts, unquoted, b.appendText)
	return b.cur.String()
}

// expandDocument expands a here-document, unless its end was written in quotes.
func (s *shell) expandDocument(r *syntax.Redirect) string {
	end := r.Word.Lit()
	if end == "" || strings.Contains(end, `\`) {
		return r.Hdoc.Lit()
	}
	b := &builder{shell: s}
	b.addParts(r.Hdoc.Parts, inDocument, b.appendText)
	return b.cur.String()
}

// addParts adds the parts of a word; add adds what an expansion becomes.
func (b *builder) addParts(list []syntax.WordPart, escapes string, add func(string)) {
	for _, part := range list {
		if b.tangled {
			return
		}
		switch p := part.(type) {
		case *syntax.Lit:
			b.appendText(withoutBackslashes(p.Value, escapes))
		case *syntax.SglQuoted:
			text := p.Value
			if p.Dollar { // without arguments nothing can be wrong
				text, _, _ = expand.Format(&expand.Config{}, text, nil)
			}
			b.appendText(text)
		case *syntax.DblQuoted:
			b.appendText("")
			b.addParts(p.Parts, inQuotes, b.appendText)
		case *syntax.ParamExp:
			b.addParameter(p, add)
		case *syntax.CmdSubst:
			add(b.outputOf(b.judgeSubshell(p.Stmts, nil, true)))
		case *syntax.ProcSubst:
			b.appendText("/dev/fd/63")
			if b.outputOf(b.judgeSubshell(p.Stmts, nil, true)) == fetched {
				b.appendText(fetched)
			}
		case *syntax.ArithmExp:
			b.judgeSubstitutions(p)
			b.appendText("0")
		case *syntax.ExtGlob:
			b.appendText(p.Op.String() + p.Pattern.Value + ")")
		}
	}
}

// withoutBackslashes takes the backslashes away that hide the meaning of a character.
func withoutBackslashes(s, escapes string) string {
	var out []byte
	for i := 0; i < len(s); i++ {
		hides := s[i] == '\\' && i+1 < len(s)
		if hides && (escapes == unquoted || strings.IndexByte(escapes, s[i+1]) >= 0) {
			i++
		}
		out = append(out, s[i])
	}
	return string(out)
}

// addParameter adds what $NAME or ${NAME…} becomes: "$NAME" when its value is not
// known, and "$+NAME" when it is not known and never empty.
func (b *builder) addParameter(p *syntax.ParamExp, add func(string)) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	value, known := b.vars[name]
	switch {
	case p.Length || p.Excl || name == "":
		b.appendText("0")
	case p.Exp != nil:
		b.addExpansion(name, p.Exp, add)
	case p.Index != nil || p.Slice != nil || p.Repl != nil:
		b.judgeSubstitutions(p)
		b.appendText("$+" + name)
	case !known:
		b.appendText("$" + name)
	case !b.payBudget(len(value)):
	case b.loops[name]: // the variable of a loop stands for all its values
		b.addFields(value)
	default:
		add(value)
	}
}

// addExpansion adds what ${NAME:-word} and its kin become.
func (b *builder) addExpansion(name string, e *syntax.Expansion, add func(string)) {
	other := ""
	if e.Word != nil {
		b.runOneLevelDeeper(func() { other = b.expandText(e.Word) })
	}
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if value := b.vars[name]; value != "" && b.payBudget(len(value)) {
			other = value
		} else if slices.Contains(namedList("always set"), name) {
			other = "$" + name
		}
		add(other)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		add(other)
	default: // with :? it is never empty
		b.appendText("$+" + name)
	}
}

// outputOf returns the text of a substitution, if its last command is known.
func (s *shell) outputOf(last *command) string {
	if last == nil {
		return ""
	}
	if text, ok := printedText(last); ok {
		s.payBudget(len(text))
		return strings.TrimRight(text, "\n")
	}
	for c := last; c != nil; c = c.from {
		if len(c.words) > 0 && slices.Contains(namedList("prints unread text"), baseName(c.words[0])) {
			return fetched
		}
	}
	switch line := strings.Join(last.words, " "); {
	case line == "pwd" || line == "git rev-parse --show-toplevel":
		return "$PWD"
	case line == "ls" || line == "git ls-files":
		return "*"
	case strings.HasPrefix(line, "mktemp"):
		return "/tmp/mktemp"
	case matchesGlob("docker * -*q", line):
		return "$all"
	case strings.HasPrefix(line, "find "):
		return strings.Join(pathsFoundBy(last.words[1:]), " ")
	}
	return "$()"
}

// printedText returns the output of echo, printf, or cat with a here-document. The format of printf
// is left as it is.
func printedText(c *command) (text string, isKnown bool) {
	if len(c.words) == 0 {
		return "", false
	}
	args := c.words[1:]
	switch baseName(c.words[0]) {
	case "echo", "printf":
		for len(args) > 0 && slices.Contains(namedList("echo option"), args[0]) {
			args = args[1:]
		}
		return strings.Join(args, " "), true
	case "cat":
		return c.text, c.fed && len(args) == 0
	}
	return "", false
}

// knownStdinOf returns the input of a command, as far as it is known.
func (s *shell) knownStdinOf(c *command) (text string, isKnown bool) {
	text, isKnown = c.text, c.fed
	if !isKnown && c.from != nil {
		text, isKnown = printedText(c.from)
	}
	return text, isKnown && s.payBudget(len(text))
}
