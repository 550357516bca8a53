package safety

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// builder collects the words that one word of a command becomes.
type builder struct {
	*shell

	cur    strings.Builder
	has    bool // there is a word, also when it is empty
	unread bool
	words  []word
}

func (b *builder) put(s string) {
	b.has = true
	b.cur.WriteString(s)
}

// spread adds text that splits at blanks, as an expansion without quotes does.
func (b *builder) spread(s string) {
	for i, field := range strings.FieldsFunc(s, blank) {
		if i > 0 || blank(rune(s[0])) {
			b.end()
		}
		b.put(field)
	}
	if s != "" && blank(rune(s[len(s)-1])) {
		b.end()
	}
}

func blank(c rune) bool { return c == ' ' || c == '\t' || c == '\n' }

// end ends the word at hand.
func (b *builder) end() {
	if b.has {
		b.words = append(b.words, word{b.cur.String(), b.unread})
	}
	b.cur.Reset()
	b.has, b.unread = false, false
}

// words expands words as a shell does, as far as that is known.
func (s *shell) words(list []*syntax.Word) []word {
	b := &builder{shell: s}
	for _, w := range list {
		if braces(w) <= maxBraces {
			syntax.SplitBraces(w)
		}
		n := 0
		for one, err := range expand.BracesSeq(nil, w) {
			if n++; err != nil || n > maxBraces || !s.pay(1) {
				break
			}
			b.parts(one.Parts, unquoted, b.spread)
			b.end()
		}
	}
	return b.words
}

// braces counts the braces that open in a word.
func braces(w *syntax.Word) int {
	n := 0
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

// text expands a word that stays one.
func (s *shell) text(w *syntax.Word) string {
	b := &builder{shell: s}
	b.parts(w.Parts, unquoted, b.put)
	return b.cur.String()
}

// document expands a here-document, unless its end was written in quotes.
func (s *shell) document(r *syntax.Redirect) string {
	end := r.Word.Lit()
	if end == "" || strings.Contains(end, `\`) {
		return r.Hdoc.Lit()
	}
	b := &builder{shell: s}
	b.parts(r.Hdoc.Parts, inDocument, b.put)
	return b.cur.String()
}

// parts adds the parts of a word; add adds what an expansion becomes.
func (b *builder) parts(list []syntax.WordPart, escapes string, add func(string)) {
	for _, part := range list {
		if b.tangled {
			return
		}
		switch p := part.(type) {
		case *syntax.Lit:
			b.put(unslash(p.Value, escapes))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.put(unescape(p.Value))
			} else {
				b.put(p.Value)
			}
		case *syntax.DblQuoted:
			b.put("")
			b.parts(p.Parts, inQuotes, b.put)
		case *syntax.ParamExp:
			b.parameter(p, add)
		case *syntax.CmdSubst:
			cmds := b.subshell(p.Stmts)
			b.unread = b.unread || printsUnread(cmds)
			add(b.output(cmds))
		case *syntax.ProcSubst:
			b.unread = printsUnread(b.subshell(p.Stmts)) || b.unread
			b.put("/dev/fd/63")
		case *syntax.ArithmExp:
			b.substitutions(p)
			b.put("0")
		case *syntax.ExtGlob:
			b.put(p.Op.String() + p.Pattern.Value + ")")
		}
	}
}

// unslash takes the backslashes away that hide the meaning of a character.
func unslash(s, escapes string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out []byte
	escaped := func(b byte) bool { return escapes == unquoted || strings.IndexByte(escapes, b) >= 0 }
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && escaped(s[i+1]) {
			i++
		}
		out = append(out, s[i])
	}
	return string(out)
}

// unescape is what printf, echo -e and $'…' make of backslashes.
func unescape(s string) string {
	// Without arguments nothing can be wrong. A configuration of none would be one that all share.
	text, _, _ := expand.Format(&expand.Config{}, s, nil)
	return text
}

// parameter adds what $NAME or ${NAME…} becomes: "$NAME" when its value is not
// known, and "$+NAME" when it is not known and never empty.
func (b *builder) parameter(p *syntax.ParamExp, add func(string)) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	value, known := b.vars[name]
	switch {
	case p.Length || p.Excl || name == "":
		b.put("0")
	case p.Exp != nil:
		b.expansion(name, p.Exp, add)
	case p.Index != nil || p.Slice != nil || p.Repl != nil:
		b.substitutions(p)
		b.put("$+" + name)
	case !known:
		b.put("$" + name)
	case !b.pay(len(value)):
	case b.lists[name]: // the variable of a loop stands for all its values
		b.spread(value)
	default:
		add(value)
	}
}

// expansion adds what ${NAME:-word} and its kin become.
func (b *builder) expansion(name string, e *syntax.Expansion, add func(string)) {
	other := ""
	if e.Word != nil {
		b.nest(maxDepth, func() { other = b.text(e.Word) })
	}
	switch e.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if value := b.vars[name]; value != "" && b.pay(len(value)) {
			other = value
		} else if name == "TMPDIR" || name == "TMP" || name == "HOME" || name == "PWD" {
			other = "$" + name
		}
		add(other)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		add(other)
	default: // with :? it is never empty
		b.put("$+" + name)
	}
}

// has says whether options hold a short flag, also among others (-rf), or a
// long one, also cut short. Nothing counts after "--".
func has(args []word, short byte, long string) bool {
	for _, a := range args {
		t := a.text
		switch {
		case t == "--":
			return false
		case strings.HasPrefix(t, "--"):
			name, _, _ := strings.Cut(t, "=")
			if abbreviates(name, long) {
				return true
			}
		case len(t) > 1 && t[0] == '-' && short != 0:
			if strings.IndexByte(t[1:], short) >= 0 {
				return true
			}
		}
	}
	return false
}

// abbreviates says whether name is the option long, or enough of its beginning.
func abbreviates(name, long string) bool {
	if len(name) < len("--abc") {
		return name == long
	}
	return strings.HasPrefix(long, name)
}

// operands are the arguments that are no options.
func operands(args []word) []word {
	var out []word
	for i, a := range args {
		if a.text == "--" {
			return append(out, args[i+1:]...)
		}
		if len(a.text) < 2 || a.text[0] != '-' {
			out = append(out, a)
		}
	}
	return out
}

func texts(words []word) []string {
	return lists.Each(words, func(w word) string { return w.text })
}

func letter(c byte) bool {
	lower := c | 0x20
	return lower >= 'a' && lower <= 'z'
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func isName(s string) bool { return syntax.ValidName(s) }
