package main

// What makes a place is run in its repository; what a place is made in ends with exec "$@".
const (
	noNamespaces = `sh -c 'exec setpriv --bounding-set -all --inh-caps -all --no-new-privs "$@"' x`
	overlayRoot  = `unshare --mount sh -c 'o=$AT/o; mkdir $o; mount -t tmpfs none $o; mkdir $o/up $o/work $o/root;
		mount -t overlay -o lowerdir=/,upperdir=$o/up,workdir=$o/work overlay $o/root;
		for d in proc dev; do mount --rbind /$d $o/root/$d; done; exec chroot $o/root "$@"' x`
	onLoopback6 = `unshare --net sh -c 'ip link set lo up; ip addr del 127.0.0.1/8 dev lo; exec "$@"' x`
	gitSays     = `mkdir ../git; printf '#!/bin/sh\n%s\n' "$1" >../git/git; chmod +x ../git/git; PATH=$AT/git:$PATH`
	conflict    = `git checkout -qb other; echo a >f; git add f; git commit -qm a; git checkout -q main; echo b >f
		git add f; git commit -qm b; `
)

// withTemp is a mount namespace whose /tmp is another.
func withTemp(options, more string) string {
	return `unshare --mount sh -c 'mount -t tmpfs -o ` + options + ` none /tmp; ` + more + ` exec "$@"' x`
}

// gitThat is a program in the place of git.
func gitThat(does string) string { return "set -- '" + does + "'\n" + gitSays }

// hiding is a repository that hides a key.
func hiding(what, more string) string {
	return "echo key >key; echo 'safety: {hide: [" + what + "]}' >>pawl.yaml; " + more + "; git commit -qam hidden"
}

const (
	noState   = "refused: .*no folder for pawl.s state"
	keepState = "refused: .*cannot keep pawl's state in "
	notUser   = `.* belongs to user 0, and you are user \d+`
	unwritten = "refused: .*cannot write .*, so no work could get into the repository"
	noAgent   = `refused: .*agent "mine".* is not an executable program here`
	twoBoards = "runs: .*the repository already has a board"
)

