package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var deliveryKills = flag.Int("delivery-kills", 8,
	"how often TestKilledDelivery kills pawl; 'make chaos' does it three hundred times")

// deliveringAgent does what the plan says for the iteration. Each of its lines and
// commits has a number of its own, so that what is there twice was delivered twice.
const deliveringAgent = `n=$(($(cat "$HOME/count" 2>/dev/null || echo 0) + 1))
echo $n >"$HOME/count"
deed=$(sed -n "${PAWL_ITERATION}p" "$HOME/plan")
case $deed in *clean*) git clean -qfd ;; esac
mkdir -p out
echo "agent $n" >>shared
echo $n >out/$n
case $deed in red*) echo "red $n" >state ;; *) echo "green $n" >state ;; esac
case $deed in
*commit-own) git add out shared state; git commit -qm "work $n" ;;
*commit-all|*clean) git add -A; git commit -qm "work $n" ;;
*commit-and-edit) git add -A; git commit -qm "work $n"; echo more >>out/$n ;;
*remove) rm -f "out/$(ls out | head -n 1)"; git add -A; git commit -qm "work $n" ;;
*amend) git add -A; git commit -qm "work $n"; echo more >>out/$n; git commit -qa --amend --no-edit ;;
esac
true
`

// deliveringGate notes the commit whose files it finds green.
const deliveringGate = `grep -q '^green' state || exit 1
git rev-parse HEAD^{tree} >>"$HOME/judged"
`

// delivering is a person's checkout while a run delivers to it and is killed.
type delivering struct {
	*killed
	acts    int
	settled bool              // the person preferred theirs to the agent's somewhere
	owned   map[string]string // what only the person changes, as they left it
}

func newDelivering(t *testing.T, random *rand.Rand) *delivering {
	t.Helper()
	d := &delivering{killed: &killed{t: t, dir: t.TempDir(), home: t.TempDir(), random: random}}
	deeds := strings.Fields("edit commit-own commit-all commit-and-edit remove amend clean")
	var plan []string
	for range 3 + random.IntN(3) {
		plan = append(plan, deeds[random.IntN(len(deeds))])
		if random.IntN(3) == 0 {
			plan = append(plan, "red-"+deeds[random.IntN(len(deeds))])
		}
	}
	plan = append(plan, "commit-own")
	agent := filepath.Join(d.home, "agent.sh")
	for name, text := range map[string]string{
		agent:                           deliveringAgent,
		filepath.Join(d.home, "plan"):   strings.Join(plan, "\n") + "\n",
		filepath.Join(d.home, "judged"): "",
		filepath.Join(d.home, ".gitconfig"): "[user]\n\tname = Ada\n\temail = ada@example.org\n" +
			"[init]\n\tdefaultBranch = main\n",
		filepath.Join(d.dir, "gate.sh"):    deliveringGate,
		filepath.Join(d.dir, "mine"):       "start\n",
		filepath.Join(d.dir, "shared"):     "top\n" + strings.Repeat("between\n", 9),
		filepath.Join(d.dir, "state"):      "green\n",
		filepath.Join(d.dir, ".gitignore"): ".pawl/\n",
		filepath.Join(d.dir, "pawl.yaml"): fmt.Sprintf("agent: mine\nagents: {mine: {command: [sh, %q]}}\n"+
			"procedures: {killed: {act: [{content: Work.}], max_iterations: %d}}\nverification: [\"sh gate.sh\"]\n",
			agent, len(plan)),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "start"}} {
		if out, err := d.git(args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	d.owned = d.look()
	d.meanwhile = func() {
		if random.IntN(4) == 0 {
			d.act()
		}
	}
	return d
}

func (d *delivering) tryGit(args ...string) string {
	out, _ := d.git(args...).CombinedOutput() // pawl may hold the index in this moment
	return string(out)
}

func (d *delivering) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(d.dir, name)) // "" where it is stashed
	return string(data)
}

// look is all that only the person changes: files, a line, the stash and another branch.
func (d *delivering) look() map[string]string {
	top, _, _ := strings.Cut(d.read("shared"), "\n")
	all := map[string]string{
		"the stash": d.tryGit("stash", "list"), "branches": d.tryGit("branch", "--format=%(refname)"),
		"the first line of shared": top,
	}
	names, err := filepath.Glob(filepath.Join(d.dir, "mine*"))
	if err != nil {
		d.t.Fatal(err)
	}
	for _, name := range names {
		all[filepath.Base(name)] = d.read(filepath.Base(name))
	}
	return all
}

// unchanged fails where anybody but the person changed what is theirs, or the checkout
// has what the gate found red.
func (d *delivering) unchanged() {
	d.t.Helper()
	if now := d.look(); !maps.Equal(now, d.owned) {
		d.t.Errorf("the person left %q, and there is %q", d.owned, now)
	}
	if state := d.read("state"); strings.HasPrefix(state, "red") {
		d.t.Errorf("red work is in the checkout: %s", state)
	}
}

// act is one thing that the person does.
func (d *delivering) act() {
	d.unchanged()
	d.acts++
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			d.t.Fatal(err)
		}
	}
	line := fmt.Sprintf("person %d\n", d.acts)
	switch d.random.IntN(7) {
	case 0:
		write("mine", d.read("mine")+line)
	case 1:
		write(fmt.Sprint("mine-", d.acts), line)
	case 2:
		if _, rest, ok := strings.Cut(d.read("shared"), "\n"); ok {
			write("shared", line+rest)
		}
	case 3:
		d.commit("mine*", line)
	case 4:
		d.commit("-A", line)
	case 5:
		d.tryGit("stash", "-q", "-u")
	case 6:
		d.tryGit("stash", "pop", "-q")
		if d.tryGit("ls-files", "-u") != "" {
			d.tryGit("reset", "-q", "--hard") // what both changed stays in the stash
		}
	}
	d.owned = d.look()
}

