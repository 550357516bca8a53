package safety

import (
	_ "embed"
	"path"
	"slices"
	"strings"
	"sync"
)

// This file knows the commands that run other commands.

// wrapper is a program whose arguments end in a command; see wrappers.txt.
type wrapper struct {
	takes   []string // options that are followed by an argument of their own
	verbs   []string // one of which stands before the options; none is needed if there are none
	skip    int      // words between the options and the command
	assigns bool     // NAME=value may stand before the command
}

//go:embed wrappers.txt
var wrapperTable string

var wrappers = sync.OnceValue(func() map[string]wrapper {
	out := map[string]wrapper{}
	for _, line := range sections("programs:\n" + wrapperTable) {
		programs, words, _ := strings.Cut(line, ":")
		var w wrapper
		for _, one := range strings.Fields(words) {
			switch {
			case one == "NAME=":
				w.assigns = true
			case one == "WORD":
				w.skip++
			case one[0] == '-':
				w.takes = append(w.takes, one)
			default:
				w.verbs = append(w.verbs, one)
			}
		}
		for _, name := range strings.Fields(programs) {
			out[name] = w
		}
	}
	return out
})

// unwrap judges the command behind a wrapper and its options.
func (m *matcher) unwrap(c *call) {
	w, ok := wrappers()[c.name]
	asks := c.has('v', "") || c.has('V', "")
	isQuestion := asks && c.name == "command"
	if isQuestion || !ok {
		return
	}
	rest := c.args
	if len(w.verbs) > 0 {
		if len(rest) == 0 || !slices.Contains(w.verbs, rest[0].text) {
			return
		}
		rest = rest[1:]
	}
	if c.name == "env" && m.split(rest, c.depth) {
		return
	}
	rest = skipOptions(rest, w.takes)
	for w.assigns && len(rest) > 0 && assigns(rest[0].text) {
		rest = rest[1:]
	}
	rest = rest[min(w.skip, len(rest)):]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	oneText := len(rest) == 1 && strings.ContainsAny(rest[0].text, " ;")
	switch {
	case c.name == "flock" && has(rest, 'c', "--command"):
		for _, a := range rest {
			if !strings.HasPrefix(a.text, "-") {
				m.run(a.text, c.depth+1)
			}
		}
	case oneText && slices.Contains([]string{"parallel", "npx"}, c.name):
		m.run(rest[0].text, c.depth+1)
	default:
		m.words(c.cmd, rest, c.depth+1)
	}
}

// split reads the text of env -S.
func (m *matcher) split(args []word, depth int) bool {
	for i, a := range args {
		switch {
		case a.text == "-S" && i+1 < len(args):
			m.run(joined(args[i+1:]), depth+1)
			return true
		case strings.HasPrefix(a.text, "-S") || strings.HasPrefix(a.text, "--split-string="):
			_, text, ok := strings.Cut(a.text, "=")
			if !ok {
				text = a.text[2:]
			}
			m.run(text, depth+1)
			return true
		case !strings.HasPrefix(a.text, "-"):
			return false
		}
	}
	return false
}

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
	args, fromInput := c.args, false
	for len(args) > 0 {
		t := args[0].text
		if t == "-s" || t == "-" {
			fromInput = true
		}
		if len(t) < 2 || !strings.ContainsAny(t[:1], "-+") || t == "--" {
			break
		}
		short := t[1] != '-' && strings.Contains(t, "c")
		if short || t == "--command" {
			if rest := skipOptions(args[1:], strings.Fields("-o -O")); len(rest) > 0 {
				m.text(rest[0], c)
			}
			return
		}
		takes := slices.Contains([]string{"-o", "-O", "+o", "--rcfile", "--init-file"}, t)
		if takes && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) > 0 && !fromInput && args[0].text != "-" && args[0].text != "/dev/stdin" {
		m.file(args[0], c, m.shellText(c))
		return
	}
	m.input(c, m.shellText(c))
}

// text judges a word that is run as a command line.
func (m *matcher) text(w word, c *call) {
	if w.taint != 0 {
		m.tainted(w.taint, c.words)
		return
	}
	m.run(w.text, c.depth+1)
}

// file judges a script that is run by its name.
func (m *matcher) file(w word, c *call, run func(text string)) {
	name := strings.TrimPrefix(w.text, "./")
	text, known := m.scripts[name]
	switch {
	case w.taint != 0:
		m.tainted(w.taint, c.words)
	case m.fetched[name]:
		m.high(c, "download-and-run", "runs what it downloads")
	case known:
		run(text)
	}
}

// shellText is for text that a shell runs.
func (m *matcher) shellText(c *call) func(text string) {
	return func(text string) { m.run(text, c.depth+1) }
}

