package failure

// The patterns over a history of failures.
const (
	RepeatedIdentical  = "repeated_identical_error" // the same failure again and again
	AlternatingErrors  = "alternating_errors"       // each class differs from the one before
	ConsistentFailure  = "consistent_failure"       // the same class, in different forms
	OscillationPattern = "oscillation"              // two failures that take turns: A, B, A, B
)

// Pattern names what the end of a history of failures, oldest first, has in
// common; "" when nothing. Identical failures are named from the second on,
// the other patterns need three (oscillation four). The most telling one
// counts: identical, oscillation, consistent, alternating.
func Pattern(history []Analysis) string {
	n := len(history)
	if n < 2 {
		return ""
	}
	same := func(i, j int) bool { return history[i].Fingerprint == history[j].Fingerprint }
	if same(n-1, n-2) {
		return RepeatedIdentical
	}
	if n >= 4 && same(n-1, n-3) && same(n-2, n-4) {
		return OscillationPattern
	}
	if n < 3 {
		return ""
	}
	if c := history[n-1].Class; history[n-2].Class == c && history[n-3].Class == c {
		return ConsistentFailure
	}
	for i := 1; i < n; i++ {
		if history[i].Class == history[i-1].Class {
			return ""
		}
	}
	return AlternatingErrors
}
