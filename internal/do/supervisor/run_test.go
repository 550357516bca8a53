package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// prompt makes a file that a job reads.
func (r *run) prompt(text string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, "prompt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func TestRunSaysWhatTheJobDid(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	in := r.prompt("do it")
	job := r.job("1.1", `cat; echo; echo oops >&2; pwd; exit 3`)
	job.Stdin = in
	var texts []string
	got := must(t)(c.Run(context.Background(), job, func(e agent.Event) { texts = append(texts, e.Text) }))
	if got.ID != "1.1" || got.Exit.Code != 3 || got.Exit.Ended != "" || got.Killed != 0 || got.Error != "" {
		t.Errorf("got %+v", got)
	}
	if got.Stdout.Head != "do it\n"+r.dir+"\n" || got.Stderr.Head != "oops\n" || got.Stdout.Truncated {
		t.Errorf("streams %+v %+v", got.Stdout, got.Stderr)
	}
	if want := []string{"do it", r.dir}; !reflect.DeepEqual(texts, want) {
		t.Errorf("events %q, want %q", texts, want)
	}
	stored, ok, err := LoadResult(job.Files)
	if !ok || err != nil || stored.Exit != got.Exit || !strings.Contains(stored.Agent.Message, "do it") {
		t.Errorf("stored %+v, %v, %v", stored, ok, err)
	}
	if out, _ := os.ReadFile(job.Files + ".out"); string(out) != got.Stdout.Head {
		t.Errorf("the file has %q", out)
	}
}