// input judges what a program that runs its stdin gets there.
func (m *matcher) input(c *call, run func(text string)) {
	for _, r := range c.cmd.redirects {
		if r.op == "<" {
			if r.target.taint != 0 {
				m.tainted(r.target.taint, c.words)
			}
			m.file(r.target, c, run)
			return
		}
	}
	switch from := c.cmd.from; {
	case c.cmd.fed:
		run(c.cmd.text)
	case from == nil:
	default:
		if text, ok := printed(from); ok && m.pay(len(text)) {
			run(text)
			return
		}
		var t taint
		for at, n := from, 0; at != nil && n < 20; at, n = at.from, n+1 {
			t |= at.taint()
		}
		words := append(few(from.words, word{text: "|"}), c.words...)
		if t != 0 {
			m.tainted(t, words)
			return
		}
		m.report(finding{pattern: "pipe-to-interpreter", why: "runs whatever is piped into it", danger: High}, words)
	}
}

func fromInput(m *matcher, c *call) {
	if c.cmd.fed || c.cmd.from != nil {
		m.input(c, m.shellText(c))
	}
}

func evals(m *matcher, c *call) {
	for _, a := range c.args {
		if a.taint != 0 {
			m.tainted(a.taint, c.words)
			return
		}
	}
	m.run(joined(c.args), c.depth+1)
}

func sources(m *matcher, c *call) {
	for _, r := range c.cmd.redirects {
		if r.target.taint != 0 {
			m.tainted(r.target.taint, c.words)
		}
	}
	if len(c.args) > 0 {
		m.file(c.args[0], c, m.shellText(c))
	}
}

func su(m *matcher, c *call) {
	for i, a := range c.args {
		if a.text == "-c" && i+1 < len(c.args) {
			m.text(c.args[i+1], c)
		}
	}
}

// watches judges arguments that are command lines each, and together.
func watches(m *matcher, c *call) {
	for _, a := range c.args {
		if strings.ContainsAny(a.text, " \t\n;") {
			m.run(a.text, c.depth+1)
		}
	}
	rest := skipOptions(c.args, strings.Fields("-n -d -c -w -e -t -s --interval --command --run"))
	if c.name != "tmux" && c.name != "screen" && c.name != "nix" && c.name != "lxc" {
		m.words(c.cmd, rest, c.depth+1)
	}
}

func traps(m *matcher, c *call) {
	if rest := skipOptions(c.args, nil); len(rest) > 0 {
		m.run(rest[0].text, c.depth+1)
	}
}

// remote judges what is run on another machine, in an unknown folder.
func remote(m *matcher, c *call) {
	rest := skipOptions(c.args, strings.Fields("-i -p -o -l -L -R -D -F -J -W -b -c -e -E -m -S -w"))
	if len(rest) < 2 {
		if len(rest) == 1 && c.cmd.fed {
			m.run(c.cmd.text, c.depth+1)
		}
		return
	}
	cwd := m.cwd
	m.cwd = ""
	m.run(joined(skipOptions(rest[1:], nil)), c.depth+1)
	m.cwd = cwd
}

// container judges what is run in a container: its files are its own, what it
// does to databases and services is not.
func container(m *matcher, c *call) {
	args := skipOptions(c.args, list("container option"))
	if len(args) > 0 && slices.Contains([]string{"compose", "container"}, args[0].text) {
		args = skipOptions(args[1:], list("container option"))
	}
	if len(args) == 0 || !slices.Contains([]string{"exec", "run"}, args[0].text) {
		return
	}
	for i, a := range args {
		value := strings.TrimPrefix(strings.TrimPrefix(a.text, "-v"), "--volume=")
		takes := a.text == "-v" || a.text == "--volume"
		if takes && i+1 < len(args) {
			value = args[i+1].text
		}
		if value != a.text && beginsWith(value, []string{"/:", "~:", "$HOME:"}) {
			m.high(c, "mount-host", "gives a container the machine's files")
		}
	}
	args = skipOptions(args[1:], list("container option"))
	if len(args) < 2 {
		return
	}
	m.inside(c, args[1:])
}

func (m *matcher) inside(c *call, words []word) {
	cwd, contained := m.cwd, m.contained
	m.cwd, m.contained = "", true
	m.words(c.cmd, words, c.depth+1)
	m.cwd, m.contained = cwd, contained
}

// pod judges kubectl exec POD -- command.
func pod(m *matcher, c *call) {
	if !c.mentions("exec", "run") {
		return
	}
	for i, a := range c.args {
		if a.text == "--" {
			cwd := m.cwd
			m.cwd = ""
			m.words(c.cmd, c.args[i+1:], c.depth+1)
			m.cwd = cwd
			break
		}
	}
}

func aliased(m *matcher, c *call) {
	for _, a := range c.args {
		if name, text, ok := strings.Cut(a.text, "="); ok && m.pay(len(text)) {
			m.aliases[name] = text
		}
	}
}

// moves follows cd.
func moves(m *matcher, c *call) {
	to := word{text: "~"}
	if rest := skipOptions(c.args, nil); len(rest) > 0 {
		to = rest[0]
	}
	if abs, ok := m.absolute(to.text); ok && to.text != "-" {
		m.cwd = m.locate(path.Clean(abs)).path
	} else {
		m.cwd = ""
	}
}
