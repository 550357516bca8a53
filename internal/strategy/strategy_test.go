package strategy_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/strategy"
)

// everything is a run in which each strategy would have an effect.
func everything(class failure.Class, failed ...string) strategy.Situation {
	s := strategy.Situation{Current: strategy.Default, Class: class, CanFallback: true, CanStronger: true, CanRewind: true, HasOptional: true}
	for _, name := range failed {
		s.Failed = append(s.Failed, strategy.Use{Class: class, Strategy: name})
		s.Current = name
	}
	return s
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name string
		in   strategy.Situation
		want string
	}{
		{"work is diagnosed first", everything(failure.TestFailure, "default"), "diagnose"},
		{"then rewound", everything(failure.TestFailure, "default", "diagnose"), "rewind"},
		{"then given to a stronger agent", everything(failure.TestFailure, "default", "diagnose", "rewind"), "stronger-agent"},
		{"and then in turn", everything(failure.TestFailure, "default", "diagnose", "rewind", "stronger-agent"), "diagnose"},
		{"one timeout", everything(failure.Timeout, "default"), "aggressive-timeout"},
		{"a second one does not stay on it", everything(failure.Timeout, "default", "aggressive-timeout"), "skip-optional"},
		{"a provider's limit", everything(failure.RateLimit, "default"), "fallback-providers"},
		{"nothing is made for it", everything(failure.Permission, "default"), "default"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := strategy.Next(c.in)
			if got != c.want || why == "" {
				t.Errorf("Next is %q (%s), want %q", got, why, c.want)
			}
		})
	}
}

func TestWhatHasNoEffectIsNotChosen(t *testing.T) {
	s := everything(failure.TestFailure, "default", "diagnose")
	s.CanRewind, s.CanStronger = false, false
	if got, _ := strategy.Next(s); got != "diagnose" {
		t.Errorf("without snapshots and a stronger agent Next is %q", got)
	}
	s = everything(failure.RateLimit, "default")
	s.CanFallback = false
	if got, _ := strategy.Next(s); got != "default" {
		t.Errorf("without a fallback agent Next is %q", got)
	}
	s = everything(failure.Timeout, "default", "aggressive-timeout")
	s.HasOptional = false
	if got, _ := strategy.Next(s); got != "aggressive-timeout" {
		t.Errorf("without optional gates Next is %q", got)
	}
}

// A use that failed for one class may still be right for another.
func TestUsesCountByClass(t *testing.T) {
	s := everything(failure.Lint)
	s.Failed = []strategy.Use{{Class: failure.TestFailure, Strategy: "diagnose"}}
	if got, _ := strategy.Next(s); got != "diagnose" {
		t.Errorf("Next is %q", got)
	}
}

func TestNamesCanBeLookedUp(t *testing.T) {
	for _, name := range strategy.Names() {
		if s, ok := strategy.Lookup(name); !ok || s.Name != name || s.Description == "" {
			t.Errorf("Lookup(%q) is %+v, %v", name, s, ok)
		}
	}
	if _, ok := strategy.Lookup("hope"); ok {
		t.Error("an unknown strategy is found")
	}
}
