package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// drawn writes a timeline in a line a row: label, took, and the parts from-to
// in percent of the axis.
func drawn(tl Timeline) string {
	var b strings.Builder
	for _, r := range tl.Rows {
		fmt.Fprintf(&b, "%s %s", r.Label, r.Took)
		for _, p := range r.Parts {
			fmt.Fprintf(&b, " %s %d-%d", p.What, p.Left/100, (p.Left+p.Width)/100)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func ran(n, start, agent, gate int) loop.Record {
	return loop.Record{
		Number: n, Attempt: 1, StartedAt: at(start), Elapsed: time.Duration(agent) * time.Second, Outcome: loop.Success,
		Gates: []loop.Gate{{Name: "g", Status: loop.GatePassed, Elapsed: time.Duration(gate) * time.Second}},
	}
}

// The night between two sessions is not on the axis, and neither is what a
// crashed pawl was not there for.
func TestTimelineLeavesOutWhatWasNotDriven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		moments []Moment
		records []loop.Record
		status  loop.Status
		now     int
		want    string
		total   time.Duration
	}{
		{"one session", []Moment{{At: at(0), Kind: Began}, {At: at(100), Kind: Rested}}, []loop.Record{ran(1, 0, 40, 10), ran(2, 50, 20, 30)}, loop.Completed, 500,
			"1 50s agent 0-40 gates 40-50\n2 50s agent 50-70 gates 70-100\n", 100 * time.Second},
		{"interrupted for the night",
			[]Moment{{At: at(0), Kind: Began}, {At: at(50), Kind: Rested}, {At: at(30_000), Kind: Resumed}, {At: at(30_050), Kind: Rested}},
			[]loop.Record{ran(1, 0, 50, 0), ran(2, 30_000, 50, 0)}, loop.Completed, 99_999,
			"1 50s agent 0-50\n2 50s agent 50-100\n", 100 * time.Second},
		{"killed: the last sign of life ends the session",
			[]Moment{{At: at(0), Kind: Began}, {At: at(50), Kind: Ended}, {At: at(9_000), Kind: Resumed}, {At: at(9_000), Kind: Recovered}, {At: at(9_050), Kind: Rested}},
			[]loop.Record{ran(1, 0, 50, 0), ran(2, 9_000, 50, 0)}, loop.Completed, 99_999,
			"1 50s agent 0-50\n2 50s agent 50-100\n", 100 * time.Second},
		{"a wait ends with what comes next",
			[]Moment{{At: at(0), Kind: Began}, {At: at(10), Kind: WaitBegan, Text: "why"}, {At: at(12), Kind: Warned}, {At: at(60), Kind: WaitEnded}, {At: at(100), Kind: Rested}},
			[]loop.Record{ran(1, 0, 10, 0), ran(1, 60, 40, 0)}, loop.Completed, 500,
			"1 10s agent 0-10\nwait 50s wait 10-60\n1 40s agent 60-100\n", 100 * time.Second},
		{"it waits still",
			[]Moment{{At: at(0), Kind: Began}, {At: at(50), Kind: WaitBegan}},
			[]loop.Record{ran(1, 0, 50, 0)}, loop.Waiting, 100,
			"1 50s agent 0-50\nwait 50s wait 50-100\n", 100 * time.Second},
		{"nothing happened", nil, nil, loop.Interrupted, 10, "", 0},
	} {
		in := Input{StartedAt: began, Now: at(c.now), Status: c.status, Moments: c.moments, Records: c.records}
		r := New(in)
		if got := drawn(r.Timeline); got != c.want || r.Timeline.Total != c.total {
			t.Errorf("%s: total %s\n%swant %s\n%s", c.name, r.Timeline.Total, got, c.total, c.want)
		}
	}
}

// However the clock went, the parts are on the axis and their sum is the whole.
func FuzzTimeline(f *testing.F) {
	f.Add(int64(0), int64(50), int64(10), int64(5), int64(100), uint8(3))
	f.Add(int64(100), int64(-50), int64(1<<40), int64(0), int64(-9), uint8(0xff))
	f.Fuzz(func(t *testing.T, a, b, c, d, e int64, kinds uint8) {
		all := []MomentKind{Began, Resumed, Recovered, Rested, WaitBegan, WaitEnded, Ended, Asked}
		second := func(n int64) time.Time { return began.Add(time.Duration(n%1e9) * time.Second) }
		in := Input{StartedAt: began, Now: second(e), Status: loop.Waiting}
		for i, n := range []int64{a, b, c, d, e} {
			in.Moments = append(in.Moments, Moment{At: second(n), Kind: all[(int(kinds)+i*int(kinds>>4))%len(all)]})
		}
		in.Records = []loop.Record{{Number: 1, StartedAt: second(b), Elapsed: time.Duration(c % 1e15)}, {Number: 2, StartedAt: second(d), Elapsed: time.Duration(a % 1e15)}}
		r := New(in)
		for _, row := range r.Timeline.Rows {
			for _, p := range row.Parts {
				if p.Left < 0 || p.Width <= 0 || p.Left+p.Width > axis {
					t.Fatalf("%+v is off the axis", p)
				}
			}
		}
		if len(r.Timeline.Ticks) > 12 {
			t.Fatalf("%d ticks", len(r.Timeline.Ticks))
		}
	})
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
	if len(page) > 2<<20 || !strings.Contains(page, "… 4500 more") || !strings.Contains(page, "… 4880 more") || !strings.Contains(page, "… and others") {
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
