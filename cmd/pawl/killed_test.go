package main

import (
	"bufio"
	"context"
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
	"time"

	pawlprocess "github.com/pawl-dev/pawl/internal/do/process"
)

var killSeed = flag.Uint64("kill-seed", 0, "the seed of TestKilledWorkflow or TestKilledDelivery to repeat; 0 takes a new one")

const (
	// kills is how often TestKilledWorkflow kills pawl.
	kills = 50
	// sessions bounds how often it starts pawl for that.
	sessions = 500
)

// manySteps is a workflow with a chain, steps side by side, an instance for
// each value, outputs, a check, a workflow in it, and a step that its third try
// succeeds in. Every execution of a step leaves a line in a file of its own.
func manySteps(t *testing.T, dir string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("name: killed\nconfig: {parallelism: 3}\nsteps:\n")
	step := func(id, needs, run, more string) {
		fmt.Fprintf(&b, "  - id: %s\n    needs: [%s]\n    run: |\n      echo once >>effects/%s\n      %s\n%s", id, needs, id, run, more)
	}
	step("start", "", `echo "n=0" >>"$PAWL_OUTPUT"`, "")
	before := "start"
	for i := range 8 {
		id := fmt.Sprintf("chain-%d", i)
		step(id, before, fmt.Sprintf(`echo "n=$(({{steps.%s.outputs.n}} + 1))" >>"$PAWL_OUTPUT"`, before), "")
		step(fmt.Sprintf("side-%d", i), before, "echo side", "    verify: [\"test -s effects/"+fmt.Sprintf("side-%d", i)+"\"]\n")
		before = id
	}
	step("thrice", "chain-2", "test $(wc -l <effects/thrice) -ge 3", "    retry: {max: 5, backoff: none}\n")
	step("perhaps", "chain-1", "exit 1", "    optional: true\n")
	b.WriteString("  - id: each\n    needs: [chain-3]\n    matrix: {n: [1, 2, 3, 4]}\n    run: echo once >>effects/each-${{ matrix.n }}\n")
	b.WriteString("  - id: below\n    needs: [chain-4]\n    workflow: below.yaml\n")
	step("end", before+", thrice, each, below", `echo "counted {{steps.chain-7.outputs.n}}"`, "")
	below := "name: below\nsteps:\n  - id: first\n    run: echo once >>effects/below-first\n  - id: second\n    needs: first\n    run: echo once >>effects/below-second\n"
	for name, text := range map[string]string{"flow.yaml": b.String(), "below.yaml": below} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "effects"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// killed is one run of the workflow, in a folder and a home of its own.
type killed struct {
	t         *testing.T
	dir, home string
	random    *rand.Rand
	meanwhile func() // after each event, while pawl works; may be nil
}

func (k *killed) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(k.t.Context(), "pawl", args...)
	cmd.Dir = k.dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") }),
		"WORK="+k.dir, "HOME="+k.home, "GIT_CONFIG_NOSYSTEM=1", "XDG_STATE_HOME="+k.home+"/state", "XDG_CONFIG_HOME="+k.home+"/config")
	return cmd
}

func (k *killed) git(args ...string) *exec.Cmd {
	cmd := k.command()
	cmd.Args = append([]string{"git"}, args...)
	path, err := exec.LookPath("git")
	if err != nil {
		k.t.Skip("there is no git")
	}
	cmd.Path = path
	return cmd
}

