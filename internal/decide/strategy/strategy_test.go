package strategy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// everything is a run in which each strategy would have an effect.
func everything(class failure.Class, failed ...string) *strategy.Situation {
	s := &strategy.Situation{
		Current: strategy.Default, Class: class, CanFallback: true, CanStronger: true, CanRewind: true, HasOptional: true,
		IterationTimeout: time.Minute,
	}
	switch class {
	case failure.Timeout, failure.Network, failure.RateLimit, failure.ServiceUnavailable, failure.PortConflict, failure.ResourceExhausted:
		s.Transient = true
	default:
	}
	for _, name := range failed {
		s.Failed = append(s.Failed, strategy.Use{Class: class, Strategy: name})
		s.Current = name
	}
	return s
}

func TestNext(t *testing.T) {
	optional := everything(failure.Lint, "default")
	optional.Optional, optional.Mode = true, strategy.Aggressive
	flaky := everything(failure.TestFailure, "default")
	flaky.Transient = true
	for _, c := range []struct {
		name string
		in   *strategy.Situation
		want string
	}{
		{"work is diagnosed first", everything(failure.TestFailure, "default"), "diagnose"},
		{"then rewound", everything(failure.TestFailure, "default", "diagnose"), "rewind"},
		{"then given to a stronger agent", everything(failure.TestFailure, "default", "diagnose", "rewind"), "stronger-agent"},
		{"and then in turn", everything(failure.TestFailure, "default", "diagnose", "rewind", "stronger-agent"), "diagnose"},
		{"one timeout", everything(failure.Timeout, "default"), "aggressive-timeout"},
		{"a second one does not stay on it", everything(failure.Timeout, "default", "aggressive-timeout"), "fallback-providers"},
		{"nor a third", everything(failure.Timeout, "default", "aggressive-timeout", "fallback-providers"), "reduced-parallelism"},
		{"less at once brings no service back", everything(failure.Network, "default", "aggressive-timeout", "fallback-providers"), "skip-optional"},
		{"a provider's limit", everything(failure.RateLimit, "default"), "fallback-providers"},
		{"an exhausted pool", everything(failure.ResourceExhausted, "default"), "reduced-parallelism"},
		{"an optional step", optional, "skip-optional"},
		{"nothing is made for it: the next lower priority of its kind", everything(failure.Permission, "default"), "diagnose"},
		{"a model that refuses is no work to diagnose", everything(failure.RefusedByModel, "default"), "stronger-agent"},
		{"nor once it refused the stronger agent too", everything(failure.RefusedByModel, "default", "stronger-agent"), "stronger-agent"},
		{"a flaky test asks for no diagnosis", flaky, "aggressive-timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strategy.Next(c.in)
			if got.Name != c.want || got.Why == "" {
				t.Errorf("Next is %q (%s), want %q", got.Name, got.Why, c.want)
			}
		})
	}
}

