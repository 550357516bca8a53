package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
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
		numbered := l[0] == '#' && len(l) > 1 && words.IsDigit(l[1]) // Dart
		tells = tells || python || numbered || l[0] == '\t' || l[0] == '/' ||
			strings.HasPrefix(strings.TrimLeft(l, " |#"), "at ") ||
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
		if away := places.Foreign(p.File) || ofRuntime().MatchString(l); said == "" || !away {
			best, said, distant = p, l, away
		}
	}
	return best, said
}

// ofRuntime is a call of a language's own libraries, whose file looks like one of the project.
var ofRuntime = lazy.Regexp(`^\s*(?:at )?(?:java|javax|jdk|sun|kotlin|scala|clojure|groovy|System|Microsoft|org\.(?:junit|opentest4j|assertj|hamcrest|scalatest|gradle|apache\.maven))\.` +
	`|at (?:java\.base/|jdk\.)|org\.(?:junit|opentest4j|assertj|hamcrest)\.|^\s*\((?:stdlib|elixir|erts|kernel|mix|ex_unit|compiler) [\d.]+\) |^\s*@ (?:Base|Core)\b|^(?:Raised|Called|Re-raised) (?:at|from) Stdlib`)
