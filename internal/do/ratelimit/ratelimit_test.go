package ratelimit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
)

const key = "key"

func self(t *testing.T) process.Identity {
	t.Helper()
	id, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// put writes what a run found some time ago.
func put(t *testing.T, dir string, l ratelimit.Limit) {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, key+".json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// over is a limit whose time is over.
func over() ratelimit.Limit {
	now := time.Now()
	return ratelimit.Limit{Class: failure.RateLimit, Met: now.Add(-time.Hour), Until: now.Add(-time.Minute), Times: 1, Run: "first"}
}

func TestOneOfManyTries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, over())
	me := self(t)
	var tries, barred atomic.Int32
	var all sync.WaitGroup
	for _, run := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Go(func() {
			try, no := ratelimit.NewStore(dir).Acquire(t.Context(), key, run, me, false)
			if try {
				tries.Add(1)
			}
			if no {
				barred.Add(1)
			}
		})
	}
	all.Wait()
	if tries.Load() != 1 || barred.Load() != 7 {
		t.Errorf("%d try, %d are barred", tries.Load(), barred.Load())
	}
}

func TestWhoseTryCounts(t *testing.T) {
	t.Parallel()
	me, now := self(t), time.Now()
	dead := me
	dead.Start++
	tests := map[string]struct {
		probe  ratelimit.Probe
		until  time.Time
		barred bool
	}{
		"nobody's":                {ratelimit.Probe{}, now.Add(-time.Minute), false},
		"another's":               {ratelimit.Probe{Run: "other", At: now, By: me}, now.Add(-time.Minute), true},
		"one's own":               {ratelimit.Probe{Run: "run", At: now, By: me}, now.Add(-time.Minute), false},
		"a dead one's":            {ratelimit.Probe{Run: "other", At: now, By: dead}, now.Add(-time.Minute), false},
		"one that takes too long": {ratelimit.Probe{Run: "other", At: now.Add(-ratelimit.Lease), By: me}, now.Add(-time.Minute), false},
		"one of the future":       {ratelimit.Probe{Run: "other", At: now.Add(time.Hour), By: me}, now.Add(-time.Minute), false},
		"none, the limit lasts":   {ratelimit.Probe{}, now.Add(time.Hour), true},
		"one's own, and it lasts": {ratelimit.Probe{Run: "run", At: now, By: me}, now.Add(time.Hour), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, l := t.TempDir(), over()
			l.Probe, l.Until = tt.probe, tt.until
			put(t, dir, l)
			s := ratelimit.NewStore(dir)
			if try, barred := s.Acquire(t.Context(), key, "run", me, false); barred != tt.barred || try == barred {
				t.Errorf("try %v, barred %v", try, barred)
			}
			if try, barred := s.Acquire(t.Context(), key, "run", me, true); !try || barred {
				t.Errorf("insisting: try %v, barred %v", try, barred)
			}
		})
	}
}

func TestWhatIsNotBelieved(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, change := range map[string]func(*ratelimit.Limit){
		"class":         func(l *ratelimit.Limit) { l.Class = failure.TestFailure },
		"no time":       func(l *ratelimit.Limit) { l.Met = time.Time{} },
		"a clock ahead": func(l *ratelimit.Limit) { l.Met, l.Until = now.Add(2*time.Hour), now.Add(3*time.Hour) },
		"for ever":      func(l *ratelimit.Limit) { l.Until = now.AddDate(50, 0, 0) },
		"before it was": func(l *ratelimit.Limit) { l.Until = l.Met.Add(-time.Hour) },
		"long over":     func(l *ratelimit.Limit) { l.Met, l.Until = now.AddDate(0, 0, -3), now.AddDate(0, 0, -2) },
		"count":         func(l *ratelimit.Limit) { l.Times = -1 },
		"run":           func(l *ratelimit.Limit) { l.Run = "\x1b[2J" },
		"probe":         func(l *ratelimit.Limit) { l.Probe = ratelimit.Probe{Run: "\n", At: now} },
	} {
		dir, l := t.TempDir(), over()
		l.Until = now.Add(time.Hour)
		put(t, dir, l)
		s := ratelimit.NewStore(dir)
		if _, ok := s.Look(key, now); !ok {
			t.Fatalf("%s: a good one is not believed", name)
		}
		change(&l)
		put(t, dir, l)
		if l, ok := s.Look(key, now); ok {
			t.Errorf("%s: %+v is believed", name, l)
		}
		if try, barred := s.Acquire(t.Context(), key, "run", self(t), false); try || barred {
			t.Errorf("%s: try %v, barred %v", name, try, barred)
		}
	}
}

