package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	soakFor  = flag.Duration("soak", 0, "how long TestSoak works a board; 'make soak' does it for an hour")
	soakSeed = flag.Uint64("soak-seed", 1, "the seed of the faults of TestSoak")
)

const (
	soakWave  = 15 // tasks that are added whenever the board is done
	soakSlots = 6
	soakRuns  = 60 // ended runs that are kept
)

// A soak is a board that is filled again whenever it is done, while faults happen.
type soak struct {
	*chaosRun
	pilot *exec.Cmd
	ended chan error
	log   string // of the autopilot

	allowed int            // agent starts that faults may have cost
	seen    map[string]int // faults by name
}

// fault is something that goes wrong. It says whether it happened: some find nothing
// to break.
type fault struct {
	name string
	// starts is how many more agents may be started because of it.
	starts int
	happen func(*soak) bool
}

// faults are all that a soak knows; a new one is a function and a line here.
var faults = []fault{
	{"pawl is killed", soakSlots, (*soak).killPawl},
	{"an agent is killed", 1, (*soak).killAgent},
	{"git is killed", 1, (*soak).killGit},
	{"a gate cannot reach a service", 0, (*soak).flakyGate},
	{"the person collects garbage", 0, (*soak).collectGarbage},
	{"the person packs everything", 0, (*soak).repack},
	{"the person commits", 0, (*soak).commit},
	{"the person locks the index", 0, (*soak).lockIndex},
}

// soakAgent counts its starts, and is the agent of TestChaos.
const soakAgent = `echo "$PAWL_CASE" >>"$HOME/starts"
` + chaosAgent

// soakGate fails once for each file that is put there, as a service that is down does.
const soakGate = `set -e
flaky=$(ls "$HOME"/flaky-* 2>/dev/null | head -n1)
if test -n "$flaky"; then
  rm -f "$flaky"
  echo "connect ECONNREFUSED 127.0.0.1:5432"
  exit 1
fi
` + chaosGate

func newSoak(t *testing.T) *soak {
	t.Helper()
	random := rand.New(rand.NewPCG(*soakSeed, 0)) //nolint:gosec // it repeats
	c := newChaosRun(t, random, soakWave, t.TempDir(), t.TempDir())
	s := &soak{chaosRun: c, log: filepath.Join(c.home, "autopilot.log"), seen: map[string]int{}}
	if err := os.WriteFile(filepath.Join(c.home, "agent.sh"), []byte(soakAgent), 0o644); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(c.dir, "pawl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s.write(map[string]string{
		"gate.sh":   soakGate,
		"pawl.yaml": string(config) + fmt.Sprintf("retention: {max_runs: %d}\nautopilot: {error_threshold: 0}\n", soakRuns),
	})
	s.must(s.git("commit", "-qm", "settings", "--", "gate.sh", "pawl.yaml"))
	s.before = s.own()
	return s
}

// start starts the autopilot.
func (s *soak) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.pilot = s.command("autopilot", "-p", fmt.Sprint(soakSlots))
	s.pilot.Stdout, s.pilot.Stderr = log, log
	if err := s.pilot.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(s.pilot, s.ended)
}

// wave works the board until it is done, with a fault now and then.
func (s *soak) wave(until time.Time) {
	s.t.Helper()
	s.start()
	for {
		pause := time.Duration(200+s.random.IntN(2000)) * time.Millisecond
		select {
		case err := <-s.ended:
			if err == nil {
				return
			}
			if wasKilled(err) {
				s.start()
				continue
			}
			s.t.Fatalf("pawl autopilot: %v\n%s\n%s", err, s.tail(), s.must(s.command("case", "list")))
		case <-time.After(pause):
			if time.Now().After(until) {
				continue // what is left is worked without faults
			}
			f := faults[s.random.IntN(len(faults))]
			if f.happen(s) {
				s.seen[f.name]++
				s.allowed += f.starts
			}
		}
	}
}

// wasKilled is true for the end of a process by SIGKILL.
func wasKilled(err error) bool {
	failed, ok := err.(*exec.ExitError) //nolint:errorlint // Wait returns it as it is
	return ok && failed.ExitCode() < 0
}

// tail is the end of what the autopilot said.
func (s *soak) tail() string {
	data, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-6000):])
}

func (s *soak) killPawl() bool { return s.pilot.Process.Kill() == nil }

func (s *soak) killAgent() bool { return s.killOne("agent.sh") }

func (s *soak) killGit() bool { return s.killOne("git\x00") }

