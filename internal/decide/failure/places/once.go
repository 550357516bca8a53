package places

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// EachFileOnce returns files without the absolute paths of files that are named by their path in the repository too.
func EachFileOnce(files []string) []string {
	return lists.Pick(files, func(f string) (string, bool) {
		return f, !strings.HasPrefix(f, "/") ||
			!slices.ContainsFunc(files, func(other string) bool {
				return other != f && strings.HasSuffix(f, "/"+other)
			})
	})
}
