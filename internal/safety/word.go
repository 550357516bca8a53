package safety

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bytes that stand for brackets and commas outside of quotes, until braces are
// expanded.
const (
	braceOpen  = 1
	braceComma = 2
	braceClose = 3
)

// builder collects the words that one piece of text becomes.
type builder struct {
	r      *reader
	cur    []byte
	has    bool // there is a word, also when it is empty
	quoted bool
	braces bool
	taint  taint
	words  []word
}

func (b *builder) put(s string) {
	b.has = true
	b.cur = append(b.cur, s...)
}

// spread adds text that splits at blanks, as an expansion without quotes does.
func (b *builder) spread(s string) {
	for i := range len(s) {
		switch c := s[i]; c {
		case ' ', '\t', '\n':
			b.end()
		default:
			b.has = true
			b.cur = append(b.cur, c)
		}
	}
}

// end ends the word at hand.
func (b *builder) end() {
	if !b.has {
		return
	}
	text := string(b.cur)
	if b.braces && !b.r.pay(len(text)) {
		b.braces = false
	}
	parts := []string{text}
	if b.braces {
		parts = expandBraces(b.r.shell, text, 0)
	}
	for _, p := range parts {
		b.words = append(b.words, word{text: plainBraces(p), quoted: b.quoted, taint: b.taint})
	}
	b.cur, b.has, b.quoted, b.braces, b.taint = nil, false, false, false, 0
}

const maxBraces = 64

// expandBraces expands the first braces that hold a comma, and so on.
func expandBraces(s *shell, text string, depth int) []string {
	open, level, commas := -1, 0, []int(nil)
	for i := range len(text) {
		switch text[i] {
		case braceOpen:
			if level == 0 {
				open, commas = i, nil
			}
			level++
		case braceComma:
			if level == 1 {
				commas = append(commas, i)
			}
		case braceClose:
			if level == 0 {
				continue
			}
			level--
			if level > 0 || len(commas) == 0 {
				continue
			}
			if depth > 8 || len(commas) >= maxBraces {
				return []string{text}
			}
			return joinBraces(s, text, open, append(commas, i), depth)
		}
	}
	return []string{text}
}

func joinBraces(s *shell, text string, open int, ends []int, depth int) []string {
	var out []string
	from, rest := open+1, text[ends[len(ends)-1]+1:]
	for _, end := range ends {
		one := text[:open] + text[from:end] + rest
		from = end + 1
		if !s.pay(len(one)) {
			return out
		}
		out = append(out, expandBraces(s, one, depth+1)...)
		if len(out) >= maxBraces {
			return out[:maxBraces]
		}
	}
	return out
}

func plainBraces(s string) string {
	if strings.IndexByte(s, braceOpen) < 0 && strings.IndexByte(s, braceComma) < 0 && strings.IndexByte(s, braceClose) < 0 {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		switch c {
		case braceOpen:
			b[i] = '{'
		case braceComma:
			b[i] = ','
		case braceClose:
			b[i] = '}'
		}
	}
	return string(b)
}

// word reads up to the next blank or operator outside of quotes.
func (r *reader) word() []word {
	b := &builder{r: r}
	for !r.done() {
		c := r.src[r.pos]
		if strings.IndexByte(" \t\r\n;&|()<>", c) >= 0 {
			break
		}
		r.wordByte(b, c)
	}
	b.end()
	return b.words
}

func (r *reader) wordByte(b *builder, c byte) {
	switch c {
	case '\'':
		r.pos++
		rest := r.src[r.pos:]
		n := strings.IndexByte(rest, '\'')
		if n < 0 {
			n = len(rest)
		}
		b.put(rest[:n])
		b.quoted = true
		r.pos = min(r.pos+n+1, len(r.src))
	case '"':
		r.pos++
		b.has, b.quoted = true, true
		for !r.done() && r.src[r.pos] != '"' {
			r.quotedByte(b, false)
		}
		r.pos = min(r.pos+1, len(r.src))
	case '\\':
		if r.at(1) != '\n' {
			b.has = true
			if r.pos+1 < len(r.src) {
				b.cur = append(b.cur, r.src[r.pos+1])
			}
		}
		r.pos = min(r.pos+2, len(r.src))
	case '$', '`':
		r.expansion(b, false)
	case '{', ',', '}':
		r.pos++
		b.has, b.braces = true, true
		b.cur = append(b.cur, map[byte]byte{'{': braceOpen, ',': braceComma, '}': braceClose}[c])
		if c == '}' && len(b.cur) == 1 || c == '{' && strings.IndexByte(" \t\r\n;&|()<>", r.at(0)) >= 0 && len(b.cur) == 1 {
			b.cur[0], b.braces = c, false
		}
	case braceOpen, braceComma, braceClose:
		r.pos++
		b.put("?")
	default:
		r.pos++
		b.has = true
		b.cur = append(b.cur, c)
	}
}

// quotedByte takes what stands between double quotes, or in a here-document.
func (r *reader) quotedByte(b *builder, document bool) {
	c := r.src[r.pos]
	switch {
	case c == '\\' && r.pos+1 < len(r.src) && (strings.IndexByte("$`\\\n", r.src[r.pos+1]) >= 0 || r.src[r.pos+1] == '"' && !document):
		if r.src[r.pos+1] != '\n' {
			b.cur = append(b.cur, r.src[r.pos+1])
		}
		r.pos += 2
	case c == '$' || c == '`':
		r.expansion(b, true)
	case c <= braceClose:
		r.pos++
		b.put("?")
	default:
		r.pos++
		b.cur = append(b.cur, c)
	}
}