var placeRows = []placeRow{
	{"as root, as a user, as one without an entry in passwd",
		"; [what the sandbox holds](safety.md#what-holds-where) differs", []workPlace{
			{name: "user", short: true},
			{name: "root", root: true},
		}},
	{"containers: as their first process, on an overlay, with other names of hosts",
		"; what a container that was killed left is known as interrupted", []workPlace{
			{name: "first process", in: "unshare --pid --fork --mount-proc"},
			{name: "first process, root", in: "unshare --pid --fork --mount-proc --uts", root: true},
			{name: "overlay", in: overlayRoot, root: true},
			{name: "hidden processes",
				in: `unshare --pid --fork --mount sh -c 'mount -t proc -o hidepid=2 proc /proc; exec "$@"' x`},
			{name: "read-only proc", short: true,
				in: `unshare --mount sh -c 'mount -o remount,bind,ro /proc; exec "$@"' x`},
		}},
	{"root without mount namespaces, at `normal` and `paranoid`", "", []workPlace{
		{name: "no namespaces, root", root: true, in: noNamespaces, says: "refused: .*without a mount namespace"},
	}},
	{"Linux without `/proc`", "", []workPlace{
		{name: "no proc", in: `unshare --mount sh -c 'umount -l /proc; exec "$@"' x`,
			says: "refused: .*(there is no /proc here|cannot find pawl's own program)"},
	}},
	{"`/tmp` that is read-only, full, small, or mounted noexec; `TMPDIR` that leads nowhere", "", []workPlace{
		{name: "read-only tmp", in: withTemp("ro", "")},
		{name: "closed tmp", in: withTemp("ro,mode=0", "")},
		{name: "full tmp",
			in: withTemp("size=4k,mode=1777", "dd if=/dev/zero of=/tmp/full bs=4k count=1 2>/dev/null;")},
		{name: "noexec tmp", in: withTemp("noexec,mode=1777", "")},
		{name: "no TMPDIR", make: "export TMPDIR=/nonexistent", short: true},
		{name: "TMPDIR in the repository", make: "mkdir t; export TMPDIR=$PWD/t"},
	}},
	{"the home folder, or the state, below `/tmp`",
		"; without namespaces `/tmp` cannot be written then, and programs get a `TMPDIR` of their own", []workPlace{
			{name: "home in tmp", in: withTemp("mode=1777", ""),
				make: "mkdir /tmp/home; cp $HOME/.gitconfig /tmp/home; HOME=/tmp/home"},
			{name: "home is tmp", in: withTemp("mode=1777", ""), make: "cp $HOME/.gitconfig /tmp; HOME=/tmp"},
		}},
	{"`HOME` and `XDG_STATE_HOME` unset, empty or relative; state that is read-only, that another user owns (as after `sudo`), or that others can write", ", with the variable to set", []workPlace{
		{name: "no HOME", make: "unset HOME", says: noState, short: true},
		{name: "empty HOME", make: "HOME=", says: noState},
		{name: "relative HOME", make: "HOME=here", says: noState},
		{name: "HOME is not a folder", make: "HOME=/dev/null", says: keepState},
		{name: "missing HOME", make: "HOME=/nonexistent", says: keepState},
		{name: "read-only home", make: "chmod 555 $HOME", says: keepState},
		{name: "state is a file", make: "mkdir -p $HOME/.local/state; touch $HOME/.local/state/pawl", says: keepState},
		{name: "state of others", make: "mkdir -p $HOME/.local/state/pawl; chmod 777 $HOME/.local/state/pawl",
			says: keepState + ".*others can write"},
		{name: "state of root", root: true, says: keepState + notUser,
			make: `pawl case add Zero; chown -R 54321 "$AT"; chown -R 0 "$HOME"/.local/state/pawl/*-*; IN="setpriv --reuid 54321 --regid 54321 --clear-groups"`},
		{name: "part of the state of root", root: true, says: keepState + notUser,
			make: `pawl run build -n 1; git reset -q --hard HEAD~; chown -R 54321 "$AT"; for d in "$HOME"/.local/state/pawl/*-*/store; do chown -R 0 "$d"; done; IN="setpriv --reuid 54321 --regid 54321 --clear-groups"`},
	}},
	{"the repository is your home folder, or holds it; `safety.hide` names what git has", ": agents would have it",
		[]workPlace{
			{name: "home is the repository", make: "cp $HOME/.gitconfig .; HOME=$PWD",
				says: "refused: .*contains your home folder", short: true},
			{name: "home is below", make: "mkdir h; cp $HOME/.gitconfig h; HOME=$PWD/h",
				says: "refused: .*contains your home folder"},
			{name: "home by a link", make: "cp $HOME/.gitconfig .; ln -s $PWD $AT/link; HOME=$AT/link",
				says: "refused: .*contains your home folder"},
			{name: "hidden and tracked", make: hiding("key", "git add key"),
				says: "refused: .*safety.hide cannot hide key"},
			{name: "hidden by a link", make: hiding("link", "ln -s key link; git add key link"),
				says: "refused: .*safety.hide cannot hide key"},
		}},
	{"another user owns the repository or a part of it (as after `sudo git`); it is read-only", ", with how to make it yours", []workPlace{
		{name: "repository of another", root: true, make: "chown -R 54321 .", says: "refused: .*another user owns it"},
		{name: "objects of root", root: true, says: unwritten,
			make: `chown -R 54321 "$AT"; chown -R 0 .git/objects; IN="setpriv --reuid 54321 --regid 54321 --clear-groups"`},
		{name: "read-only git", make: "chmod -R a-w .git", says: unwritten},
		{name: "read-only branches", make: "chmod a-w .git/refs/heads", says: unwritten},
		{name: "read-only files", make: "chmod a-w .", says: unwritten},
		{name: "read-only disk", root: true, in: "unshare --mount",
			make: "mount --bind . .; mount -o remount,bind,ro .; cd $PWD", says: unwritten},
	}},
	{"git is missing, older than 2.38, broken by its configuration, or a program that does not answer, or prints more than git", ", with git's reason", []workPlace{
		{name: "no git", says: "refused: .*git is not installed, though there is a .git",
			make: "mkdir ../b; for p in sh env cat grep touch rm tail head tr timeout sleep; do ln -s $(command -v $p) ../b/$p; done; PATH=$AT/b"},
		{name: "old git", make: gitThat("echo git version 2.30.1"), says: "refused: .*pawl needs git 2.38"},
		{name: "silent git", make: gitThat("sleep 1000"), says: "refused: .*did not say its version"},
		{name: "noisy git", make: gitThat(`echo noise; exec /usr/bin/git "$@"`),
			says: "refused: .*prints words of its own"},
		{name: "git that says more", make: gitThat(`/usr/bin/git "$@"; c=$?; echo done; exit $c`),
			says: "refused: .*prints words of its own"},
		{name: "broken configuration of git", make: "printf '[core\\nx' >>$HOME/.gitconfig",
			says: "refused: .*bad config line"},
		{name: "unknown extension",
			make: "git config core.repositoryFormatVersion 1; git config extensions.nobody true",
			says: "refused: .*unknown repository extension"},
		{name: "objects are gone", make: "git clone -q --shared . ../other; cd ../other; rm -rf ../repo",
			says: "refused: "},
	}},
	{"git that is slow, or wrapped; its settings: signing, hooks, line ends, fsmonitor, insteadOf, no name",
		"; pawl's own git obeys none that runs a program", []workPlace{
			{name: "slow git", make: gitThat(`sleep 0.1; exec /usr/bin/git "$@"`)},
			{name: "git with messages", make: gitThat(`echo noise >&2; exec /usr/bin/git "$@"`)},
			{name: "signing",
				make: "git config --global commit.gpgsign true; git config --global gpg.program /nonexistent"},
			{name: "hooks",
				make: "mkdir ../hooks; printf '#!/bin/sh\\nexit 1\\n' >../hooks/pre-commit; chmod +x ../hooks/pre-commit; cp ../hooks/pre-commit ../hooks/reference-transaction; git config core.hooksPath $AT/hooks"},
			{name: "autocrlf",
				make: "echo '*.sh eol=lf' >.gitattributes; git add .; git commit -qm ends; git config --global core.autocrlf true"},
			{name: "fsmonitor",
				make: "git config --global core.fsmonitor /nonexistent/hook; git config --global core.untrackedCache true"},
			{name: "insteadOf", make: "git config --global url.https://nowhere.invalid/.insteadOf /"},
			{name: "large repositories",
				make: "git config --global feature.manyFiles true; git config --global core.splitIndex true; git config --global index.skipHash true; git read-tree HEAD; git commit -q --allow-empty -m 2"},
			{name: "sparse index",
				make: "mkdir d d/e; echo e >d/e/f; git add d; git commit -qm d; git config index.sparse true; git sparse-checkout set --cone --sparse-index"},
			{name: "settings of a work tree",
				make: "git config extensions.worktreeConfig true; git config --worktree core.hooksPath /nonexistent; git config --global safe.bareRepository explicit"},
			{name: "strict transfers",
				make: "git config --global transfer.fsckObjects true; git config --global fetch.fsckObjects true; git config --global transfer.hideRefs refs/pawl; git config --global protocol.allow never; git config --global merge.ff false; git config --global core.compression 0"},
			{name: "no name",
				make: "git config --global --unset user.name; git config --global --unset user.email; git config --global user.useConfigOnly true"},
			{name: "aliases",
				make: "git config --global alias.status '!false'; git config --global core.pager /nonexistent; git config --global color.ui always; git config --global diff.external /nonexistent; git config --global diff.noprefix true; git config --global log.showSignature true"},
			{name: "variables of git",
				make: "export GIT_DIR=/nonexistent GIT_WORK_TREE=/nonexistent GIT_INDEX_FILE=/nonexistent"},
		}},
	{"outside of git, with `verification.protect`",
		"; without it `pawl run` works in your files, and the board needs git", []workPlace{
			{name: "outside of git", make: "rm -rf .git", says: "refused: .*outside of git"},
		}},
	{"linked work trees, also moved ones; submodules; `.git` as a file or a link, a separate git directory; shallow, partial and sparse clones; SHA-256; in the middle of a merge in another work tree", "", []workPlace{
		{name: "linked work tree", make: "git worktree add -q ../linked; cd ../linked"},
		{name: "work tree of a bare repository",
			make: "git clone -q --bare . ../bare.git; cd ../bare.git; git worktree add -q ../linked; cd ../linked"},
		{name: "moved work tree", make: "git worktree add -q ../linked; mv ../linked ../moved; cd ../moved"},
		{name: "moved repository", make: "pawl case list; mv ../repo ../moved; cd ../moved"},
		{name: "submodule",
			make: "git init -q ../upper; cd ../upper; git -c protocol.file.allow=always submodule --quiet add $AT/repo sub; git commit -qm sub; cd sub", short: true},
		{name: "with a submodule",
			make: "git init -q ../module; git -C ../module commit -q --allow-empty -m m; git -c protocol.file.allow=always submodule --quiet add $AT/module sub; git commit -qm sub"},
		{name: "separate git directory", make: "git init -q --separate-git-dir=$AT/elsewhere"},
		{name: "git directory by a link", make: "mv .git ../git; ln -s ../git .git"},
		{name: "shallow",
			make: "git commit -q --allow-empty -m 2; git clone -q --depth 1 file://$PWD ../shallow; cd ../shallow"},
		{name: "partial",
			make: "git config uploadpack.allowFilter true; git clone -q --filter=blob:none file://$PWD ../partial; cd ../partial; rm -rf ../repo"},
		{name: "sparse", make: "mkdir d; echo e >d/e; git add d; git commit -qm d; git sparse-checkout set --cone"},
		{name: "SHA-256",
			make: "mkdir ../s; cp pawl.yaml agent.sh tests ../s; cd ../s; git init -q --object-format=sha256; git add -A; git commit -qm s"},
		{name: "odd branch", make: `git checkout -q -b 'feature/ä$(x)"q'`},
		{name: "merge elsewhere",
			make: conflict + "git worktree add -q ../other; cd ../other; git merge -q other >/dev/null; cd ../repo"},
		{name: "locked refs", make: "touch .git/HEAD.lock .git/config.lock"},
	}},
	{"a detached HEAD", ", as no branch is there to land on", []workPlace{
		{name: "detached", make: "git checkout -q --detach", says: "runs: .*no branch is checked out"},
	}},
	{"a second board on one repository: a linked work tree with its own, another home folder", ": its refs have the same names", []workPlace{
		{name: "board of a work tree",
			make: "pawl case add Zero; pawl autopilot; git worktree add -q ../linked; cd ../linked", says: twoBoards},
		{name: "board of a second home",
			make: "pawl case add Zero; pawl autopilot; mkdir ../second; cp $HOME/.gitconfig ../second; HOME=$AT/second",
			says: twoBoards},
	}},
	{"a bare repository", "; use a clone of it", []workPlace{
		{name: "bare", make: "git clone -q --bare . ../bare.git; cp pawl.yaml agent.sh ../bare.git; cd ../bare.git",
			says: "refused: .*bare repository"},
	}},
	{"file systems: ext4, xfs, tmpfs, exFAT by FUSE", "; so do others without hard links, links and modes (vfat), tried by refusing the calls",
		[]workPlace{
			{name: "tmpfs", root: true,
				in: `unshare --mount sh -c 'mkdir $AT/repo; mount -t tmpfs none $AT/repo; exec "$@"' x`},
			{name: "state on tmpfs", root: true,
				in: `unshare --mount sh -c 'mkdir $AT/home; mount -t tmpfs none $AT/home; exec "$@"' x`},
			{name: "xfs", root: true,
				in: `unshare --mount sh -c 'truncate -s 2G $AT/disk; mkfs.xfs -q $AT/disk; mkdir $AT/repo; mount -o loop $AT/disk $AT/repo; exec "$@"' x`},
			{name: "exFAT", root: true,
				in: `unshare --mount sh -c 'truncate -s 2G $AT/disk; mkfs.exfat $AT/disk; mkdir $AT/repo; l=$(losetup -f --show $AT/disk); mount.exfat-fuse $l $AT/repo; losetup -d $l; exec "$@"' x`},
		}},
	{"a disk for the state that is full", ", with what can go", []workPlace{
		{name: "full disk", root: true,
			in: `unshare --mount sh -c 'mkdir -p $AT/home/.local; mount -t tmpfs -o size=64k none $AT/home/.local; exec "$@"' x`, says: "refused: .*(no space left|nearly full)"},
		{name: "small disk", root: true,
			in: `unshare --mount sh -c 'mkdir -p $AT/home/.local; mount -t tmpfs -o size=600k none $AT/home/.local; exec "$@"' x`, says: "refused: .*nearly full"},
	}},
	{"no network; loopback with IPv6 alone, or IPv4 alone", "; with IPv6 alone `pawl serve --address '[::1]:7295'`",
		[]workPlace{
			{name: "no network", in: "unshare --net"},
			{name: "IPv6 alone", in: onLoopback6},
			{name: "IPv4 alone", in: `unshare --net sh -c 'ip link set lo up; ip addr del ::1/128 dev lo; exec "$@"' x`},
		}},
	{"paths with spaces, quotes and signs of the shell, or very long ones", "", []workPlace{
		{name: "signs in the path", make: `mv ../repo "$AT/re po':;%s\$(id)*"; cd "$AT/re po':;%s\$(id)*"`},
		{name: "path with a dash", make: `mv ../repo "$AT/-rf"; cd "$AT/-rf"`},
		{name: "longest name", make: `d=$(printf '%0255d' 1); mv ../repo ../$d; cd ../$d`},
		{name: "name of a file that is not UTF-8", make: `touch "$(printf 'f\351')"; git add .; git commit -qm l`},
	}},
	{"a path that is not UTF-8, or has a line break", "", []workPlace{
		{name: "path in Latin-1", make: `d=$AT/$(printf 're\351po'); mv ../repo "$d"; cd "$d"`,
			says: "refused: .*not UTF-8"},
		{name: "line break in the path", make: "mv ../repo \"$AT/re\npo\"; cd \"$AT/re\npo\"",
			says: "refused: .*has a line break"},
	}},
	{"limits below 3 GB of memory (`ulimit -v`), 1 GB of data (`-d`), 64 MB for a file (`-f`) or 128 open files (`-n`)",
		"", []workPlace{
			{name: "limit of memory", make: "ulimit -v 2000000", says: "refused: .*bytes of memory"},
			{name: "limit of data", make: "ulimit -d 700000", says: "refused: .*bytes of data"},
			{name: "limit of files' sizes", make: "ulimit -f 50", says: "refused: .*bytes in a file"},
			{name: "limit of open files", make: "ulimit -n 64", says: "refused: .*open files", short: true},
		}},
	{"other limits; locales, time zones, terminals of any kind; an odd `PATH`", "", []workPlace{
		{name: "limit of the stack", make: "ulimit -s 256"},
		{name: "limit of locked memory", make: "ulimit -l 0; ulimit -c 0"},
		{name: "Turkish", make: "export LC_ALL=tr_TR.UTF-8 LANGUAGE=tr"},
		{name: "no UTF-8", make: "export LC_ALL=ja_JP.SJIS"},
		{name: "far east", make: "export TZ=Pacific/Kiritimati"},
		{name: "no time zone", make: "export TZ=Nowhere/None"},
		{name: "narrow terminal", make: "export TERM=dumb COLUMNS=1 LINES=1"},
		{name: "odd PATH", make: "PATH=::/nonexistent:relative:.:$PATH::"},
		{name: "odd shell", make: "export SHELL=/nonexistent BASH_ENV=/nonexistent ENV=/nonexistent"},
	}},
	{"any umask of yours, `LD_PRELOAD`, traces of git, words of the shell in the environment, ignored signals, files of 1969 or 2040, folders by links, thousands of branches, alternates, replaced commits", "", []workPlace{
		{name: "umask 0", make: "umask 0"},
		{name: "umask 77", make: "umask 77"},
		{name: "preload", make: "export LD_PRELOAD=/nonexistent.so"},
		{name: "traces", make: "export GIT_TRACE=1 GIT_TRACE2_EVENT=1 GIT_CURL_VERBOSE=1"},
		{name: "shell words",
			make: "export IFS=x CDPATH=/:/tmp POSIXLY_CORRECT=1 GREP_OPTIONS=-v GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.bare GIT_CONFIG_VALUE_0=true"},
		{name: "few processes", make: "ulimit -u 40"},
		{name: "no shm", in: `unshare --mount sh -c 'umount -l /dev/shm; exec "$@"' x`},
		{name: "closed input", make: "exec <&-"},
		{name: "ignored signals", make: "trap '' HUP INT QUIT PIPE"},
		{name: "files of 2040", make: "touch -d 2040-01-01 * .git/* .git"},
		{name: "files of 1969", make: "touch -d 1969-12-31 * .git/index"},
		{name: "state by a link", make: "mkdir ../real; mkdir -p $HOME/.local; ln -s $AT/real $HOME/.local/state"},
		{name: "repository by a link", make: "ln -s $AT/repo $AT/l; cd $AT/l"},
		{name: "shared repository", make: "git config core.sharedRepository group; chmod -R g+w .; chmod g+s .git"},
		{name: "many branches",
			make: `for i in $(seq 3000); do echo "create refs/heads/b$i $(git rev-parse HEAD)"; done | git update-ref --stdin; git pack-refs --all`},
		{name: "alternates", make: "git clone -q --reference . . ../ref; cd ../ref"},
		{name: "replaced commit", make: "git commit -q --allow-empty -m 2; git replace HEAD HEAD~; git commit -q --allow-empty -m 3"},
		{name: "stash and notes", make: "git notes add -m n; echo x >>tests; git stash -q"},
	}},
	{"a damaged, unreadable or newer database", ", with the way back", []workPlace{
		{name: "damaged database",
			make: `pawl case add Zero; rm -f "$HOME"/.local/state/pawl/*/pawl.db-*; for f in "$HOME"/.local/state/pawl/*/pawl.db; do head -c 100000 /dev/urandom >"$f"; done`, says: "refused: .*the database is damaged"},
		{name: "unreadable database", make: `pawl case add Zero; chmod 0 "$HOME"/.local/state/pawl/*/pawl.db*`,
			says: "refused: .*permission denied"},
	}},
	{"an agent without a run bit, `#!` line or interpreter, or with Windows line ends in the first", ", with what is wrong", []workPlace{
		{name: "no run bit", make: "chmod -x agent.sh", says: noAgent + ".*chmod \\+x", short: true},
		{name: "noexec", root: true, in: "unshare --mount",
			make: "mount --bind . .; mount -o remount,bind,noexec .; cd $PWD", says: noAgent + ".*noexec"},
		{name: "no first line", make: "echo true >agent.sh", says: noAgent},
		{name: "mark before the first line", make: `printf '\357\273\277#!/bin/sh\n' >agent.sh`, says: noAgent},
		{name: "Windows line ends", make: `printf '#!/bin/sh\r\n' >agent.sh`, says: noAgent + ".*Windows line end"},
		{name: "no interpreter", make: `printf '#!/no/such/shell\n' >agent.sh`, says: noAgent},
		{name: "no interpreter for env", make: `printf '#!/usr/bin/env no-such-shell\n' >agent.sh`,
			says: noAgent + ".*not in PATH"},
		{name: "interpreter is a folder", make: `printf '#!/usr\n' >agent.sh`, says: noAgent + ".*is not a program"},
	}},
	{"in the middle of your merge, rebase or bisect; an `index.lock` that stays", ", until it is over; with `run: {deliver: ask}` runs work; while a branch is checked out the board works, and its landings wait", []workPlace{
		{name: "rebase", make: conflict + "git rebase -q other >/dev/null 2>&1",
			says: "refused: .*a rebase is going on"},
		{name: "bisect",
			make: "git commit -q --allow-empty -m 2; git commit -q --allow-empty -m 3; git bisect start HEAD HEAD~2 >/dev/null", says: "refused: .*a bisect is going on"},
	}},
}
