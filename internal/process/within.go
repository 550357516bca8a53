package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Within names a process other than this one whose working folder is in one of
// the folders, and is empty when there is none, or the machine does not tell.
func Within(dirs ...string) string {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return ""
	}
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || !slices.ContainsFunc(dirs, func(dir string) bool { return cwd == dir || strings.HasPrefix(cwd, dir+"/") }) {
			continue
		}
		proc := filepath.Dir(link)
		pid := filepath.Base(proc)
		if pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(proc, "comm")) // it may just have ended
		return fmt.Sprintf("process %s (%s) is in it", pid, strings.TrimSpace(string(name)))
	}
	return ""
}
