package places

import (
	"slices"
	"strings"
)

// EachFileOnce returns files without the absolute paths of files that are named by their path in the repository too.
func EachFileOnce(files []string) []string {
	isNamedTwice := func(f string) bool {
		isSame := func(other string) bool { return other != f && strings.HasSuffix(f, "/"+other) }
		return strings.HasPrefix(f, "/") && slices.ContainsFunc(files, isSame)
	}
	return slices.DeleteFunc(slices.Clone(files), isNamedTwice)
}
