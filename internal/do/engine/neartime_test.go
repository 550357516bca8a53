package engine

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// A person is told at 80 % of a limit on time while the agent works, once, and the
// iteration's record says so.
func TestToldOfTimeWhileTheAgentWorks(t *testing.T) {
	t.Parallel()
	policy := loop.Policy{Timeouts: loop.Timeouts{IterationTimeout: 10 * time.Minute, TaskTimeout: time.Hour}}
	for _, c := range []struct {
		name        string
		spent       time.Duration
		late        bool
		since       time.Duration // the iteration began that long ago: it is taken up
		lasts       time.Duration
		want        string
		own, ofRun  bool
		reviewsOnly bool
	}{
		{name: "a short iteration", lasts: 7 * time.Minute},
		{name: "its own limit", lasts: 9 * time.Minute, own: true,
			want: "8m0s iteration 2 has run for 8m0s, 80 % of the limit 10m0s for one false\n"},
		{name: "the run's limit", spent: 46 * time.Minute, lasts: 5 * time.Minute, ofRun: true,
			want: "2m0s time of the iterations 48m0s is over 80 % of the limit 1h0m0s true\n"},
		{name: "the run's limit, of which a person knows", spent: 46 * time.Minute, late: true, lasts: 5 * time.Minute},
		{name: "both", spent: 46 * time.Minute, lasts: 9 * time.Minute, own: true, ofRun: true,
			want: "2m0s time of the iterations 48m0s is over 80 % of the limit 1h0m0s true\n" +
				"8m0s iteration 2 has run for 8m0s, 80 % of the limit 10m0s for one false\n"},
		{name: "taken up", since: 5 * time.Minute, lasts: 4 * time.Minute, own: true,
			want: "3m0s iteration 2 has run for 8m0s, 80 % of the limit 10m0s for one false\n"},
		{name: "a review", lasts: 9 * time.Minute, reviewsOnly: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, got := time.Now(), ""
				o := Options{Log: slog.New(slog.DiscardHandler), Notify: func(n Notice) {
					got += fmt.Sprintln(n.At.Sub(begun), n.Text, n.NearTime)
				}}
				w := newWorker(&session{o: o, id: "r1"})
				s := loop.State{Policy: policy, Late: c.late, Spent: loop.Spent{Active: c.spent},
					Command: loop.Command{Kind: loop.Run, Iteration: 2}}
				if c.reviewsOnly {
					s.Command.Kind = loop.RunReview
				}
				stop := w.watchTime(s, begun.Add(-c.since))
				<-time.After(c.lasts)
				stop()
				<-time.After(time.Hour)
				synctest.Wait()
				if got != c.want {
					t.Errorf("told\n%swant\n%s", got, c.want)
				}
				if w.near != nil && (w.near.own != c.own || w.near.ofRun != c.ofRun) {
					t.Errorf("the record has %v %v", w.near.own, w.near.ofRun)
				}
			})
		})
	}
}
