package benchmark

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxCalls is how often an agent may be called for a task, in every setting.
const maxCalls = 12

// setting is one way to have a board worked.
type setting struct {
	name string
	loop string            // of those that are not pawl: until what it goes on
	keys map[string]string // of pawl.yaml, instead of those of everything
	open bool              // tasks have no sealed checks
}

var (
	everything = map[string]string{
		"loop":      "{}",
		"red_first": "require",
		"protect":   "[test/**]",
		"autopilot": fmt.Sprintf("{max_parallel: 2, max_iterations: %d, error_threshold: 1000}", maxCalls),
	}
	unguarded = "{failure_threshold: 0, stuck_threshold: 0, stuck_limit: 0, thrashing_threshold: 0}"
	unplanned = "{strategy: default}"
	raced     = strings.TrimSuffix(everything["autopilot"], "}") + ", race: 2}"
)

var settings = []setting{
	{name: "a loop until the agent says that it is done", loop: untilClaimed},
	{name: "a loop until the tests are green", loop: untilGreen},
	{name: "a goal loop: until a second model says that it is done", loop: untilBelieved},
	{name: "pawl"},
	{name: "pawl without guards", keys: map[string]string{"loop": unguarded}},
	{name: "pawl without strategies", keys: map[string]string{"loop": unplanned}},
	{name: "pawl without red-first proof", keys: map[string]string{"red_first": "off"}},
	{name: "pawl without protected tests", keys: map[string]string{"protect": "[]"}},
	{name: "pawl without sealed checks", open: true},
	{name: "pawl with races of two", keys: map[string]string{"autopilot": raced}},
	{name: "pawl with gates alone", open: true,
		keys: map[string]string{"loop": unguarded, "red_first": "off", "protect": "[]"}},
}

// outcome is what a board came to.
type outcome struct {
	right, wrong                   map[kind]int
	calls, opinions, rounds, asked int
	took                           time.Duration
}

func (o *outcome) add(more outcome) {
	for _, k := range kinds {
		o.right[k] += more.right[k]
		o.wrong[k] += more.wrong[k]
	}
	o.calls, o.opinions, o.rounds = o.calls+more.calls, o.opinions+more.opinions, o.rounds+more.rounds
	o.asked, o.took = o.asked+more.asked, max(o.took, more.took)
}

func newOutcome() outcome { return outcome{right: map[kind]int{}, wrong: map[kind]int{}} }

func sumOf(of map[kind]int) (sum int) {
	for _, n := range of {
		sum += n
	}
	return sum
}

var (
	mechanismsFlag = flag.Bool("mechanisms", false, "measure what each of pawl's mechanisms is worth, which takes an hour")
	tasksFlag      = flag.Int("tasks", 21, "tasks of a board of -mechanisms; the kinds take turns")
	seedsFlag      = flag.Int("seeds", 3, "boards of each of its settings")
	onlyFlag       = flag.String("only", "", "only those of its settings whose name has this in it")
	keepFlag       = flag.Bool("keep", false, "leave its repositories there, and say where")
)

// BenchmarkMechanisms measures what each of pawl's mechanisms is worth: boards of scripted agents whose abilities are
// known are worked by the real program in real git repositories, with and without each, and by the loops that people
// use instead. It prints the table of docs/benchmarks.md.
//
// What an agent does at a task is drawn from the seed, the task and the number of its call, so every setting meets the
// same agents. The rates are assumptions; the table shows what follows from them.
func BenchmarkMechanisms(b *testing.B) {
	if !*mechanismsFlag {
		b.Skip("it takes an hour: scripts/trial")
	}
	path, tasks, seeds := pawl(b), *tasksFlag, *seedsFlag
	all := make([]outcome, 0, len(settings))
	var shown []setting
	for _, s := range settings {
		if !strings.Contains(s.name, *onlyFlag) {
			continue
		}
		sum := playSeeds(s, path, tasks, seeds, *keepFlag)
		fmt.Fprintf(os.Stderr, "%s: %s\n%s", s.name, sum.took.Round(time.Second),
			tables([]setting{s}, []outcome{sum}, tasks*seeds))
		shown, all = append(shown, s), append(all, sum)
	}
	fmt.Println(tables(shown, all, tasks*seeds))
}

