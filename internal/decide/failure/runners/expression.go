package runners

import (
	"regexp"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Expression is a regular expression that is compiled when it is first used; the
// zero value is none.
type Expression struct{ Compiled func() *regexp.Regexp }

// UnmarshalText reads it from rules.json.
func (e *Expression) UnmarshalText(source []byte) error {
	e.Compiled = lazy.Regexp(string(source))
	return nil
}

// MatchesLine is false for the zero value.
func (e Expression) MatchesLine(l string) bool {
	return e.Compiled != nil && e.Compiled().MatchString(l)
}
