package console

// This file is how numbers and times are worded.

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Iterations is how many are completed, in words.
func Iterations(n int) string { return fault.Numbered(n, "iteration") + " completed" }

// Of is a number of a limit, as 3/10; a limit of 0 is none.
func Of(n, limit int) string {
	if limit == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d/%d", n, limit)
}

// allTime is how long a person waited for the run: agents, gates, reviews,
// waits and what is between them, without the time between sessions.
func allTime(s loop.Spent) string { return loop.Duration(max(s.Wall, s.Active)) }

// Total shows whole seconds: 2m16s.
func Total(d time.Duration) string { return d.Round(time.Second).String() }

// Clock shows a time of day, with the date when it is another day's.
func Clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Sub(now) < time.Minute {
		return t.Format("15:04:05")
	}
	if t.YearDay() != now.YearDay() {
		return t.Format("2006-01-02 15:04")
	}
	return t.Format("15:04")
}
