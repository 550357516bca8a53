package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

func ran(n, start, agent, gate int) loop.Record {
	return loop.Record{
		Number: n, Attempt: 1, StartedAt: at(start), Elapsed: time.Duration(agent) * time.Second, Outcome: loop.Success,
		Gates: []loop.Gate{{Name: "g", Status: loop.GatePassed, Elapsed: time.Duration(gate) * time.Second}},
	}
}

// The night between two sessions is nobody's time, and neither is what a
// crashed pawl was not there for.
func TestTimesLeaveOutWhatWasNotDriven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		moments []Moment
		records []loop.Record
		status  loop.Status
		now     int
		wall    int // that the run has spent, in seconds
		want    Times
	}{
		{"one session", []Moment{{At: at(0), Kind: Began}, {At: at(100), Kind: Rested}}, []loop.Record{ran(1, 0, 40, 10), ran(2, 50, 20, 30)},
			loop.Completed, 500, 110, Times{Wall: 110, Agents: 60, Gates: 40, Rest: 10}},
		{"interrupted for the night",
			[]Moment{{At: at(0), Kind: Began}, {At: at(50), Kind: Rested}, {At: at(30_000), Kind: Resumed}, {At: at(30_050), Kind: Rested}},
			[]loop.Record{ran(1, 0, 50, 0), ran(2, 30_000, 50, 0)}, loop.Completed, 99_999, 100, Times{Wall: 100, Agents: 100}},
		{"a wait ends with what comes next",
			[]Moment{{At: at(0), Kind: Began}, {At: at(10), Kind: WaitBegan, Text: "why"}, {At: at(12), Kind: Warned}, {At: at(60), Kind: WaitEnded}, {At: at(100), Kind: Rested}},
			[]loop.Record{ran(1, 0, 10, 0), ran(1, 60, 40, 0)}, loop.Completed, 500, 100, Times{Wall: 100, Agents: 50, Waits: 50}},
		{"killed while it waited",
			[]Moment{{At: at(0), Kind: Began}, {At: at(50), Kind: WaitBegan}, {At: at(9_000), Kind: Resumed}, {At: at(9_010), Kind: Rested}},
			[]loop.Record{ran(1, 0, 50, 0)}, loop.Completed, 99_999, 80, Times{Wall: 80, Agents: 50, Waits: 30}},
		{"nothing happened", nil, nil, loop.Interrupted, 10, 0, Times{}},
	} {
		in := Input{StartedAt: began, Now: at(c.now), Status: c.status, Moments: c.moments, Records: c.records}
		in.State.Spent.Wall = time.Duration(c.wall) * time.Second
		got := New(in).Times
		for _, d := range []*time.Duration{&got.Wall, &got.Agents, &got.Gates, &got.Waits, &got.Rest} {
			*d /= time.Second
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// What is under way counts, up to now.
func TestTimesOfARunThatGoesOn(t *testing.T) {
	t.Parallel()
	in := Input{StartedAt: began, Now: at(90), Status: loop.Running, Records: []loop.Record{ran(1, 0, 50, 0)},
		Moments: []Moment{{At: at(0), Kind: Began}, {At: at(50), Kind: Ended}, {At: at(80), Kind: Warned}}}
	in.State.Spent.Wall, in.State.Command.Kind = 50*time.Second, loop.Run
	if got := New(in).Times; got.Wall != 90*time.Second || got.Rest != 40*time.Second || !got.Going {
		t.Errorf("%+v", got)
	}
}

// A run of thousands of iterations is a page that can be opened, and says what
// it leaves out.
func TestLongRun(t *testing.T) {
	t.Parallel()
	in := Input{StartedAt: began, Now: at(1), Status: loop.Completed, Moments: []Moment{{At: at(0), Kind: Began}}}
	for n := 1; n <= 5000; n++ {
		r := ran(n, n*10, 5, 5)
		for i := range 50 {
			r.Files = append(r.Files, fmt.Sprintf("dir/file-%d-%d.go", n, i))
		}
		in.Records = append(in.Records, r)
	}
	in.Moments = append(in.Moments, Moment{At: at(50_010), Kind: Rested})
	r := New(in)
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if len(page) > 2<<20 || !strings.Contains(page, "… 4500 more") || !strings.Contains(page, "… and others") {
		t.Errorf("%d bytes, or it does not say what is left out", len(page))
	}
	if text := markdownOf(t, r); len(text) > 1<<20 || !strings.Contains(text, "| … | 4500 more |") {
		t.Errorf("Markdown of %d bytes, or it does not say what is left out", len(text))
	}
	checkPage(t, page)
	if n := len(r.Steps); n != maxSteps || r.Steps[49].Label != "50" || r.Steps[50].Label != "4551" || r.Steps[n-1].Label != "5000" {
		t.Errorf("%d iterations are shown", n)
	}
}
