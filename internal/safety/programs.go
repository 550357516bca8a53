package safety

import "strings"

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