// A strategy that would change nothing is not chosen, and the reason says so.
func TestWhatHasNoEffectIsNotChosen(t *testing.T) {
	for _, c := range []struct {
		name string
		in   *strategy.Situation
		take func(s *strategy.Situation)
		want string
		says string
	}{
		{"no better snapshot", everything(failure.TestFailure, "default", "diagnose"),
			func(s *strategy.Situation) { s.CanRewind = false }, "stronger-agent", "not rewind: there is no better snapshot to go back to"},
		{"no stronger agent either", everything(failure.TestFailure, "default", "diagnose"),
			func(s *strategy.Situation) { s.CanRewind, s.CanStronger = false, false }, "diagnose", "the only strategy for " +
				"test_failure with an effect here was tried; trying it again; not rewind: there is no better snapshot to go back " +
				"to; not stronger-agent: agents.stronger names no agent"},
		{"no fallback agent", everything(failure.RateLimit, "default"),
			func(s *strategy.Situation) { s.CanFallback = false }, "aggressive-timeout", "what is made for rate_limit has no effect here; trying another one"},
		{"a gate's service is down", everything(failure.ServiceUnavailable, "default", "aggressive-timeout"),
			func(s *strategy.Situation) { s.Gate = true }, "skip-optional", "not fallback-providers: another agent does not change a gate"},
		{"the safety level allows no more time", everything(failure.Timeout, "default"),
			func(s *strategy.Situation) { s.Ceiling = time.Minute }, "fallback-providers", "not aggressive-timeout: the safety level allows no longer iteration"},
		{"a workflow's command hears no advice", everything(failure.TestFailure, "default"),
			func(s *strategy.Situation) { s.Steps, s.Unheard, s.CanRewind = true, true, false }, "default", "not diagnose: what failed is a command, not an agent"},
		{"fewer steps at once are something else", everything(failure.ResourceExhausted, "default"),
			func(s *strategy.Situation) { s.Steps, s.Unheard = true, true }, "reduced-parallelism", "made for resource_exhausted"},
		{"but more time for a gate", everything(failure.Timeout, "default"),
			func(s *strategy.Situation) { s.Ceiling, s.Gate = time.Minute, true }, "aggressive-timeout", "made for timeout"},
		{"nor for one whose limit is its own", everything(failure.Timeout, "default"),
			func(s *strategy.Situation) { s.Gate, s.Fixed = true, true }, "reduced-parallelism", "not aggressive-timeout: the time limit belongs to the gate"},
		{"no limit to raise", everything(failure.Timeout, "default"),
			func(s *strategy.Situation) { s.IterationTimeout = 0 }, "fallback-providers", "there is no iteration_timeout to raise"},
		{"nothing optional", everything(failure.Timeout, "default", "aggressive-timeout", "fallback-providers", "reduced-parallelism"),
			func(s *strategy.Situation) { s.HasOptional = false }, "aggressive-timeout", "trying it again"},
		{"nothing at all", everything(failure.Timeout, "default", "reduced-parallelism"),
			func(s *strategy.Situation) { s.IterationTimeout, s.CanFallback, s.HasOptional = 0, false, false }, "reduced-parallelism", "no other strategy helps against timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.take(c.in)
			got := strategy.Next(c.in)
			if got.Name != c.want || !strings.Contains(got.Why, c.says) {
				t.Errorf("Next is %q (%s), want %q (%s)", got.Name, got.Why, c.want, c.says)
			}
		})
	}
}

// A use that failed for one class may still be right for another.
func TestWhyNamesEarlierTries(t *testing.T) {
	for _, c := range []struct {
		name  string
		given func(s *strategy.Situation)
		want  string
	}{
		{"never", func(*strategy.Situation) {}, "made for test_failure, not tried yet"},
		{"in other runs", func(s *strategy.Situation) {
			s.Learned = strategy.Learn(nil, strategy.Credit{Class: failure.TestFailure, Strategy: "diagnose"}, 1)
		}, "made for test_failure, not tried yet in this run; whether it helps here is not known: it did in 0 of 1 uses"},
		{"before an answer", func(s *strategy.Situation) {
			s.Before = []strategy.Use{{Class: failure.TestFailure, Strategy: "diagnose"}}
		}, "made for test_failure, tried before, and again since a person let the run continue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := everything(failure.TestFailure, "default")
			s.CanRewind, s.CanStronger = false, false
			c.given(s)
			if got := strategy.Next(s); got.Name != "diagnose" || got.Why != c.want {
				t.Errorf("Next is %q (%s), want diagnose (%s)", got.Name, got.Why, c.want)
			}
		})
	}
}

func TestUsesCountByClass(t *testing.T) {
	s := everything(failure.Lint)
	s.Failed = []strategy.Use{{Class: failure.TestFailure, Strategy: "diagnose"}}
	if got := strategy.Next(s); got.Name != "diagnose" {
		t.Errorf("Next is %q", got.Name)
	}
}

// What was learned changes the order of auto and aggressive, and not that of
// conservative.
func TestModes(t *testing.T) {
	var learned []strategy.Tally
	teach := func(name string, success, failed int) {
		for range success {
			learned = strategy.Learn(learned, strategy.Credit{Class: failure.TestFailure, Strategy: name, Success: true}, 20000)
		}
		for range failed {
			learned = strategy.Learn(learned, strategy.Credit{Class: failure.TestFailure, Strategy: name}, 20000)
		}
	}
	teach("diagnose", 2, 4)
	teach("rewind", 1, 0)
	for mode, want := range map[strategy.Mode]string{
		strategy.Conservative: "diagnose", strategy.Aggressive: "diagnose", strategy.Auto: "rewind", "": "rewind",
	} {
		s := everything(failure.TestFailure, "default")
		s.Mode, s.Learned = mode, learned
		got := strategy.Next(s)
		if got.Name != want {
			t.Errorf("%s takes %s: %s", mode, got.Name, got.Why)
		}
		if says := strings.Contains(got.Why, " uses"); says != (mode != strategy.Conservative) {
			t.Errorf("%s says %q", mode, got.Why)
		}
	}
}

