// Package lazy makes what few processes of pawl need when it is first asked for, so
// that no start pays for it. It keeps nothing else and decides nothing.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp is an expression that is compiled when it is first used. A wrong one panics
// then, as [regexp.MustCompile] does.
func Regexp(source string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
}
