package safety

import (
	"slices"
	"strings"
)

// interpreter judges what a program that runs programs is started with. Its own
// language is not read: what it does to files is the sandbox's to hold.
func interpreter(m *matcher, c *call) {
	unread := func(string) {}
	for i, a := range c.args {
		t := a.text
		switch {
		case len(t) < 2 || t[0] != '-':
			if t != "-" && t != "/dev/stdin" {
				m.file(a, c, unread)
				return // a program of its own
			}
		case t == "-m": // python -m twine upload
			m.words(c.cmd, c.args[i+1:], c.depth+1)
			return
		case slices.Contains([]string{"--version", "-V", "--help", "--check", "--test"}, t), t == "-v" && len(c.args) == 1:
			return
		case inline(c.name, t):
			if i+1 < len(c.args) {
				m.tainted(c.args[i+1].taint, c.words)
			}
			return
		}
	}
	if c.cmd.fed || c.cmd.from != nil || len(c.cmd.redirects) > 0 {
		m.input(c, unread)
	}
}

// inline says whether a program's text follows a flag.
func inline(name, flag string) bool {
	switch name {
	case "python3", "pypy3":
		return flag == "-c"
	case "php":
		return flag == "-r"
	case "perl", "ruby", "lua":
		return !strings.HasPrefix(flag, "--") && strings.HasSuffix(strings.ToLower(flag), "e")
	}
	return slices.Contains([]string{"-e", "-p", "-pe", "--eval", "--print"}, flag)
}