// playSeeds plays the boards of a setting side by side.
func playSeeds(s setting, pawl string, tasks, seeds int, keep bool) outcome {
	var group sync.WaitGroup
	of := make([]outcome, seeds)
	all, err := os.MkdirTemp("", "trial")
	check(err)
	if keep {
		fmt.Fprintln(os.Stderr, s.name, all)
	} else {
		defer os.RemoveAll(all)
	}
	for n := range seeds {
		dir := filepath.Join(all, fmt.Sprint(n+1))
		of[n] = newOutcome()
		w := &world{dir: dir, seed: n + 1, tasks: tasks, setting: s, pawl: pawl}
		group.Go(func() { w.play(&of[n]) })
	}
	group.Wait()
	sum := newOutcome()
	for _, one := range of {
		sum.add(one)
	}
	return sum
}

// tables are the figures as Markdown.
func tables(shown []setting, all []outcome, tasks int) string {
	var b strings.Builder
	b.WriteString("| setting | right | wrongly done | not done | cost | cost of a right one | rounds | questions |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for i, o := range all {
		right, wrong := sumOf(o.right), sumOf(o.wrong)
		cost := float64(o.calls)*callCost + float64(o.opinions)*opinionCost
		fmt.Fprintf(&b, "| %s | %d %% | %d %% | %d %% | $%.2f | $%.2f | %.1f | %d |\n", shown[i].name,
			percent(right, tasks), percent(wrong, tasks), percent(tasks-right-wrong, tasks), cost,
			cost/float64(max(1, right)), float64(o.rounds)/float64(tasks), o.asked)
	}
	b.WriteString("\n| setting |")
	for _, k := range kinds {
		fmt.Fprintf(&b, " %s |", k)
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(kinds)) + "|\n")
	for i, o := range all {
		fmt.Fprintf(&b, "| %s |", shown[i].name)
		for _, k := range kinds {
			each := tasks / len(kinds)
			fmt.Fprintf(&b, " %d / %d |", percent(o.right[k], each), percent(o.wrong[k], each))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func percent(n, of int) int { return (100*n + of/2) / max(1, of) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "trial:", err)
		os.Exit(1)
	}
}

// world is one board in one repository.
type world struct {
	setting
	dir, pawl   string
	seed, tasks int
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

func (w *world) write(name, text string) {
	check(os.MkdirAll(filepath.Dir(w.path("repo", name)), 0o755))  //nolint:gosec // a repository
	check(os.WriteFile(w.path("repo", name), []byte(text), 0o644)) //nolint:gosec // a repository
}

// run runs a command in the repository, and returns what it printed on stdout.
func (w *world) run(stdin string, env []string, name string, args ...string) (string, bool) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin = w.path("repo"), strings.NewReader(stdin)
	cmd.Env = append([]string{"HOME=" + w.path("home"), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A",
		"GIT_COMMITTER_EMAIL=a@example.com"}, env...)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		check(err)
	}
	if err != nil && os.Getenv("TRIAL_VERBOSE") != "" {
		fmt.Fprintf(os.Stderr, "%s %v: %v\n%s%s", name, args, err, &out, &notes)
	}
	return out.String(), err == nil
}

// play makes the repository, has the board worked, and adds up what came of it.
func (w *world) play(sum *outcome) {
	for _, d := range []string{"repo", "home", "marks", "bin"} {
		check(os.MkdirAll(w.path(d), 0o755)) //nolint:gosec // as above
	}
	exe, err := os.Executable()
	check(err)
	program, err := os.ReadFile(exe)
	check(err)
	check(os.WriteFile(w.path("bin", "agent"), program, 0o755)) //nolint:gosec // it is a program
	w.write("run.sh", "for t in test/*_test.sh; do\n\tsh $t || exit 1\ndone\n")
	for k := range w.tasks {
		w.write(fmt.Sprintf("lib/b%d.sh", k), baseText(k))
		w.write(fmt.Sprintf("test/b%d_test.sh", k), baseTest(k))
	}
	w.write("pawl.yaml", w.config())
	w.run("", nil, "git", "init", "-q", "-b", "main")
	w.run("", nil, "git", "add", "-A")
	w.run("", nil, "git", "commit", "-qm", "A library")
	began := time.Now()
	said := w.workBoard(sum)
	sum.took += time.Since(began)
	w.run("", nil, "git", "checkout", "-qf", "main")
	for k := range w.tasks {
		switch {
		case !said[k]:
		case w.isRight(k):
			sum.right[kindOf(k)]++
		default:
			sum.wrong[kindOf(k)]++
		}
		sum.calls += len(w.calls(k))
		sum.rounds += roundsOf(w.calls(k))
	}
}

