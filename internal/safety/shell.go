package safety

import "strings"

// This file reads shell text the way a POSIX shell or bash would, without
// running anything: lists, pipes, quotes, substitutions, here-documents,
// assignments. The rules are:
//   - every byte is paid for from a budget, also those of text that is read
//     again (eval, sh -c, variables), so the work is linear in the input;
//   - nesting has a limit; what is nested deeper, or has used the budget up,
//     is tangled, and that alone is a finding;
//   - what cannot be known stays as "$NAME" or "$()" in the text.

const (
	maxDepth = 40
	// maxText is as much of a command as is read; the system passes no longer
	// argument to a shell.
	maxText = 1 << 20
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
}

type word struct {
	text   string
	quoted bool
	taint  taint
}

type redirect struct {
	op     string
	target word
}

// taint is where the text of a word came from.
type taint int

const (
	downloaded taint = 1 << iota
	decoded
)

// shell is what all text of one command shares.
type shell struct {
	budget  int
	tangled bool
	vars    map[string]string
	lists   map[string]bool // variables of a for loop
	out     []*command
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

// reader reads one text.
type reader struct {
	*shell

	src   string
	pos   int
	depth int
	cases int // case … esac that are open
	docs  []*document
}

// document is a here-document whose body is still to come.
type document struct {
	end    string
	tabs   bool // <<-
	quoted bool
	to     *command
}

// read reads a text whole and returns the commands of its own level.
func (s *shell) read(text string, depth int) []*command {
	if depth > maxDepth || !s.pay(len(text)+perText) {
		s.tangled = true
		return nil
	}
	r := &reader{shell: s, src: text, depth: depth}
	return r.list(0)
}

func (r *reader) at(i int) byte {
	if r.pos+i < len(r.src) {
		return r.src[r.pos+i]
	}
	return 0
}

func (r *reader) done() bool { return r.pos >= len(r.src) || r.tangled }

// list reads commands up to end, an unquoted ')' or 0 for the end of the text.
func (r *reader) list(end byte) []*command {
	var all []*command
	var before *command // pipes into the next
	cases := r.cases
	r.cases = 0
	defer func() { r.cases = cases }()
	for r.skipBlanks(); !r.done(); r.skipBlanks() {
		switch c := r.at(0); {
		case c == ')' && end == ')' && r.cases == 0:
			r.pos++
			return all
		case c == '\n':
			r.pos++
			r.bodies()
			before = nil
		case c == '|' && r.at(1) != '|':
			r.pos++
			if r.at(0) == '&' {
				r.pos++
			}
			if len(all) > 0 {
				before = all[len(all)-1]
				before.drained = true
			}
		case c == ';' || c == '&' && r.at(1) != '>' || c == '|' || c == ')':
			r.pos++
			before = nil
		case c == '(':
			all = append(all, r.group()...)
		default:
			cmd := &command{from: before}
			before = nil
			r.simple(cmd)
			if len(cmd.words) > 0 || len(cmd.redirects) > 0 || cmd.defines != "" {
				r.assume(cmd)
				all = append(all, cmd)
				r.out = append(r.out, cmd)
			}
		}
	}
	r.bodies()
	return all
}

// group reads ( … ) or (( … )).
func (r *reader) group() []*command {
	if r.at(1) == '(' {
		r.arithmetic()
		return nil
	}
	r.pos++
	return r.sub(func() []*command { return r.list(')') })
}

// sub reads what runs in a subshell.
func (r *reader) sub(read func() []*command) []*command {
	if r.depth >= maxDepth {
		r.tangled = true
		return nil
	}
	r.depth++
	r.out = append(r.out, &command{mark: '('})
	all := read()
	r.out = append(r.out, &command{mark: ')'})
	r.depth--
	return all
}

// arithmetic steps over (( … )) and reads the substitutions in it.
func (r *reader) arithmetic() {
	from, open := r.pos, 0
	for ; r.pos < len(r.src); r.pos++ {
		switch r.src[r.pos] {
		case '(':
			open++
		case ')':
			open--
		}
		if open == 0 {
			r.pos++
			break
		}
	}
	r.substitutions(r.src[from:min(r.pos, len(r.src))])
}

// substitutions reads the commands in a text that is expanded like a
// here-document, and returns the text after it.
func (r *reader) substitutions(text string) string {
	if !strings.ContainsAny(text, "$`\\") {
		return text
	}
	if r.depth >= maxDepth || !r.pay(len(text)) {
		r.tangled = true
		return ""
	}
	in := &reader{shell: r.shell, src: text, depth: r.depth + 1}
	w := &builder{r: in}
	for !in.done() {
		in.quotedByte(w, true)
	}
	return string(w.cur)
}

func (r *reader) skipBlanks() {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == ' ' || c == '\t' || c == '\r':
			r.pos++
		case c == '\\' && r.at(1) == '\n':
			r.pos += 2
		case c == '#':
			for r.pos < len(r.src) && r.src[r.pos] != '\n' {
				r.pos++
			}
		default:
			return
		}
	}
}

