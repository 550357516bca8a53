package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	disk   string // a small one that all but the counts is on; "" where none can be mounted
	counts string // the folder of what is counted, and of what the agent and the gate are told
	other  string // another clone, whose pawl lands on the same remote
	others int    // tasks that were given to it

	pilot *exec.Cmd
	ended chan error
	log   string       // of the autopilot
	peer  <-chan error // the end of the other clone's autopilot; nil when none runs
	keep  bool         // the autopilot stays when the board is done, and is not killed

	repairs []repair
	flakyAt time.Time      // the last fault of a gate
	allowed int            // agent starts that faults may have cost
	seen    map[string]int // faults by name
}

// soakAgent counts its starts, and is the agent of TestChaos. Its provider may be down.
const soakAgent = `if test -e COUNTS/down; then
  echo down >>COUNTS/starts
  echo 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}' >&2
  exit 1
fi
prompt=$(cat)
case $prompt in
*"Merge it with: git merge "*) echo merge >>COUNTS/starts ;;
*) echo "$PAWL_CASE" >>COUNTS/starts ;;
esac
printf '%s\n' "$prompt" | {
` + chaosAgent + "}\n"

// otherAgent works in the other clone.
const otherAgent = `mkdir -p other
echo done >other/$PAWL_CASE
echo '<promise>COMPLETE</promise>'
`

// soakGate fails once for each file that is put there, as a service that is down does,
// and while the person's mistake is there.
const soakGate = `set -e
flaky=$(ls COUNTS/flaky-* 2>/dev/null | head -n1)
if test -n "$flaky"; then
  rm -f "$flaky"
  echo "connect ECONNREFUSED 127.0.0.1:5432"
  exit 1
fi
! test -e broken
` + chaosGate

func newSoak(t *testing.T) *soak {
	t.Helper()
	random := rand.New(rand.NewPCG(*soakSeed, 0)) //nolint:gosec // it repeats
	s := &soak{disk: smallDisk(t), counts: t.TempDir(), seen: map[string]int{}}
	on := s.disk
	if on == "" {
		on = t.TempDir()
	}
	dir, home := filepath.Join(on, "repository"), filepath.Join(on, "home")
	for _, d := range []string{dir, home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := newChaosRun(t, random, soakWave, dir, home)
	c.landings, c.persons = []string{"--merges", "--grep=: Task "}, []string{"notes", "break it", "repair it"}
	s.chaosRun, s.log, s.other = c, filepath.Join(s.counts, "autopilot.log"), filepath.Join(on, "other")
	config, err := os.ReadFile(filepath.Join(c.dir, "pawl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mine := string(config) + fmt.Sprintf("retention: {max_runs: %d}\nautopilot: {error_threshold: 0}\nmerge: {push: true}\n", soakRuns)
	other := strings.ReplaceAll(mine, filepath.Join(home, "agent.sh"), filepath.Join(home, "other.sh"))
	for path, text := range map[string]string{
		filepath.Join(home, "agent.sh"): soakAgent, filepath.Join(home, "other.sh"): otherAgent,
		filepath.Join(s.counts, "other.yaml"): other, filepath.Join(dir, "gate.sh"): soakGate, filepath.Join(dir, "pawl.yaml"): mine,
	} {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "COUNTS", s.counts)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.must(s.git("commit", "-qm", "settings", "--", "gate.sh", "pawl.yaml"))
	s.clone(on)
	s.before = s.own()
	return s
}

// smallDisk is a disk that can be filled, or "" where none can be mounted.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Getuid() != 0 || exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1400m", "soak", dir).Run() != nil {
		t.Log("no disk can be mounted here: it is never full")
		return ""
	}
	t.Cleanup(func() {
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "-l", dir).CombinedOutput()
		if err != nil {
			t.Errorf("umount %s: %v: %s", dir, err, out)
		}
	})
	return dir
}

// clone makes a remote, and another clone of it.
func (s *soak) clone(on string) {
	s.t.Helper()
	remote := filepath.Join(on, "remote.git")
	for _, args := range [][]string{
		{"clone", "-q", "--bare", ".", remote},
		{"-C", remote, "config", "core.logAllRefUpdates", "true"},
		{"remote", "add", "origin", remote},
		{"fetch", "-q", "origin"},
		{"branch", "-q", "--set-upstream-to=origin/main", "main"},
		{"clone", "-q", remote, s.other},
	} {
		s.must(s.git(args...))
	}
}

// start starts the autopilot.
func (s *soak) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"autopilot", "-p", fmt.Sprint(soakSlots)}
	if s.keep {
		args = append(args, "--keep")
	}
	s.pilot = s.command(args...)
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
	if s.pilot == nil {
		s.start()
	}
	for over := false; !over; {
		pause := time.Duration(200+s.random.IntN(2000)) * time.Millisecond
		select {
		case err := <-s.ended:
			over = s.pilotEnded(err)
		case <-time.After(pause):
			s.lookElsewhere()
			mended := s.mend()
			if time.Now().Before(until) { // what is left is worked without faults
				s.strike()
			}
			over = s.keep && mended && s.done()
		}
	}
	s.quiet()
}

