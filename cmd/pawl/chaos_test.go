package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var (
	chaosSeed  = flag.Uint64("chaos-seed", 0, "the seed of a run of TestChaos that is to be repeated; 0 takes a new one")
	chaosKills = flag.Int("chaos-kills", 10, "how often TestChaos kills pawl; 'make chaos' does it a hundred times")
)

const (
	chaosTasks = 30
	chaosSlots = 4
	// chaosSessions bounds how often TestChaos starts the autopilot.
	chaosSessions = 1000
)

// chaosAgent does its task once, however often it is asked: a file of its own, a
// line at the end of a file that all tasks change, which a rule can bring
// together, and for every fifth task a word in one line, which only an agent can.
// Every third task needs two iterations.
const chaosAgent = `set -e
commit=$(sed -n 's/^Merge it with: git merge \([0-9a-f]*\)$/\1/p' | head -n1)
n=${PAWL_CASE#task-}
if test -n "$commit"; then
  git merge -q --no-commit "$commit" >/dev/null 2>&1 || true
  git show HEAD:score | sed "s/$/ $n/" >score
  { git show HEAD:CHANGES; git show "$commit:CHANGES"; } | awk '!seen[$0]++' >all && mv all CHANGES
  git add -A
  git commit -q -m both
  echo '<promise>COMPLETE</promise>'
  exit 0
fi
mkdir -p tasks
case $n in
*[0369]) if ! test -e tasks/draft-$n; then echo draft >tasks/draft-$n; echo "more to do"; exit 0; fi; rm -f tasks/draft-$n ;;
esac
echo done >tasks/$n
grep -qx "$n" CHANGES || echo "$n" >>CHANGES
case $n in
*[05]) grep -qw "$n" score || { sed "s/$/ $n/" score >new && mv new score; } ;;
esac
echo '<promise>COMPLETE</promise>'
`

// chaosGate is green when the tree holds whole tasks only: each with its file,
// its line and its word, once, and none before what it needs.
const chaosGate = `set -e
! grep -q '[<=>]\{7\}' CHANGES score
test -z "$(sort CHANGES | uniq -d)"
test -z "$(tr ' ' '\n' <score | sort | uniq -d)"
for f in tasks/[0-9]*; do
  test -e "$f" || continue
  n=${f#tasks/}
  grep -qx "$n" CHANGES
  case $n in *[05]) grep -qw "$n" score ;; esac
  for need in $(sed -n "s/^$n needs //p" needs); do test -e tasks/$need; done
done
test -z "$(ls tasks 2>/dev/null | grep draft)"
echo "1 passed"
`

// chaosRun is one board, worked until all of it has landed, in a folder and a
// home of its own.
type chaosRun struct {
	t         *testing.T
	dir, home string
	random    *rand.Rand
	tasks     int
	more      []string          // variables of what it starts
	landings  []string          // the options of git log that select where tasks landed
	persons   []string          // subjects of commits that the person made, and that may be red
	before    map[string]string // the person's own files
}

func (c *chaosRun) command(args ...string) *exec.Cmd { return c.program("pawl", args) }
func (c *chaosRun) git(args ...string) *exec.Cmd     { return c.program("git", args) }

func (c *chaosRun) program(name string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") }),
		"WORK="+c.dir, "HOME="+c.home, "GIT_CONFIG_NOSYSTEM=1", "XDG_STATE_HOME="+c.home+"/state", "XDG_CONFIG_HOME="+c.home+"/config")
	cmd.Env = append(cmd.Env, c.more...)
	return cmd
}

// newChaosRun makes a board of so many tasks in two folders that are empty.
func newChaosRun(t *testing.T, random *rand.Rand, tasks int, dir, home string) *chaosRun {
	t.Helper()
	c := &chaosRun{t: t, dir: dir, home: home, random: random, tasks: tasks, landings: []string{"--first-parent"}}
	var needs, list strings.Builder
	for i := 1; i <= c.tasks; i++ {
		item := map[string]any{"ref": fmt.Sprintf("t%d", i), "title": fmt.Sprintf("Task %d", i)}
		if i > 9 && i%2 == 0 {
			item["needs"] = []string{fmt.Sprintf("t%d", i-3), fmt.Sprintf("t%d", i-7)}
			fmt.Fprintf(&needs, "%03d needs %03d %03d\n", i, i-3, i-7)
		}
		line, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		list.Write(append(line, '\n'))
	}
	c.write(map[string]string{
		"CHANGES": "start\n", "score": "score:\n", "README": "one\ntwo\nthree\n", "staged": "old\n", "gate.sh": chaosGate, "needs": needs.String(),
		"pawl.yaml": fmt.Sprintf("agent: mine\nagents:\n  mine: {command: [sh, %q], output: text}\nverification: [\"sh gate.sh\"]\nloop: {safety: permissive}\n", filepath.Join(c.home, "agent.sh")),
	})
	if err := os.WriteFile(filepath.Join(c.home, "agent.sh"), []byte(chaosAgent), 0o644); err != nil {
		t.Fatal(err)
	}
	gitconfig := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(c.home, ".gitconfig"), []byte(gitconfig), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "start"}} {
		c.must(c.git(args...))
	}
	c.write(map[string]string{"README": "one\nmy own change\nthree\n", "staged": "new\n", "untracked": "mine\n"})
	c.must(c.git("add", "staged"))
	c.before = c.own()
	add := c.command("case", "add", "-f", "-")
	add.Stdin = strings.NewReader(list.String())
	c.must(add)
	return c
}

func (c *chaosRun) write(files map[string]string) {
	c.t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *chaosRun) must(cmd *exec.Cmd) string {
	c.t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return string(out)
}