// bodies reads the here-documents that begin on the line after.
func (r *reader) bodies() {
	docs := r.docs
	r.docs = nil
	for _, d := range docs {
		from, to := r.pos, len(r.src)
		for r.pos < len(r.src) {
			line, next := r.src[r.pos:], len(r.src)
			if i := strings.IndexByte(line, '\n'); i >= 0 {
				line, next = line[:i], r.pos+i+1
			}
			if d.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			at := r.pos
			r.pos = next
			// A document within $( … ) may end right before the bracket.
			if strings.TrimRight(line, "\r") == d.end {
				to = at
				break
			}
		}
		body := r.src[from:max(from, to)]
		if !d.quoted {
			body = r.substitutions(body)
		}
		d.to.text, d.to.fed = body, true
	}
}

// reserved words stand before a command and are not part of it.
func reserved(s string) bool {
	switch s {
	case "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "time", "coproc":
		return true
	}
	return false
}

// simple reads one simple command up to its operator.
func (r *reader) simple(cmd *command) {
	for !r.done() {
		r.skipBlanks()
		c := r.at(0)
		switch {
		case r.pos >= len(r.src) || strings.IndexByte("\n;|)", c) >= 0 || c == '&' && r.at(1) != '>':
			return
		case c == '(':
			if !r.function(cmd) {
				return
			}
		case c == '<' && r.at(1) == '(' || c == '>' && r.at(1) == '(':
			r.pos++
			cmd.words = append(cmd.words, r.process())
		case c == '<' || c == '>' || c == '&':
			r.redirect(cmd)
		default:
			r.next(cmd)
		}
	}
}

// function reads the brackets of "name ( )".
func (r *reader) function(cmd *command) bool {
	if len(cmd.words) != 1 {
		r.pos++ // an array, or a mistake; its words are read as words
		return true
	}
	at := r.pos + 1
	for at < len(r.src) && (r.src[at] == ' ' || r.src[at] == '\t') {
		at++
	}
	if at >= len(r.src) || r.src[at] != ')' {
		return false
	}
	r.pos = at + 1
	body := *cmd
	r.out = append(r.out, &command{defines: body.words[0].text})
	cmd.words = nil
	return true
}

// process reads <( … ).
func (r *reader) process() word {
	r.pos++
	cmds := r.sub(func() []*command { return r.list(')') })
	return word{text: "/dev/fd/63", taint: taintOf(cmds)}
}

