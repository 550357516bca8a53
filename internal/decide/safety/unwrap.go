package safety

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// This file knows the commands that run other commands.

// wrapper is a program that runs a command in its arguments; see wrappers.txt.
type wrapper struct {
	takes     []string // options that are followed by an argument of their own
	texts     []string // options that are followed by a command line
	verbs     []string // one of which stands before the command; none is needed if there are none
	skip      int      // words between the options and the command
	assigns   bool     // NAME=value may stand before the command
	lines     bool     // an argument with blanks is a command line
	remote    bool     // the command runs in a folder that is not known
	container bool     // the command has files of its own
	input     bool     // without a command it runs its input
}

//go:embed wrappers.txt
var wrapperTable string

var wrappers = sync.OnceValue(func() map[string]wrapper {
	out := map[string]wrapper{}
	for _, line := range sections("programs:\n" + wrapperTable) {
		programs, words, _ := strings.Cut(line, ":")
		var w wrapper
		for _, one := range strings.Fields(words) {
			w.add(one)
		}
		for _, name := range strings.Fields(programs) {
			out[name] = w
		}
	}
	return out
})

// add takes one word of a wrapper's line.
func (w *wrapper) add(word string) {
	switch text, isText := strings.CutPrefix(word, "="); {
	case isText:
		w.texts = append(w.texts, text)
	case word == "NAME=":
		w.assigns = true
	case word == "WORD":
		w.skip++
	case word == "LINES":
		w.lines = true
	case word == "REMOTE":
		w.remote = true
	case word == "CONTAINER":
		w.remote, w.container = true, true
	case word == "INPUT":
		w.input = true
	case word[0] == '-':
		w.takes = append(w.takes, word)
	default:
		w.verbs = append(w.verbs, word)
	}
}

// unwrap judges the commands in a wrapper's arguments.
func (m *matcher) unwrap(c *call) {
	w, ok := wrappers()[c.name]
	asks := c.has('v', "") || c.has('V', "")
	isQuestion := asks && c.name == "command"
	if isQuestion || !ok {
		return
	}
	rest := c.args
	if len(w.verbs) > 0 {
		at := slices.IndexFunc(rest, func(a word) bool { return slices.Contains(w.verbs, a.text) })
		if at < 0 {
			return
		}
		rest = rest[at+1:]
	}
	defer func(cwd string, contained bool) { m.cwd, m.contained = cwd, contained }(m.cwd, m.contained)
	if w.remote {
		m.cwd, m.contained = "", m.contained || w.container
	}
	m.commandLines(w, rest, c)
	rest = skipOptions(rest, w.takes)
	for w.assigns && len(rest) > 0 && assigns(rest[0].text) {
		rest = rest[1:]
	}
	if w.skip > 0 {
		rest = skipOptions(rest[min(w.skip, len(rest)):], w.takes)
	}
	text, isKnown := m.stdin(c.cmd)
	switch {
	case len(rest) == 1 && isLine(rest[0].text):
		m.run(rest[0].text, c.depth+1)
	case len(rest) > 0:
		m.words(c.cmd, rest, c.depth+1)
	case w.input && isKnown:
		m.run(text, c.depth+1)
	}
}

// commandLines judges the arguments that are a command line each.
func (m *matcher) commandLines(w wrapper, args []word, c *call) {
	for i, a := range args {
		name, text, inOne := strings.Cut(a.text, "=")
		switch {
		case inOne && slices.Contains(w.texts, name):
			m.run(text, c.depth+1)
		case slices.Contains(w.texts, a.text) && i+1 < len(args):
			m.run(args[i+1].text, c.depth+1)
		case w.lines && isLine(a.text):
			m.run(a.text, c.depth+1)
		}
	}
}

// isLine is true for a word that can be a whole command line.
func isLine(text string) bool { return strings.ContainsAny(text, " \t\n;") }

func assigns(s string) bool {
	name, _, ok := strings.Cut(s, "=")
	return ok && isName(name)
}

func joined(words []word) string { return strings.Join(texts(words), " ") }

// skipOptions returns what follows the options.
func skipOptions(args []word, takes []string) []word {
	for len(args) > 0 {
		t := args[0].text
		switch {
		case t == "--":
			return args[1:]
		case len(t) < 2 || t[0] != '-':
			return args
		case len(args) > 1 && slices.Contains(takes, t):
			args = args[1:]
		}
		args = args[1:]
	}
	return nil
}

// shellOf judges sh -c TEXT, and what is piped into a shell.
func shellOf(m *matcher, c *call) {
	rest := skipOptions(c.args, strings.Fields("-o -O --rcfile --init-file"))
	options := c.args[:len(c.args)-len(rest)]
	switch {
	case has(options, 'c', "--command"):
		evals(m, &call{words: c.words, args: rest[:min(1, len(rest))], depth: c.depth})
	case len(rest) == 0, has(options, 's', ""), rest[0].text == "-", rest[0].text == "/dev/stdin":
		m.input(c, func(text string) { m.run(text, c.depth+1) })
	default:
		m.refuseUnread(c, rest[0])
	}
}

// refuseUnread reports a command that runs text which it fetches or decodes first.
func (m *matcher) refuseUnread(c *call, of ...word) {
	if slices.ContainsFunc(of, func(w word) bool { return w.unread }) {
		m.high(c, "download-and-run", "runs text that it downloads or decodes first")
	}
}

// stdin is what a command reads, as far as it is known.
func (m *matcher) stdin(c *command) (text string, isKnown bool) {
	text, isKnown = c.text, c.fed
	if !isKnown && c.from != nil {
		text, isKnown = printed(c.from)
	}
	return text, isKnown && m.pay(len(text))
}

// input judges what a program that runs its stdin gets there.
func (m *matcher) input(c *call, run func(text string)) {
	for _, r := range c.cmd.redirects {
		if r.op == "<" {
			m.refuseUnread(c, r.target)
			return
		}
	}
	if text, isKnown := m.stdin(c.cmd); isKnown {
		run(text)
	} else if from := c.cmd.from; from != nil {
		words := append(few(from.words, word{text: "|"}), c.words...)
		m.report(finding{pattern: "pipe-to-interpreter", why: "runs whatever is piped into it", danger: High}, words)
	}
}

func evals(m *matcher, c *call) {
	m.refuseUnread(c, c.args...)
	m.run(joined(c.args), c.depth+1)
}

func sources(m *matcher, c *call) {
	m.refuseUnread(c, c.args...)
	for _, r := range c.cmd.redirects {
		m.refuseUnread(c, r.target)
	}
}
