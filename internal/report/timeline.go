package report

import (
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
	// LeftOut are rows that are not shown, after LeftAfter rows.
	LeftOut, LeftAfter int
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

// Part is a stretch of the axis, in ten thousandths of it.
type Part struct {
	What        string // "agent", "gates", "review" or "wait"
	Left, Width int
	Took        time.Duration
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

type stretch struct {
	what string
	from time.Duration
	took time.Duration
}

type row struct {
	Row
	at        time.Duration
	stretches []stretch
}

func timeline(in Input, all []Iteration) Timeline {
	driving := sessions(in)
	var rows []row
	waits := waiting(in, driving)
	for i := range in.Records {
		rec := &in.Records[i]
		at := driven(driving, rec.StartedAt)
		for len(waits) > 0 && waits[0].at <= at {
			rows, waits = append(rows, waits[0]), waits[1:]
		}
		rows = append(rows, working(rec, all[i], at))
		if i+1 == len(in.Records) || in.Records[i+1].Number != rec.Number {
			rows = append(rows, stepRows(in, driving, rec.Number)...)
		}
	}
	if n := in.State.Iteration + 1; in.ofSteps() && in.Status.Active() { // the one that goes on
		rows = append(rows, stepRows(in, driving, n)...)
	}
	rows = append(rows, waits...)
	t := Timeline{}
	for _, s := range driving {
		t.Total += s.to.Sub(s.from)
	}
	for _, r := range rows { // clocks are read at different moments
		for _, s := range r.stretches {
			t.Total = max(t.Total, s.from+s.took)
		}
	}
	if t.Total <= 0 {
		return Timeline{}
	}
	if over := len(rows) - maxRows; over > 0 {
		t.LeftOut, t.LeftAfter = over, headRows
		rows = append(rows[:headRows:headRows], rows[headRows+over:]...)
	}
	for _, r := range rows {
		for _, s := range r.stretches {
			if s.took > 0 {
				r.Parts = append(r.Parts, t.part(s))
			}
		}
		t.Rows = append(t.Rows, r.Row)
	}
	t.ticks()
	return t
}

func working(rec *loop.Record, it Iteration, at time.Duration) row {
	r := row{Row: Row{Label: it.Label, Tone: it.Tone, Took: it.Took}, at: at}
	r.stretches = []stretch{{"agent", at, rec.Elapsed}, {"gates", at + rec.Elapsed, rec.Verifying()}}
	if rec.Review != nil {
		r.stretches = append(r.stretches, stretch{"review", at + rec.Took(), rec.Review.Elapsed})
		r.Took += rec.Review.Elapsed
	}
	return r
}

// waiting are the waits, oldest first. One ends with whatever comes next.
func waiting(in Input, driving []session) []row {
	var rows []row
	open, why := time.Time{}, ""
	for _, m := range in.Moments {
		if m.Kind == Warned || m.Kind == Asked || m.Kind == Chosen {
			continue
		}
		if !open.IsZero() {
			rows = append(rows, wait(driving, open, m.At, why))
			open = time.Time{}
		}
		if m.Kind == WaitBegan {
			open, why = m.At, Line(m.Text, 300)
		}
	}
	if !open.IsZero() && in.Status == loop.Waiting {
		rows = append(rows, wait(driving, open, in.Now, why))
	}
	return rows
}

func wait(driving []session, from, to time.Time, why string) row {
	at := driven(driving, from)
	took := driven(driving, to) - at
	return row{Row: Row{Label: "wait", Tone: Wait, Took: took, Why: why}, at: at, stretches: []stretch{{"wait", at, took}}}
}

func (t *Timeline) part(s stretch) Part {
	left := scale(s.from, t.Total)
	width := max(scale(s.from+s.took, t.Total)-left, 15) // a short one is seen too
	return Part{What: s.what, Left: min(left, axis-15), Width: min(width, axis-min(left, axis-15)), Took: s.took}
}

func scale(d, total time.Duration) int {
	return int(float64(max(d, 0)) / float64(total) * axis)
}

// ticks are at round times, three to six of them.
func (t *Timeline) ticks() {
	steps := []time.Duration{
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
		30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 24 * time.Hour,
	}
	step := steps[0]
	for _, s := range steps {
		if step = s; t.Total <= 5*s {
			break
		}
	}
	for t.Total > 5*step {
		step *= 2
	}
	for at := time.Duration(0); at <= t.Total; at += step {
		t.Ticks = append(t.Ticks, Tick{scale(at, t.Total), at})
	}
}

// times says where the time went.
func (r *Report) times(in Input) {
	driving := sessions(in)
	for _, w := range waiting(in, driving) {
		r.Times.Waits += w.Took
	}
	r.Times.Stepped = in.ofSteps()
	known := r.Times.Agents + r.Times.Gates + r.Times.Reviews + r.Times.Waits
	r.Times.Wall = max(in.State.Spent.Wall, known)
	if r.Times.Going = in.State.Command.Kind == loop.Run; r.Times.Going { // what is under way is not spent yet
		var all time.Duration
		for _, s := range driving {
			all += s.to.Sub(s.from)
		}
		r.Times.Wall = max(r.Times.Wall, all)
	}
	r.Times.Rest = r.Times.Wall - known
}
