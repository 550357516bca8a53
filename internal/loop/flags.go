package loop

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

var flagged = lazy.Regexp(`(?i)\bfile:\s*([^\s,]+)`)

// maxFlagged bounds what one text can flag.
const maxFlagged = 100

// FlaggedFiles lists the paths that a text names as "file: path", each once,
// in their order.
func FlaggedFiles(text string) []string {
	var files []string
	for _, m := range flagged().FindAllStringSubmatch(text, 10*maxFlagged) {
		path := strings.TrimRight(m[1], `.;:)]}"'`)
		if path != "" && len(files) < maxFlagged && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}
