package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/lazy"
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
	links, _ := c.indexed(ctx)
	for _, name := range slices.Concat(links, []string{""}) {
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
	settings, _ := c.Repo.Config(ctx) // without, git runs nothing by it either
	return append(leads, c.commands(settings)...), folders
}

// includes are settings that name one more file of configuration.
var includes = lazy.Regexp(`^include(if\..*)?\.path$`)

// commands are the folder of hooks, and the files of configuration that git reads or
// would read, where they are in the work tree. Git's own places are left out: see
// [Checkout.ConfigFingerprint].
func (c *Checkout) commands(settings []git.Setting) []string {
	all := []string{c.hooksFolder(settings)}
	for _, s := range settings {
		all = append(all, s.File)
		if includes().MatchString(s.Key) {
			all = append(all, named(s.Value, filepath.Dir(s.File)))
		}
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		all = append(all, os.Getenv(name))
	}
	all = append(all, named("~/.gitconfig", ""), named("~/.config/git/config", ""),
		filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "git", "config"))
	usual := []string{
		filepath.Join(c.Repo.Common, "hooks"), filepath.Join(c.Repo.Common, "config"), filepath.Join(c.Repo.Dir,
			"config.worktree"),
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(path string) bool {
		_, inTree := files.Below(c.Repo.Top, path)
		return !inTree || slices.Contains(usual, path)
	})
}

// named is a path as git's configuration names it: from the home folder, or from dir.
func named(path, dir string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		return filepath.Join(dir, path)
	}
	return path
}
