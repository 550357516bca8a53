package ratelimit

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)

func spend(t *testing.T, dir string, add loop.MicroUSD, now time.Time) loop.MicroUSD {
	t.Helper()
	total, err := Spend(dir, loop.Use{Cost: add}, now)
	if err != nil {
		t.Fatal(err)
	}
	return total.Cost
}

// A day counts from zero, and a clock that is a day off does not begin it twice.
func TestDay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "limits")
	for i, step := range []struct {
		add  loop.MicroUSD
		at   time.Time
		want loop.MicroUSD
	}{
		{0, noon, 0}, {5, noon, 5}, {7, noon.Add(time.Hour), 12}, {-2, noon, 10}, {0, noon, 10},
		{3, NextDay(noon), 3}, {1, noon, 4}, {0, NextDay(noon), 4}, // a clock behind adds to the later day
		{-9, NextDay(noon), 0}, {6, NextDay(NextDay(noon)), 6},
		{2, noon.AddDate(-1, 0, 0), 2}, // a clock that was far ahead is not believed for ever
	} {
		if got := spend(t, dir, step.add, step.at); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// What many processes spend at once is all counted. They share nothing but the folder.
func TestDayOfMany(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := Spend(dir, loop.Use{Cost: 1}, noon); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := spend(t, dir, 0, noon); got != 160 {
		t.Errorf("%d of 160 are counted", got)
	}
}

// What cannot be read is no zero.
func TestDayDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"date":"2026-11-23","micro_usd":-1}`, `{"date":"2026-11-23","calls":-1}`, "null x"} {
		if err := os.WriteFile(filepath.Join(dir, "day.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, add := range []loop.Use{{}, {Calls: 1}} {
			if _, err := Spend(dir, add, noon); err == nil || !strings.Contains(err.Error(), "is damaged; remove it") {
				t.Errorf("%q: error is %v", text, err)
			}
		}
	}
}