func (d *delivering) commit(what, message string) {
	d.tryGit("add", what)
	if d.git("commit", "-qm", strings.TrimSpace(message)).Run() != nil {
		d.tryGit("reset", "-q")
	}
}

// settle keeps the person's side of what both changed.
func (d *delivering) settle() {
	d.settled = true
	names := []string{"shared", "state"}
	for _, pattern := range []string{filepath.Join(d.dir, "out", "*"), filepath.Join(d.dir, "mine*")} {
		all, _ := filepath.Glob(pattern)
		for _, name := range all {
			rel, _ := filepath.Rel(d.dir, name)
			names = append(names, rel)
		}
	}
	for _, name := range names {
		_ = d.command("settle", "killed", name, "--mine").Run() // most are in no conflict
	}
}

// check looks at the branch after the run.
func (d *delivering) check() {
	d.t.Helper()
	d.unchanged()
	data, err := os.ReadFile(filepath.Join(d.home, "judged"))
	if err != nil {
		d.t.Fatal(err)
	}
	judged := strings.Fields(string(data))
	for line := range strings.Lines(d.tryGit("log", "-g", "--format=%T %gs", "main")) {
		tree, why, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(why, "pawl: deliver") && !slices.Contains(judged, tree) {
			d.t.Errorf("the branch was moved to what no gate found green: %s", line)
		}
	}
	for line := range strings.Lines(d.tryGit("log", "--format=%s", "main", "--", "mine*")) {
		if strings.HasPrefix(line, "work ") {
			d.t.Errorf("a commit of the agent has what the person had not committed: %s", line)
		}
	}
	for what, text := range map[string]string{
		"commits": d.tryGit("log", "--format=%s", "main"), "lines": d.read("shared"),
	} {
		seen := map[string]bool{"between": true}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); seen[line] && line != "between" {
				d.t.Errorf("among the %s is twice: %s", what, line)
			}
			seen[line] = true
		}
	}
	if d.t.Failed() {
		d.t.Logf("%s\n%s\n%s", d.tryGit("log", "-g", "--format=%h %T %gs", "main"),
			d.tryGit("log", "--graph", "--oneline"), data)
	}
	if out := d.tryGit("fsck", "--strict", "--no-dangling"); strings.Contains(out, "error") {
		d.t.Errorf("git fsck: %s", out)
	}
}

// rests is whether a run that came to rest says why, and what a person does about it.
func rests(said string) bool {
	return strings.Contains(said, "pawl settle") || strings.Contains(said, "pawl resume")
}

// Pawl is killed at any moment of a run that delivers, while the person edits, commits
// and stashes in the same checkout, and is resumed each time: what reaches the branch was
// judged green, what is the person's stays as they left it, and nothing is there twice.
func TestKilledDelivery(t *testing.T) {
	t.Parallel()
	random := newKillRandom(t)
	for done, runs := 0, 0; done < *deliveryKills && !t.Failed(); runs++ {
		d := newDelivering(t, random)
		n := d.toTheEnd()
		done += n
		t.Logf("run %d was killed %d times, and the person did %d things", runs, n, d.acts)
	}
}

// toTheEnd runs and resumes until the run is over, and returns how often pawl was killed.
func (d *delivering) toTheEnd() (kills int) {
	t := d.t
	for status := ""; status != "completed"; {
		args := []string{"run", "killed"}
		if status != "" { // else killed before there was a run
			args = []string{"resume", "killed"}
		}
		was, said, err := d.startAndKill(25, args)
		if was {
			kills++
		}
		if status = d.status(); err != nil && status != "completed" {
			if status != "paused" || !rests(said) {
				t.Fatalf("pawl %s: %v, %q\n%s", strings.Join(args, " "), err, status, said)
			}
			d.settle()
		}
		if d.act(); t.Failed() || kills > sessions {
			t.Fatalf("after %d kills, status %q:\n%s", kills, status, said)
		}
	}
	d.check()
	d.apply()
	d.unchanged()
	d.awaitIdle()
	if p := left(d.dir); len(p) > 0 {
		t.Errorf("left running: %v", p)
	}
	return kills
}

// apply brings the rest of the work, and what pawl says of that is so.
func (d *delivering) apply() {
	out, err := d.command("apply", "killed").CombinedOutput()
	last, rerr := os.ReadFile(filepath.Join(d.home, "count"))
	if rerr != nil {
		d.t.Fatal(rerr)
	}
	n := strings.TrimSpace(string(last))
	kept := d.tryGit("rev-list", "--objects", "--all", "--reflog") // where the person put it, the stash too
	switch {
	case err == nil && !d.settled && d.read("out/"+n) == "" && !strings.Contains(kept, " out/"+n+"\n"):
		d.t.Errorf("the work of the last iteration, %s, is not in the checkout, and pawl says: %s", n, out)
	case err != nil && !strings.Contains(string(out), "pawl "):
		d.t.Errorf("pawl apply: %v, without what to do: %s", err, out)
	}
}
