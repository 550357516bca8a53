package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/failure"
)

// ownStrategies checks what `strategies:` adds to the built-in ones.
func (k *checker) ownStrategies() {
	taken := slices.Concat(strategyModes, k.strategies)
	for i := range k.Strategies {
		s := &k.Strategies[i]
		path := fmt.Sprintf("strategies[%d]", i)
		switch {
		case !validName().MatchString(s.Name):
			k.fail(path, "", "%s needs a name of letters, digits, - and _", path)
		case slices.Contains(taken, s.Name):
			k.fail(path, "", "%s has the name %q, which is taken", path, s.Name)
		}
		taken = append(taken, s.Name)
		k.classes(path, s)
	}
}

// classes checks the failures that a strategy is made for.
func (k *checker) classes(path string, s *Strategy) {
	known := make([]string, 0, len(failure.Classes()))
	for _, c := range failure.Classes() {
		known = append(known, string(c))
	}
	for i, name := range s.ApplicableErrors {
		if slices.Contains(known, name) {
			continue
		}
		at := fmt.Sprintf("%s.applicable_errors[%d]", path, i)
		near, hint := Nearest(name, known), ""
		if near == "" {
			hint = "; there are " + strings.Join(known, ", ")
		}
		k.fail(at, near, "%s must be a class of failure, not %q%s", at, name, hint)
	}
}
