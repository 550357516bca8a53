package safety

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// This file looks into one-line programs (python -c, node -e): the shell
// commands that they run, and the folders that they delete. It reads string
// literals and names of functions, not the language.

// awk judges the program text of awk.
func awk(m *matcher, c *call) {
	if ops := c.operands(); len(ops) > 0 {
		m.code(ops[0].text, c)
	}
}

// interpreter judges the program text that an interpreter is given.
func interpreter(m *matcher, c *call) {
	if len(c.args) > 1 && baseName(c.args[0].text) == "eval" {
		m.code(c.args[1].text, c)
		return
	}
	for i, a := range c.args {
		t := a.text
		switch {
		case len(t) < 2 || t[0] != '-':
			if t != "-" && t != "/dev/stdin" {
				m.file(a, c, func(text string) { m.code(text, c) })
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
				m.code(c.args[i+1].text, c)
			}
			return
		}
	}
	if c.cmd.fed || c.cmd.from != nil || len(c.cmd.redirects) > 0 {
		m.input(c, func(text string) { m.code(text, c) })
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

// code judges a program's text.
func (m *matcher) code(text string, c *call) {
	if !m.pay(len(text)) {
		return
	}
	names, literals, groups := scanCode(text)
	if anyOf(names, list("decodes")...) && anyOf(names, list("evaluates")...) {
		m.tainted(decoded, c.words)
	}
	if anyOf(names, list("fetches")...) && anyOf(names, "exec", "eval") {
		m.tainted(downloaded, c.words)
	}
	if slices.Contains(names, "fork") && slices.Contains(names, "while") {
		m.high(c, "fork-bomb", "starts processes without end")
	}
	if anyOf(names, list("queries")...) {
		for _, l := range literals {
			m.sql(l, c)
		}
	}
	if anyOf(names, list("runs")...) {
		for _, l := range append(groups, literals...) {
			m.run(l, c.depth+1)
		}
	}
	if !anyOf(names, list("removes")...) {
		return
	}
	if anyOf(names, list("home")...) {
		literals = append(literals, "~")
	}
	for _, l := range literals {
		folder := l == "." && !chosen(text, names, literals) || l == ".git" || beginsWith(l, []string{"/", "~", ".."})
		if folder && !strings.ContainsAny(l, " \n") {
			m.removes([]word{{text: l}}, true, c.words)
		}
	}
}

// chosen tells whether a program picks what it deletes by its name: not all of a
// folder.
func chosen(text string, names, literals []string) bool {
	if strings.Contains(text, "!") || anyOf(names, "not", "unless") {
		return false // all but some
	}
	return anyOf(names, list("chooses")...) && !anyOf(literals, "", "*", "**", "**/*", "*.*")
}

var codeTokens = lazy.Regexp("(?s)" + strings.Join([]string{
	`'(?:[^'\\]|\\.)*(?:'|$)`, `"(?:[^"\\]|\\.)*(?:"|$)`, "`(?:[^`\\\\]|\\\\.)*(?:`|$)", // literals
	`(?:%x|qx)(?:\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|<[^>]*>|/[^/]*/|\|[^|]*\|)`, // commands of perl and ruby
	`(?:^|\s)#[^\n]*`, `[A-Za-z_]\w*`, `[()\[\];\n]`,
}, "|"))

// scanCode returns the names in a program's text, its string literals, and the
// literals that stand together in brackets, joined: ["rm", "-rf", "/"].
func scanCode(text string) (names, literals, groups []string) {
	var group []string
	for _, t := range codeTokens().FindAllString(text+"\n", -1) {
		switch c := t[0]; {
		case c == '\'' || c == '"' || c == '`':
			one := unescape(strings.Trim(t, t[:1]))
			literals, group = append(literals, one), append(group, one)
			if c == '`' {
				names = append(names, "backticks")
			}
		case strings.HasPrefix(t, "%x"), strings.HasPrefix(t, "qx") && !wordByte(t[len(t)-1]):
			literals, names = append(literals, t[3:len(t)-1]), append(names, "qx")
		case wordByte(c):
			names = append(names, t)
		default:
			if len(group) > 1 {
				groups = append(groups, strings.Join(group, " "))
			}
			group = nil
		}
	}
	return names, literals, groups
}