func (w *world) config() string {
	keys := map[string]string{}
	for _, of := range []map[string]string{everything, w.keys} {
		for k, v := range of {
			keys[k] = v
		}
	}
	return fmt.Sprintf(`agent: scripted
agents: {scripted: {command: [%q, agent, %q, "%d"], output: script}}
safety: {show: [%q], write: [%q]}
loop: %s
red_first: %s
autopilot: %s
verification:
  protect: %s
  retries: 0
  commands: [{name: unit, command: sh run.sh, kind: other}]
`, w.path("bin", "agent"), w.path("marks"), w.seed, w.path("bin"), w.path("marks"), keys["loop"], keys["red_first"],
		keys["autopilot"], keys["protect"])
}

// isRight tells whether the task is done, and nothing is broken that was there before.
func (w *world) isRight(k int) bool {
	_, isDone := w.run("", nil, "sh", "-c", sealedCheck(k))
	_, isWhole := w.run(baseTest(k), nil, "sh")
	return isDone && isWhole
}

// call is one of an agent's calls at a task; racers have theirs.
type call struct {
	racer string
}

func (w *world) calls(k int) (all []call) {
	text, _ := os.ReadFile(w.path("marks", taskID(k)))
	for line := range strings.Lines(string(text)) {
		all = append(all, call{strings.TrimSpace(line)})
	}
	return all
}

// roundsOf is how many calls one after the other a task took: those of racers are made side by side.
func roundsOf(all []call) (most int) {
	of := map[call]int{}
	for _, c := range all {
		of[c]++
		most = max(most, of[c])
	}
	return most
}

func taskID(k int) string { return fmt.Sprintf("task-%03d", k+1) }

// workBoard returns which tasks were called done.
func (w *world) workBoard(sum *outcome) []bool {
	if w.loop != "" {
		return w.workLoops(sum)
	}
	for k := range w.tasks {
		args := []string{"case", "add", title(k), "--acceptance", "it holds for every number", "--verify", visibleCheck(k)}
		if !w.open && kindOf(k) != vacuous {
			sealed, err := json.Marshal(map[string]string{"command": sealedCheck(k), "criterion": "it holds for every number"})
			check(err)
			args = append(args, "--sealed", string(sealed))
		}
		w.run("", nil, w.pawl, args...)
	}
	w.run("", nil, w.pawl, "autopilot")
	if w.answerQuestions(sum) {
		w.run("", nil, w.pawl, "autopilot")
	}
	return w.landed()
}

// landed reads which tasks the board calls done.
func (w *world) landed() []bool {
	done := make([]bool, w.tasks)
	for _, of := range w.cases() {
		n, err := strconv.Atoi(strings.TrimPrefix(of.ID, "task-"))
		check(err)
		done[n-1] = of.Status == "done"
	}
	return done
}

type boardCase struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (w *world) cases() (all []boardCase) {
	text, _ := w.run("", nil, w.pawl, "case", "list", "--all", "--json")
	for line := range strings.Lines(text) {
		var one boardCase
		check(json.Unmarshal([]byte(line), &one))
		all = append(all, one)
	}
	return all
}

// answerQuestions is the person: a check that proves nothing is written anew.
func (w *world) answerQuestions(sum *outcome) (answered bool) {
	for _, of := range w.cases() {
		n, err := strconv.Atoi(strings.TrimPrefix(of.ID, "task-"))
		check(err)
		if of.Status != "blocked" || kindOf(n-1) != vacuous || len(w.calls(n-1)) > 0 {
			continue
		}
		w.run("", nil, w.pawl, "case", "edit", of.ID, "--verify", visibleCheckOf(n-1))
		w.run("", nil, w.pawl, "case", "retry", of.ID)
		sum.asked++
		answered = true
	}
	return answered
}
