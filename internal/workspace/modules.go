package workspace

import (
	"context"
	"os"
	"path/filepath"
)

// maxModules bounds how many folders are looked at.
const maxModules = 1000

// Modules are the git folders of the repository's submodules, also of nested
// ones, and of its linked work trees, as they are now. Each has hooks, a
// configuration or a common folder that git obeys.
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
	look(filepath.Join(c.Repo.Common, "worktrees"))
	return found
}

// Leads are the files of the work tree that say where a git folder is, and the git
// folders of nested repositories that the index names.
func (c *Checkout) Leads(ctx context.Context) (leads, folders []string) {
	for _, name := range append(c.gitlinks(ctx), "") {
		path := filepath.Join(c.Repo.Top, filepath.FromSlash(name), ".git")
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.IsDir():
			folders = append(folders, path)
		default:
			leads = append(leads, path)
		}
	}
	return leads, folders
}
