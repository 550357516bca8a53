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
	roots, filtered := foundBy(c)
	paths := m.hits(roots, filtered)
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

// foundBy is where find looks, and whether it chooses.
func foundBy(c *call) (roots []word, filtered bool) {
	options := false
	for i, a := range c.args {
		switch {
		case a.text == "-L", a.text == "-P", a.text == "-H":
		case strings.HasPrefix(a.text, "-"), a.text == "(", a.text == "!":
			options = true
		}
		if !options && a.text[:min(1, len(a.text))] != "-" {
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
	return roots, filtered
}

// hits stands for what find finds: chosen files in the workspace are ordinary.
func (m *matcher) hits(roots []word, filtered bool) []word {
	if !filtered {
		return roots
	}
	var out []word
	for _, r := range roots {
		if t := m.resolve(r.text); t.place != wholeTree && t.place != inside && t.place != unknown {
			out = append(out, word{text: strings.TrimSuffix(r.text, "/") + "/found"})
		} else {
			out = append(out, word{text: "found"})
		}
	}
	return out
}

// xargs gives a command the words that come in.
func xargs(m *matcher, c *call) {
	rest := skipOptions(c.args, strings.Fields("-n -P -I -d -a -L -s -E --max-args --max-procs --delimiter --arg-file"))
	if len(rest) == 0 {
		return
	}
	words := append([]word(nil), rest...)
	from := c.cmd.from
	if c.cmd.fed {
		for _, f := range strings.Fields(c.cmd.text) {
			words = append(words, word{text: f})
		}
	} else if from != nil && len(from.words) > 0 {
		words = append(words, m.listing(from)...)
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

// listing is the words that a command prints, as far as they are known.
func (m *matcher) listing(from *command) []word {
	if text, ok := printed(from); ok {
		return lists.Each(strings.Fields(text), func(f string) word { return word{text: f} })
	}
	c := &call{name: baseName(from.words[0].text), args: from.words[1:], words: from.words, cmd: from}
	switch c.name {
	case "find", "fd":
		roots, filtered := foundBy(c)
		return m.hits(roots, filtered)
	case "git":
		if len(c.args) == 1 && c.args[0].text == "ls-files" {
			return []word{{text: "."}}
		}
	case "ls", "dir":
		paths := c.operands()
		if len(paths) == 0 {
			paths = []word{{text: "."}}
		}
		var out []word
		for _, p := range paths {
			if !strings.Contains(p.text, "*") {
				p.text += "/*"
			}
			out = append(out, p)
		}
		return out
	}
	return nil
}

// modes judges chmod, chown and their kin.
func modes(m *matcher, c *call) {
	args := c.operands()
	if len(args) == 0 {
		return
	}
	if c.name == "chmod" {
		mode := args[0].text
		everybody := slices.Contains([]string{"a+rwx", "ugo+rwx", "+rwx", "a=rwx"}, mode) || strings.HasSuffix(mode, "777")
		others := mode == "o+w" && c.has('R', "--recursive")
		if everybody || others {
			m.high(c, "chmod-777", "lets everybody change the files")
			return
		}
	}
	for _, a := range args[1:] {
		t := m.resolve(a.text)
		if m.contained || t.climbed {
			continue
		}
		wholeGit := t.place == gitFolder && c.has('R', "--recursive")
		if wholeGit || t.place == outside {
			m.high(c, "change-mode-outside", "changes owner or mode of files outside of the workspace")
		}
	}
}

// copies judges dd.
func copies(m *matcher, c *call) {
	for _, a := range c.args {
		if to, ok := strings.CutPrefix(a.text, "of="); ok {
			m.writesTo(word{text: to}, c.words)
		}
	}
}

// moved judges where mv, cp, ln, install and rsync write, and what they take away.
func moved(m *matcher, c *call) {
	args := c.operands()
	if len(args) < 2 {
		return
	}
	last := args[len(args)-1]
	switch c.name {
	case "mv":
		if last.text == "/dev/null" {
			m.high(c, "remove-outside", "throws files away")
			return
		}
		for _, a := range args[:len(args)-1] {
			if !m.resolve(a.text).climbed { // the shell may be in a folder below
				m.removes([]word{a}, true, c.words)
			}
		}
	case "rsync":
		deletes := c.mentions("--delete", "--delete-after", "--delete-before", "--delete-excluded", "--del")
		outside := strings.Contains(last.text, ":") || !m.harmless(last)
		if deletes && outside {
			m.high(c, "rsync-delete", "deletes files outside of the workspace")
		}
		if strings.Contains(last.text, ":") {
			return
		}
	}
	m.writesTo(last, c.words)
}

func (m *matcher) harmless(w word) bool {
	switch m.resolve(w.text).place {
	case inside, temporary, cache, unknown:
		return true
	}
	return false
}

// written judges programs whose operands are files that they write.
func written(m *matcher, c *call) {
	args := c.operands()
	if c.name == "truncate" {
		for i, a := range c.args {
			takes := a.text == "-s" || a.text == "-r"
			if takes && i+1 < len(c.args) {
				args = operands(append(append([]word(nil), c.args[:i]...), c.args[i+2:]...))
			}
		}
	}
	for _, a := range args {
		m.writesTo(a, c.words)
	}
}

// edited judges sed -i and perl -i on files outside.
func edited(m *matcher, c *call) {
	inPlace := false
	for _, a := range c.args {
		inPlace = inPlace || strings.HasPrefix(a.text, "-i") || strings.HasPrefix(a.text, "--in-place")
	}
	args := c.operands()
	if !inPlace || len(args) < 1 {
		return
	}
	for _, a := range args[1:] {
		m.writesTo(a, c.words)
	}
}

// shreds judges what overwrites files so that nothing is left.
func shreds(m *matcher, c *call) {
	for _, a := range c.operands() {
		if t := m.resolve(a.text); device(t.path) {
			m.high(c, "write-device", "overwrites a disk")
			return
		}
	}
	m.removes(c.operands(), true, c.words)
}

func privileges(m *matcher, c *call) {
	for _, a := range c.args {
		switch a.text {
		case "-l", "-v", "-k", "-K", "-V", "-h", "--version", "--help", "--list", "--validate":
			return // asks only
		}
		if !strings.HasPrefix(a.text, "-") {
			m.words(c.cmd, skipPrivileges(c), c.depth+1) // what it runs says more
			break
		}
	}
	m.high(c, "sudo", "takes the rights of another user")
}

func skipPrivileges(c *call) []word {
	rest := skipOptions(c.args, wrappers()["sudo"].takes)
	for len(rest) > 0 && assigns(rest[0].text) {
		rest = rest[1:]
	}
	return rest
}

func kills(m *matcher, c *call) {
	args := c.args
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	for i, a := range args {
		signal := i > 0 && slices.Contains([]string{"-n", "-s"}, args[i-1].text) // it is the number of one
		first, all := a.text == "1" && !signal, a.text == "-1" && i > 0
		if first || all {
			m.high(c, "kill-all", "ends every process, or the first one")
		}
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
