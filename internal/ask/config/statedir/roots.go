package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// rootFile is where a state folder has the path of its root.
const rootFile = "root"

// maxPath bounds what is read of a [rootFile].
const maxPath = 8 << 10

// KeepRoot makes root one of [Roots], and notes whose its state folder is, which must be
// there. A root that is known already is not written again.
func KeepRoot(root string, env []string, find FindCommit) error {
	dir := Of(root, env)
	if err := keepOwner(root, dir, find); err != nil {
		return err
	}
	if kept, err := keptRoot(dir); err == nil && kept == root {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, rootFile), []byte(root), 0o600) // a part of a path names nothing
}

// Roots are the roots in which this user has used pawl, in the order of their
// state folders. What another user can write is not read, and an entry that names
// another folder than its own counts as none. A root that is gone is forgotten: it
// is one again when pawl is used there.
func Roots(env []string) []string {
	base := Base(env)
	entries, _ := os.ReadDir(base) // where there is none, pawl was used nowhere
	var roots []string
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if !ownFolder(dir) {
			continue
		}
		root, err := keptRoot(dir)
		if err != nil || !filepath.IsAbs(root) || Of(root, env) != dir {
			continue
		}
		info, err := os.Stat(root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			_ = os.Remove(filepath.Join(dir, rootFile)) // it is passed over next time, too
		case err == nil && info.IsDir():
			roots = append(roots, root)
		}
	}
	return roots
}

// keptRoot reads the path that a state folder has.
func keptRoot(dir string) (string, error) {
	path := filepath.Join(dir, rootFile)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPath {
		return "", fs.ErrNotExist
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// ownFolder reports whether it is a folder, not a link to one, that only this user can write.
func ownFolder(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && notOnlyMine(dir) == nil
}

// notOnlyMine returns an error that names who else can write to a folder; nil if no one can.
func notOnlyMine(dir string) error {
	info, err := os.Stat(dir)
	if err == nil {
		err = ofAnother(dir)
	}
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others can write %s (mode %04o)", dir, info.Mode().Perm())
	}
	return err
}

// ofAnother is an error about a file of another user; nil for what is this user's, or not there.
func ofAnother(path string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil || int(st.Uid) == os.Getuid() {
		return nil //nolint:nilerr // it was removed just now
	}
	return fmt.Errorf("%s belongs to user %d, and you are user %d", path, st.Uid, os.Getuid())
}
