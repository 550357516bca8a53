package statedir

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// A state folder belongs to a repository, not to a path: it has a note of whose it is.
// Another repository at the same path has a folder of its own, with a number at its end.
// One that was moved keeps its folder, to which the folder of its new path leads.

const ownerFile = "owner.json"

// owner is the note. What is stored outlives the code: names must not change.
type owner struct {
	Root   string `json:"root"`             // where the repository was last
	Git    string `json:"git"`              // its .git, as [gitIdentityOf] says
	Commit string `json:"commit,omitempty"` // one that it has
	At     string `json:"at,omitempty"`     // name of the state folder that is meant in place of this one
}

func readOwner(dir string) (o owner, err error) {
	err = files.ReadJSON(filepath.Join(dir, ownerFile), &o)
	return o, err
}

func (o owner) writeOwnerFile(dir string) error {
	if err := files.ReplaceJSON(filepath.Join(dir, ownerFile), o, false); err != nil {
		return fmt.Errorf("cannot record whose state is in %s: %w", dir, err)
	}
	return nil
}

// numberedFolders are the state folders of a path in turn: first, and those with a number.
func numberedFolders(first string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir, n := first, 2; yield(dir); n++ {
			dir = first + "-" + strconv.Itoa(n)
		}
	}
}

// findNumbered returns the first of the numbered state folders that belongs to the repository
// of root, or to none yet, or the folder that it leads to.
func findNumbered(root, first string) string {
	git := gitIdentityOf(root)
	for dir := range numberedFolders(first) {
		o, err := readOwner(dir)
		if err != nil || git == "" || o.Git == git {
			return filepath.Join(filepath.Dir(dir), filepath.Base(cmp.Or(o.At, dir)))
		}
	}
	return first
}

// HasGit reports whether there is a .git at root or above it, whatever it is.
func HasGit(root string) bool { return gitIdentityOf(root) != "" }

// gitIdentityOf identifies the .git of a root, and the place of the root below it. It is empty
// outside of git.
func gitIdentityOf(root string) string {
	for at := root; ; at = filepath.Dir(at) {
		if id, err := files.Identity(filepath.Join(at, ".git")); err == nil {
			below, _ := filepath.Rel(at, root)
			return id + " " + below
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// FindCommit returns the id of the commit that a name stands for in the repository that a
// person is in; "" for none.
type FindCommit func(name string) string

// Claim finds the state folder of a root that it has not had before: of a repository
// that was cloned again, or put back from a backup, at its path, which has a commit that the
// old one had; or of one that was moved here. From then on [StateDir] gives that folder.
func Claim(root string, env []string, find FindCommit) error {
	git, first := gitIdentityOf(root), firstStateDir(root, env)
	if git == "" {
		return nil
	}
	dir := Of(root, env)
	if o, err := readOwner(dir); err == nil {
		if o.Commit == "" {
			if o.Commit = find("HEAD"); o.Commit != "" {
				return o.writeOwnerFile(dir)
			}
		}
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, "pawl.db")); err == nil { // of a root that was in no git repository then
		return nil
	}
	for at := range numberedFolders(first) {
		if at == dir {
			break
		}
		if o, err := readOwner(at); err == nil && o.hasCommitOf(find) {
			o.Git = git
			return o.writeOwnerFile(at)
		}
	}
	others, _ := os.ReadDir(Base(env)) // where there is none, pawl was used nowhere
	for _, other := range others {
		at := filepath.Join(Base(env), other.Name())
		o, err := readOwner(at)
		if err != nil || o.At != "" || !o.wasMovedTo(git, find) {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot move the state of a repository that was moved: %w", err)
		}
		return owner{Root: root, Git: git, Commit: o.Commit, At: other.Name()}.writeOwnerFile(dir)
	}
	return nil
}

func (o owner) hasCommitOf(find FindCommit) bool { return o.Commit != "" && find(o.Commit) == o.Commit }

func (o owner) wasMovedTo(git string, find FindCommit) bool {
	return o.Git == git && gitIdentityOf(o.Root) != git && o.hasCommitOf(find)
}

// RootBefore returns the path at which pawl was used in the repository last, where it is
// another one than root, and "" otherwise.
func RootBefore(root string, env []string) string {
	if o, err := readOwner(Of(root, env)); err == nil && o.Root != root {
		return o.Root
	}
	return ""
}

// keepOwner notes that the repository at root has the state in dir.
func keepOwner(root, dir string, find FindCommit) error {
	git := gitIdentityOf(root)
	o, err := readOwner(dir)
	switch {
	case git == "" || err == nil && o.Root == root:
		return nil
	case err != nil:
		o.Commit = find("HEAD")
	}
	return owner{Root: root, Git: git, Commit: o.Commit}.writeOwnerFile(dir)
}

// OfGone are the folders with the state of repositories that have commits of the one at
// root and are not at their place any more: this one may be one of them, on another disk now.
func OfGone(root string, env []string, find FindCommit) (dirs []string) {
	base, mine := Base(env), Of(root, env)
	others, _ := os.ReadDir(base) // as above
	for _, other := range others {
		dir := filepath.Join(base, other.Name())
		o, err := readOwner(dir)
		isAnother := err == nil && o.At == "" && dir != mine && !HasGit(o.Root)
		if isAnother && o.hasCommitOf(find) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// OfOthers are the folders with the state of other repositories that were at the path
// of a root.
func OfOthers(root string, env []string) (dirs []string) {
	mine := Of(root, env)
	for dir := range numberedFolders(firstStateDir(root, env)) {
		o, err := readOwner(dir)
		if err != nil {
			break
		}
		if dir != mine && o.At == "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
