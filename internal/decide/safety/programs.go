package safety

import (
	"slices"
	"strings"
)

// rule judges one program's command line.
type rule func(m *matcher, c *call)

// programs are the rules of each program, beside the lines of commands.txt.
func programs() map[string][]rule {
	out := map[string][]rule{}
	for _, row := range []struct {
		names string
		rule  rule
	}{
		{"rm rimraf srm unlink del-cli trash", remove},
		{"shred wipe", shreds},
		{"chmod chown chgrp chattr setfacl", modes},
		{"dd", copies},
		{"mv cp ln install rsync", moved},
		{"tee truncate", written},
		{"sed gsed perl", edited},
		{"sudo doas pkexec su runas gsudo", privileges},
		{"kill", kills},
		{"echo printf", prints},
		{"git", git},
		{"psql mysql mariadb sqlite3 sqlite sqlcmd osql clickhouse-client clickhouse duckdb cqlsh cockroach", sqlClient},
		{"sqlplus snowsql bq trino presto pgcli mycli usql isql turso litecli athenacli spark-sql hive", sqlClient},
		{"beeline impala-shell wrangler", sqlClient},
		{"redis-cli valkey-cli keydb-cli", redis},
		{"mongosh mongo", mongo},
		{"curl wget http https aria2c nc ncat telnet ftp sftp scp", web},
		{"sh bash zsh dash ksh ash fish mksh rbash csh tcsh", shellOf},
		{"python3 node nodejs ruby perl php deno bun lua pypy3 tsx ipython Rscript osascript", interpreter},
		{"xargs", xargs},
		{"find fd", finds},
		{"eval", evals},
		{"su", su},
		{"watch hyperfine script nix-shell tmux screen watchexec nodemon concurrently alr nix", watches},
		{"npm-run-all vagrant lxc", watches},
		{"trap", traps},
		{"ssh mosh", remote},
		{"docker", container},
		{"kubectl oc", pod},
		{"source .", sources},
		{"at batch", fromInput},
		{"alias", aliased},
		{"cd pushd", moves},
	} {
		for _, name := range strings.Fields(row.names) {
			out[name] = append(out[name], row.rule)
		}
	}
	return out
}

// synonyms are programs that are judged as another one.
var synonyms = map[string]string{
	"tofu": "terraform", "terragrunt": "terraform",
	"podman": "docker", "nerdctl": "docker", "podman-compose": "docker-compose",
	"mariadb-admin": "mysqladmin", "mvnw": "mvn", "gradlew": "gradle", "python": "python3", "pypy": "python3",
}

// synonym is the program that another one is judged as, also one with a
// version in its name: python3.12.
func synonym(name string) string {
	if strings.HasPrefix(name, "mkfs.") {
		return "mkfs"
	}
	if bare := strings.TrimRight(name, "0123456789."); bare != "" {
		switch bare {
		case "python", "perl", "ruby", "php", "pypy", "node", "lua":
			name = bare
		}
	}
	if other, ok := synonyms[name]; ok {
		return other
	}
	return name
}

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

// web judges programs that talk to servers.
func web(m *matcher, c *call) {
	elsewhere, deletes := false, false
	for i, a := range c.args {
		t, before := a.text, ""
		if i > 0 {
			before = c.args[i-1].text
		}
		if isURL(t) && !loopback(t) {
			elsewhere = true
		}
		switch t {
		case "DELETE":
			deletes = deletes || before == "-X" || before == "--request" || c.name == "http" || c.name == "https"
		case "-XDELETE", "--request=DELETE", "--method=DELETE":
			deletes = true
		}
		switch before {
		case "-o", "-O", "--output", "--output-document":
			m.downloads(t)
			if before != "-O" || c.name == "wget" {
				m.writesTo(a, c.words)
			}
		}
		byOption := c.name == "curl" && c.has('O', "--remote-name")
		keepsName := byOption || c.name == "wget"
		if keepsName && strings.HasPrefix(t, "http") {
			m.downloads(t[strings.LastIndexByte(t, '/')+1:])
		}
	}
	for _, r := range c.cmd.redirects {
		if r.op == ">" {
			m.downloads(r.target.text)
		}
	}
	if elsewhere && deletes {
		m.high(c, "http-delete", "destroys resources that are not in the workspace")
	}
	if elsewhere {
		m.report(finding{"network", "it talks to the network", High, External}, c.words)
	}
}

// isURL says whether an argument is an address, also one without a scheme.
func isURL(s string) bool {
	return slices.ContainsFunc([]string{"http://", "https://", "ftp://"}, func(scheme string) bool {
		return strings.HasPrefix(s, scheme)
	}) || len(s) > 3 && strings.IndexByte("-/.", s[0]) < 0 && strings.Contains(s, ".") && strings.Contains(s, "/")
}

// downloads notes a file that comes from the network.
func (m *matcher) downloads(file string) { m.fetched[strings.TrimPrefix(file, "./")] = true }

// loopback is true for an address of this machine.
func loopback(url string) bool {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	host, _, _ := strings.Cut(url, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.HasPrefix(host, "[::1]") {
		return true
	}
	host, _, _ = strings.Cut(host, ":")
	switch host {
	case "localhost", "0.0.0.0", "host.docker.internal":
		return true
	}
	return strings.HasPrefix(host, "127.") || strings.HasSuffix(host, ".localhost")
}
