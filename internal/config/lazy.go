package config

import (
	"regexp"
	"sync"
)

// lazily compiles an expression when it is first used: every start of pawl
// would pay for what few of them need.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
