package control

import (
	"fmt"

	"github.com/pawl-dev/pawl/internal/failure"
)

// Past is what is remembered of an earlier attempt that did not pass.
type Past struct {
	Class       failure.Class
	Fingerprint string
	Summary     string
	// Where is the file, else the test, that failed; empty when not known.
	Where string
}

// Pattern says in words what the attempts that did not pass, oldest first,
// have in common; "" when nothing is known to be.
func Pattern(past []Past) string {
	history := make([]failure.Analysis, len(past))
	for i, p := range past {
		history[i] = failure.Analysis{Class: p.Class, Fingerprint: p.Fingerprint}
	}
	n := len(past)
	switch failure.Pattern(history) {
	case failure.RepeatedIdentical:
		same := 1
		for same < n && past[n-1-same].Fingerprint == past[n-1].Fingerprint {
			same++
		}
		text := fmt.Sprintf("the same failure %d times in a row", same)
		if s := oneLine(past[n-1].Summary); s != "" {
			text += ": " + s
		}
		return clip(text, maxLine)
	case failure.OscillationPattern:
		return clip(fmt.Sprintf("two failures take turns: %s / %s", oneLine(past[n-2].Summary), oneLine(past[n-1].Summary)),
			maxLine)
	case failure.ConsistentFailure:
		if where := sameWhere(past); where != "" {
			return where
		}
		return fmt.Sprintf("the same sort of failure each time (%s), in different forms", classWords(past[n-1].Class))
	case failure.AlternatingErrors:
		return "each attempt failed in another way than the one before"
	}
	return sameWhere(past)
}

// sameWhere tells the place in which all attempts failed; "" when there is
// none, or one attempt only.
func sameWhere(past []Past) string {
	for _, p := range past {
		if p.Where == "" || p.Where != past[0].Where || len(past) < 2 {
			return ""
		}
	}
	if len(past) == 0 {
		return ""
	}
	return clip(fmt.Sprintf("always %s, in different forms", oneLine(past[0].Where)), maxLine)
}
