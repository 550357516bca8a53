package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/journal"
)

const lastOfAll = "last"

// heard is what a stream is told up to the last event: "run text", in order.
func (s *stream) heard() (all []string) {
	s.t.Helper()
	for {
		var e struct {
			Run  string
			Data journal.Notice
		}
		if err := json.Unmarshal([]byte(s.until("journal").data), &e); err != nil {
			s.t.Fatal(err)
		}
		if e.Data.Text == lastOfAll {
			return all
		}
		if e.Data.Text != "" {
			all = append(all, e.Run+" "+e.Data.Text)
		}
	}
}

// Each reader gets the events it asked for, each once and in order, also one
// that joins, or comes back, in the middle of them.
func TestEachEventOnceToWhoAskedForIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	runs := []string{"abc123", "def456"}
	of := map[string][]string{}
	for _, run := range runs {
		r.run(run, nil)
	}
	r.serve()
	const events, readers = 300, 30
	for n := range events {
		run := runs[n%2]
		of[run] = append(of[run], fmt.Sprintf("%s %d", run, n))
		of[""] = append(of[""], fmt.Sprintf("%s %d", run, n))
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	for n := range events {
		if n%(events/readers) == 0 {
			which := append(runs, "")[n/(events/readers)%3]
			s := r.open("/events?run="+which, "2-0") // after both runs were made
			reading.Go(func() {
				if got := s.heard(); !slices.Equal(got, of[which]) {
					t.Errorf("a reader of run %q was told\n%v, want\n%v", which, got, of[which])
				}
			})
		}
		r.say(runs[n%2], fmt.Sprint(n))
	}
	for _, run := range runs {
		r.say(run, lastOfAll)
	}
}
