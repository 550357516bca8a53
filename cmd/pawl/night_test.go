package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	nightSeeds = flag.Int("nights", 0, "how many long nights TestNight plays, from -night-seed on; 'make night' plays ten. 0 is a small one")
	nightSeed  = flag.Uint64("night-seed", 1, "the seed of the first night of TestNight")
)

// night is a board that is worked alone, with a test for a person.
type night struct {
	*chaosRun
	faults, disk, log string

	pilot   *exec.Cmd
	ended   chan error
	starts  int            // of the autopilot
	allowed map[string]int // calls of a task that may be paid for
	left    map[string]int // of what happens to the board
	repairs []repair
	asked   []string // what a person was asked, as it was answered
	gateway bool     // agents reach their model through pawl's gateway
}

func newNight(t *testing.T, random *rand.Rand, tasks int, small, gateway bool) *night {
	t.Helper()
	disk := ""
	if !small {
		disk = smallDisk(t)
	}
	on := cmp.Or(disk, t.TempDir())
	n := &night{faults: t.TempDir(), disk: disk, allowed: map[string]int{}, left: map[string]int{
		"autopilot": 6, "agent": 3, "supervisor": 3, "red": 1, "push": 1, "disk": 1, "outage": 1, "account": 1,
	}, gateway: gateway}
	if disk == "" {
		delete(n.left, "disk")
	}
	if small {
		n.left = map[string]int{"autopilot": 1, "agent": 1, "supervisor": 1, "push": 1, "account": 1}
	}
	n.chaosRun = &chaosRun{t: t, dir: filepath.Join(on, "repository"), home: filepath.Join(on, "home"), random: random, tasks: tasks,
		persons: []string{"break it", "repair it"}}
	n.log = filepath.Join(n.faults, "autopilot.log")
	if gateway {
		n.more = []string{"ANTHROPIC_API_KEY=" + nightKey, "ANTHROPIC_BASE_URL=" + nightModel(t, n.faults).URL()}
		if err := os.WriteFile(filepath.Join(n.faults, "gateway"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{n.dir, n.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.dealFaults()
	n.write(map[string]string{"README": "one\n", "gate.sh": nightGate, "pawl.yaml": fmt.Sprintf(`agent: mine
agents: {mine: {command: [bash, %q], output: claude}}
verification: ["sh gate.sh"]
loop: {safety: permissive, idle_timeout: 4s}
merge: {push: true}
`, filepath.Join(n.faults, "agent.sh"))})
	for path, text := range map[string]string{
		filepath.Join(n.faults, "agent.sh"): strings.ReplaceAll(nightAgent, "FAULTS", n.faults),
		filepath.Join(n.home, ".gitconfig"): "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remote := filepath.Join(on, "remote.git")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"commit", "-qm", "start"}, {"clone", "-q", "--bare", ".", remote},
		{"remote", "add", "origin", remote}, {"fetch", "-q", "origin"}, {"branch", "-q", "--set-upstream-to=origin/main", "main"},
	} {
		n.must(n.git(args...))
	}
	hook := fmt.Sprintf("#!/bin/sh\nif test -e %[1]s/refuse; then echo 'the server is being upgraded' >&2; exit 1; fi\n", n.faults)
	if err := os.WriteFile(filepath.Join(remote, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil { //nolint:gosec // git runs it
		t.Fatal(err)
	}
	add := n.command("case", "add", "-f", "-")
	var list strings.Builder
	for i := range tasks {
		fmt.Fprintf(&list, "{\"title\": \"Task %d\"}\n", i+1)
	}
	add.Stdin = strings.NewReader(list.String())
	n.must(add)
	return n
}

// dealFaults gives each fault to a task.
func (n *night) dealFaults() {
	n.t.Helper()
	last := n.random.Perm(n.tasks) // of each task at most one
	for i, f := range nightFaults {
		if !n.has(f) {
			continue
		}
		id := n.task(n.random.IntN(n.tasks))
		if f.ends {
			id, last = n.task(last[0]), last[1:]
		}
		folder := filepath.Join(n.faults, id)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			n.t.Fatal(err)
		}
		// A result is the last thing that a task's agent says: other faults come before it.
		order := n.random.IntN(100)
		if f.ends {
			order += 500
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d%02d-%s", order, i, f.name)), nil, 0o600); err != nil {
			n.t.Fatal(err)
		}
		if f.paid && !f.ends {
			n.allowed[id]++
		}
	}
	for i := range n.tasks {
		n.allowed[n.task(i)]++
	}
}

// has is true for a fault that is dealt to a task of this night.
func (n *night) has(f nightFault) bool { return (n.tasks > 50 || !f.slow) && (n.gateway || !f.gateway) }

func (n *night) task(i int) string { return fmt.Sprintf("task-%03d", i+1) }

func (n *night) start() {
	n.t.Helper()
	log, err := os.OpenFile(n.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.starts++
	_, _ = fmt.Fprintf(log, "=== start %d\n", n.starts)
	n.pilot = n.command("autopilot", "-p", "6")
	n.pilot.Stdout, n.pilot.Stderr = log, log
	if err := n.pilot.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(n.pilot, n.ended)
}

// work lets the autopilot work until all has landed.
func (n *night) work(limit time.Duration) {
	n.t.Helper()
	end := time.After(limit)
	for n.start(); ; {
		select {
		case <-end:
			status := n.must(n.command("autopilot", "status"))
			_ = n.pilot.Process.Signal(syscall.SIGQUIT) // it says where it is
			<-n.ended
			n.t.Fatalf("no end after %v:\n%s\n%s", limit, n.end(200_000), status)
		case err := <-n.ended:
			if n.pilotEnded(err) {
				return
			}
		case <-time.After(time.Duration(50+n.random.IntN(500)) * time.Millisecond):
			n.repairs = slices.DeleteFunc(n.repairs, func(r repair) bool { return !r.at.After(time.Now()) && r.end() })
			n.strike()
			if len(n.repairs) == 0 {
				n.lookAtPause()
			}
		}
	}
}

// pilotEnded is true when nothing is left to do. A person reads what is asked, does it, and starts again.
func (n *night) pilotEnded(err error) bool {
	n.t.Helper()
	if wasKilled(err) {
		n.start()
		return false
	}
	for end := time.Now().Add(10 * time.Second); len(n.repairs) > 0; { // nothing can be read from a full disk
		if time.Now().After(end) { // the next pawl releases the index that a killed one had locked
			n.start()
			return false
		}
		n.repairs = slices.DeleteFunc(n.repairs, func(r repair) bool { return r.end() })
	}
	if err == nil && n.landed() == n.tasks {
		return true
	}
	full := regexp.MustCompile("the database cannot be written|no space left on device").MatchString(n.tail())
	if asked := n.answer(); !asked && !full {
		n.t.Fatalf("pawl autopilot: %v, and nobody is asked\n%s\n%s", err, n.tail(), n.must(n.command("autopilot", "status")))
	}
	n.start()
	return false
}

func (n *night) landed() int {
	return strings.Count(n.must(n.command("case", "list", "--all", "--json")), `"status":"done"`)
}

func (n *night) tail() string { return n.end(8000) }

func (n *night) end(most int) string {
	data, _ := os.ReadFile(n.log)
	return string(data[max(0, len(data)-most):])
}

// forPerson is what only a person can do, and the words for it.
var forPerson = regexp.MustCompile(`(?i)credit|api.key|model: claude-none`)

// answer does what the autopilot asks a person, which is only what a person can do.
func (n *night) answer() bool {
	n.t.Helper()
	var status struct {
		NeedsYou []struct{ Case, What, Why string } `json:"needs_you"`
		Held     string                             `json:"queue_held"`
	}
	if err := json.Unmarshal([]byte(n.must(n.command("autopilot", "status", "--json"))), &status); err != nil {
		n.t.Fatal(err)
	}
	for _, need := range status.NeedsYou {
		if !forPerson.MatchString(need.Why) {
			n.t.Fatalf("a person is asked for what pawl can do: %+v\n%s", need, n.tail())
		}
		n.ask(need.Case + ": " + need.Why)
		if n.command("case", "unblock", need.Case).Run() != nil { // two such faults of one task alone make it fail
			n.must(n.command("case", "retry", need.Case))
		}
	}
	return len(status.NeedsYou) > 0
}

// lookAtPause has an autopilot go on that paused for what a person has done by now.
func (n *night) lookAtPause() {
	n.t.Helper()
	out, err := n.command("autopilot", "status", "--json").Output()
	var status struct{ Phase, Why string }
	if err != nil || json.Unmarshal(out, &status) != nil || status.Phase != "paused" {
		return
	}
	if !forPerson.MatchString(status.Why) {
		n.t.Fatalf("the autopilot paused: %s\n%s", status.Why, n.tail())
	}
	n.ask(status.Why)
	if out, err := n.command("autopilot", "resume").CombinedOutput(); err != nil {
		n.asked = n.asked[:len(n.asked)-1] // it was killed meanwhile
		n.t.Logf("pawl autopilot resume: %v\n%s", err, out)
	}
}

// ask has a person do what they are asked: pay for an account that is empty.
func (n *night) ask(why string) {
	n.asked = append(n.asked, why)
	all := filepath.Join(n.faults, "all")
	if data, _ := os.ReadFile(all); string(data) == "credits" && strings.Contains(why, "Credit") {
		_ = os.Remove(all)
	}
}

// meetAll has all agents meet the same from now on.
func (n *night) meetAll(fault string) bool {
	all := filepath.Join(n.faults, "all")
	return !exists(all) && os.WriteFile(all, []byte(fault), 0o600) == nil
}

// strike has something happen to the board, at times.
func (n *night) strike() {
	what := slices.Sorted(maps.Keys(n.left))
	if len(what) == 0 || n.random.IntN(2) > 0 {
		return
	}
	word := what[n.random.IntN(len(what))]
	happened := false
	switch word {
	case "autopilot":
		happened = n.pilot.Process.Kill() == nil
	case "agent":
		happened = n.killOne("agent.sh")
	case "supervisor":
		happened = n.killOne("__supervise")
	case "push":
		refuse := filepath.Join(n.faults, "refuse")
		happened = os.WriteFile(refuse, nil, 0o600) == nil
		n.lasts(3*time.Second, func() bool { return os.Remove(refuse) == nil || !exists(refuse) })
	case "outage":
		if happened = n.meetAll("529"); happened {
			n.lasts(3*time.Second, func() bool { return os.Remove(filepath.Join(n.faults, "all")) == nil })
		}
	case "account":
		happened = n.meetAll("credits")
	case "red":
		s := &soak{chaosRun: n.chaosRun}
		happened = s.redTarget()
		for _, r := range s.repairs {
			n.lasts(5*time.Second, r.end)
		}
	case "disk":
		s := &soak{chaosRun: n.chaosRun, disk: n.disk}
		happened = s.fillDisk()
		for _, r := range s.repairs {
			n.lasts(3*time.Second, func() bool { return r.end() && n.mayRepeat() })
		}
	}
	if happened {
		if n.left[word]--; n.left[word] == 0 {
			delete(n.left, word)
		}
		n.t.Logf("%s at %s", word, time.Now().Format(time.TimeOnly))
	}
}

// mayRepeat allows every task that has begun and not landed to be paid for once more: its work or its record may not have
// been written.
func (n *night) mayRepeat() bool {
	n.t.Helper()
	calls, _ := os.ReadFile(filepath.Join(n.faults, "calls")) // none: no agent was called yet
	landed := n.must(n.git("log", "--merges", "--grep=: Task ", "--format=%(trailers:key=Pawl-Task,valueonly)", "main"))
	for i := range n.tasks {
		if id := n.task(i); strings.Contains(string(calls), id) && !strings.Contains(landed, id) {
			n.allowed[id]++
		}
	}
	return true
}

func (n *night) lasts(d time.Duration, end func() bool) {
	n.repairs = append(n.repairs, repair{at: time.Now().Add(d), end: end})
}

var caseOf = regexp.MustCompile(`\x00PAWL_CASE=(task-\d{3})\x00`)

func childrenOf(proc string) (pids []string) {
	lists, _ := filepath.Glob(filepath.Join(proc, "task", "*", "children"))
	for _, list := range lists {
		data, _ := os.ReadFile(list)
		pids = append(pids, strings.Fields(string(data))...)
	}
	return pids
}

// killOne kills an agent, or a supervisor with an agent. What its task was doing may be paid for once more.
func (n *night) killOne(words string) bool {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	slices.Sort(dirs)
	n.random.Shuffle(len(dirs), func(i, j int) { dirs[i], dirs[j] = dirs[j], dirs[i] })
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		mine := bytes.Contains(environ, []byte("HOME="+n.home+"\x00"))
		if !mine || !bytes.Contains(line, []byte(words)) {
			continue
		}
		for _, child := range childrenOf(dir) { // a supervisor is of a run whose task its own environment does not name
			more, _ := os.ReadFile("/proc/" + child + "/environ")
			environ = append(environ, more...)
		}
		id := caseOf.FindSubmatch(environ)
		pid := 0
		if _, err := fmt.Sscan(filepath.Base(dir), &pid); err != nil || id == nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
			continue
		}
		n.allowed[string(id[1])]++
		return true
	}
	return false
}

// checkMorning looks at what a person finds in the morning.
func (n *night) checkMorning() {
	n.t.Helper()
	landed := map[string]int{}
	for line := range strings.Lines(n.must(n.git("log", "--merges", "--grep=: Task ", "--format=%(trailers:key=Pawl-Task,valueonly)", "main"))) {
		landed[strings.TrimSpace(line)]++
	}
	paid, err := os.ReadFile(filepath.Join(n.faults, "paid"))
	if err != nil {
		n.t.Fatal(err)
	}
	for i := range n.tasks {
		id := n.task(i)
		if landed[id] != 1 {
			n.t.Errorf("%s landed %d times", id, landed[id])
		}
		if got := strings.Count(string(paid), id+"\n"); got > n.allowed[id] {
			calls, _ := exec.CommandContext(n.t.Context(), "grep", id, filepath.Join(n.faults, "calls")).Output()
			n.t.Errorf("%s was paid for %d times, and %d are its own:\n%s", id, got, n.allowed[id], calls)
		}
	}
	n.providerWaited()
	if remote, here := n.must(n.git("rev-parse", "origin/main")), n.must(n.git("rev-parse", "main")); remote != here {
		n.t.Errorf("the remote has %s, and here is %s", remote, here)
	}
	for _, f := range nightFaults {
		if n.met("*", f) == 0 && n.has(f) {
			n.t.Errorf("no agent met %s", f.name)
		}
	}
	if n.tasks > 50 && len(n.left) > 0 {
		n.t.Errorf("there was no time for %v", n.left)
	}
	if again := len(n.asked) - len(slices.Compact(slices.Sorted(slices.Values(n.asked)))); again > 1 { // two tasks may have met the same alone
		n.t.Errorf("a person was asked %d times for what they had done: %q", again, n.asked)
	}
	n.everyValueIsGreen()
	if status := n.must(n.command("autopilot", "status")); strings.Contains(status, "Needs you") {
		n.t.Errorf("a person is asked for what is over:\n%s", status)
	}
	n.eachThingOnce()
	for _, p := range left(n.dir) {
		n.t.Errorf("left running: %s", p.text)
	}
}

// met counts the calls of a task that met a fault.
func (n *night) met(id string, f nightFault) int {
	all, _ := filepath.Glob(filepath.Join(n.faults, "met-"+id+"-?????-"+f.name))
	return len(all)
}

// providerWaited looks at what each task recorded of its provider's faults: it waited, and used up no iteration. Of runs
// that a kill cut off something is missing, and so it is of one that another run of the task follows.
func (n *night) providerWaited() {
	n.t.Helper()
	runs := n.must(n.command("ps", "-a", "--json"))
	for i := range n.tasks {
		id := n.task(i)
		met := 0
		for _, f := range nightFaults {
			if f.waits {
				met += n.met(id, f)
			}
		}
		if met == 0 || strings.Count(runs, `"name":"`+id+`"`) != 1 {
			continue
		}
		var run struct {
			Iterations []struct {
				Outcome, Ended string
				Failure        *struct{ Class, Kind, Summary string }
			}
		}
		out := n.must(n.command("show", id, "--json"))
		if err := json.Unmarshal([]byte(out), &run); err != nil {
			n.t.Fatal(err)
		}
		waited, cut := 0, false
		for _, r := range run.Iterations {
			if r.Outcome == "waited" {
				waited++
			}
			cut = cut || r.Ended != "" || r.Failure != nil && r.Failure.Class == "crash"
		}
		if !cut && waited < met {
			n.t.Errorf("%s met %d faults of its provider, and waited %d times: %+v", id, met, waited, run)
		}
	}
}

var nightStamp = regexp.MustCompile(`(?m)^\[[0-9:]+\] `)

// eachThingOnce looks at the alarms of each autopilot.
func (n *night) eachThingOnce() {
	n.t.Helper()
	log, err := os.ReadFile(n.log)
	if err != nil {
		n.t.Fatal(err)
	}
	for session := range strings.SplitSeq(nightStamp.ReplaceAllString(string(log), ""), "=== start ") {
		seen := map[string]int{}
		for line := range strings.Lines(session) {
			if seen[line]++; seen[line] == 2 && strings.HasPrefix(line, "ATTENTION") {
				n.t.Errorf("said twice: %s", line)
			}
		}
	}
}

// A board is worked alone while the provider, the network, the programs, the target, the remote and the disk fail in
// every way that was seen, and pawl, agents and supervisors are killed. In the morning all has landed, each task was
// paid for once but where its own work was red, and a person was asked for what only a person can do.
func TestNight(t *testing.T) {
	t.Parallel()
	nights, tasks, limit := 1, 14, 2*time.Minute
	if *nightSeeds > 0 {
		nights, tasks, limit = *nightSeeds, 60, 4*time.Minute
	}
	for i := range nights {
		seed := *nightSeed + uint64(i) //nolint:gosec // a small number
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			repeat := fmt.Sprintf("go test ./cmd/pawl -run TestNight -count=1 -nights %d -night-seed %d", min(1, *nightSeeds), seed)
			begun := time.Now()
			n := newNight(t, rand.New(rand.NewPCG(seed, 0)), tasks, *nightSeeds == 0, seed%2 == 1) //nolint:gosec // it repeats
			defer func() {
				if t.Failed() {
					t.Log("repeat with: " + repeat)
				}
			}()
			n.work(limit)
			n.checkMorning()
			t.Logf("%d tasks in %v, %d autopilots, asked: %q", tasks, time.Since(begun).Round(time.Second), n.starts, n.asked)
		})
	}
}
