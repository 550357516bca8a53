package gate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Bounds of a pattern.
const (
	maxPattern = 1000
	maxBraces  = 8
)

// Match tells whether path, relative and with "/", fits pattern:
//
//   - any characters but "/"
//     **       as a whole element: any number of elements, also none
//     ?        one character but "/"
//     [a-z]    one of a class; [!a] and [^a] one outside of it, also "/"
//     {b,c}    one of the alternatives, which may hold other signs
//     \x       the character x
//
// A pattern whose last element has neither *, ? nor a class covers a folder of that
// name with all below it. A trailing "/" is ignored, and so is a leading "/" or
// "./". Upper and lower case differ. A pattern that CheckPattern refuses
// matches nothing.
func Match(pattern, path string) bool {
	return CheckPattern(pattern) == nil && fits(pattern, path)
}

// CheckPattern tells what is wrong with pattern, or returns nil.
func CheckPattern(pattern string) error {
	p := trimmed(pattern)
	var why string
	switch {
	case len(pattern) > maxPattern:
		return fmt.Errorf("cannot use a pattern of %d bytes: at most %d are allowed", len(pattern), maxPattern)
	case p == "":
		why = "it is empty"
	case !utf8.ValidString(p) || strings.Contains(p, "\x00"):
		why = "it is no text in UTF-8"
	case strings.Count(p, "{") > maxBraces:
		why = fmt.Sprintf("it has more than %d braces", maxBraces)
	case !doublestar.ValidatePattern(p):
		why = "a { or a [ is not closed, or it ends with a \\"
	default:
		return nil
	}
	return fmt.Errorf("cannot use the pattern %q: %s", pattern, why)
}

func trimmed(pattern string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/"), "/")
}

// fits is Match for a pattern that was checked.
func fits(pattern, path string) bool {
	p := trimmed(pattern)
	if path == "" || doublestar.MatchUnvalidated(p, path) {
		return path != ""
	}
	last := p[strings.LastIndexByte(p, '/')+1:]
	return !strings.ContainsAny(last, `*?[\`) && doublestar.MatchUnvalidated(p+"/**", path)
}