// next reads the next word, or words, of a command.
func (r *reader) next(cmd *command) {
	from := r.pos
	words := r.word()
	if r.pos == from { // a byte that begins nothing
		r.pos++
		return
	}
	if c := r.at(0); (c == '<' || c == '>') && digits(r.src[from:r.pos]) {
		return // the number of a descriptor
	}
	for _, w := range words {
		first := len(cmd.words) == 0
		switch {
		case first && !w.quoted && reserved(w.text):
		case first && !w.quoted && w.text == "esac":
			r.cases = max(0, r.cases-1)
		case first && r.src[from:r.pos] == "[[":
			r.test()
		case first && r.assignment(from, w):
		default:
			if first && !w.quoted && w.text == "case" {
				r.cases++
			}
			cmd.words = append(cmd.words, w)
		}
	}
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// test steps over [[ … ]], where < and > compare.
func (r *reader) test() {
	for !r.done() {
		r.skipBlanks()
		from := r.pos
		for _, w := range r.word() {
			if w.text == "]]" {
				return
			}
		}
		if r.pos == from {
			if r.at(0) == '\n' {
				return
			}
			r.pos++
		}
	}
}

// assignment takes NAME=value and NAME+=value.
func (r *reader) assignment(from int, w word) bool {
	name, value, ok := strings.Cut(w.text, "=")
	plain := strings.HasPrefix(r.src[from:], name+"=")
	if add := strings.TrimSuffix(name, "+"); ok && plain && add != name && isName(add) {
		r.set(add, r.vars[add]+value)
		return true
	}
	if !ok || !plain || !isName(name) {
		return false
	}
	r.set(name, value)
	return true
}

func (s *shell) set(name, value string) {
	if s.pay(len(value)) {
		s.vars[name] = value
		delete(s.lists, name)
	}
}

func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && !letter(c) && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// redirect reads an operator and its target.
func (r *reader) redirect(cmd *command) {
	op := ""
	for _, o := range []string{"&>>", "<<<", "<<-", "&>", "<<", ">>", ">&", "<&", ">|", "<>", "<", ">"} {
		if strings.HasPrefix(r.src[r.pos:], o) {
			op = o
			break
		}
	}
	if op == "" {
		r.pos++
		return
	}
	r.pos += len(op)
	for r.at(0) == ' ' || r.at(0) == '\t' {
		r.pos++
	}
	if op == "<<" || op == "<<-" {
		r.document(cmd, op == "<<-")
		return
	}
	if (op == "<" || op == ">") && (r.at(0) == '<' || r.at(0) == '>') && r.at(1) == '(' {
		r.pos++
		w := r.process()
		cmd.redirects = append(cmd.redirects, redirect{op, w})
		return
	}
	for i, w := range r.word() {
		if op == "<<<" && i == 0 {
			cmd.text, cmd.fed = w.text, true
		}
		cmd.redirects = append(cmd.redirects, redirect{op, w})
	}
}

// document notes a here-document.
func (r *reader) document(cmd *command, tabs bool) {
	from := r.pos
	words := r.word()
	if len(words) == 0 {
		return
	}
	quoted := strings.ContainsAny(r.src[from:r.pos], `'"\`)
	r.docs = append(r.docs, &document{end: words[0].text, tabs: tabs, quoted: quoted, to: cmd})
}

// assume keeps what a command says of variables.
func (r *reader) assume(cmd *command) {
	if len(cmd.words) == 0 {
		return
	}
	switch cmd.words[0].text {
	case "export", "declare", "local", "readonly", "typeset":
		for _, w := range cmd.words[1:] {
			if name, value, ok := strings.Cut(w.text, "="); ok && isName(name) {
				r.set(name, value)
			}
		}
	case "for", "select":
		if len(cmd.words) < 3 || cmd.words[2].text != "in" {
			return
		}
		var items []string
		for _, w := range cmd.words[3:] {
			items = append(items, w.text)
		}
		name := cmd.words[1].text
		r.set(name, strings.Join(items, " "))
		r.lists[name] = true
		cmd.words = cmd.words[:1]
	case "read":
		for _, w := range cmd.words[1:] {
			delete(r.vars, w.text)
		}
	}
}