// own is the person's work in progress: changed, staged, untracked.
func (c *chaosRun) own() map[string]string {
	c.t.Helper()
	own := map[string]string{
		"status": c.must(c.git("status", "--porcelain", "--untracked-files=all")),
		"index":  c.must(c.git("diff", "--cached")), "tree": c.must(c.git("diff")),
		"stash": c.must(c.git("stash", "list")), "head": c.must(c.git("symbolic-ref", "HEAD")),
	}
	data, err := os.ReadFile(filepath.Join(c.dir, "untracked"))
	if err != nil {
		c.t.Fatal(err)
	}
	own["untracked"] = string(data)
	return own
}

// session starts the autopilot and kills it after some of its events, unless it
// ends before. over is true when it has ended by itself.
func (c *chaosRun) session(spare int) (was, over bool) {
	c.t.Helper()
	cmd := c.command("autopilot", "--json", "-p", fmt.Sprint(chaosSlots))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for n := c.random.IntN(spare); lines.Scan(); {
		if n--; n >= 0 {
			continue
		}
		for range c.random.IntN(3000) { // somewhere between two events
			runtime.Gosched()
		}
		_ = cmd.Process.Kill() // or it has ended by itself
		break
	}
	err = cmd.Wait()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() < 0 {
		return true, false
	}
	if err != nil {
		c.t.Fatalf("pawl autopilot: %v\n%s\n%s\n%s", err, stderr.String(), c.must(c.command("autopilot", "status")), c.must(c.command("queue")))
	}
	return false, true
}

// check fails unless everything has landed exactly once and nothing is left.
func (c *chaosRun) check() {
	c.t.Helper()
	landed := map[string]int{}
	for line := range strings.Lines(c.must(c.git(append([]string{"log", "--format=%(trailers:key=Pawl-Task,valueonly)", "main"}, c.landings...)...))) {
		if id := strings.TrimSpace(line); id != "" {
			landed[id]++
		}
	}
	for i := 1; i <= c.tasks; i++ {
		if id := fmt.Sprintf("task-%03d", i); landed[id] != 1 {
			c.t.Errorf("%s landed %d times", id, landed[id])
		}
	}
	if len(landed) != c.tasks {
		c.t.Errorf("%d tasks landed, not %d", len(landed), c.tasks)
	}
	if score := c.must(c.git("show", "main:score")); strings.Count(score, " ") != c.tasks/5 {
		c.t.Errorf("in the line that every fifth task changes are not %d words: %s", c.tasks/5, score)
	}
	c.everyValueIsGreen()
	if after := c.own(); fmt.Sprint(after) != fmt.Sprint(c.before) {
		c.t.Errorf("the person's work is not what it was:\n%v\nbefore:\n%v", after, c.before)
	}
	if kept, _ := filepath.Glob(filepath.Join(c.home, "state", "pawl", "*", "workspaces", "task-*")); len(kept) > 0 {
		c.t.Errorf("workspaces are left: %v\n%s", kept, c.must(c.command("case", "clean", "--dry-run", "--json")))
	}
	if out := c.must(c.command("case", "list", "--all", "--json")); strings.Count(out, `"status":"done"`) != c.tasks {
		c.t.Errorf("not all cases are done:\n%s", out)
	}
	for _, p := range left(c.dir) {
		c.t.Errorf("left running: %s", p.text)
	}
	if out := c.must(c.git("fsck", "--no-dangling")); strings.Contains(out, "error") {
		c.t.Errorf("git fsck: %s", out)
	}
}

// everyValueIsGreen checks out each value that the target ever held, and runs
// the gate there.
func (c *chaosRun) everyValueIsGreen() {
	c.t.Helper()
	var values []string
	for _, args := range [][]string{{"reflog", "--format=%H", "main"}, {"rev-list", "--first-parent", "main"}} {
		values = append(values, strings.Fields(c.must(c.git(args...)))...)
	}
	slices.Sort(values)
	tree := filepath.Join(c.t.TempDir(), "tree")
	c.must(c.git("clone", "-q", "--shared", "--no-checkout", c.dir, tree))
	for _, v := range slices.Compact(values) {
		if slices.Contains(c.persons, strings.TrimSpace(c.must(c.git("log", "-1", "--format=%s", v)))) {
			continue
		}
		c.must(c.git("-C", tree, "checkout", "-q", "-f", "--detach", v))
		gate := exec.CommandContext(c.t.Context(), "sh", "gate.sh")
		gate.Dir = tree
		if out, err := gate.CombinedOutput(); err != nil {
			c.t.Errorf("the target held %s, which is red: %v\n%s\n%s", v, err, out, c.must(c.git("log", "-1", "--stat", v)))
		}
	}
}

// Four agents work a board of thirty tasks whose changes conflict and wait for
// each other, and pawl is killed again and again, whatever it does. In the end
// every task has landed exactly once, the target was never red, nothing is left,
// and what the person was working on is as it was.
func TestChaos(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // nothing is kept secret
	}
	t.Logf("-chaos-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it repeats
	done, started := 0, 0
	for done < *chaosKills {
		c := newChaosRun(t, random, chaosTasks, t.TempDir(), t.TempDir())
		for over := false; !over; started++ {
			if started > chaosSessions {
				t.Fatalf("no end after %d sessions:\n%s", started, c.must(c.command("case", "list", "--all")))
			}
			spare := 40
			if done >= *chaosKills {
				spare = 1 << 20 // it may end
			}
			var was bool
			was, over = c.session(spare)
			if was {
				done++
			}
		}
		c.check()
		if t.Failed() {
			t.Fatalf("after %d kills in %d sessions", done, started)
		}
	}
	t.Logf("%d kills in %d sessions", done, started)
}