func TestGarbage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := ratelimit.NewStore(dir)
	for _, text := range []string{"", "{", "null", "[]", "\x00\x01", `{"until":"soon"}`, string(make([]byte, 1<<20))} {
		if err := os.WriteFile(filepath.Join(dir, key+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, ok := s.Look(key, time.Now()); ok {
			t.Errorf("%.20q is %+v", text, l)
		}
		if err := s.Record(t.Context(), key, ratelimit.Meeting{Run: "run", Class: failure.RateLimit}); err != nil {
			t.Error(err)
		}
		if l, ok := s.Look(key, time.Now()); !ok || l.Times != 1 {
			t.Errorf("after %.20q: %+v, %v", text, l, ok)
		}
	}
}

func TestAMeetingAfterTheLastCountsUp(t *testing.T) {
	t.Parallel()
	s := ratelimit.NewStore(filepath.Join(t.TempDir(), "new"))
	before := time.Now()
	meet := func(began time.Time, wait time.Duration) ratelimit.Limit {
		t.Helper()
		m := ratelimit.Meeting{Run: "run", Class: failure.RateLimit, Began: began}
		if wait > 0 {
			m.Until, m.Named = time.Now().Add(wait), true
		}
		if err := s.Record(t.Context(), key, m); err != nil {
			t.Fatal(err)
		}
		l, _ := s.Look(key, time.Now())
		return l
	}
	first := meet(before, 0)
	if d := first.Until.Sub(first.Met); first.Times != 1 || first.Named || d != time.Second {
		t.Errorf("first %+v for %s", first, d)
	}
	// Two more were on their way: the longest wait holds, and it counts once.
	if l := meet(before, time.Hour); l.Times != 1 || !l.Named || time.Until(l.Until) < 59*time.Minute {
		t.Errorf("second %+v", l)
	}
	if l := meet(before, time.Minute); l.Times != 1 || time.Until(l.Until) < 59*time.Minute {
		t.Errorf("third %+v", l)
	}
	// A try after it: the newest holds, and waits that nobody names grow.
	for times := 2; times < 12; times++ {
		l := meet(time.Now(), 0)
		want := min(time.Second<<(times-1), 5*time.Minute)
		if l.Times != times || l.Until.Sub(l.Met) != want {
			t.Errorf("time %d: %+v, want %s", times, l, want)
		}
	}
}

func TestClearAndRelease(t *testing.T) {
	t.Parallel()
	dir, me := t.TempDir(), self(t)
	s := ratelimit.NewStore(dir)
	put(t, dir, over())
	if err := s.Clear(t.Context(), key, time.Now().Add(-2*time.Hour)); err != nil {
		t.Error(err)
	}
	if _, ok := s.Look(key, time.Now()); !ok {
		t.Fatal("a call that began before the limit cleared it")
	}
	s.Acquire(t.Context(), key, "a", me, false)
	if err := s.Release(t.Context(), key, "b"); err != nil {
		t.Error(err)
	}
	if _, barred := s.Acquire(t.Context(), key, "b", me, false); !barred {
		t.Error("the try of another was released")
	}
	if err := s.Release(t.Context(), key, "a"); err != nil {
		t.Error(err)
	}
	if try, _ := s.Acquire(t.Context(), key, "b", me, false); !try {
		t.Error("a released try is still held")
	}
	if err := s.Clear(t.Context(), key, time.Now()); err != nil {
		t.Error(err)
	}
	if try, barred := s.Acquire(t.Context(), key, "c", me, false); try || barred {
		t.Errorf("after the end of the limit: try %v, barred %v", try, barred)
	}
}

func TestWithoutAPlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var none *ratelimit.Store
	for name, s := range map[string]*ratelimit.Store{"a file": ratelimit.NewStore(file), "none": none} {
		err := s.Record(t.Context(), key, ratelimit.Meeting{Run: "run", Class: failure.RateLimit})
		if (err == nil) != (s == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if try, barred := s.Acquire(t.Context(), key, "run", self(t), true); try || barred {
			t.Errorf("%s: try %v, barred %v", name, try, barred)
		}
	}
}

func TestKeysDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, parts := range [][]string{{"ab"}, {"a", "b"}, {"a", "b", ""}, {"b", "a"}, {}} {
		seen[ratelimit.Key(parts...)] = true
	}
	if len(seen) != 5 {
		t.Errorf("%v", seen)
	}
}
