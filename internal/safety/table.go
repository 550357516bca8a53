package safety

import "strings"

// This file says who judges which program.

// rule judges one program's command line.
type rule func(m *matcher, c *call)

// ruleOf is who judges a program; nil when nobody does.
func ruleOf(name string) rule {
	switch name {
	case "rm", "rimraf", "srm", "unlink", "del-cli", "trash":
		return remove
	case "rmdir":
		return rmdir
	case "shred", "wipe":
		return shreds
	case "chmod", "chown", "chgrp", "chattr", "setfacl":
		return modes
	case "dd":
		return copies
	case "mkfs", "mke2fs", "mkswap", "fdisk", "sfdisk", "sgdisk", "gdisk", "cfdisk", "parted", "wipefs", "blkdiscard", "lvremove",
		"vgremove", "pvremove", "newfs", "diskpart":
		return formats
	case "mv", "cp", "ln", "install", "rsync":
		return moved
	case "tee", "truncate":
		return written
	case "sed", "gsed", "perl":
		return edited
	case "sudo", "doas", "pkexec", "su", "runas", "gsudo":
		return privileges
	case "shutdown", "reboot", "halt", "poweroff", "Stop-Computer", "Restart-Computer":
		return powerOff
	case "init", "telinit":
		return initLevel
	case "systemctl":
		return systemctl
	case "kill", "pkill", "killall", "killall5":
		return kills
	case "crontab":
		return crontab
	case "userdel", "deluser", "usermod", "useradd", "passwd", "chpasswd", "visudo", "groupdel":
		return users
	case "iptables", "ip6tables", "nft", "ufw":
		return firewall
	case "apt", "apt-get", "dnf", "yum", "zypper", "brew":
		return packages
	case "echo", "printf":
		return says
	case "git":
		return gitRule
	case "bfg", "git-filter-repo":
		return gitRewrite
	case "psql", "mysql", "mariadb", "sqlite3", "sqlite", "sqlcmd", "osql", "clickhouse-client", "clickhouse", "duckdb", "cqlsh",
		"cockroach", "sqlplus", "snowsql", "bq", "trino", "presto", "pgcli", "mycli", "usql", "isql", "turso", "litecli", "athenacli",
		"spark-sql", "hive", "beeline", "impala-shell", "wrangler":
		return sqlClient
	case "dropdb", "dropuser", "mysqladmin", "pg_restore":
		return wholeDatabase
	case "redis-cli", "valkey-cli", "keydb-cli":
		return redisRule
	case "mongosh", "mongo", "mongorestore":
		return mongoRule
	case "rails", "rake", "python", "python3", "django-admin", "php", "artisan", "prisma", "mix", "sequelize", "sequelize-cli",
		"typeorm", "alembic", "flask", "knex", "supabase", "flyway", "manage.py", "sail", "console":
		return migrations
	case "curl", "wget", "http", "https", "aria2c", "nc", "ncat", "telnet", "ftp", "sftp", "scp":
		return web
	case "del", "erase", "rd", "Remove-Item", "ri":
		return erases
	case "format":
		return formatDrive
	case "Format-Volume", "Clear-Disk":
		return formatsVolume
	}
	return nil
}

// synonym is the program that another one is judged as.
func synonym(name string) string {
	switch name {
	case "tofu", "terragrunt":
		return "terraform"
	case "podman", "nerdctl":
		return "docker"
	case "podman-compose":
		return "docker-compose"
	case "mariadb-admin":
		return "mysqladmin"
	case "mvnw":
		return "mvn"
	case "gradlew":
		return "gradle"
	}
	for _, versioned := range []string{"python", "perl", "ruby", "php", "pypy", "node", "lua"} {
		if rest, ok := strings.CutPrefix(name, versioned); ok && strings.Trim(rest, "0123456789.") == "" {
			if versioned == "python" || versioned == "pypy" {
				return "python3"
			}
			return versioned
		}
	}
	return name
}

// launcher judges what a program runs in a way of its own, or returns it.
type launcher func(m *matcher, c *call) ([]word, bool)

// launcherOf is who knows how a program runs others; nil when nobody does.
func launcherOf(name string) launcher {
	switch name {
	case "sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "mksh", "rbash", "csh", "tcsh":
		return shellOf
	case "python", "python2", "python3", "node", "nodejs", "ruby", "perl", "php", "deno", "bun", "lua", "pypy3", "tsx", "ipython", "awk", "gawk", "mawk", "Rscript", "osascript":
		return interpreter
	case "xargs":
		return xargs
	case "find", "fd":
		return finds
	case "eval":
		return evals
	case "su":
		return su
	case "watch", "hyperfine", "script", "nix-shell", "tmux", "screen", "watchexec", "nodemon", "concurrently", "alr", "nix",
		"npm-run-all", "vagrant", "lxc":
		return watches
	case "trap":
		return traps
	case "ssh", "mosh":
		return remote
	case "docker", "podman", "nerdctl":
		return container
	case "kubectl", "oc":
		return pod
	case "source", ".":
		return sources
	case "at", "batch":
		return fromInput
	case "alias":
		return aliased
	case "cd", "pushd":
		return moves
	case "cmd":
		return windows
	case "powershell", "pwsh":
		return powershell
	}
	return nil
}

// gitRuleOf is who judges a subcommand of git; nil when nobody does.
func gitRuleOf(name string) rule {
	switch name {
	case "push":
		return gitPush
	case "reset":
		return gitReset
	case "clean":
		return gitClean
	case "checkout", "restore":
		return gitRestore
	case "switch":
		return gitSwitch
	case "stash":
		return gitStash
	case "branch":
		return gitBranch
	case "tag":
		return gitTag
	case "rebase":
		return gitRebase
	case "reflog":
		return gitReflog
	case "gc", "prune":
		return gitCollect
	case "update-ref":
		return gitUpdateRef
	case "submodule", "bisect":
		return gitForeach
	case "config":
		return gitConfig
	case "rm":
		return gitRemove
	case "filter-branch", "filter-repo":
		return gitRewrite
	case "worktree":
		return gitWorktree
	case "remote":
		return gitRemote
	}
	return nil
}

// rmdir deletes empty folders only; on Windows it is rd.
func rmdir(m *matcher, c *call) {
	for _, a := range c.args {
		if a.text == "/s" || a.text == "/S" {
			erases(m, c)
			return
		}
	}
}

func formatsVolume(m *matcher, c *call) {
	m.high(c, "format-disk", "erases a disk or changes its partitions")
}
