package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// block follows what goes on over lines: the fields of an object that an error
// prints behind itself, and the source that Python shows below a frame.
type block struct {
	object bool
	frame  bool
	advice bool
}

// adviceHead stands above advice.
var adviceHead = lazy.Regexp(`^\W*(?i:tips?|hints?|help|next steps?|how to fix(?: it| this)?|see also|references|suggestions?|possible (?:reasons|causes|fixes))\W*$`)

// holds tells whether l belongs to such a block, or to none of its own.
func (b *block) holds(l, said string) bool {
	indented := l != said && said != ""
	switch {
	case b.frame && strings.HasPrefix(l, "    "):
		b.frame = false
		return true
	case b.object && (strings.HasPrefix(said, "[cause]: ") || exception().MatchString(said)):
		return false
	case b.object && indented, b.object && strings.Trim(said, "}]),") == "":
		b.object = indented || said == ""
		return true
	}
	if b.advice = said != "" && (b.advice || adviceHead().MatchString(said)); b.advice {
		return true
	}
	b.frame = strings.HasPrefix(said, `File "`) && indented
	stack := strings.HasPrefix(said, "at ")
	opens := stack || exception().MatchString(l) || strings.HasPrefix(said, "[")
	b.object = opens && strings.HasSuffix(said, " {")
	if b.frame {
		return true
	}
	return b.object && stack
}
