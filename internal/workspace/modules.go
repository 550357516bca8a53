package workspace

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
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

// OfOthers are what git keeps of the repository's other work trees: what is checked out
// there, and their indexes.
func (c *Checkout) OfOthers() []string {
	var all []string
	if c.Repo.Common != c.Repo.Dir {
		all = []string{filepath.Join(c.Repo.Common, "HEAD"), filepath.Join(c.Repo.Common, "index")}
	}
	entries, _ := os.ReadDir(filepath.Join(c.Repo.Common, "worktrees")) // mostly there are none
	for _, e := range entries {
		if dir := filepath.Join(c.Repo.Common, "worktrees", e.Name()); e.IsDir() && dir != c.Repo.Dir {
			all = append(all, dir)
		}
	}
	return all
}

// Leads are the files of the work tree that say where a git folder is, or that git
// takes commands from because its configuration says so (core.hooksPath, included
// files), and the git folders of nested repositories that the index names.
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
	return append(leads, c.commands(ctx)...), folders
}

// includes are settings that name one more file of configuration.
var includes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^include(if\..*)?\.path$`) })

// commands are the folder of hooks and the included configuration, where they are
// in the work tree.
func (c *Checkout) commands(ctx context.Context) []string {
	settings, err := c.Repo.Config(ctx)
	if err != nil {
		return nil // git runs nothing by it either
	}
	all := []string{c.hooksFolder(settings)}
	for _, s := range settings {
		if !includes().MatchString(s.Key) {
			continue
		}
		path := s.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(s.File), path)
		}
		all = append(all, path)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(path string) bool {
		rel, err := filepath.Rel(c.Repo.Top, path)
		return err != nil || !filepath.IsLocal(rel) || rel == "."
	})
}
