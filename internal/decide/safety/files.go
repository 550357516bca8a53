package safety

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// This file has the rules about files, disks and processes.

func remove(m *matcher, c *call) {
	tree := c.has('r', "--recursive") || c.has('R', "") || c.name == "rimraf" || c.name == "trash"
	m.removes(c.operands(), tree, c.words)
	if c.mentions("--no-preserve-root") {
		m.high(c, "remove-outside", "deletes files outside of the workspace")
	}
}

// finds judges find … -delete and -exec, and fd -x.
func finds(m *matcher, c *call) {
	paths := foundBy(c)
	for i, a := range c.args {
		switch a.text {
		case "-delete":
			m.removes(paths, true, c.words)
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec":
			if !m.pay(len(c.args)) {
				return
			}
			var cmd []word
			for _, w := range c.args[i+1:] {
				if w.text == ";" || w.text == "+" {
					break
				}
				switch {
				case w.text == "{}":
					cmd = append(cmd, paths...)
				case strings.Contains(w.text, "{}"):
					cmd = append(cmd, word{text: strings.ReplaceAll(w.text, "{}", "found")})
				default:
					cmd = append(cmd, w)
				}
			}
			if m.pay(len(cmd)) {
				m.words(&command{words: cmd}, cmd, c.depth+1)
			}
		}
		if m.found != nil || m.tangled {
			break
		}
	}
}

// foundBy stands for what find finds: where it looks, or something below if it chooses.
func foundBy(c *call) (roots []word) {
	options, filtered := false, false
	for i, a := range c.args {
		switch {
		case a.text == "-L", a.text == "-P", a.text == "-H":
		case strings.HasPrefix(a.text, "-"), a.text == "(", a.text == "!":
			options = true
		case !options:
			roots = append(roots, a)
		}
		switch a.text {
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex":
			if i+1 < len(c.args) && strings.Trim(c.args[i+1].text, "*./") != "" {
				filtered = true
			}
		case "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-newer", "-size", "-empty", "-perm", "-inum", "-xtype":
			filtered = true
		}
	}
	if c.name == "fd" { // its pattern comes first
		filtered = len(roots) > 0 && strings.Trim(roots[0].text, "*.") != ""
		roots = roots[min(1, len(roots)):]
	}
	if len(roots) == 0 {
		roots = []word{{text: "."}}
	}
	if !filtered {
		return roots
	}
	return lists.Each(roots, func(r word) word { return word{text: strings.TrimSuffix(r.text, "/") + "/found"} })
}

// xargs gives a command the words that come in.
func xargs(m *matcher, c *call) {
	rest := skipOptions(c.args, strings.Fields("-n -P -I -d -a -L -s -E --max-args --max-procs --delimiter --arg-file"))
	if len(rest) == 0 {
		return
	}
	words := append([]word(nil), rest...)
	if text, isKnown := m.stdin(c.cmd); isKnown {
		words = append(words, lists.Each(strings.Fields(text), func(f string) word { return word{text: f} })...)
	} else if from := c.cmd.from; from != nil && len(from.words) > 0 {
		words = append(words, printedNames(from)...)
	}
	// A stand-in for input that is already there must not make a path of its own.
	for i, w := range words[:len(rest)] {
		if w.text == "{}" || w.text == "%" || w.text == "@" {
			words[i].text = "-"
		}
	}
	if !m.pay(len(words)) {
		return
	}
	m.words(c.cmd, words, c.depth+1)
}

// moved judges where mv, cp, ln, install and rsync write, and what they take away.
func moved(m *matcher, c *call) {
	args := c.operands()
	if len(args) < 2 {
		return
	}
	last := args[len(args)-1]
	switch {
	case c.name == "mv":
		if last.text == "/dev/null" {
			m.high(c, "remove-outside", "throws files away")
			return
		}
		for _, a := range args[:len(args)-1] {
			if !m.resolve(a.text).climbed { // the shell may be in a folder below
				m.removes([]word{a}, true, c.words)
			}
		}
	case c.name == "rsync" && strings.Contains(last.text, ":"):
		return
	}
	m.writesTo(last, c.words)
}

// written judges programs that write the files that are their operands.
func written(m *matcher, c *call) {
	args := c.operands()
	switch c.name {
	case "tee":
	case "truncate":
		args = skipOptions(c.args, []string{"-s", "-r"})
	case "dd":
		args = []word{{text: c.value("of")}}
	case "sed", "gsed", "perl":
		if !slices.ContainsFunc(texts(c.args), func(t string) bool { return beginsWith(t, []string{"-i", "--in-place"}) }) {
			return
		}
		fallthrough
	default:
		args = args[min(1, len(args)):]
	}
	for _, a := range args {
		m.writesTo(a, c.words)
	}
}

var secretVariable = lazy.Regexp(`\$\+?\w*(?:KEY|SECRET|PASSWORD|TOKEN)\b`)

// prints judges echo of a secret variable: what is printed is kept in logs.
func prints(m *matcher, c *call) {
	if c.cmd.drained || len(c.cmd.redirects) > 0 {
		return
	}
	if secretVariable().MatchString(joined(c.args)) {
		m.high(c, "print-secret", "prints a secret into the log")
	}
}
