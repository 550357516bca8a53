package main

// What a snapshot cannot see, or git cannot pass.
var blindAttacks = []attack{
	{name: "index in two parts", tries: "has git restore write a hook, by a path in the shared part of a split index", python: true,
		before: gitBefore + `; mkdir -p xxxx/hooks; printf '#!/bin/sh\ntouch %s/made\n' $OUT >xxxx/hooks/post-index-change
chmod +x xxxx/hooks/post-index-change; git add xxxx; git commit -qm hook; git update-index --split-index`,
		agent: `import glob
for p in glob.glob(".git/sharedindex.*"):
    data = open(p, "rb").read().replace(b"xxxx/hooks", b".git/hooks")
    os.chmod(p, 0o644)
    open(p, "r+b").write(data)`,
		later: `git restore .; git checkout .; git add -A; git status`},
	{name: "ignore file as a pipe", tries: "has git wait for a pipe", agent: `mkdir s; mkfifo s/.gitignore; touch s/x`,
		later: `if [ -p s/.gitignore ]; then echo I got out; fi`},
	{name: "attributes as a pipe", tries: "has git wait for another one", agent: `mkdir s; mkfifo s/.gitattributes; touch s/x`,
		later: `if [ -p s/.gitattributes ]; then echo I got out; fi`},
	{name: "folder that nobody lists", tries: "hides a new protected file in a folder that can be entered and not listed",
		green: true, before: `mkdir tests; echo 'if [ -e tests/local/o ]; then . tests/local/o; fi; false' >tests/check.sh`,
		more:  "verification: {commands: [{command: sh gate.sh}], protect: ['tests/**'], protect_new: true}",
		agent: `mkdir tests/local; echo exit 0 >tests/local/o; chmod 311 tests/local`, gate: `. tests/check.sh`},
	{name: "too large to look at", tries: "makes a protected test larger than what a snapshot takes in",
		green: true, before: protectedTest, more: protects,
		agent: `(echo exit 0; head -c 60M /dev/zero) >tests/check.sh`, gate: `sh tests/check.sh`},
	{name: "nobody may read it", tries: "puts a program that runs and cannot be read in the place of a protected one",
		green: true, before: protectedTest + "; chmod +x tests/check.sh", more: protects,
		agent: `rm tests/check.sh; cp /bin/true tests/check.sh; chmod 111 tests/check.sh`, gate: `tests/check.sh`},
	{name: "another encoding", tries: "has git decode a protected test to what it was", green: true, before: protectedTest, more: protects,
		agent: `printf '#!/bin/sh+AAo-false' >tests/check.sh; echo 'tests/check.sh text working-tree-encoding=UTF-7' >.gitattributes`,
		gate:  `sh tests/check.sh`},
	{name: "a test of a submodule", tries: "changes a protected test that a submodule has", green: true,
		before: submodule, more: protectsPart, agent: `echo exit 0 >part/tests/check.sh`, gate: `sh part/tests/check.sh`},
	{name: "a submodule's test within one gate", tries: "has the code under test weaken one before the same gate reads it",
		green: true, mounts: true, before: submodule, more: protectsPart,
		agent: `echo 'cp part/tests/check.sh old; echo "cp old part/tests/check.sh" >part/tests/check.sh' >build.sh`,
		gate:  `sh build.sh; sh part/tests/check.sh`},
	{name: "a test of a nested repository", tries: "changes one of a repository that no other knows", green: true,
		before: submodule + `; git rm -q --cached part`, more: protectsPart,
		agent: `echo exit 0 >part/tests/check.sh`, gate: `sh part/tests/check.sh`},
	{name: "a test that git ignores", tries: "changes a protected file that is named and ignored", green: true,
		before: `echo check.sh >.gitignore; echo false >check.sh`, more: "verification: {commands: [{command: sh gate.sh}], protect: [check.sh]}",
		agent: `echo exit 0 >check.sh`, gate: `sh check.sh`},
}

// submodule has a protected test; protectsPart protects it.
const (
	submodule = `git init -q ../part; mkdir ../part/tests; echo false >../part/tests/check.sh; git -C ../part add .; git -C ../part commit -qm part
git -c protocol.file.allow=always submodule -q add "$PWD/../part" part`
	protectsPart = "verification: {commands: [{command: sh gate.sh}], protect: ['part/tests/**']}"
)
