package stats

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// berlin is a zone whose clocks change.
func berlin(t testing.TB) *time.Location {
	t.Helper()
	z, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("no zone files: %v", err)
	}
	return z
}

func TestAdd(t *testing.T) {
	t.Parallel()
	a := Tally{
		Key: "a", Counts: Counts{Iterations: 3, Succeeded: 1, Failed: 2, Retries: 2, Cured: 1, Landed: 1},
		Elapsed: 30, Fastest: 5, Slowest: 20, Worked: 1, TaskIterations: 3, Fewest: 3, Most: 3,
	}
	b := Tally{
		Key: "b", Counts: Counts{Iterations: 1, Landed: 1}, Elapsed: 2, Fastest: 2, Slowest: 2, Worked: 1,
		TaskIterations: 1, Fewest: 1, Most: 1, Cost: 7, CostKnown: 1,
	}
	for _, list := range [][]Tally{{a, b}, {b, a}, {{}, a, {Counts: Counts{Landed: 1}}, b}} {
		s := Sum(list)
		if s.Key != "" || s.Iterations != 4 || s.Fastest != 2 || s.Slowest != 20 || s.Fewest != 1 || s.Most != 3 || s.Cost != 7 {
			t.Errorf("%+v", s)
		}
		if m, ok := s.MeanIterations(); !ok || m != 2 {
			t.Errorf("mean %v %v", m, ok)
		}
		if r, ok := s.RetrySuccess(); !ok || r != 0.5 {
			t.Errorf("retry success %v %v", r, ok)
		}
		if m, ok := s.MeanElapsed(); !ok || m != 8 {
			t.Errorf("mean %v %v", m, ok)
		}
	}
	var none Tally
	if _, ok := none.MeanIterations(); ok {
		t.Error("nothing has a mean")
	}
	if _, ok := none.RetrySuccess(); ok {
		t.Error("nothing has a share")
	}
	if _, ok := none.MeanElapsed(); ok {
		t.Error("nothing took time")
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	zone := berlin(t)
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	show := func(spans []Span) string {
		var b strings.Builder
		for _, s := range spans {
			from := "-"
			if !s.From.IsZero() {
				from = s.From.UTC().Format("01-02T15:04")
			}
			fmt.Fprintf(&b, "%s %v ", from, s.Offset)
		}
		return strings.TrimSpace(b.String())
	}
	for _, c := range []struct {
		since, until string
		zone         *time.Location
		want         string
	}{
		{"2026-06-01T00:00:00Z", "2026-06-30T00:00:00Z", zone, "- 2h0m0s"},
		{"2026-03-28T00:00:00Z", "2026-03-30T00:00:00Z", zone, "- 1h0m0s 03-29T01:00 2h0m0s"},
		{"2026-03-01T00:00:00Z", "2026-12-01T00:00:00Z", zone, "- 1h0m0s 03-29T01:00 2h0m0s 10-25T01:00 1h0m0s"},
		{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", zone, "- 2h0m0s"},
		{"2026-03-01T00:00:00Z", "2026-12-01T00:00:00Z", time.UTC, "- 0s"},
		{"2026-03-01T00:00:00Z", "2026-12-01T00:00:00Z", time.FixedZone("", -12600), "- -3h30m0s"},
	} {
		if got := show(Spans(at(c.since), at(c.until), c.zone)); got != c.want {
			t.Errorf("%s to %s in %v: %s, want %s", c.since, c.until, c.zone, got, c.want)
		}
	}
}

// The first of the last days begins at its own midnight, however long the days
// since were.
func TestSince(t *testing.T) {
	t.Parallel()
	zone := berlin(t)
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, zone)
	for days, want := range map[int]string{1: "2026-03-29T00:00:00+01:00", 2: "2026-03-28T00:00:00+01:00", 30: "2026-02-28T00:00:00+01:00"} {
		if got := Since(now, days, zone).Format(time.RFC3339); got != want {
			t.Errorf("%d days: %s, want %s", days, got, want)
		}
	}
	after := Since(now.AddDate(0, 0, 1), 2, zone)
	if got := after.UTC().Format(time.RFC3339); got != "2026-03-28T23:00:00Z" {
		t.Error(got)
	}
}