// A program that talks gets the prompt and then what is added to the file of messages,
// until it says that it is done.
func TestAJobIsToldMessages(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	in := r.prompt("do it")
	job := r.job("1", `read -r a; echo "first $a"; read -r b; echo "second $b"; read -r c; echo "third $c"
echo '{"kind":"end"}'; read -r d; echo "closed $d"`)
	job.Stdin, job.Talks, job.Parser = in, true, "json"
	add := func(text string) {
		f, err := os.OpenFile(job.Messages(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(agent.UserLine(text)); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	got := must(t)(c.Run(context.Background(), job, func(e agent.Event) {
		switch {
		case strings.HasPrefix(e.Text, "first"):
			add("use tabs")
		case strings.HasPrefix(e.Text, "second"):
			add("say \"so\"")
		case e.Kind == agent.End:
			add("too late")
		}
	}))
	want := fmt.Sprintf("first %ssecond %sthird %s{\"kind\":\"end\"}\nclosed \n",
		agent.UserLine("do it"), agent.UserLine("use tabs"), agent.UserLine(`say "so"`))
	if got.Stdout.Head != want || got.Told != 2 {
		t.Errorf("%d told, %s, not\n%s", got.Told, got.Stdout.Head, want)
	}
}

// A program that has printed its result and then hangs, is killed or crashes has a result. One that
// goes on after it has not, and one that fails by itself has failed.
func TestResultWithoutAnEnd(t *testing.T) {
	t.Parallel()
	const good, bad = `echo '{"kind":"end","terminal":"ok"}'; `, `echo '{"kind":"end","terminal":"failed"}'; `
	for script, want := range map[string]loop.Exit{
		good + `exec sleep 300`:                {Terminal: loop.TerminalOK},
		good + `trap "" TERM; sleep 300`:       {Terminal: loop.TerminalOK},
		bad + `exec sleep 300`:                 {Terminal: loop.TerminalFailed, Code: 1},
		good + `kill -9 $$`:                    {Terminal: loop.TerminalOK},
		good + `kill -SEGV $$`:                 {Terminal: loop.TerminalOK},
		good + `exit 137`:                      {Terminal: loop.TerminalOK},
		good + `exit 3`:                        {Terminal: loop.TerminalOK, Code: 3},
		bad + `exit 137`:                       {Terminal: loop.TerminalFailed, Code: 137},
		`kill -9 $$`:                           {Code: -1, Signal: "killed"},
		good + `(sleep 300 &) >/dev/null 2>&1`: {Terminal: loop.TerminalOK},
	} {
		r := newRun(t)
		c := r.start()
		job := r.job("1", script)
		job.Parser, job.Limits = "json", Limits{Linger: time.Hour, Grace: 10 * time.Millisecond}
		if strings.HasSuffix(script, "sleep 300") { // the others end by themselves
			job.Limits.Linger = time.Millisecond
		}
		got := must(t)(c.Run(context.Background(), job, nil)).Exit
		if got.Why = ""; got != want {
			t.Errorf("%s: %+v, want %+v", script, got, want)
		}
	}
	r := newRun(t)
	c := r.start()
	job := r.job("1", good+`echo '{"kind":"text","text":"there is more"}'; sleep 300`)
	job.Parser, job.Limits = "json", Limits{Linger: time.Hour, Idle: 50 * time.Millisecond}
	if got := must(t)(c.Run(context.Background(), job, nil)).Exit; got.Ended != loop.EndedIdle {
		t.Errorf("one that went on: %+v", got)
	}
	job = r.job("2", good+`sleep 300`)
	job.Parser, job.Limits = "json", Limits{Linger: time.Hour, Idle: 50 * time.Millisecond}
	if got := must(t)(c.Run(context.Background(), job, nil)).Exit; got.Ended != loop.NotEnded || got.Code != 0 {
		t.Errorf("one that is idle after its result: %+v", got)
	}
}

// One that reads nothing does not hold up its end.
func TestAJobMayNotListen(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	in := r.prompt(strings.Repeat("x", 4<<20))
	job := r.job("1", `exit 3`)
	job.Stdin, job.Talks, job.Parser = in, true, "json"
	if got := must(t)(c.Run(context.Background(), job, nil)); got.Exit.Code != 3 || got.Told != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestSilentJobsLeaveNoEmptyFiles(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", "true")
	must(t)(c.Run(context.Background(), job, nil))
	left, _ := filepath.Glob(job.Files + "*")
	if want := []string{job.Files + ".result.json"}; !reflect.DeepEqual(left, want) {
		t.Errorf("files %q, want %q", left, want)
	}
}

func TestMergeKeepsTheOrder(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("gate", "echo 1; echo 2 >&2; echo 3; echo 4 >&2")
	job.Merge, job.Parser = true, ""
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Stdout.Head != "1\n2\n3\n4\n" || got.Stderr.Bytes != 0 {
		t.Errorf("streams %+v %+v", got.Stdout, got.Stderr)
	}
}

func TestAJobRunsOnce(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", "echo once; exit 4")
	one := must(t)(c.Run(context.Background(), job, nil))
	must(t)(c.Run(context.Background(), r.job("2", "true"), nil))
	two := must(t)(c.Run(context.Background(), job, nil))
	if r.starts("1") != 1 || !one.StartedAt.Equal(two.StartedAt) || two.Exit.Code != 4 {
		t.Errorf("started %d times; %+v and then %+v", r.starts("1"), one, two)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	three := must(t)(r.start().Run(context.Background(), job, nil))
	if r.starts("1") != 1 || three.Exit.Code != 4 {
		t.Errorf("another supervisor started it again: %+v", three)
	}
}

func TestStartErrorsAreResults(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	for _, tt := range []struct {
		change func(*Job)
		code   int
		want   string
	}{
		{func(j *Job) { j.Args = []string{"no-such-agent"} }, 127, "not found in PATH"},
		{func(j *Job) { j.Args = []string{"/"} }, 126, "is a folder"},
		{func(j *Job) { j.Args = nil }, 127, "empty"},
		{func(j *Job) { j.Dir = "/no/such/folder" }, -1, "working folder"},
		{func(j *Job) { j.Stdin = "/no/such/file" }, -1, "input"},
		{func(j *Job) { j.Stdin = r.dir }, -1, "regular"},
		{func(j *Job) { j.Parser = "klingon" }, -1, "unknown format"},
	} {
		job := r.job("s"+tt.want, "true")
		job.Files = filepath.Join(r.o.RunDir, strings.ReplaceAll(tt.want, " ", "-"))
		tt.change(&job)
		got := must(t)(c.Run(context.Background(), job, nil))
		if got.Exit.Code != tt.code || !strings.Contains(got.Error, tt.want) {
			t.Errorf("got %+v, want code %d and %q", got, tt.code, tt.want)
		}
	}
}

// What an agent may leave running: all of it is gone after a stop.
const tree = `
trap '' TERM
sleep 1000 &
setsid sleep 1000 &
(setsid sh -c 'trap "" TERM; sleep 1000 & wait' &)
env -i setsid /bin/sleep 1000 &
echo up
while :; do sleep 1000; done`

func TestStopEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", tree)
	job.Limits.Grace = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := must(t)(c.Run(ctx, job, onText("up", cancel)))
	if got.Exit.Ended != loop.EndedStop || got.Exit.Signal != "killed" || got.Killed == 0 {
		t.Errorf("got %+v, want a kill after the grace", got)
	}
	must(t)(c.Run(context.Background(), r.job("2", "true"), nil))
}

func TestStopAsksFirst(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	job := r.job("1", `trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 1000 & wait $!; done`)
	job.Limits.Grace = time.Minute
	got := must(t)(c.Run(ctx, job, onText("up", cancel)))
	if got.Exit.Code != 9 || got.Exit.Ended != loop.EndedStop || !strings.Contains(got.Stdout.Head, "bye") {
		t.Errorf("got %+v, want its own exit 9", got)
	}
}

func TestKillDoesNotWaitForTheGrace(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", tree)
	job.Limits.Grace = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	got := must(t)(c.Run(ctx, job, onText("up", func() { cancel(); c.Kill() })))
	if got.Exit.Ended != loop.EndedStop || got.Exit.Signal != "killed" {
		t.Errorf("got %+v", got)
	}
}

func TestAStopBeforeTheStartStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	got := must(t)(c.Run(ctx, r.job("1", "true"), nil))
	if got.Exit.Ended != loop.EndedStop || r.starts("1") != 0 {
		t.Errorf("got %+v, started %d times", got, r.starts("1"))
	}
}

func TestLeftoversOfANormalEndAreEnded(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", "setsid sleep 1000 & (setsid sh -c 'exec >&- 2>&-; sleep 1000' &); echo done")
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Code != 0 || got.Exit.Ended != "" || got.Killed < 2 || got.Stdout.Head != "done\n" {
		t.Errorf("got %+v, want exit 0 and the daemons counted", got)
	}
}

func TestLimitsEndTheJob(t *testing.T) {
	const forever = "; sleep 1000"
	for name, tt := range map[string]struct {
		script string
		limits Limits
		want   loop.Ended
	}{
		"wall":   {"true" + forever, Limits{Wall: time.Millisecond}, loop.EndedTimeout},
		"idle":   {"true" + forever, Limits{Idle: time.Millisecond}, loop.EndedIdle},
		"cost":   {`echo '{"kind":"cost","cost_micro_usd":1001}'` + forever, Limits{Cost: 1000}, loop.EndedCost},
		"tokens": {`echo '{"kind":"usage","usage":{"input":600,"output":401}}'` + forever, Limits{Tokens: 1000}, loop.EndedTokens},
		"calls":  {`echo '{"kind":"usage","calls":3}'` + forever, Limits{Calls: 2}, loop.EndedCalls},
		"turns":  {`echo '{"kind":"text","turns":3}'` + forever, Limits{Turns: 2}, loop.EndedTurns},
		"equal": {
			`echo '{"kind":"cost","cost_micro_usd":1000,"calls":2,"turns":2,"usage":{"output":9}}'`,
			Limits{Cost: 1000, Calls: 2, Turns: 2, Tokens: 9, Wall: time.Hour, Idle: time.Hour}, loop.NotEnded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t)
			c := r.start()
			job := r.job("1", tt.script)
			job.Limits = tt.limits
			got := must(t)(c.Run(context.Background(), job, nil))
			if got.Exit.Ended != tt.want {
				t.Errorf("got %+v, want ended %q", got.Exit, tt.want)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", `echo first; head -c 20000000 /dev/zero | tr '\0' x; echo; printf '\377\376 last'`)
	job.Limits.Output = 1 << 20
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Stdout.Bytes != 20_000_000+6+1+7 || !got.Stdout.Truncated {
		t.Errorf("bytes %d, truncated %v", got.Stdout.Bytes, got.Stdout.Truncated)
	}
	if !strings.HasPrefix(got.Stdout.Head, "first\n") || !strings.HasSuffix(got.Stdout.Tail, "\uFFFD last") {
		t.Errorf("head %.20q, tail %q", got.Stdout.Head, got.Stdout.Tail[len(got.Stdout.Tail)-20:])
	}
	f, err := spool.OpenFile(job.Files + ".out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	out, err := io.ReadAll(f)
	if err != nil || len(out) > 1<<20+1<<16+100 || !strings.Contains(string(out), " left out …") {
		t.Errorf("%d bytes are kept, %v", len(out), err)
	}
}

func TestAHostileStreamDoesNotHarm(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", "echo boom; echo more")
	job.Parser = "panic"
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Code != 0 || got.Stdout.Head != "boom\nmore\n" || !strings.Contains(got.Stdout.Note, "cannot parse") {
		t.Errorf("got %+v", got)
	}
}

func TestAnAgentMayTakeTheFolderAway(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	job := r.job("1", `rm -rf "`+r.o.RunDir+`"; echo still here; exit 6`)
	got := must(t)(c.Run(context.Background(), job, nil))
	if got.Exit.Code != 6 || got.Stdout.Head != "still here\n" {
		t.Errorf("got %+v", got)
	}
	if stored, ok, err := LoadResult(job.Files); !ok || err != nil || stored.Exit.Code != 6 {
		t.Errorf("stored %+v, %v, %v", stored, ok, err)
	}
}

func TestAnAgentThatKillsItsSupervisorIsLost(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	script := `echo '{"kind":"cost","cost_micro_usd":700}'; echo '{"kind":"text","text":"up"}'; read x <"` + r.fifo("go") + `"; kill -9 $PPID;` + tree
	job := r.job("1", script)
	got := must(t)(c.Run(context.Background(), job, onText("up", func() { r.open("go") })))
	if got.Exit.Ended != loop.EndedLost || got.Exit.Code != -1 {
		t.Errorf("got %+v, want lost", got.Exit)
	}
	if got.Agent.Cost != 700 || !strings.Contains(got.Stdout.Head, "up") {
		t.Errorf("what it cost and said is not known: %+v %+v", got.Agent, got.Stdout)
	}
	again := must(t)(c.Run(context.Background(), job, nil))
	if again.Exit.Ended != loop.EndedLost || r.starts("1") != 1 {
		t.Errorf("a lost job ran again: %+v, %d starts", again.Exit, r.starts("1"))
	}
	if next := must(t)(c.Run(context.Background(), r.job("2", "exit 5"), nil)); next.Exit.Code != 5 {
		t.Errorf("the next job: %+v", next)
	}
}

// open lets the reader of a fifo go on.
func (r *run) open(name string) {
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte("\n"), 0o600); err != nil {
		r.t.Error(err)
	}
}

func TestAStoppedSupervisorIsNoticed(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	r.o.Lease = 300 * time.Millisecond
	c := r.start()
	got := must(t)(c.Run(context.Background(), r.job("1", "kill -STOP $PPID;"+tree), nil))
	if got.Exit.Ended != loop.EndedLost {
		t.Errorf("got %+v, want lost", got.Exit)
	}
}

func TestTheFolderMayHaveALongPath(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	r.o.RunDir = filepath.Join(r.dir, strings.Repeat("d", 100), strings.Repeat("e", 100))
	c := r.start()
	status, err := Probe(context.Background(), r.o.RunDir)
	if err != nil || !status.Attended || status.Job != nil || status.Mark != Mark(r.o.Run) {
		t.Errorf("Probe: %+v, %v", status, err)
	}
	if got := must(t)(c.Run(context.Background(), r.job("1", "exit 2"), nil)); got.Exit.Code != 2 {
		t.Errorf("got %+v", got)
	}
	info, err := os.Stat(r.o.RunDir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is open to others: %v, %v", info.Mode(), err)
	}
}

func TestOneSupervisorPerRun(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	r.start()
	if _, err := Start(context.Background(), r.o); !errors.Is(err, ErrRunning) {
		t.Errorf("got %v, want ErrRunning", err)
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	if _, _, err := Attach(context.Background(), r.o.RunDir); !errors.Is(err, ErrGone) {
		t.Errorf("Attach: %v, want ErrGone", err)
	}
	if err := r.start().Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Probe(context.Background(), r.o.RunDir); !errors.Is(err, ErrGone) {
		t.Errorf("Probe: %v, want ErrGone", err)
	}
	r.o.Args = []string{"-test.run=^$"}
	if _, err := Start(context.Background(), r.o); err == nil {
		t.Error("a program that is no supervisor was accepted as one")
	}
}

func TestTERMEndsTheJobAndTheSupervisor(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	c := r.start()
	self := c.currentSession().status.Supervisor
	job := r.job("1", tree)
	job.Limits.Grace = time.Millisecond
	got := must(t)(c.Run(context.Background(), job, onText("up", func() {
		_ = self.Signal(syscall.SIGINT)
		_ = self.Signal(syscall.SIGHUP)
		if err := self.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})))
	if got.Exit.Ended != loop.EndedStop {
		t.Errorf("got %+v, want stop", got.Exit)
	}
	gone(t, self)
	if next := must(t)(c.Run(context.Background(), r.job("2", "exit 5"), nil)); next.Exit.Code != 5 {
		t.Errorf("a new supervisor did not run the next job: %+v", next)
	}
}
