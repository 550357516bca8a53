package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxRefused = 3   // lines that are reported
	maxLine    = 300 // bytes of a line
)

// Refused are the lines of output, at most three, that tell of something that
// a box with this policy refused: "Read-only file system" is said nowhere
// else, and "Permission denied" counts with a path that is out of bounds.
func Refused(p Policy, output string) []string {
	var out []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if len(out) == maxRefused || !tellsRefusal(p, line) {
			continue
		}
		if len(line) > maxLine {
			line = strings.ToValidUTF8(line[:maxLine], "") + "…"
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

func tellsRefusal(p Policy, line string) bool {
	low := strings.ToLower(line)
	if strings.Contains(low, "read-only file system") || strings.Contains(line, "EROFS") {
		return true
	}
	if !strings.Contains(low, "permission denied") && !strings.Contains(low, "operation not permitted") &&
		!strings.Contains(line, "EACCES") && !strings.Contains(line, "EPERM") {
		return false
	}
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t'\"`‘’“”:,;()[]", r) }) {
		if filepath.IsAbs(word) && len(word) > 1 && !strings.HasPrefix(word, "//") && outOfBounds(p, filepath.Clean(word)) {
			return true
		}
	}
	return false
}

func outOfBounds(p Policy, path string) bool {
	in := func(w string) bool { return within(w, path) }
	return slices.ContainsFunc(p.Hide, in) || slices.ContainsFunc(p.Keep, in) || !slices.ContainsFunc(p.Write, in)
}
