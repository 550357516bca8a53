package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

const (
	maxRefused = 3   // lines that are reported
	maxLine    = 300 // bytes of a line
)

// Refused are the lines of output, at most three, that tell of something that
// a box with this policy refused: "Read-only file system" is said nowhere
// else, "Permission denied" counts with a path that is out of bounds, "busy"
// with one that is kept, and "No such file" with one that is hidden.
func Refused(p Policy, output string) []string {
	var out []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if len(out) == maxRefused || !tellsRefusal(p, line) {
			continue
		}
		if line = fault.Cut(line, maxLine); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

func tellsRefusal(p Policy, line string) bool {
	low := strings.ToLower(line)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(low, w) })
	}
	switch {
	case has("read-only file system", "erofs"):
		return true
	case has("permission denied", "operation not permitted", "eacces", "eperm"):
		return names(line, func(path string) bool { return filepath.IsAbs(path) && outOfBounds(p, path) })
	case has("resource busy", "ebusy"):
		return NamesKept(p, line)
	case has("connect to the docker daemon"):
		return slices.ContainsFunc(p.Hide, func(h string) bool { return filepath.Base(h) == "docker.sock" })
	case has("no such file", "enoent"):
		return names(line, func(path string) bool {
			return filepath.IsAbs(path) && slices.ContainsFunc(p.Hide, func(h string) bool { return within(h, path) })
		})
	}
	return false
}

// NamesKept is whether a line names a path that is kept from being changed.
func NamesKept(p Policy, line string) bool {
	return names(line, func(path string) bool { return isKept(p, path) })
}

// names is whether a word of the line is a path that is so.
func names(line string, so func(path string) bool) bool {
	between := func(r rune) bool { return strings.ContainsRune(" \t'\"`‘’“”:,;()[]", r) }
	return slices.ContainsFunc(strings.FieldsFunc(line, between), func(word string) bool {
		return len(word) > 1 && !strings.HasPrefix(word, "//") && so(filepath.Clean(word))
	})
}

// isKept is whether path, which may be relative to anything, is kept or holds
// what is: to replace or to move it fails as a mount that is in use.
func isKept(p Policy, path string) bool {
	return slices.ContainsFunc(p.Keep, func(k string) bool {
		for dir := k; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
			if dir == path || strings.HasSuffix(dir, "/"+path) {
				return true
			}
		}
		return false
	})
}

func outOfBounds(p Policy, path string) bool {
	in := func(w string) bool { return within(w, path) }
	if slices.ContainsFunc(p.Temp, func(b Bind) bool { return within(b.To, path) }) {
		return slices.ContainsFunc(p.Show, in)
	}
	return slices.ContainsFunc(p.Hide, in) || slices.ContainsFunc(p.Keep, in) || !slices.ContainsFunc(p.Write, in)
}
