package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// Telling returns the lines of output that tell most about a failure whose
// format no parser knows: errors with the lines that belong to them, and the
// end, in their order, without ANSI codes, in at most limit bytes. A "…" stands
// where lines were left out.
func Telling(output string, limit int) string {
	if limit <= 0 {
		return ""
	}
	t := split(readable(bound(output)).text)
	s := strings.TrimSpace(t.s)
	if len(s) <= limit {
		return s
	}
	keep := make([]bool, t.len())
	left := limit - 8
	take := func(i int) bool {
		if i < 0 || i >= t.len() || keep[i] || strings.TrimSpace(t.line(i)) == "" {
			return true
		}
		if n := len(words.Cut(t.line(i), 300)) + 5; n <= left {
			keep[i] = true
			left -= n
			return true
		}
		return false
	}
	end := lastLine(t)
	for i := end; i > end-5 && left > limit/2; i-- {
		take(i)
	}
	for _, i := range slices.Backward(outlineOf(findHits(t), "").telling(40)) {
		if !take(i) {
			break
		}
		take(i + 1)
		take(i - 1)
	}
	for i := end - 5; i >= 0; i-- {
		if !take(i) {
			break
		}
	}
	return join(t, keep, limit)
}

func join(t text, keep []bool, limit int) string {
	var b strings.Builder
	gap := false
	for i, k := range keep {
		if !k {
			gap = gap || strings.TrimSpace(t.line(i)) != ""
			continue
		}
		if gap {
			b.WriteString("…\n")
			gap = false
		}
		b.WriteString(words.Cut(t.line(i), 300))
		b.WriteByte('\n')
	}
	return ellipsis(strings.TrimSpace(b.String()), limit)
}