func TestOwnStrategies(t *testing.T) {
	s := everything(failure.Lint, "default")
	s.Own = []strategy.Strategy{
		{Name: "format", Priority: 20, Classes: []failure.Class{failure.Lint}, Instruction: "Run the formatter."},
		{Name: "slow", Priority: 30, Classes: []failure.Class{failure.Lint}, TimeoutFloor: 30 * time.Second},
	}
	if got := strategy.Next(s); got.Name != "format" || !strings.Contains(got.Why, "not slow: its timeout is not above iteration_timeout") {
		t.Errorf("%+v", got)
	}
	s.Class = failure.TestFailure
	if got := strategy.Next(s); got.Name != "diagnose" {
		t.Errorf("%+v", got)
	}
	if why := s.ReasonIneffective("slow"); why == "" {
		t.Error("a timeout that shortens has an effect")
	}
	if _, ok := strategy.Lookup("format", s.Own); !ok {
		t.Error("an own strategy is not found")
	}
}

func TestWall(t *testing.T) {
	double := strategy.Strategy{TimeoutFactor: 2}
	floor := strategy.Strategy{TimeoutFloor: time.Hour}
	for _, c := range []struct {
		s                   strategy.Strategy
		base, ceiling, want time.Duration
	}{
		{double, time.Minute, 0, 2 * time.Minute},
		{double, time.Minute, 90 * time.Second, 90 * time.Second},
		{double, 2 * time.Minute, time.Minute, 2 * time.Minute}, // never shortens
		{double, 0, time.Minute, 0},
		{floor, time.Minute, 0, time.Hour},
		{floor, 2 * time.Hour, 0, 2 * time.Hour},
		{strategy.Strategy{}, time.Minute, 0, time.Minute},
	} {
		if got := c.s.Wall(c.base, c.ceiling); got != c.want {
			t.Errorf("Wall(%s, %s) of %+v is %s, want %s", c.base, c.ceiling, c.s, got, c.want)
		}
	}
}

// The five of the first document, with its settings.
func TestTheFiveOfTheDocument(t *testing.T) {
	for _, c := range []struct {
		name           string
		timeout        time.Duration
		backoff        strategy.Backoff
		parallelism    int
		fallback, skip bool
		cache          bool
		priority       int
		made           failure.Class
	}{
		{"default", 300 * time.Second, strategy.Exponential, 5, false, false, true, 10, ""},
		{"aggressive-timeout", 600 * time.Second, strategy.Exponential, 5, false, false, true, 8, failure.Timeout},
		{"fallback-providers", 300 * time.Second, strategy.Exponential, 5, true, false, false, 7, failure.RateLimit},
		{"reduced-parallelism", 300 * time.Second, strategy.Linear, 1, false, false, true, 6, failure.ResourceExhausted},
		{"skip-optional", 300 * time.Second, strategy.Exponential, 5, false, true, true, 5, ""},
	} {
		s, ok := strategy.Lookup(c.name, nil)
		if !ok || s.Timeout != c.timeout || s.Backoff != c.backoff || s.Parallelism != c.parallelism || s.Fallback != c.fallback ||
			s.SkipOptional != c.skip || s.UseCache != c.cache || s.Priority != c.priority {
			t.Errorf("%s is %+v", c.name, s)
		}
		if c.made != "" && (len(s.Classes) == 0 || s.Classes[0] != c.made) {
			t.Errorf("%s is made for %v", c.name, s.Classes)
		}
	}
}

func TestNamesCanBeLookedUp(t *testing.T) {
	for _, name := range strategy.Names() {
		if s, ok := strategy.Lookup(name, nil); !ok || s.Name != name || s.Description == "" {
			t.Errorf("Lookup(%q) is %+v, %v", name, s, ok)
		}
	}
	if _, ok := strategy.Lookup("hope", nil); ok {
		t.Error("an unknown strategy is found")
	}
}