// session starts pawl and kills it after some of its events, if it does not come
// to its end before. It returns the run's status then.
func (k *killed) session(args ...string) (status string, was bool) {
	was, said, err := k.startAndKill(12, args)
	status = k.status()
	if err != nil && status != "completed" { // what is completed cannot be resumed
		k.t.Fatalf("pawl %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return status, was
}

// startAndKill starts pawl and kills it after at most so many events. The error is that of
// a pawl that ended by itself, and said is what it printed.
func (k *killed) startAndKill(events int, args []string) (was bool, said string, err error) {
	cmd := k.command(append(args, "--json", "--safety", "permissive")...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for n := k.random.IntN(events); lines.Scan(); {
		if k.meanwhile != nil {
			k.meanwhile()
		}
		if strings.Contains(lines.Text(), `"status":"kept"`) {
			continue // a step that an earlier session did
		}
		if n--; n >= 0 {
			continue
		}
		for range k.random.IntN(2000) { // somewhere between two events
			runtime.Gosched()
		}
		_ = cmd.Process.Kill() // or it has ended by itself
		break
	}
	err = cmd.Wait()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() < 0 {
		return true, stderr.String(), nil
	}
	return false, stderr.String(), err
}

// status is the run's, "" while there is none.
func (k *killed) status() string {
	out, err := k.command("show", "killed", "--json").Output()
	if err != nil {
		return ""
	}
	var shown struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		k.t.Fatal(err)
	}
	return shown.Status
}

// effects are how often each step ran, by what it left.
func (k *killed) effects() map[string]int {
	count := map[string]int{}
	files, err := os.ReadDir(filepath.Join(k.dir, "effects"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(k.dir, "effects", f.Name()))
		if err != nil {
			k.t.Fatal(err)
		}
		count[f.Name()] = strings.Count(string(data), "once\n")
	}
	return count
}

// check fails unless every step did its work exactly once.
func (k *killed) check() {
	k.t.Helper()
	count := k.effects()
	if len(count) != 26 {
		k.t.Errorf("%d steps left something, not 26", len(count))
	}
	for step, n := range count {
		want := 1
		if step == "thrice" {
			want = 3
		}
		if n != want {
			k.t.Errorf("step %s ran %d times, not %d", step, n, want)
		}
	}
	out, err := k.command("show", "killed", "--format", "markdown").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "`counted 8`") {
		k.t.Errorf("the outputs of the chain are not what they were: %v\n%s", err, out)
	}
}

// awaitIdle waits for supervisors without a job, whose pawl was killed after the
// run's end, before it had waited for theirs: they end by themselves long before
// their lease of 30 s is over.
func (k *killed) awaitIdle() {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), 20*time.Second)
	defer cancel()
	for _, p := range left(k.dir) {
		if id, err := pawlprocess.Identify(p.pid); err == nil {
			id.AwaitEnd(ctx)
		}
	}
}

// newKillRandom makes the random numbers of a test by -kill-seed, and logs how they are had again.
func newKillRandom(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64() //nolint:gosec // nothing is kept secret
	}
	t.Logf("-kill-seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it repeats
}

// Pawl is killed fifty times in the middle of a workflow, whatever it does, and
// resumed each time: every step's effect is there exactly once.
func TestKilledWorkflow(t *testing.T) {
	t.Parallel()
	random := newKillRandom(t)
	enough, started := kills, 0
	if testing.Short() {
		enough = 10
	}
	for done, runs := 0, 0; done < enough; runs++ {
		k := &killed{t: t, dir: t.TempDir(), home: t.TempDir(), random: random}
		manySteps(t, k.dir)
		if runs%2 == 1 { // with snapshots
			for _, args := range [][]string{{"init", "-q"}, {"add", "flow.yaml"}, {"-c", "user.name=Ada", "-c", "user.email=a@example.org", "commit", "-qm", "start"}} {
				if out, err := k.git(args...).CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
		}
		before, was := done, false
		for status := ""; status != "completed"; {
			args := []string{"run", "flow.yaml"}
			if status != "" { // else killed before there was a run
				args = []string{"resume", "killed"}
			}
			if started++; started > sessions {
				t.Fatalf("%d sessions do not come to %d kills", sessions, kills)
			}
			if status, was = k.session(args...); was {
				done++
			}
		}
		if was { // before it delivered what the workflow had completed, perhaps
			_, _ = k.session("resume", "killed")
		}
		k.check()
		if was {
			k.awaitIdle()
		}
		if p := left(k.dir); len(p) > 0 {
			t.Errorf("left running: %v", p)
		}
		t.Logf("run %d was killed %d times", runs, done-before)
		if t.Failed() {
			return
		}
	}
}
