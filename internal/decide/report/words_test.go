package report_test

import (
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/report"
)

// A value is told once: by the message, or behind it.
func TestItemLine(t *testing.T) {
	t.Parallel()
	for want, item := range map[string]failure.Item{
		"cart.js:3: adds: expected 0, got NaN":          {File: "cart.js", Line: 3, Test: "adds", Message: "expected 0, got NaN", Expected: "0", Received: "NaN"},
		"adds: not equal: expected 0, received NaN":     {Test: "adds", Message: "not equal", Expected: "0", Received: "NaN"},
		"adds: 0 is not right: expected 0, received -1": {Test: "adds", Message: "0 is not right", Expected: "0", Received: "-1"},
	} {
		if got := report.ItemLine(item); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
