package gate

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
)

// SkipUnaffected marks those specs that are about files of which none is among changed. They are not run, and
// count as green: what they judge is as it was. The paths of changed begin at the top of the repository, patterns
// at the folder below it where pawl.yaml is.
func SkipUnaffected(specs []Spec, folder string, changed []string) []Spec {
	specs = slices.Clone(specs)
	for i := range specs {
		s := &specs[i]
		isAbout := func(name string) bool {
			name = strings.TrimPrefix(name, folder+"/")
			return slices.ContainsFunc(s.Affected, func(p string) bool { return Match(p, name) })
		}
		if len(s.Affected) > 0 && !slices.ContainsFunc(changed, isAbout) {
			s.skip = "nothing changed in " + deliver.Some(s.Affected)
		}
	}
	return specs
}
