package pool

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// dropAgentLocks removes the locks that a killed git of an agent left, from a task's clone in which no git works:
// the next agent could commit nothing. Only the index, HEAD and refs have such; no branch has such a name.
func dropAgentLocks(dir string) {
	root, err := os.OpenRoot(filepath.Join(dir, ".git"))
	if err != nil {
		return // it is broken, which is seen where it is read
	}
	defer root.Close()
	var locks []string
	for _, name := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"} {
		if _, err := root.Lstat(name); err == nil {
			locks = append(locks, name)
		}
	}
	_ = fs.WalkDir(root.FS(), "refs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".lock") {
			locks = append(locks, name)
		}
		return nil // what cannot be read is left
	})
	if len(locks) == 0 {
		return // to look at all processes takes time
	}
	if holders, ok := process.Users("git", dir); !ok || len(holders) > 0 || processIn(dir) != "" {
		return
	}
	for _, name := range locks {
		_ = root.Remove(name)
	}
}
