package ratelimit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
)

// A plan that is used above the user's own limit keeps runs from a call until it resets.
func TestLimitOfPlan(t *testing.T) {
	t.Parallel()
	now, dir := time.Now(), t.TempDir()
	s := ratelimit.NewStore(dir)
	hour, week := now.Add(time.Hour), now.Add(100*time.Hour)
	save := func(used int) {
		t.Helper()
		err := s.SavePlan(key, "mine", []subscription.Window{
			{Name: "seven_day", Used: 10, Resets: week}, {Name: "five_hour", Used: used, Resets: hour},
			{Name: "\x1b[2J", Used: 99, Resets: hour}, {Name: "over", Used: 99, Resets: now.Add(-time.Hour)},
		}, now)
		if err != nil {
			t.Fatal(err)
		}
	}
	save(80)
	if l, ok := s.Look(key, now); ok {
		t.Errorf("without a limit of the user's own: %+v", l)
	}
	s.Plan = 81
	if _, ok := s.Look(key, now); ok {
		t.Error("80 % are used, and 81 % are allowed")
	}
	save(81)
	l, ok := s.Look(key, now)
	if !ok || l.Class != failure.QuotaExhausted || !l.Until.Equal(hour) || !l.Named || !strings.Contains(l.Why, "81 % of the plan of mine") {
		t.Errorf("%v %+v", ok, l)
	}
	if try, barred := s.Acquire(t.Context(), key, "run", self(t), false); try || !barred {
		t.Errorf("try %v, barred %v", try, barred)
	}
	if _, barred := s.Acquire(t.Context(), key, "run", self(t), true); barred {
		t.Error("a person who insists is barred")
	}
	if _, ok := s.Look(key, hour); ok {
		t.Error("it does not end with the window")
	}
	all, _ := s.Plans(nil, now)
	if said, most := s.Plans([]string{key, "other"}, now); most != 81 || !slices.Equal(said, all) || len(said) != 1 {
		t.Errorf("%d %q %q", most, said, all)
	}
	for _, broken := range []string{"", "{", `{"windows":[{"name":"a","used":-1}]}`} {
		if err := os.WriteFile(filepath.Join(dir, key+".plan.json"), []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if l, ok := s.Look(key, now); ok {
			t.Errorf("%q is believed: %+v", broken, l)
		}
	}
}
