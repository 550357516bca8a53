// Package lazy makes what few processes of pawl need when it is first asked for, so
// that no start pays for it. It keeps nothing else and decides nothing.
package lazy

import (
	"regexp"
	"sync"
)

// expression is compiled once. It is smaller than a [sync.OnceValue], of which pawl would
// make hundreds at each start.
type expression struct {
	once     sync.Once
	source   string
	compiled *regexp.Regexp
}

func (e *expression) get() *regexp.Regexp {
	e.once.Do(func() { e.compiled = regexp.MustCompile(e.source) })
	return e.compiled
}

// Regexp is an expression that is compiled when it is first used. A wrong one panics
// then, as [regexp.MustCompile] does.
func Regexp(source string) func() *regexp.Regexp {
	return (&expression{source: source}).get
}
