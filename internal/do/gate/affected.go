package gate

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
)

// SkipUnaffected marks those specs that are about files of which none was changed. They are not run, and count as
// green: what they judge is as it was. The paths of changed, which is asked only where a spec is about some files,
// begin at the top of the repository; patterns at the folder below it where pawl.yaml is. Where it is not known
// what was changed, all run.
func SkipUnaffected(specs []Spec, folder string, changed func() (paths []string, known bool)) []Spec {
	if !slices.ContainsFunc(specs, func(s Spec) bool { return len(s.Affected) > 0 }) {
		return specs
	}
	paths, known := changed()
	if !known {
		return specs
	}
	specs = slices.Clone(specs)
	for i := range specs {
		s := &specs[i]
		isAbout := func(name string) bool {
			name = strings.TrimPrefix(name, folder+"/")
			return slices.ContainsFunc(s.Affected, func(p string) bool { return Match(p, name) })
		}
		if len(s.Affected) > 0 && !slices.ContainsFunc(paths, isAbout) {
			s.skip = "nothing changed in " + deliver.Some(s.Affected)
		}
	}
	return specs
}
