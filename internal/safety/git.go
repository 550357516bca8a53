package safety

import (
	"slices"
	"strings"
)

// git judges git's subcommands: commands.txt has those that destroy, here are
// those that run or delete something.
func git(m *matcher, c *call) {
	args := c.args
	defer func(cwd string) { m.cwd = cwd }(m.cwd)
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if strings.HasPrefix(args[0].text, "--git-dir") || strings.HasPrefix(args[0].text, "--work-tree") {
			m.cwd = "" // anywhere
		}
		switch args[0].text {
		case "-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix":
			if len(args) > 1 {
				name, value, _ := strings.Cut(args[1].text, "=")
				m.gitAlias(name, value, c.depth)
				if args[0].text == "-C" {
					moves(m, &call{args: args[1:]})
				}
				args = args[1:]
			}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	sub := *c
	sub.args = args
	m.services(&sub)
	sub.args = args[1:]
	switch args[0].text {
	case "rebase":
		for i, a := range sub.args {
			if slices.Contains([]string{"-x", "--exec"}, a.text) && i+1 < len(sub.args) {
				m.run(sub.args[i+1].text, c.depth+1)
			}
		}
	case "submodule", "bisect":
		m.gitRuns(&sub)
	case "config":
		if ops := sub.operands(); len(ops) == 2 {
			m.gitAlias(ops[0].text, ops[1].text, c.depth)
		}
	case "rm":
		if sub.has('r', "") && !sub.mentions("--cached", "-n", "--dry-run") {
			m.removes(sub.operands(), true, c.words)
		}
	}
}

// gitAlias judges the command of an alias: alias.x=!command.
func (m *matcher) gitAlias(name, value string, depth int) {
	if command, ok := strings.CutPrefix(value, "!"); ok && strings.HasPrefix(name, "alias.") {
		m.run(command, depth+1)
	}
}

// gitRuns judges submodule foreach COMMAND and bisect run COMMAND.
func (m *matcher) gitRuns(c *call) {
	for i, a := range c.args {
		if a.text != "foreach" && a.text != "run" {
			continue
		}
		rest := skipOptions(c.args[i+1:], nil)
		if len(rest) == 1 {
			m.run(rest[0].text, c.depth+1)
		} else {
			m.words(c.cmd, rest, c.depth+1)
		}
		return
	}
}
