package safety

import (
	"path"
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
		{"rm rimraf srm unlink del-cli trash shred wipe", remove},
		{"mv cp ln install rsync", moved},
		{"tee truncate dd sed gsed perl chmod chown chgrp chattr setfacl", written},
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
		{"source .", sources},
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
	case "rebase", "submodule", "bisect":
		sub.name = "git-" + args[0].text
		m.unwrap(&sub)
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

// interpreter judges what a program that runs programs is started with. Its own
// language is not read: what it does to files is the sandbox's to hold.
func interpreter(m *matcher, c *call) {
	unread := func(string) {}
	for i, a := range c.args {
		t := a.text
		switch {
		case len(t) < 2 || t[0] != '-':
			if t != "-" && t != "/dev/stdin" {
				m.refuseUnread(c, a)
				return // a program of its own
			}
		case t == "-m": // python -m twine upload
			m.words(c.cmd, c.args[i+1:], c.depth+1)
			return
		case slices.Contains([]string{"--version", "-V", "--help", "--check", "--test"}, t), t == "-v" && len(c.args) == 1:
			return
		case inline(c.name, t):
			if i+1 < len(c.args) {
				m.refuseUnread(c, c.args[i+1])
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
			if before != "-O" || c.name == "wget" {
				m.writesTo(a, c.words)
			}
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
