package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
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
func (c *Checkout) Leads(ctx context.Context, settings []git.Setting) (leads, folders []string) {
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

// lentStore is the file that has the path of an object store that is lent.
const lentStore = "store"

// Lend makes folders that processes of agents and gates see in the place of the
// repository's object stores, those of submodules too, and says what is to be shown
// where. They read the stores, and what they add is brought in by [Checkout.Accept].
// Nested are the folders that [Checkout.Leads] found.
func (c *Checkout) Lend(nested []string) ([]View, error) {
	var views []View
	for _, store := range c.stores(nested) {
		sum := sha256.Sum256([]byte(store))
		dir := filepath.Join(c.lentDir(), hex.EncodeToString(sum[:8]))
		in := intake(dir, store)
		if err := in.Prepare(); err != nil {
			return nil, err
		}
		// Last: what has it is whole.
		if err := files.Replace(filepath.Join(dir, lentStore), []byte(store), 0o600, false); err != nil {
			return nil, fmt.Errorf("cannot lend an object store: %w", err)
		}
		views = append(views, View{From: in.New, To: store}, View{From: store, To: in.Lent, ReadOnly: true})
	}
	return views, nil
}

// Accept brings what was added to the folders of [Checkout.Lend] into the object
// stores, and names what was left out because it is not what its name says. It costs
// next to nothing when there is nothing.
func (c *Checkout) Accept(ctx context.Context) (bad []string, err error) {
	entries, err := os.ReadDir(c.lentDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		dir := filepath.Join(c.lentDir(), e.Name())
		store, rerr := files.ReadBelow(dir, lentStore, textLimit)
		if errors.Is(rerr, fs.ErrNotExist) {
			continue // it is being made
		}
		if rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		in := intake(dir, string(store))
		more, aerr := c.Repo.Accept(ctx, in)
		for _, name := range more {
			bad = append(bad, c.shown(lead{in.Store, name}))
		}
		err = errors.Join(err, aerr)
	}
	return bad, err
}

// BadObjects says for a person what [Checkout.Accept] left out.
func BadObjects(bad []string) string {
	if len(bad) == 1 {
		return "git's object " + bad[0] + " is not what its name says, and was not taken into the repository"
	}
	return fmt.Sprintf("%d of git's objects are not what their names say, and were not taken into the repository, "+
		"first: %s", len(bad), bad[0])
}

func (c *Checkout) lentDir() string { return filepath.Join(c.stateDir, "objects") }

func intake(dir, store string) git.Intake {
	return git.Intake{Store: store, New: filepath.Join(dir, "new"), Lent: filepath.Join(dir, "lent")}
}

// stores are the object stores of the repository, of its submodules, and of nested
// repositories.
func (c *Checkout) stores(nested []string) []string {
	all := []string{c.Repo.Objects}
	for _, dir := range append(c.Modules(), nested...) {
		store := filepath.Join(dir, "objects")
		if info, err := os.Lstat(store); err == nil && info.IsDir() { // what a link leads to is not shown
			all = append(all, store)
		}
	}
	return all
}
