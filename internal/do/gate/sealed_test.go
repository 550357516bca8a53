package gate

import (
	"cmp"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// The code under test can read a sealed check. However that makes it end, one bit comes back: red or green.
func TestOneBitOfASealedCheck(t *testing.T) {
	t.Parallel()
	s := Spec{Name: "sealed check 1", Required: true, Origin: loop.Sealed, Criterion: "it greets", Timeout: time.Minute}
	var first *failure.Analysis
	for name, e := range map[string]Exec{
		"a status": {ExitCode: 81}, "a signal": {ExitCode: 137, Signal: "killed"}, "a limit": {TimedOut: true},
		"counts":         {ExitCode: 1, Output: "3 failed, 81 passed\n"},
		"a provider":     {ExitCode: 1, Output: "Error: 429 Too Many Requests, retry after 81 seconds\n"},
		"no program":     {ExitCode: 127, Output: "sh: 1: foo: not found\n"},
		"changed itself": {Changed: []string{"81"}},
	} {
		var r Report
		r.Gates = []loop.Gate{s.newGateRecord()}
		if r.takeResult(0, s, e, time.Now()) || r.Failure == nil {
			t.Fatalf("%s: green", name)
		}
		g := r.Gates[0]
		if g.ExitCode != 1 || g.Status != loop.GateFailed || g.Note != "" || g.Passed != 0 || g.Total != -1 || g.Test {
			t.Errorf("%s: %+v", name, g)
		}
		a := r.Failure
		first = cmp.Or(first, a)
		isSame := a.Fingerprint == first.Fingerprint && a.Summary == first.Summary && a.Code == first.Code
		if !isSame || a.Kind != failure.Work || a.Transient {
			t.Errorf("%s: %+v, and %+v", name, a, first)
		}
	}
	var r Report
	r.Gates = []loop.Gate{s.newGateRecord()}
	if r.takeResult(0, s, Exec{NotStarted: "no room on the disk"}, time.Now()) || r.Gates[0].Note == "" {
		t.Errorf("what did not start is not the agent's to repair: %+v", r)
	}
}
