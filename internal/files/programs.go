package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ProgramPath is a PATH without the folders in which others than the person may
// put programs: those that lie below one of trees, whatever link leads there and
// whether they are there yet, and relative ones. left are those folders.
func ProgramPath(path string, trees ...string) (kept string, left []string) {
	var tops []os.FileInfo
	for _, tree := range trees {
		if info, err := os.Stat(tree); err == nil {
			tops = append(tops, info)
		}
	}
	var keep []string
	for _, folder := range filepath.SplitList(path) {
		if filepath.IsAbs(folder) && !passes(tops, folder, maxLinks) {
			keep = append(keep, folder)
		} else {
			left = append(left, folder)
		}
	}
	return strings.Join(keep, string(filepath.ListSeparator)), left
}

// passes is whether one comes through one of the folders, or into it, on the way to an
// absolute path; links are followed as the kernel does, one after the other.
func passes(tops []os.FileInfo, path string, links int) bool {
	at, parts := "/", strings.Split(path, "/")
	for i, part := range parts {
		if part == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		if err == nil && info.Mode()&os.ModeSymlink != 0 && links > 0 {
			to, _ := os.Readlink(next)
			if !filepath.IsAbs(to) {
				to = at + "/" + to
			}
			return passes(tops, to+"/"+strings.Join(parts[i+1:], "/"), links-1)
		}
		if err == nil && slices.ContainsFunc(tops, func(top os.FileInfo) bool { return os.SameFile(info, top) }) {
			return true
		}
		at = next
	}
	return false
}

// maxLinks is how many links the kernel follows on the way to a file.
const maxLinks = 40