// expansion reads what begins with $ or a backtick.
func (r *reader) expansion(b *builder, quoted bool) {
	b.has = true
	add := b.spread
	if quoted {
		add = b.put
	}
	switch next := r.at(1); {
	case r.src[r.pos] == '`':
		r.backticks(b, add)
	case next == '(' && r.at(2) == '(':
		r.pos++
		r.arithmetic()
		b.put("0")
	case next == '(':
		r.pos += 2
		cmds := r.sub(func() []*command { return r.list(')') })
		b.taint |= taintOf(cmds)
		add(r.output(cmds))
	case next == '{':
		r.braced(add, b)
	case next == '\'' && !quoted:
		r.ansi(b)
	case next == '"' && !quoted:
		r.pos++
	case next == '_' || letter(next):
		end := r.pos + 1
		for end < len(r.src) && (r.src[end] == '_' || letter(r.src[end]) || r.src[end] >= '0' && r.src[end] <= '9') {
			end++
		}
		name := r.src[r.pos+1 : end]
		r.pos = end
		r.variable(name, b, add)
	case next != 0 && strings.IndexByte("0123456789@*#?$!-", next) >= 0:
		b.put("$" + string(next))
		r.pos += 2
	default:
		b.put("$")
		r.pos++
	}
}

// variable adds a variable's value; one of a loop stands for all its values.
func (r *reader) variable(name string, b *builder, add func(string)) {
	value, ok := r.vars[name]
	switch {
	case !ok:
		b.put("$" + name)
	case !r.pay(len(value)):
	case r.lists[name]:
		b.spread(value)
	default:
		add(value)
	}
}

// braced reads ${…}.
func (r *reader) braced(add func(string), b *builder) {
	from, open := r.pos+2, 1
	end := from
	for ; end < len(r.src); end++ {
		if r.src[end] == '{' {
			open++
		} else if r.src[end] == '}' {
			if open--; open == 0 {
				break
			}
		}
	}
	inner := r.src[from:min(end, len(r.src))]
	r.pos = min(end+1, len(r.src))
	n := 0
	for n < len(inner) && (inner[n] == '_' || letter(inner[n]) || inner[n] >= '0' && inner[n] <= '9') {
		n++
	}
	name, rest := inner[:n], inner[n:]
	switch {
	case name == "":
		r.substitutions(rest)
		b.put("0") // ${#x}, ${!x}
	case rest == "":
		r.variable(name, b, add)
	case strings.HasPrefix(rest, ":?") || strings.HasPrefix(rest, "?"):
		b.put("$+" + name) // never empty
	case strings.HasPrefix(rest, ":-"), strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, "-"), strings.HasPrefix(rest, "="):
		text := strings.Trim(r.substitutions(strings.TrimLeft(rest, ":-=")), `"'`)
		if value, ok := r.vars[name]; ok && value != "" {
			text = value
		} else if name == "TMPDIR" || name == "TMP" || name == "HOME" || name == "PWD" {
			text = "$" + name
		}
		add(text)
	case strings.HasPrefix(rest, ":+"), strings.HasPrefix(rest, "+"):
		add(r.substitutions(strings.TrimLeft(rest, ":+")))
	default:
		r.substitutions(rest)
		b.put("$+" + name)
	}
}

// backticks reads `…`, in which a backslash hides a backtick.
func (r *reader) backticks(b *builder, add func(string)) {
	r.pos++
	var inner []byte
	for r.pos < len(r.src) && r.src[r.pos] != '`' {
		if r.src[r.pos] == '\\' && r.pos+1 < len(r.src) && strings.IndexByte("`\\$", r.src[r.pos+1]) >= 0 {
			r.pos++
		}
		inner = append(inner, r.src[r.pos])
		r.pos++
	}
	r.pos = min(r.pos+1, len(r.src))
	cmds := r.sub(func() []*command { return r.read(string(inner), r.depth) })
	b.taint |= taintOf(cmds)
	add(r.output(cmds))
}

// ansi reads $'…'.
func (r *reader) ansi(b *builder) {
	end := r.pos + 2
	for end < len(r.src) && r.src[end] != '\'' {
		if r.src[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end, len(r.src))
	b.put(unescape(r.src[r.pos+2 : end]))
	b.quoted = true
	r.pos = min(end+1, len(r.src))
}

// unescape is what printf, echo -e and $'…' make of backslashes.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		size, base, digits := 0, 16, 2
		switch s[i] {
		case 'n':
			out = append(out, '\n')
			continue
		case 't', 'r':
			out = append(out, ' ')
			continue
		case 'x':
			size = 1
		case 'u':
			size, digits = 1, 4
		case 'U':
			size, digits = 1, 8
		case '0', '1', '2', '3', '4', '5', '6', '7':
			base, digits = 8, 3
			if s[i] == '0' {
				digits = 4
			}
		default:
			out = append(out, s[i])
			continue
		}
		from := i + size
		end := from
		for end < len(s) && end < from+digits && isDigit(s[end], base) {
			end++
		}
		n, err := strconv.ParseUint(s[from:end], base, 32)
		if err != nil {
			out = append(out, s[i])
			continue
		}
		if n < 256 && digits < 4 || base == 8 {
			out = append(out, byte(n))
		} else {
			out = utf8.AppendRune(out, rune(n))
		}
		i = end - 1
	}
	return string(out)
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
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
			if long != "" && (name == long || len(name) >= 5 && strings.HasPrefix(long, name)) {
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
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}