// quiet waits until no fault lasts and the other clone's autopilot has ended.
func (s *soak) quiet() {
	s.t.Helper()
	for !s.mend() || s.peer != nil {
		select {
		case err := <-s.peer:
			s.peerEnded(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// pilotEnded looks at the end of the autopilot, and starts it again when it was
// killed. It is true when the board is done.
func (s *soak) pilotEnded(err error) bool {
	s.t.Helper()
	s.pilot = nil
	if err != nil && wasKilled(err) {
		s.start()
		return false
	}
	full := s.disk != "" && exists(filepath.Join(s.disk, "fill"))
	s.quiet() // nothing can be read from a full disk
	if err == nil && !s.keep && s.done() {
		return true
	}
	const refused = "pawl: cannot start the autopilot: the database cannot be written: "
	last := s.tail()
	if full && strings.Contains(last[strings.LastIndex(strings.TrimSpace(last), "\n")+1:], refused) {
		s.start() // it was killed, and the person is told to see to the disk first
		return false
	}
	s.t.Fatalf("pawl autopilot: %v\n%s\n%s", err, s.tail(), s.must(s.command("case", "list")))
	return false
}

// done is true when every task has landed.
func (s *soak) done() bool {
	s.t.Helper()
	out, err := s.command("case", "list", "--all", "--json").Output()
	for _, status := range []string{"failed", "blocked", "timeout"} {
		if strings.Contains(string(out), `"status":"`+status+`"`) {
			s.t.Fatalf("a task is %s:\n%s\n%s", status, s.tail(), s.must(s.command("autopilot", "status")))
		}
	}
	return err == nil && strings.Count(string(out), `"status":"done"`) == s.tasks
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

// size is what the soak has on the disk and in memory, where nothing works.
type soakSize struct {
	refs, runs int
	state      int64
	memory     int // of an autopilot that stays, in MB
	open       int // descriptors of it
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
	if s.pilot == nil {
		return z
	}
	proc := fmt.Sprintf("/proc/%d/", s.pilot.Process.Pid)
	status, _ := os.ReadFile(proc + "status")
	if _, after, ok := strings.Cut(string(status), "VmRSS:"); ok {
		_, _ = fmt.Sscan(after, &z.memory)
		z.memory /= 1024
	}
	opened, _ := os.ReadDir(proc + "fd")
	z.open = len(opened)
	return z
}

// needed is how many agents a board without faults starts: every third task needs
// two.
func (s *soak) needed() (n int) {
	for i := 1; i <= s.tasks; i++ {
		n++
		if i%10%3 == 0 {
			n++
		}
	}
	return n
}

// starts counts the agents that were started: for tasks, to bring work together with
// the target, and in vain since their provider was down.
func (s *soak) starts() (tasks, merges, vain int) {
	data, err := os.ReadFile(filepath.Join(s.counts, "starts"))
	if err != nil {
		s.t.Fatal(err)
	}
	merges, vain = strings.Count(string(data), "merge\n"), strings.Count(string(data), "down\n")
	return strings.Count(string(data), "\n") - merges - vain, merges, vain
}

// TestSoak works a board that is filled again and again while pawl, agents and git
// are killed, gates are flaky, the provider is down, the disk is full, somebody breaks
// the target, another clone lands on the same remote, and a person collects garbage
// and commits. In the end every task has landed exactly once, every commit that pawl
// landed is green, agents were started for nothing but the work and the faults, nobody
// was asked, and nothing has grown.
func TestSoak(t *testing.T) {
	if *soakFor <= 0 {
		t.Skip("it takes long: make soak")
	}
	begun := time.Now()
	s, half, end := newSoak(t), begun.Add(*soakFor/2), begun.Add(*soakFor)
	var first, last soakSize
	for wave := 0; time.Now().Before(end); wave++ {
		stays := s.keep
		if wave > 0 {
			s.keep = time.Now().After(half)
			s.refill()
		}
		s.wave(end)
		last = s.size()
		tasks, merges, vain := s.starts()
		t.Logf("wave %d: %v, %d tasks, %d agents started of %d+%d, %d to merge, %d in vain, %+v, %v", wave+1,
			time.Since(begun).Round(time.Second), s.tasks, tasks, s.needed(), s.allowed, merges, vain, last, s.seen)
		if !stays {
			first = last
		}
	}
	if s.pilot != nil {
		s.must(s.command("autopilot", "stop"))
		<-s.ended
	}
	s.must(s.git("commit-graph", "write", "--reachable"))
	s.check()
	s.nothingGrew(first, last)
	tasks, merges, _ := s.starts()
	if most := s.needed() + s.allowed; tasks > most {
		t.Errorf("%d agents were started, and %d were needed at most", tasks, most)
	}
	if most := s.tasks/5 + s.allowed; merges > most {
		t.Errorf("%d agents were started to merge, and %d were needed at most", merges, most)
	}
	if asked := s.must(s.command("autopilot", "status")); strings.Contains(asked, "Needs you") {
		t.Errorf("a person is asked for what is not needed:\n%s", asked)
	}
}

// nothingGrew compares what is there with what was after the first wave that an
// autopilot stayed for, and looks at what is kept in the end.
func (s *soak) nothingGrew(first, last soakSize) {
	s.t.Helper()
	if last.memory > first.memory*3/2+20 {
		s.t.Errorf("the autopilot had %d MB, and has %d", first.memory, last.memory)
	}
	if last.open > first.open+soakSlots {
		s.t.Errorf("the autopilot had %d descriptors, and has %d", first.open, last.open)
	}
	s.must(s.command("gc"))
	swept := s.size()
	if swept.refs > soakSlots {
		s.t.Errorf("%d refs are left:\n%s", swept.refs, s.must(s.git("for-each-ref", "refs/pawl")))
	}
	if swept.runs > soakRuns {
		s.t.Errorf("%d runs are known, and %d are to be kept:\n%s", swept.runs, soakRuns, s.must(s.command("ps", "-a")))
	}
	s.t.Logf("at the end %+v, after pawl gc %+v", last, swept)
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
