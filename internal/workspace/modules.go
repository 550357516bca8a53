package workspace

import (
	"os"
	"path/filepath"
)

// maxModules bounds how many folders are looked at.
const maxModules = 1000

// Modules are the git folders of the repository's submodules, also of nested
// ones, as they are now. Each has hooks and a configuration that git obeys
// when it is asked about the whole.
func (c *Checkout) Modules() []string {
	var found []string
	looked := 0
	var look func(dir string)
	look = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return // mostly: there are none
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if looked++; looked > maxModules || !e.IsDir() {
				continue
			}
			if _, err := os.Lstat(filepath.Join(path, "HEAD")); err != nil {
				look(path) // a name with a slash
				continue
			}
			found = append(found, path)
			look(filepath.Join(path, "modules"))
		}
	}
	look(filepath.Join(c.Repo.Common, "modules"))
	return found
}
