package strategy_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

func taught(day int, names ...string) []strategy.Tally {
	var list []strategy.Tally
	for _, n := range names {
		success := n[0] == '+'
		list = strategy.Learn(list, strategy.Credit{Class: failure.Lint, Strategy: n[1:], Success: success}, day)
	}
	return list
}

func TestLearnFadesWithUse(t *testing.T) {
	list := taught(100, "+a", "+a", "-a")
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	// 1000, then 937+1000, then 1937-122 and a failure.
	if a := list[0]; a.Wins != 1815 || a.Losses != 1000 || a.Rate() != 644 {
		t.Errorf("%+v, rate %d", a, a.Rate())
	}
	long := list
	for range 200 {
		long = strategy.Learn(long, strategy.Credit{Class: failure.Lint, Strategy: "b"}, 100)
	}
	if a := long[0]; a.Wins+a.Losses > 100 {
		t.Errorf("old luck stays: %+v", a)
	}
	if b := long[1]; b.Losses > 16_000 {
		t.Errorf("evidence grows without end: %+v", b)
	}
}

func TestLearnLeavesOtherClassesAndTheOldList(t *testing.T) {
	list := taught(100, "+a")
	kept := fmt.Sprint(list)
	more := strategy.Learn(list, strategy.Credit{Class: failure.Timeout, Strategy: "a"}, 100)
	if fmt.Sprint(list) != kept || more[0] != list[0] || len(more) != 2 {
		t.Errorf("%v became %v", kept, more)
	}
}

func TestFadedWithTime(t *testing.T) {
	list := taught(100, "+a", "+a")
	for _, c := range []struct{ day, wins, at int }{{100, 1937, 100}, {129, 1937, 100}, {130, 968, 130}, {195, 242, 190}, {50, 1937, 100}} {
		got := strategy.Faded(list, c.day)
		if len(got) != 1 || got[0].Wins != c.wins || got[0].Day != c.at {
			t.Errorf("on day %d: %+v", c.day, got)
		}
	}
	if got := strategy.Faded(list, 100_000); len(got) != 0 {
		t.Errorf("after centuries: %+v", got)
	}
}

func TestBounded(t *testing.T) {
	var list []strategy.Tally
	for i := range 500 {
		list = strategy.Learn(list, strategy.Credit{Class: failure.Class(fmt.Sprint(i)), Strategy: "a"}, 1)
	}
	if len(list) != 128 {
		t.Errorf("%d tallies", len(list))
	}
}

// Whatever a database holds, the arithmetic neither fails nor leaves its range.
func FuzzLearn(f *testing.F) {
	f.Add([]byte(`[{"class":"lint","strategy":"a","wins":1000,"losses":-5,"day":3}]`), 20000, true)
	f.Add([]byte(`[{"class":"lint","strategy":"a","wins":9000000000000000000,"losses":9000000000000000000,"day":-9000000}]`), -5, false)
	f.Fuzz(func(t *testing.T, stored []byte, day int, success bool) {
		var list []strategy.Tally
		if json.Unmarshal(stored, &list) != nil || len(list) > 1000 {
			return
		}
		list = strategy.Faded(list, day)
		for range 20 {
			list = strategy.Learn(list, strategy.Credit{Class: failure.Lint, Strategy: "a", Success: success}, day)
		}
		for _, l := range list {
			if l.Wins < 0 || l.Losses < 0 || l.Rate() < -1 || l.Rate() > 1000 {
				t.Fatalf("%+v, rate %d", l, l.Rate())
			}
		}
		strategy.Next(&strategy.Situation{Current: strategy.Default, Class: failure.Lint, Learned: list})
	})
}