// killOne kills one of the processes of the soak whose command line holds the words.
func (s *soak) killOne(words string) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	s.random.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.Contains(string(line), words) {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), "HOME="+s.home) {
			continue
		}
		pid := 0
		if _, err := fmt.Sscan(filepath.Base(dir), &pid); err == nil {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

func (s *soak) flakyGate() bool {
	f, err := os.CreateTemp(s.home, "flaky-*")
	return err == nil && f.Close() == nil
}

func (s *soak) collectGarbage() bool { return s.git("gc", "-q", "--prune=now").Run() == nil }

// repack drops what nothing leads to. Git's graph of commits may still name it, which
// its own fsck complains of: that is made anew.
func (s *soak) repack() bool {
	packed := s.git("repack", "-adq").Run() == nil
	return s.git("commit-graph", "write", "--reachable").Run() == nil && packed
}

// commit changes the target beside pawl.
func (s *soak) commit() bool {
	s.write(map[string]string{"notes": fmt.Sprintln(s.random.Uint64())})
	add := s.git("add", "--", "notes").Run()
	return add == nil && s.git("commit", "-qm", "notes", "--", "notes").Run() == nil
}

// lockIndex leaves the lock of a git that was killed, in pawl's own folder of a clone.
func (s *soak) lockIndex() bool {
	found, _ := filepath.Glob(filepath.Join(s.home, "state", "pawl", "*", "pool", "*", "index"))
	if len(found) == 0 {
		return false
	}
	return os.WriteFile(found[s.random.IntN(len(found))]+".lock", nil, 0o600) == nil
}

// size is what the soak has on the disk and in memory, where nothing works.
type soakSize struct {
	refs, runs int
	state      int64
}

func (s *soak) size() (z soakSize) {
	s.t.Helper()
	for ref := range strings.FieldsSeq(s.must(s.git("for-each-ref", "--format=%(refname)", "refs/pawl"))) {
		if !strings.HasPrefix(ref, "refs/pawl/recovery/") { // these go after workspace.retention
			z.refs++
		}
	}
	z.runs = strings.Count(s.must(s.command("ps", "-a", "--json")), "\n")
	_ = filepath.Walk(filepath.Join(s.home, "state"), func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			z.state += info.Size()
		}
		return nil
	})
	return z
}

// needed is how many agents a board without faults starts, at least: every third
// task needs two.
func (s *soak) needed() (n int) {
	for i := 1; i <= s.tasks; i++ {
		n++
		if i%10%3 == 0 {
			n++
		}
	}
	return n
}

// starts counts the agents that were started, but those that brought work together
// with the target.
func (s *soak) starts() int {
	data, err := os.ReadFile(filepath.Join(s.home, "starts"))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// TestSoak works a board that is filled again and again while pawl, agents and git
// are killed, gates are flaky, and a person collects garbage and commits. In the end
// every task has landed exactly once, every commit that pawl landed is green, agents were started for
// nothing but the work and the faults, nobody was asked, and nothing has grown.
func TestSoak(t *testing.T) {
	if *soakFor <= 0 {
		t.Skip("it takes long: make soak")
	}
	s, end := newSoak(t), time.Now().Add(*soakFor)
	var first soakSize
	waves := 0
	for ; time.Now().Before(end); waves++ {
		if waves > 0 {
			s.refill()
		}
		s.wave(end)
		z := s.size()
		t.Logf("wave %d: %d tasks, %d agents started of %d+%d, %+v, %v", waves+1, s.tasks, s.starts(), s.needed(), s.allowed, z, s.seen)
		if waves == 0 {
			first = z
		}
	}
	s.must(s.git("commit-graph", "write", "--reachable"))
	s.check()
	s.must(s.command("gc"))
	last := s.size()
	if last.refs > first.refs+soakSlots {
		t.Errorf("%d refs after the first wave, %d at the end:\n%s", first.refs, last.refs, s.must(s.git("for-each-ref", "refs/pawl")))
	}
	if last.runs > soakRuns {
		t.Errorf("%d runs are known, and %d are to be kept", last.runs, soakRuns)
	}
	if n, most := s.starts(), s.needed()+s.allowed+s.tasks/5; n > most {
		t.Errorf("%d agents were started, and %d were needed at most", n, most)
	}
	if asked := s.must(s.command("autopilot", "status")); strings.Contains(asked, "Needs you") {
		t.Errorf("a person is asked for what is not needed:\n%s", asked)
	}
}

// refill adds a wave of tasks.
func (s *soak) refill() {
	s.t.Helper()
	var list strings.Builder
	for range soakWave {
		s.tasks++
		fmt.Fprintf(&list, "{\"title\": \"Task %d\"}\n", s.tasks)
	}
	add := s.command("case", "add", "-f", "-")
	add.Stdin = strings.NewReader(list.String())
	s.must(add)
}
