package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// frame finds the place of the project in a stack trace, and its line: the last call
// in a Python trace, the first elsewhere. A place in a library is better than none.
func frame(t text) (best places.Place, said string) {
	distant := false // best lies in a library
	ruby, after, url := strings.Contains(t.s, ":in "), strings.Contains(t.s, "from "), strings.Contains(t.s, "file:///")
	for i := range t.len() {
		l := t.line(i)
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
		tells = tells || python || l[0] == '\t' || l[0] == '/' || strings.HasPrefix(strings.TrimLeft(l, " |#"), "at ") ||
			ruby && words.Has(l, ":in `", ":in '")
		if !tells {
			continue
		}
		p, ok := places.In(l)
		if !ok {
			continue
		}
		if said != "" && !distant && !python {
			continue // the first of the project stays
		}
		if away := places.Foreign(p.File); said == "" || !away {
			best, said, distant = p, l, away
		}
	}
	return best, said
}
