package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// projectFrame finds the place of the project in a stack trace, and its line: the last call in a
// Python trace, the first elsewhere. A place in a library is better than none.
func projectFrame(t printed.Text) (best places.Place, said string) {
	distant := false // best lies in a library
	ruby, after, url := strings.Contains(t.All, ":in "), strings.Contains(t.All, "from "),
		strings.Contains(t.All, "file:///")
	for i := range t.LineCount() {
		l := t.LineAt(i)
		if l == "" {
			continue
		}
		below, linked := after && strings.Contains(l, "from "), url && strings.Contains(l, "file:///")
		inRuby := ruby && strings.Contains(l, ":in ")
		tells := below || linked
		if words.IsWord(l[0]) && !tells && !inRuby {
			continue
		}
		python := strings.Contains(l, `File "`)
		numbered := l[0] == '#' && len(l) > 1 && words.IsDigit(l[1]) // Dart
		tells = tells || python || numbered || l[0] == '\t' || l[0] == '/' ||
			strings.HasPrefix(strings.TrimLeft(l, " |#"), "at ") || strings.HasPrefix(strings.TrimLeft(l, " "), "@ ") ||
			ruby && words.Has(l, ":in `", ":in '")
		if !tells {
			continue
		}
		p, ok := places.In(l)
		if !ok {
			continue
		}
		if said != "" && !distant && !python && !strings.HasSuffix(p.File, ".nim") {
			continue // the first of the project stays
		}
		if away := places.IsForeign(p.File) || printed.OfRuntime().MatchString(l); said == "" || !away {
			best, said, distant = p, l, away
		}
	}
	return best, said
}
