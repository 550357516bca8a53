package safety

import "strings"

// This file has the rules about git and what keeps versions.

// gitRule judges git and its subcommand.
func gitRule(m *matcher, c *call) {
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		switch args[0].text {
		case "-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix":
			if len(args) > 1 {
				m.gitSetting(args[1].text, c)
				args = args[1:]
			}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	sub := &call{name: args[0].text, args: args[1:], words: c.words, cmd: c.cmd, depth: c.depth}
	if rule := gitRuleOf(sub.name); rule != nil {
		rule(m, sub)
	}
}

// gitSetting judges -c alias.x=!command.
func (m *matcher) gitSetting(setting string, c *call) {
	name, value, _ := strings.Cut(setting, "=")
	if strings.HasPrefix(value, "!") && strings.HasPrefix(name, "alias.") {
		m.run(value[1:], c.depth+1)
	}
}

func gitRewrite(m *matcher, c *call) {
	m.high(c, "git-rewrite-history", "rewrites the history of the repository")
}

func gitPush(m *matcher, c *call) {
	if c.has('n', "--dry-run") {
		return
	}
	refs := c.operands()
	forced := c.has('f', "--force") || c.has(0, "--force-with-lease") || c.has(0, "--force-if-includes") || c.has(0, "--mirror")
	for _, r := range refs {
		forced = forced || strings.HasPrefix(r.text, "+")
	}
	switch {
	case forced:
		m.high(c, "git-push-force", "overwrites the history of a remote branch")
	case c.has('d', "--delete") || c.has(0, "--prune"):
		m.high(c, "git-push-delete", "deletes branches or tags of the remote")
	default:
		for i, r := range refs {
			if i > 0 && strings.HasPrefix(r.text, ":") {
				m.high(c, "git-push-delete", "deletes branches or tags of the remote")
			}
		}
	}
}

func gitReset(m *matcher, c *call) {
	if c.has(0, "--hard") || c.mentions("--merge", "--keep") && len(c.operands()) > 0 {
		m.high(c, "git-reset-hard", "throws away changes that are not committed")
	}
}

func gitClean(m *matcher, c *call) {
	if c.has('n', "--dry-run") {
		return
	}
	if c.has('f', "--force") || c.has('d', "") || c.has('x', "") || c.has('X', "") {
		m.high(c, "git-clean", "deletes files that git does not keep")
	}
}

// gitRestore judges what throws all changes away. Single files are everyday.
func gitRestore(m *matcher, c *call) {
	if c.name == "checkout" {
		for _, a := range c.args {
			if a.text == "-b" || a.text == "-B" || a.text == "--orphan" {
				return
			}
		}
		if c.has('f', "--force") {
			m.high(c, "git-discard-all", "throws away changes that are not committed")
			return
		}
	}
	if c.name == "restore" && c.has('S', "--staged") && !c.has('W', "--worktree") {
		return
	}
	for _, a := range c.args {
		if a.text == ":/" || a.text == ":" || m.resolvesToAll(a) {
			m.high(c, "git-discard-all", "throws away changes that are not committed")
			return
		}
	}
}

func (m *matcher) resolvesToAll(w word) bool {
	switch w.text {
	case ".", "./", "*", "./*", "$PWD":
		return true
	}
	return false
}

func gitSwitch(m *matcher, c *call) {
	if c.has('f', "--force") || c.has(0, "--discard-changes") {
		m.high(c, "git-discard-all", "throws away changes that are not committed")
	}
}

func gitStash(m *matcher, c *call) {
	switch c.verb() {
	case "clear":
		m.high(c, "git-stash-clear", "deletes all stashed changes")
	case "drop":
		m.medium(c, "git-stash-drop", "deletes stashed changes")
	}
}

func gitBranch(m *matcher, c *call) {
	deletes := c.has('D', "") || c.has('d', "--delete") && c.has('f', "--force")
	if deletes && c.mentions("main", "master", "trunk", "develop") {
		m.high(c, "git-branch-delete", "deletes a main branch")
	} else if deletes {
		m.medium(c, "git-branch-delete", "deletes a branch that may not be merged")
	}
}

func gitTag(m *matcher, c *call) {
	if c.has('d', "--delete") {
		m.medium(c, "git-tag-delete", "deletes a tag")
	}
}

func gitRebase(m *matcher, c *call) {
	for i, a := range c.args {
		if (a.text == "-x" || a.text == "--exec") && i+1 < len(c.args) {
			m.run(c.args[i+1].text, c.depth+1)
		}
	}
	if c.has('i', "--interactive") || c.has(0, "--root") {
		m.medium(c, "git-rebase-interactive", "rewrites commits")
	}
}

func gitReflog(m *matcher, c *call) {
	if v := c.verb(); v == "expire" || v == "delete" {
		m.high(c, "git-reflog", "deletes what lost commits are found by")
	}
}

func gitCollect(m *matcher, c *call) {
	for _, a := range c.args {
		if a.text == "--prune=now" || a.text == "--prune=all" || c.name == "prune" && strings.HasPrefix(a.text, "--expire") {
			m.high(c, "git-prune", "deletes commits that no branch holds")
		}
	}
	if c.name == "prune" && !c.has('n', "--dry-run") && len(c.args) == 0 {
		m.high(c, "git-prune", "deletes commits that no branch holds")
	}
}

func gitUpdateRef(m *matcher, c *call) {
	if c.has('d', "") || c.mentions("--stdin") {
		m.high(c, "git-update-ref", "deletes or moves branches past git's checks")
	}
}

// gitForeach judges submodule foreach COMMAND and bisect run COMMAND.
func gitForeach(m *matcher, c *call) {
	for i, a := range c.args {
		if a.text != "foreach" && a.text != "run" {
			continue
		}
		rest := skipOptions(c.args[i+1:], "")
		if len(rest) == 1 {
			m.run(rest[0].text, c.depth+1)
		} else {
			m.words(c.cmd, rest, c.depth+1)
		}
		return
	}
	if c.verb() == "deinit" && c.has('f', "--force") {
		m.medium(c, "git-submodule-deinit", "throws away changes in submodules")
	}
}

func gitConfig(m *matcher, c *call) {
	ops := c.operands()
	if len(ops) == 2 && strings.HasPrefix(ops[0].text, "alias.") && strings.HasPrefix(ops[1].text, "!") {
		m.run(ops[1].text[1:], c.depth+1)
	}
	if (c.mentions("--global") || c.mentions("--system")) && (len(ops) > 1 || c.mentions("--unset", "--unset-all", "--remove-section")) {
		m.medium(c, "git-config-global", "changes git's settings for everything that the user does")
	}
}

func gitRemove(m *matcher, c *call) {
	if !c.has('r', "") || c.mentions("--cached") || c.has('n', "--dry-run") {
		return
	}
	m.removes(c.operands(), true, c.words)
}

func gitWorktree(m *matcher, c *call) {
	if c.verb() == "remove" && c.has('f', "--force") {
		m.medium(c, "git-worktree-remove", "throws away changes in a worktree")
	}
}

func gitRemote(m *matcher, c *call) {
	if v := c.verb(); v == "set-url" || v == "remove" || v == "rm" {
		m.medium(c, "git-remote-change", "changes where the repository is pushed")
	}
}
