package run

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// past reads executions, one a word: iteration, the alternative after a dot,
// and how it ended: "1.0f 1.0t 2.1s" is a failure of the work, one that may
// pass by itself, and a success of the first alternative. A try follows from
// the executions before.
func past(text string) []*execution {
	var list []*execution
	for _, word := range strings.Fields(text) {
		e := &execution{StepRun: store.StepRun{N: len(list) + 1, Iteration: int(word[0] - '0'), Attempt: 1, Hash: "h", Input: "i"}}
		e.record.Alternative, e.record.Try = int(word[2]-'0'), 1
		for _, b := range list {
			if b.Iteration == e.Iteration && b.record.Alternative == e.record.Alternative {
				e.record.Try++
			}
		}
		switch word[3] {
		case 'f':
			e.Status, e.record.Failure = store.StepFailure, &failure.Analysis{Kind: failure.Work}
		case 't':
			e.Status, e.record.Failure = store.StepFailure, &failure.Analysis{Kind: failure.Transient}
		case 's':
			e.Status = store.StepSuccess
		case 'r':
			e.Status = store.StepRunning
		case 'i':
			e.Status = store.StepInterrupted
		case 'c':
			e.Status = store.StepCancelled
		}
		list = append(list, e)
	}
	return list
}

func TestTheNextAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                  string
		past                  string
		iteration             int
		alternatives, retries int
		inTurn, fresh         bool
		want                  string // alternative.try, or "" for none
	}{
		{name: "first", iteration: 1, want: "0.1"},
		{name: "no retry", past: "1.0f", iteration: 1},
		{name: "retry", past: "1.0f", iteration: 1, retries: 2, want: "0.2"},
		{name: "retries used", past: "1.0f 1.0f 1.0f", iteration: 1, retries: 2},
		{name: "next iteration", past: "1.0f", iteration: 2, want: "0.1"},
		{name: "in turn", past: "1.0f", iteration: 1, alternatives: 2, inTurn: true, want: "1.1"},
		{name: "in turn with retries", past: "1.0f 1.0f 1.1f", iteration: 1, alternatives: 2, retries: 1, inTurn: true, want: "1.2"},
		{name: "in turn, the last", past: "1.0f 1.1f 1.2f", iteration: 1, alternatives: 2, inTurn: true},
		{name: "work fails: the next iteration goes elsewhere", past: "1.0f", iteration: 2, alternatives: 1, want: "1.1"},
		{name: "may pass: once more", past: "1.0t", iteration: 2, alternatives: 1, want: "0.1"},
		{name: "may pass, with retries: once more", past: "1.0t 1.0t", iteration: 2, alternatives: 1, retries: 1, want: "0.1"},
		{name: "did not pass: elsewhere", past: "1.0t 2.0t", iteration: 3, alternatives: 1, want: "1.1"},
		{name: "one alternative an iteration", past: "1.0f 2.1f", iteration: 2, alternatives: 2},
		{name: "the next alternative", past: "1.0f 2.1t", iteration: 3, alternatives: 2, want: "2.1"},
		{name: "all failed: from the start", past: "1.0f 2.1f", iteration: 3, alternatives: 1, want: "0.1"},
		{name: "fresh: from the start", past: "1.0f", iteration: 2, alternatives: 1, fresh: true, want: "0.1"},
		{name: "stopped: the same again", past: "1.0f 2.1c", iteration: 3, alternatives: 1, want: "1.1"},
		{name: "a crash: the same again", past: "1.0f 1.0r", iteration: 1, retries: 3, want: "0.2"},
		{name: "lost: the same again", past: "1.0f 1.0i", iteration: 1, retries: 3, want: "0.2"},
	} {
		s := situation{past: past(c.past), hash: "h", input: "i", iteration: c.iteration, cut: 1, alternatives: c.alternatives, retries: c.retries, inTurn: c.inTurn, fresh: c.fresh}
		at, more := s.nextAttempt()
		got := ""
		if more {
			got = string(rune('0'+at.alternative)) + "." + string(rune('0'+at.try))
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// An attempt with another input counts for nothing in this iteration.
func TestAnAttemptWithAnotherInputIsForgotten(t *testing.T) {
	t.Parallel()
	s := situation{past: past("1.0f"), hash: "h", input: "other", iteration: 1, cut: 1}
	if at, more := s.nextAttempt(); !more || at.try != 1 {
		t.Errorf("got %+v, %v", at, more)
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		past, hash, input string
		optional          bool
		keep              bool
		why               string
	}{
		{past: "", hash: "h", input: "i"},
		{past: "1.0s", hash: "h", input: "i", keep: true},
		{past: "1.0f", hash: "h", input: "i"},
		{past: "1.0f 1.0s", hash: "h", input: "i", keep: true},
		{past: "1.0s 2.0f", hash: "h", input: "i"},
		{past: "1.0s", hash: "new", input: "new", why: "the workflow has changed"},
		{past: "1.0s", hash: "h", input: "new", why: "its input has changed"},
		{past: "1.0f", hash: "h", input: "i", optional: true, keep: true},
	} {
		list := past(c.past)
		for _, e := range list {
			e.record.Optional = c.optional
		}
		e, why := keptExecution(list, c.hash, c.input, c.optional)
		if (e != nil) != c.keep || why != c.why {
			t.Errorf("%q with %s %s: kept %v, why %q", c.past, c.hash, c.input, e != nil, why)
		}
		if c.optional && e.resultOf().Conclusion != "success" {
			t.Errorf("an optional step that failed concludes %q", e.resultOf().Conclusion)
		}
	}
}

func TestTheWaitBeforeATry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backoff string
		factor  int
		try     int
		want    time.Duration
	}{
		{"exponential", 0, 1, 0},
		{"exponential", 0, 2, time.Second},
		{"exponential", 0, 4, 4 * time.Second},
		{"exponential", 3000, 4, 9 * time.Second},
		{"exponential", 0, 100, maxPause},
		{"linear", 0, 4, 3 * time.Second},
		{"none", 0, 4, 0},
	} {
		r := workflow.Retry{Max: 9, Backoff: c.backoff, Delay: time.Second, Factor: c.factor}
		if got := pauseBefore(r, c.try); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
