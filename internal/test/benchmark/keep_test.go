package benchmark

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var (
	keepTasks  = flag.Int("keep-tasks", 30, "how many tasks each board of BenchmarkKeep has")
	keepBoards = flag.Int("keep-boards", 2, "how many boards BenchmarkKeep works, one after the other")
)

// keeping is a repository whose board is worked, to see what stays on the disk.
type keeping struct {
	b          *testing.B
	dir, state string
	tasks      int
}

// keepAgent prints as much as an agent at work does, and lands a file in place of an older one.
const keepAgent = `cat >/dev/null
seq -f 'I look at line %06.0f of the file, and then at the next one.' 400
n=$(expr ${PAWL_CASE#task-} + 0)
mkdir -p work && echo $PAWL_CASE >work/$n && rm -f work/$(expr $n - 60)
echo '<promise>COMPLETE</promise>'
`

// BenchmarkKeep works a board and prints what a thousand tasks leave on the disk: as they are done, after `pawl gc`, with
// what a week and a month later is too old. More boards follow, each a month after the one before: they show what stays
// for good.
func BenchmarkKeep(b *testing.B) {
	for b.Loop() {
		dir, err := newFolder(diskDir(b))
		if err != nil {
			b.Fatal(err)
		}
		k := &keeping{b: b, dir: filepath.Join(dir, "repository"), state: filepath.Join(dir, "state")}
		if err := os.Mkdir(k.dir, 0o755); err != nil {
			b.Fatal(err)
		}
		k.put("agent.sh", keepAgent)
		k.put("gate.sh", "seq -f 'ok %g - it does what it says' 200\n")
		k.settings("")
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "start"}} {
			k.run("git", args...)
		}
		k.board()
		k.report("a board done")
		k.run(pawl(b), "gc")
		k.report("after gc")
		k.settings("output: 1ms")
		k.run(pawl(b), "gc")
		k.report("a week later")
		k.settings("output: 1ms, runs: 1ms, events: 1ms")
		k.run(pawl(b), "gc")
		first := k.report("a month later")
		var last map[string]int64
		for range *keepBoards - 1 {
			k.settings("")
			k.board()
			k.settings("output: 1ms, runs: 1ms, events: 1ms")
			k.run(pawl(b), "gc")
			last = k.sizes()
		}
		for _, part := range keepParts {
			report(b, "keep: for good, "+part, perThousand(last[part]-first[part], k.tasks-*keepTasks), "MB/1000", nil)
		}
	}
}

func (k *keeping) put(name, text string) {
	k.b.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
		k.b.Fatal(err)
	}
}

func (k *keeping) settings(retention string) {
	k.b.Helper()
	k.put("pawl.yaml", "agent: mine\nagents: {mine: {command: [sh, agent.sh]}}\nverification: [\"sh gate.sh\"]\nloop: {safety: permissive}\n"+
		"retention: {"+retention+"}\n")
}

func (k *keeping) run(name string, args ...string) {
	k.b.Helper()
	cmd := exec.CommandContext(k.b.Context(), name, args...)
	cmd.Dir, cmd.Env = k.dir, append(os.Environ(), "XDG_STATE_HOME="+k.state)
	if out, err := cmd.CombinedOutput(); err != nil {
		k.b.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// board adds tasks and works until they have landed.
func (k *keeping) board() {
	k.b.Helper()
	var list strings.Builder
	for range *keepTasks {
		k.tasks++
		fmt.Fprintf(&list, "{\"title\": \"Task %d\"}\n", k.tasks)
	}
	k.put("tasks.jsonl", list.String())
	k.run(pawl(k.b), "case", "add", "-f", "tasks.jsonl")
	k.run(pawl(k.b), "autopilot", "-p", "4")
}

// keepParts are what is measured apart.
var keepParts = []string{"database", "output", "snapshots", "clones", "rest", "git"}

// report prints what is there for a thousand tasks.
func (k *keeping) report(when string) map[string]int64 {
	k.b.Helper()
	sizes := k.sizes()
	for _, part := range keepParts {
		report(k.b, "keep: "+when+", "+part, perThousand(sizes[part], k.tasks), "MB/1000", nil)
	}
	return sizes
}

func perThousand(bytes int64, tasks int) float64 {
	return float64(bytes) / 1e6 * 1000 / float64(max(1, tasks))
}

// sizes by part, in bytes.
func (k *keeping) sizes() map[string]int64 {
	k.b.Helper()
	sizes := map[string]int64{}
	add := func(root string, partOf func(path string) string) {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil //nolint:nilerr // it is gone by now
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				stat, _ := info.Sys().(*syscall.Stat_t) // small files take whole blocks
				sizes[partOf(strings.TrimPrefix(path, root))] += stat.Blocks * 512
			}
			return nil
		})
	}
	add(filepath.Join(k.dir, ".git"), func(string) string { return "git" })
	add(k.state, func(path string) string {
		switch {
		case strings.Contains(path, "/pool/"), strings.Contains(path, "/workspaces/"):
			return "clones"
		case strings.Contains(path, "/runs/"):
			return "output"
		case strings.Contains(path, "pawl.db"):
			return "database"
		case strings.Contains(path, "/store/"):
			return "snapshots"
		}
		return "rest"
	})
	return sizes
}
