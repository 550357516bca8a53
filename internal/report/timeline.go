package report

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// Timeline are the iterations and waits of a run on one axis: the time in which
// the run was driven. What lies between sessions is left out.
type Timeline struct {
	Rows  []Row
	Ticks []Tick
	// Total is the length of the axis.
	Total time.Duration
	// LeftOut are rows that are not shown, after the first headRows.
	LeftOut int
}

// Row is one iteration or wait.
type Row struct {
	Label string
	Tone  Tone
	Took  time.Duration
	Why   string // of a wait, or of a step
	Step  bool   // it is a step of the iteration above it
	Parts []Part
}

// Part is a stretch of the axis.
type Part struct {
	What        string // "agent", "gates", "review" or "wait"
	From, Took  time.Duration
	Left, Width int // in ten thousandths of the axis
}

// Tick marks the axis.
type Tick struct {
	Left int
	At   time.Duration
}

// axis is the length that positions are measured in.
const axis = 10_000

const (
	maxRows  = 120
	headRows = 20
)

// session is a stretch of real time.
type session struct{ from, to time.Time }

// sessions are the stretches in which the run was driven. A session that
// nobody ended, after a crash, ends with its last sign of life.
func sessions(in Input) []session {
	var all []session
	open := false
	last := in.StartedAt
	for _, m := range in.Moments {
		switch m.Kind {
		case Began, Resumed, Recovered:
			if open && m.Kind != Recovered {
				all[len(all)-1].to = last
				open = false
			}
			if !open {
				all, open = append(all, session{m.At, m.At}), true
			}
		case Rested:
			if open {
				all[len(all)-1].to = m.At
			}
			open = false
		case Asked, Answered, Warned, RolledBack, Applied:
			continue // also between sessions
		}
		last = m.At
	}
	if open {
		all[len(all)-1].to = last
		if in.Status.Active() && in.Now.After(last) {
			all[len(all)-1].to = in.Now
		}
	}
	return all
}

// driven is how long the run was driven until t.
func driven(all []session, t time.Time) time.Duration {
	var sum time.Duration
	for _, s := range all {
		if t.Before(s.from) {
			break
		}
		to := s.to
		if t.Before(to) {
			to = t
		}
		sum += to.Sub(s.from)
	}
	return sum
}

// length is how long the run was driven in all.
func length(all []session) time.Duration {
	var sum time.Duration
	for _, s := range all {
		sum += s.to.Sub(s.from)
	}
	return sum
}

func timeline(in Input, all []Iteration) Timeline {
	t := Timeline{Rows: rows(in, all)}
	t.Total = length(sessions(in))
	for _, r := range t.Rows { // clocks are read at different moments
		for _, p := range r.Parts {
			t.Total = max(t.Total, p.From+p.Took)
		}
	}
	if t.Total <= 0 {
		return Timeline{}
	}
	if t.LeftOut = max(0, len(t.Rows)-maxRows); t.LeftOut > 0 {
		t.Rows = append(t.Rows[:headRows:headRows], t.Rows[headRows+t.LeftOut:]...)
	}
	for i := range t.Rows {
		var seen []Part
		for _, p := range t.Rows[i].Parts {
			if p.Took > 0 {
				seen = append(seen, t.placed(p))
			}
		}
		t.Rows[i].Parts = seen
	}
	t.ticks()
	return t
}

// rows are the iterations with their steps, and the waits, as they began.
func rows(in Input, all []Iteration) []Row {
	driving := sessions(in)
	var rows []Row
	waits := waiting(in, driving)
	for i, it := range all {
		at := driven(driving, it.StartedAt)
		for len(waits) > 0 && waits[0].Parts[0].From <= at {
			rows, waits = append(rows, waits[0]), waits[1:]
		}
		rows = append(rows, it.row(at))
		if i+1 == len(all) || all[i+1].Number != it.Number {
			rows = append(rows, stepRows(in, driving, it.Number)...)
		}
	}
	if n := in.State.Iteration + 1; in.ofSteps() && in.Status.Active() { // the one that goes on
		rows = append(rows, stepRows(in, driving, n)...)
	}
	return append(rows, waits...)
}

// row is the iteration on the timeline.
func (it Iteration) row(at time.Duration) Row {
	r := Row{Label: it.Label, Tone: tone(it.Outcome), Took: it.Took()}
	r.Parts = []Part{
		{What: "agent", From: at, Took: it.Elapsed},
		{What: "gates", From: at + it.Elapsed, Took: it.Verifying()},
	}
	if it.Review != nil {
		r.Parts = append(r.Parts, Part{What: "review", From: at + it.Took(), Took: it.Review.Elapsed})
		r.Took += it.Review.Elapsed
	}
	return r
}

// stepRows are the executions of one iteration, below it.
func stepRows(in Input, driving []session, iteration int) []Row {
	var rows []Row
	for _, e := range in.Executions {
		if e.Iteration != iteration {
			continue
		}
		at := driven(driving, e.StartedAt)
		took := e.Elapsed
		if e.Status == "running" && in.Status.Active() {
			took = driven(driving, in.Now) - at
		}
		what := "gates"
		switch e.Kind {
		case "agent", "procedure":
			what = "agent"
		case "ask":
			what = "wait"
		}
		_, tone, _ := stepStatus(e, in.Status.Active())
		r := Row{Label: e.Step, Tone: tone, Took: took, Step: true, Parts: []Part{{What: what, From: at, Took: took}}}
		if e.Alternative > 0 {
			r.Why = fmt.Sprintf("alternative %d", e.Alternative)
		}
		rows = append(rows, r)
	}
	return rows
}

// waiting are the waits, oldest first. One ends with whatever comes next.
func waiting(in Input, driving []session) []Row {
	var rows []Row
	var open *Moment
	end := func(to time.Time) {
		if open != nil {
			at := driven(driving, open.At)
			took := driven(driving, to) - at
			part := Part{What: "wait", From: at, Took: took}
			rows = append(rows, Row{Label: "wait", Tone: Wait, Took: took, Why: open.Text, Parts: []Part{part}})
		}
		open = nil
	}
	for i, m := range in.Moments {
		if m.Kind == Warned || m.Kind == Asked || m.Kind == Chosen {
			continue
		}
		end(m.At)
		if m.Kind == WaitBegan {
			open = &in.Moments[i]
		}
	}
	if in.Status == loop.Waiting {
		end(in.Now)
	}
	return rows
}

// placed gives a part its place on the axis. A short one is seen too.
func (t *Timeline) placed(p Part) Part {
	const least = 15
	left := scale(p.From, t.Total)
	width := max(scale(p.From+p.Took, t.Total)-left, least)
	p.Left = min(left, axis-least)
	p.Width = min(width, axis-p.Left)
	return p
}

func scale(d, total time.Duration) int {
	return int(float64(max(d, 0)) / float64(total) * axis)
}

// ticks are at round times, three to six of them.
func (t *Timeline) ticks() {
	step := 100 * time.Millisecond
	for _, s := range []time.Duration{
		200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
	} {
		if t.Total > 5*step {
			step = s
		}
	}
	for t.Total > 5*step {
		step *= 2
	}
	for at := time.Duration(0); at <= t.Total; at += step {
		t.Ticks = append(t.Ticks, Tick{scale(at, t.Total), at})
	}
}
