package gate

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// saysMissing finds what a shell, a program or the system says of a file that is not there.
var saysMissing = lazy.Regexp(`(?i)not found|no such file|can(not|'t) (open|find)|does not exist`)

// NotCommitted returns the first file that the output of a gate misses, that the person has in the checkout at top, and
// that is not among the names that were judged: they forgot to commit it. "" is none.
func NotCommitted(output, top string, names []string) string {
	if !saysMissing().MatchString(output) {
		return ""
	}
	committed := lists.Set(names)
	isBetween := func(r rune) bool { return strings.ContainsRune(" '\"`:;,()=&|<>\n", r) }
	for word := range strings.FieldsFuncSeq(output, isBetween) {
		name := path.Clean(word)
		if !filepath.IsLocal(name) || committed[name] {
			continue
		}
		if info, err := os.Lstat(filepath.Join(top, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}
