package safety

import (
	"slices"
	"strings"
)

// This file looks into one-line programs (python -c, node -e): the shell
// commands that they run, and the folders that they delete. It reads string
// literals and names of functions, not the language.

// interpreter judges the program text that an interpreter is given.
func interpreter(m *matcher, c *call) ([]word, bool) {
	if strings.HasSuffix(c.name, "awk") {
		if ops := c.operands(); len(ops) > 0 {
			m.code(ops[0].text, c)
		}
		return nil, false
	}
	if len(c.args) > 1 && baseName(c.args[0].text) == "eval" {
		m.code(c.args[1].text, c)
		return nil, false
	}
	for i, a := range c.args {
		t := a.text
		switch {
		case len(t) < 2 || t[0] != '-':
			if t != "-" && t != "/dev/stdin" {
				m.file(a, c, func(text string) { m.code(text, c) })
				return nil, false // a program of its own
			}
		case t == "-m":
			return c.args[i+1:], i+1 < len(c.args) // python -m twine upload
		case t == "--version" || t == "-V" || t == "--help" || t == "-v" && len(c.args) == 1 || t == "--check" || t == "--test":
			return nil, false
		case inlineFlag(c.name, t):
			if i+1 < len(c.args) {
				if c.args[i+1].taint != 0 {
					m.tainted(c.args[i+1].taint, c.words)
				}
				m.code(c.args[i+1].text, c)
			}
			return nil, false
		}
	}
	if c.cmd.fed || c.cmd.from != nil || len(c.cmd.redirects) > 0 {
		m.input(c, func(text string) { m.code(text, c) })
	}
	return nil, false
}

func inlineFlag(name, flag string) bool {
	switch flag {
	case "-c", "-e", "-E", "-p", "-r", "-pe", "-ne", "-le", "-lne", "-lpe", "-i", "--eval", "--print", "-ie", "-pie", "-0pe", "-nE":
	default:
		return strings.HasPrefix(name, "perl") && !strings.HasPrefix(flag, "--") && strings.HasSuffix(flag, "e")
	}
	switch {
	case strings.HasPrefix(name, "python"), strings.HasPrefix(name, "pypy"):
		return flag == "-c"
	case name == "php":
		return flag == "-r"
	case name == "ruby" || name == "lua":
		return strings.HasSuffix(flag, "e") && flag != "-i"
	case name == "perl":
		return flag != "-i" && flag != "-p" && flag != "-c" && flag != "-r"
	}
	return flag == "-e" || flag == "-p" || flag == "-pe" || flag == "--eval" || flag == "--print"
}

// code judges a program's text.
func (m *matcher) code(text string, c *call) {
	if !m.pay(len(text)) {
		return
	}
	names, literals, groups := scanCode(text)
	decodes := slices.Contains(names, "b64decode") || slices.Contains(names, "atob") || slices.Contains(names, "fromhex") || slices.Contains(names, "unhexlify")
	evaluates := slices.Contains(names, "exec") || slices.Contains(names, "eval") || slices.Contains(names, "Function") || slices.Contains(names, "system") || slices.Contains(names, "execSync")
	if decodes && evaluates {
		m.high(c, "decode-and-run", "runs text that it decodes first")
	}
	fetches := slices.Contains(names, "urlopen") || slices.Contains(names, "fetch") || slices.Contains(names, "requests")
	if fetches && (slices.Contains(names, "exec") || slices.Contains(names, "eval")) {
		m.high(c, "download-and-run", "runs what it downloads")
	}
	if slices.Contains(names, "fork") && slices.Contains(names, "while") {
		m.high(c, "fork-bomb", "starts processes without end")
	}
	does := deedsOf(names)
	if does.database {
		for _, l := range literals {
			m.sql(l, c)
		}
	}
	if does.runs {
		for _, l := range append(groups, literals...) {
			m.run(l, c.depth+1)
		}
	}
	if does.removes {
		m.removesIn(names, literals, c)
	}
}

// removesIn judges the folders that a program deletes.
func (m *matcher) removesIn(names, literals []string, c *call) {
	for _, l := range literals {
		if !strings.ContainsAny(l, " \n") && (strings.HasPrefix(l, "/") || strings.HasPrefix(l, "~") || l == "." || l == ".git" || strings.HasPrefix(l, "..")) {
			m.removes([]word{{text: l}}, true, c.words)
		}
	}
	if slices.Contains(names, "expanduser") || slices.Contains(names, "homedir") || slices.Contains(names, "home") {
		m.removes([]word{{text: "~"}}, true, c.words)
	}
}

// deeds are what the functions that a program names can do.
type deeds struct{ runs, removes, database bool }

func deedsOf(names []string) (d deeds) {
	for _, n := range names {
		switch n {
		case "system", "popen", "exec", "execSync", "execFileSync", "spawn", "spawnSync", "subprocess", "child_process", "shell_exec", "passthru", "qx", "backticks", "execvp", "execFile", "Popen", "execv", "Open3", "shell":
			d.runs = true
		case "rmtree", "rm_rf", "rm_r", "rmSync", "rmdirSync", "removeSync", "rimraf", "remove_tree", "rmdir", "unlink", "unlinkSync", "remove", "removedirs", "RemoveAll", "rm", "emptyDirSync", "remove_dir", "delete":
			d.removes = true
		case "execute", "executescript", "query", "raw", "sequelize", "cursor", "psycopg2", "sqlite3":
			d.database = true
		}
	}
	return d
}

// scanCode returns the names in a program's text, its string literals, and the
// literals that stand together in brackets, joined: ["rm", "-rf", "/"].
func scanCode(text string) (names, literals, groups []string) {
	var group []string
	flush := func() {
		if len(group) > 1 {
			groups = append(groups, strings.Join(group, " "))
		}
		group = nil
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\'' || c == '"' || c == '`':
			end := literalEnd(text, i, c)
			one := unescape(text[i+1 : max(i+1, end-1)])
			literals = append(literals, one)
			group = append(group, one)
			if c == '`' {
				names = append(names, "backticks")
			}
			i = end
		case c == '%' && strings.HasPrefix(text[i:], "%x"), c == 'q' && i+2 < len(text) && text[i+1] == 'x' && !wordByte(text[i+2]):
			if i+2 < len(text) {
				closing := map[byte]byte{'{': '}', '(': ')', '[': ']', '<': '>'}[text[i+2]]
				if closing == 0 {
					closing = text[i+2]
				}
				if n := strings.IndexByte(text[i+3:], closing); n >= 0 {
					literals = append(literals, text[i+3:i+3+n])
					names = append(names, "qx")
					i += 3 + n
				}
			}
			i++
		case c == '_' || letter(c):
			from := i
			for i < len(text) && wordByte(text[i]) {
				i++
			}
			names = append(names, cutBytes(text[from:i], 40))
		case c == '#' && (i == 0 || text[i-1] == '\n' || text[i-1] == ' '):
			i = lineEnd(text, i)
		case c == '(' || c == '[' || c == ')' || c == ']' || c == ';' || c == '\n':
			flush()
			i++
		default:
			i++
		}
	}
	flush()
	return names, literals, groups
}

func literalEnd(text string, from int, quote byte) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		}
	}
	return len(text)
}
