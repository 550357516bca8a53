package stats

import "time"

// Line is a tally as programs read it. Fields can be added, but names must not
// change.
type Line struct {
	Key string `json:"key" doc:"The day, agent, sprint or task; empty when it is all of them."`

	Started    int      `json:"started" doc:"Starts of tasks; 0 by agent, since a task is started before it has one."`
	Landed     int      `json:"landed" doc:"Tasks."`
	Failed     int      `json:"failed" doc:"Tasks, each time that they failed."`
	TimedOut   int      `json:"timed_out"`
	Blocked    int      `json:"blocked"`
	Conflicts  int      `json:"conflicts" doc:"Met at landing."`
	PerTask    *float64 `json:"iterations_per_task" nullable:"true" doc:"On average, of the tasks that landed; null when none did."`
	FewestTask int      `json:"fewest_iterations" doc:"Of a task that landed."`
	MostTask   int      `json:"most_iterations" doc:"Of a task that landed."`

	Iterations       int      `json:"iterations" doc:"Without attempts that a provider's limit cut off."`
	Succeeded        int      `json:"succeeded" doc:"Iterations."`
	FailedIterations int      `json:"failed_iterations"`
	Retries          int      `json:"retries" doc:"Iterations after a failed one of their run."`
	Cured            int      `json:"cured" doc:"Retries that succeeded."`
	RetrySuccess     *float64 `json:"retry_success" nullable:"true" doc:"0 to 1; null without a retry."`
	Guards           int      `json:"guards" doc:"That tripped."`

	Elapsed float64  `json:"elapsed" doc:"Seconds in iterations."`
	Mean    *float64 `json:"mean" nullable:"true" doc:"Seconds an iteration; null without one."`
	Fastest float64  `json:"fastest" doc:"Iteration, in seconds."`
	Slowest float64  `json:"slowest" doc:"Iteration, in seconds."`
	Waited  float64  `json:"waited" doc:"Seconds, for providers and backoffs."`
	Asked   float64  `json:"waited_for_answers" doc:"Seconds, for people."`

	CostUSD   *float64 `json:"cost_usd" nullable:"true" doc:"Where it is known; null when it is known of none."`
	TokensIn  int64    `json:"tokens_in"`
	TokensOut int64    `json:"tokens_out"`
}

// Line makes a tally what programs read.
func (t Tally) Line() Line {
	l := Line{
		Key: t.Key, Started: t.Started, Landed: t.Landed, Failed: t.GaveUp, TimedOut: t.TimedOut, Blocked: t.Blocked,
		Conflicts:  t.Conflicts,
		FewestTask: t.Fewest, MostTask: t.Most,
		Iterations: t.Iterations, Succeeded: t.Succeeded, FailedIterations: t.Failed, Retries: t.Retries, Cured: t.Cured,
		Guards:  t.Guards,
		Elapsed: seconds(t.Elapsed), Fastest: seconds(t.Fastest), Slowest: seconds(t.Slowest), Waited: seconds(t.Waited),
		Asked:    seconds(t.Asked),
		TokensIn: t.TokensIn, TokensOut: t.TokensOut,
	}
	if v, ok := t.MeanIterations(); ok {
		l.PerTask = &v
	}
	if v, ok := t.RetrySuccess(); ok {
		l.RetrySuccess = &v
	}
	if v, ok := t.MeanElapsed(); ok {
		s := seconds(v)
		l.Mean = &s
	}
	if t.CostKnown > 0 {
		v := float64(t.Cost) / 1e6
		l.CostUSD = &v
	}
	return l
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
