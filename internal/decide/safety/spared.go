package safety

import (
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file says where a dangerous command destroys nothing that anybody would
// miss: in temporary folders, databases of tests, and stand-ins of services on
// this machine.

// spared is true if a command that a line of commands.txt found is harmless.
func (m *matcher) spared(pattern string, c *call) bool {
	switch pattern {
	case "git-reset-hard", "git-discard-all":
		return m.inScratch()
	case "git-clean":
		return m.inScratch() || m.cleansPart(c)
	case "format-disk":
		image := c.operands()
		made := slices.Contains([]string{"mkfs", "mke2fs", "mkswap"}, c.name) && len(image) > 0
		return made && slices.Contains([]place{inside, temporary}, m.resolve(image[len(image)-1].text).place)
	case "reset-database":
		return c.forTests()
	case "drop-database":
		ops := c.operands()
		return c.forTests() || c.name == "dropdb" && len(ops) > 0 && namesTest(ops[len(ops)-1].text)
	case "docker-volume":
		return namesTest(c.value("-f", "--file", "-p", "--project-name"))
	case "kubectl-delete", "kubectl-drain", "kubectl-scale", "helm-uninstall":
		return slices.ContainsFunc(list("cluster of this machine"), func(name string) bool {
			return glob(name, c.value("--context", "--kube-context"))
		})
	case "aws-s3-rm", "aws-delete":
		_, host, _ := strings.Cut(c.value("--endpoint-url"), "://")
		host, _, _ = strings.Cut(host, "/")
		host, _, _ = strings.Cut(host, ":")
		return slices.Contains(list("stand-in"), host)
	}
	return false
}

// inScratch tells whether git works on a repository in a temporary folder.
func (m *matcher) inScratch() bool {
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE"} {
		if _, elsewhere := m.vars[name]; elsewhere {
			return false
		}
	}
	return m.cwd != "" && m.locate(m.cwd).place == temporary
}

// cleansPart tells whether git clean is told which folders, as rm may be.
func (m *matcher) cleansPart(c *call) bool {
	ops := c.operands()
	if len(ops) < 2 || c.mentions("-e", "--exclude") {
		return false
	}
	return !slices.ContainsFunc(ops[1:], func(w word) bool {
		return strings.HasPrefix(w.text, ":") || m.resolve(w.text).place != inside
	})
}

// value is what follows one of the options, or stands in it behind "="; "" when
// none is there.
func (c *call) value(options ...string) string {
	for i, a := range c.args {
		name, value, inOne := strings.Cut(a.text, "=")
		switch {
		case !slices.Contains(options, name):
		case inOne:
			return value
		case i+1 < len(c.args):
			return c.args[i+1].text
		}
	}
	return ""
}

// forTests tells whether an application's task is told to work as in tests: by
// a variable, or an option.
func (c *call) forTests() bool {
	if namesTest(c.value("--env", "--environment", "-e", "--settings")) {
		return true
	}
	isTest := func(setting string) bool {
		name, value, _ := strings.Cut(setting, "=")
		return slices.Contains(list("kind of run"), name) && namesTest(value)
	}
	return slices.ContainsFunc(c.cmd.env, isTest) || slices.ContainsFunc(texts(c.cmd.words), isTest)
}

// namesTest tells whether a name, a file or an address says that it is for
// tests: app_test, test.db, TEST_DATABASE_URL, postgres://localhost/test.
func namesTest(name string) bool {
	if _, address, ok := strings.Cut(name, "://"); ok { // a host may be called anything
		_, name, _ = strings.Cut(address, "/")
	}
	name, _, _ = strings.Cut(strings.ToLower(path.Base(name)), "?")
	if strings.ContainsAny(name, " \t\n") {
		return false
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || !wordRune(r) })
	return anyOf(words, "test", "tests", "testing")
}

// elsewhere is SQL that goes on in another database.
var elsewhere = lazy.Regexp(`(?i)(?:^|[;\n])\s*(?:\\c|\\connect|use|attach)\b`)

// sparesData tells whether an SQL client works on a database that is in memory,
// in a temporary folder, or one for tests.
func (m *matcher) sparesData(c *call) bool {
	leaves := elsewhere().MatchString(c.cmd.text)
	m.given(c, func(text string) { leaves = leaves || elsewhere().MatchString(text) })
	if leaves {
		return false
	}
	switch c.name {
	case "sqlite3", "sqlite", "litecli", "duckdb":
		if len(c.args) == 0 || c.value("-cmd", "-init") != "" {
			return false
		}
		ops := c.operands()
		return len(ops) > 0 &&
			(ops[0].text == ":memory:" || namesTest(ops[0].text) || m.resolve(ops[0].text).place == temporary)
	case "wrangler":
		return c.mentions("--local")
	case "psql", "mysql", "mariadb":
		name := c.value("-d", "--dbname", "-D", "--database")
		for i, a := range c.args {
			if i == 0 && !strings.HasPrefix(a.text, "-") || strings.Contains(a.text, "://") || strings.HasPrefix(a.text, "$") {
				name = a.text
			}
		}
		return namesTest(name)
	}
	return false
}
