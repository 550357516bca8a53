package supervisor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// each repeats a line of output.
func each(n, line string) string {
	return "i=0; while [ $i -lt " + n + " ]; do echo '" + line + "'; i=$((i+1)); done"
}

func TestGuardsEndTheJob(t *testing.T) {
	const forever = "; sleep 1000"
	for name, tt := range map[string]struct {
		script string
		limits Limits
		guards agent.Guards
		want   loop.Ended
		why    string
	}{
		"the same words":           {each("6", `{"kind":"text","text":"Again."}`) + forever, Limits{}, agent.Guards{Repeats: 4}, loop.EndedRepeats, "the same words came 5 times in a row and no file changed"},
		"empty calls":              {each("6", `{"kind":"usage","calls":1}`) + forever, Limits{}, agent.Guards{EmptyCalls: 5}, loop.EndedRequests, "6 model calls in a row brought nothing new"},
		"retries":                  {each("6", `{"kind":"retry","error":{"status":503}}`) + forever, Limits{}, agent.Guards{Retries: 5}, loop.EndedRetries, "6 times in a row"},
		"retries and then silence": {`echo '{"kind":"retry"}'` + forever, Limits{}, agent.Guards{RetryTime: 10 * time.Millisecond}, loop.EndedRetries, "loop.retry_timeout"},
		"output":                   {"yes | head -c 200000" + forever, Limits{Printed: 100_000}, agent.Guards{}, loop.EndedOutput, "printed more than 100 kB"},
		"output on stderr":         {"yes | head -c 200000 >&2" + forever, Limits{Printed: 100_000}, agent.Guards{}, loop.EndedOutput, "printed more than 100 kB"},
		"one message":              {`head -c 200000 /dev/zero | tr '\0' x` + forever, Limits{Printed: 400_000}, agent.Guards{}, loop.EndedOutput, "one message of the agent is longer than 100 kB"},
		"as much as is allowed":    {each("5", `{"kind":"text","text":"Again."}`), Limits{Printed: 100_000}, agent.Guards{Repeats: 5, EmptyCalls: 5, Retries: 5, RetryTime: time.Hour}, loop.NotEnded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t)
			job := r.job("1", tt.script)
			job.Limits, job.Guards = tt.limits, tt.guards
			got := must(t)(r.start().Run(context.Background(), job, nil))
			if got.Exit.Ended != tt.want || !strings.Contains(got.Exit.Why, tt.why) {
				t.Errorf("got %+v, want %q because %q", got.Exit, tt.want, tt.why)
			}
		})
	}
}

// A command whose output nobody parses is held to an amount as well.
func TestOutputWithoutAParser(t *testing.T) {
	t.Parallel()
	for _, merge := range []bool{true, false} {
		r := newRun(t)
		job := r.job("1", "yes >&2")
		job.Parser, job.Merge, job.Limits = "", merge, Limits{Printed: 100_000}
		got := must(t)(r.start().Run(context.Background(), job, nil))
		if got.Exit.Ended != loop.EndedOutput || got.Exit.Why != "the command printed more than 100 kB" {
			t.Errorf("merged %t: %+v", merge, got.Exit)
		}
	}
}

// The same again is no circle while files change: the agent works on.
func TestRepeatedTurnsWithChangedFilesGoOn(t *testing.T) {
	t.Parallel()
	r := newRun(t)
	const turn = `{"kind":"text","text":"Next."}`
	still := r.job("1", each("6", turn)+"; sleep 1000")
	still.Watch, still.Guards = t.TempDir(), agent.Guards{Repeats: 4}
	c := r.start()
	if got := must(t)(c.Run(context.Background(), still, nil)); got.Exit.Ended != loop.EndedRepeats {
		t.Errorf("without a change: %+v", got.Exit)
	}
	// Each change comes after its turn was read, by more than the file system's clock may be late.
	r.fifo("go")
	busy := r.job("2", "i=0; while [ $i -lt 12 ]; do echo '"+turn+"'; read x <go; sleep 0.02; echo $i >>work; i=$((i+1)); done")
	busy.Watch, busy.Guards = r.dir, agent.Guards{Repeats: 4}
	next := func(e agent.Event) {
		if e.Kind == agent.Text {
			r.open("go")
		}
	}
	if got := must(t)(c.Run(context.Background(), busy, next)); got.Exit.Ended != loop.NotEnded || got.Exit.Code != 0 {
		t.Errorf("with changes: %+v", got.Exit)
	}
}

// A tool that runs counts as life for programs that cannot speak meanwhile,
// whether their stream tells its start or only the process is there.
func TestTheSilenceOfATool(t *testing.T) {
	// The process starts after the words before it were read.
	const process = `echo '{"kind":"text","text":"Now."}'; read x <go; sleep 0.1; cat "$GATE"`
	for name, tt := range map[string]struct {
		script string
		tools  bool
		want   loop.Ended
	}{
		"told":                     {`echo '{"kind":"tool","tool":"shell"}'; read gate <"$GATE"`, true, loop.NotEnded},
		"told, and not asked":      {`echo '{"kind":"tool","tool":"shell"}'; read gate <"$GATE"`, false, loop.EndedIdle},
		"ended":                    {`echo '{"kind":"tool"}'; echo '{"kind":"tool_end"}'; read gate <"$GATE"`, true, loop.EndedIdle},
		"a process":                {process, true, loop.NotEnded},
		"a process, and not asked": {process, false, loop.EndedIdle},
		"nothing said":             {`cat "$GATE"`, true, loop.EndedIdle},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t)
			gate := r.fifo("gate")
			job := r.job("1", tt.script)
			job.Env = append(job.Env, "GATE="+gate)
			job.Limits = Limits{Idle: time.Second, Tools: tt.tools} // a busy machine says its first word by then
			if tt.want == loop.NotEnded {                           // long enough for several looks, then on
				job.Limits.Wall = 4 * time.Second
				tt.want = loop.EndedTimeout
			}
			r.fifo("go")
			got := must(t)(r.start().Run(context.Background(), job, func(e agent.Event) {
				if e.Kind == agent.Text {
					r.open("go")
				}
			}))
			if got.Exit.Ended != tt.want {
				t.Errorf("got %+v, want %q", got.Exit, tt.want)
			}
		})
	}
}
