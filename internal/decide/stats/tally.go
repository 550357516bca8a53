package stats

import (
	"cmp"
	"reflect"
	"slices"
	"time"
)

// By is the key by which statistics are grouped.
type By string

// The groupings.
const (
	All    By = ""
	Day    By = "day"
	Agent  By = "agent"
	Sprint By = "sprint"
	Task   By = "task"
)

// Counts are the whole numbers of a tally, as programs read them, too. Fields can be added, but names must not change.
type Counts struct {
	// Of tasks: how often they were started, landed, and so on.
	Started   int `json:"started" doc:"Starts of tasks; 0 by agent, since a task is started before it has one."`
	Landed    int `json:"landed" doc:"Tasks."`
	GaveUp    int `json:"failed" doc:"Tasks, each time that they failed."`
	TimedOut  int `json:"timed_out"`
	Blocked   int `json:"blocked"`
	Conflicts int `json:"conflicts" doc:"Met at landing."`

	Iterations int `json:"iterations" doc:"Without attempts that a provider's limit cut off."`
	Succeeded  int `json:"succeeded" doc:"Iterations."`
	Failed     int `json:"failed_iterations"`
	Retries    int `json:"retries" doc:"Iterations after a failed one of their run."`
	Cured      int `json:"cured" doc:"Retries that succeeded."`
	Guards     int `json:"guards" doc:"That tripped."`

	TokensIn  int64 `json:"tokens_in"`
	TokensOut int64 `json:"tokens_out"`
}

// addCounts adds each of the numbers.
func (c *Counts) addCounts(o Counts) {
	sum, other := reflect.ValueOf(c).Elem(), reflect.ValueOf(o)
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + other.Field(i).Int())
	}
}

// Tally is what was counted. Tallies of different tasks, days and agents can be
// added.
type Tally struct {
	// Key is what the tally is of: a day (2006-01-02), the name of an agent, the
	// id of a sprint or of a task; "" is all, or what belongs to none.
	Key string
	Counts
	Elapsed          time.Duration // of iterations and attempts
	Fastest, Slowest time.Duration // iteration; zero without one

	Cost      int64 // micro-dollars, where it is known
	CostKnown int   // of how many iterations and attempts it is known

	Waited time.Duration // for providers and backoffs
	Asked  time.Duration // for people's answers

	// Worked are the landed tasks that a loop worked on; the others a person
	// brought. TaskIterations are theirs, in all their runs; Fewest and Most those
	// of one of them, zero when there is none.
	Worked         int
	TaskIterations int
	Fewest, Most   int
}

// Add adds what another tally counted. The key stays.
func (t *Tally) Add(o Tally) {
	t.addCounts(o.Counts)
	t.Elapsed += o.Elapsed
	t.Fastest, t.Slowest = leastNonZero(t.Fastest, o.Fastest), max(t.Slowest, o.Slowest)
	t.Cost += o.Cost
	t.CostKnown += o.CostKnown
	t.Waited += o.Waited
	t.Asked += o.Asked
	t.Worked += o.Worked
	t.TaskIterations += o.TaskIterations
	t.Fewest, t.Most = leastNonZero(t.Fewest, o.Fewest), max(t.Most, o.Most)
}

// leastNonZero is the smaller one of those that are not zero.
func leastNonZero[T cmp.Ordered](a, b T) T {
	var none T
	if a == none || b == none {
		return max(a, b)
	}
	return min(a, b)
}

// Sum is all of a list; its key is "".
func Sum(list []Tally) Tally {
	var all Tally
	for _, t := range list {
		all.Add(t)
	}
	return all
}

// MeanIterations is how many iterations a task took that a loop worked on and
// that landed; ok is false without one.
func (t Tally) MeanIterations() (mean float64, ok bool) {
	return ratioOfCounts(t.TaskIterations, t.Worked)
}

// RetrySuccess is the share of the iterations after a failed one that
// succeeded, 0 to 1; ok is false when there was none.
func (t Tally) RetrySuccess() (share float64, ok bool) { return ratioOfCounts(t.Cured, t.Retries) }

// MeanElapsed is how long an iteration took; ok is false when there was none.
func (t Tally) MeanElapsed() (mean time.Duration, ok bool) {
	if t.Iterations == 0 {
		return 0, false
	}
	return t.Elapsed / time.Duration(t.Iterations), true
}

func ratioOfCounts(part, of int) (float64, bool) {
	if of == 0 {
		return 0, false
	}
	return float64(part) / float64(of), true
}

// Span is a time in which a zone has one offset from UTC.
type Span struct {
	From   time.Time // included; zero: ever since
	Offset time.Duration
}

// Spans lists those of a zone that touch a time from since until a time, the
// first one first. A day in which the clocks change has two of them, and is 23
// or 25 hours long.
func Spans(since, until time.Time, zone *time.Location) []Span {
	var spans []Span
	for at := since; ; {
		_, offset := at.In(zone).Zone()
		_, end := at.In(zone).ZoneBounds()
		spans = append(spans, Span{From: at, Offset: time.Duration(offset) * time.Second})
		if end.IsZero() || end.After(until) {
			break
		}
		at = end
	}
	spans[0].From = time.Time{}
	return slices.Clip(spans)
}

// Since returns the begin of the first of the last days, today included.
func Since(now time.Time, days int, zone *time.Location) time.Time {
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d-days+1, 0, 0, 0, 0, zone)
}

// Line is a tally as programs read it. Fields can be added, but names must not
// change.
type Line struct {
	Key string `json:"key" doc:"The day, agent, sprint or task; empty when it is all of them."`
	Counts
	PerTask      *float64 `json:"iterations_per_task" nullable:"true" doc:"On average, of the tasks that landed; null when none did."`
	FewestTask   int      `json:"fewest_iterations" doc:"Of a task that landed."`
	MostTask     int      `json:"most_iterations" doc:"Of a task that landed."`
	RetrySuccess *float64 `json:"retry_success" nullable:"true" doc:"0 to 1; null without a retry."`

	Elapsed float64  `json:"elapsed" doc:"Seconds in iterations."`
	Mean    *float64 `json:"mean" nullable:"true" doc:"Seconds an iteration; null without one."`
	Fastest float64  `json:"fastest" doc:"Iteration, in seconds."`
	Slowest float64  `json:"slowest" doc:"Iteration, in seconds."`
	Waited  float64  `json:"waited" doc:"Seconds, for providers and backoffs."`
	Asked   float64  `json:"waited_for_answers" doc:"Seconds, for people."`
	CostUSD *float64 `json:"cost_usd" nullable:"true" doc:"Where it is known; null when it is known of none."`
}

// Line makes a tally what programs read.
func (t Tally) Line() Line {
	l := Line{
		Key: t.Key, Counts: t.Counts, FewestTask: t.Fewest, MostTask: t.Most, Elapsed: seconds(t.Elapsed),
		Fastest: seconds(t.Fastest), Slowest: seconds(t.Slowest), Waited: seconds(t.Waited), Asked: seconds(t.Asked),
	}
	if v, ok := t.MeanIterations(); ok {
		l.PerTask = &v
	}
	if v, ok := t.RetrySuccess(); ok {
		l.RetrySuccess = &v
	}
	if v, ok := t.MeanElapsed(); ok {
		l.Mean = new(seconds(v))
	}
	if t.CostKnown > 0 {
		l.CostUSD = new(float64(t.Cost) / 1e6)
	}
	return l
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
