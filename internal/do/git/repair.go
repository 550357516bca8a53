package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Objects and refs of snapshots are not synced when they are made; after a
// power loss some may be empty, half or missing. An object that is there but
// broken is worse than one that is missing: git does not write it again. So the
// first one who uses the repository after a start of the machine looks.

// bootFile, in pawl's folder for a repository, has the id of the boot after which
// the repository was last looked at.
const bootFile = "boot"

// AfterBoot mends, once after each start of the machine, what a power loss left of
// what pawl wrote without waiting for the disk. Dir is pawl's folder for the
// repository: broken objects that are not empty are moved there. It returns what
// people should know.
func (r *RefStore) AfterBoot(ctx context.Context, dir string) (notes []string, err error) {
	file, now := filepath.Join(dir, bootFile), process.Boot()
	seen := func() (before, now bool) {
		was, err := os.ReadFile(file)
		return err == nil, strings.TrimSpace(string(was)) == process.Boot()
	}
	if _, done := seen(); done || now == "" {
		return nil, nil
	}
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot look for what a power loss left: %v", err)
	}
	lock, err := files.Lock(ctx, file+".lock")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	before, done := seen()
	if done {
		return nil, nil
	}
	if before {
		if notes, err = r.repairObjects(ctx, filepath.Join(dir, "after-power-loss")); err != nil {
			return notes, fmt.Errorf("cannot look for what a power loss left: %w", err)
		}
	}
	if err := files.Replace(file, []byte(now+"\n"), 0o600, true); err != nil {
		return notes, fmt.Errorf("cannot record that the repository was checked: %v", err)
	}
	return notes, nil
}

func (r *RefStore) repairObjects(ctx context.Context, aside string) (notes []string, err error) {
	n, err := r.dropBroken(ctx, aside)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		notes = append(notes, fmt.Sprintf("%d objects in %s were empty or broken, as after a power loss, and were "+
			"moved away (to %s); if something is missing, run: git fsck", n, r.Objects, aside))
	}
	r.dropLocks()
	gone, err := r.dropRefs(ctx)
	if len(gone) > 0 {
		notes = append(notes, fmt.Sprintf("removed %d of pawl's own refs to objects that a power loss destroyed: %s",
			len(gone), strings.Join(gone[:min(len(gone), 3)], ", ")))
	}
	return notes, err
}

// dropBroken takes away loose objects that are not what their names say.
func (r *Folders) dropBroken(ctx context.Context, aside string) (n int, err error) {
	dirs, err := filepath.Glob(filepath.Join(r.Objects, "[0-9a-f][0-9a-f]"))
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return n, err
		}
		for _, e := range entries {
			id := filepath.Base(dir) + e.Name()
			if !e.Type().IsRegular() || !r.isObjectID(id) || r.isIntactObject(id) {
				continue
			}
			if err := moveAside(filepath.Join(dir, e.Name()), filepath.Join(aside, id)); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// isIntactObject reports whether an object in a file of its own is what its name says. What cannot be read
// is left for git to complain about.
func (r *Folders) isIntactObject(id string) bool {
	f, err := os.Open(r.loosePath(id))
	if err != nil {
		return true
	}
	defer f.Close()
	return r.isObject(f, id)
}

// moveAside moves a file out of the way; of an empty one nothing is kept.
func moveAside(path, to string) error {
	data, err := os.ReadFile(path)
	if err == nil && len(bytes.Trim(data, "\x00")) > 0 {
		if err = os.MkdirAll(filepath.Dir(to), 0o700); err == nil {
			err = files.Replace(to, data, 0o600, true)
		}
	}
	if err != nil {
		return err
	}
	return os.Remove(path)
}

// dropLocks removes locks of refs that have no holder any more: they are older than the machine's
// start, and no program works in the repository. The lock of the index is the user's, and stays.
func (r *RefStore) dropLocks() {
	for path, info := range r.refLocks() {
		if info.ModTime().Before(process.Booted()) && process.Within(r.Top, r.Common) == "" {
			_ = os.Remove(path) // or git says that it is there
		}
	}
}

// dropRefs removes refs of pawl's own that lead to nothing that is whole.
func (r *RefStore) dropRefs(ctx context.Context) (gone []string, err error) {
	root := filepath.Join(r.Common, "refs", "pawl")
	var broken []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".lock") || strings.HasPrefix(d.Name(), ".pawl-") {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && !r.isObjectID(strings.TrimSpace(string(data))) {
			broken = append(broken, path)
		}
		return err
	})
	for _, path := range broken {
		if err == nil {
			err = os.Remove(path)
		}
		name, _ := filepath.Rel(r.Common, path)
		gone = append(gone, filepath.ToSlash(name))
	}
	if err != nil {
		return gone, err
	}
	return r.dropUnfollowable(ctx, gone)
}

// MendRefs removes refs of pawl's own that lead to nothing, when one is met: git
// lists none of them then, and the user's own gc fails. It names them.
func (r *RefStore) MendRefs(ctx context.Context) (gone []string, err error) {
	if _, err = r.Refs(ctx, "refs/pawl/"); err == nil || OfMachine(err) || ctx.Err() != nil {
		return nil, err
	}
	return r.dropRefs(ctx)
}

// dropUnfollowable removes refs that cannot be followed to their ends. What the user's
// own refs lead to is not looked at.
func (r *RefStore) dropUnfollowable(ctx context.Context, gone []string) ([]string, error) {
	out, err := command.Run(ctx, r.NewCall("for-each-ref", "--format=%(objectname) %(refname)", "refs/pawl"))
	if err != nil {
		return gone, err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	follow := func(ids ...string) bool {
		c := r.NewCall("rev-list", "--objects", "--quiet", "--stdin", "--not", "--branches", "--tags", "--remotes")
		c.Stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
		_, err := command.Run(ctx, c)
		return err == nil
	}
	var ids []string
	for _, line := range lines {
		if id, _, ok := strings.Cut(line, " "); ok {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || follow(ids...) || !follow() {
		return gone, ctx.Err()
	}
	for _, line := range lines {
		id, name, _ := strings.Cut(line, " ")
		if follow(id) {
			continue
		}
		if _, err := command.Run(ctx, r.NewCall("update-ref", "--no-deref", "-d", name)); err != nil {
			return gone, err
		}
		gone = append(gone, name)
	}
	return gone, nil
}

// beforeBoot reports whether a file was written before the machine was started,
// and so may be half of what it was to be.
func beforeBoot(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.ModTime().Before(process.Booted())
}

// runRefCommand runs a command that moves refs. Git itself waits ten seconds for the lock of a ref. If it
// is still there, its holder may be dead: git was killed. Such locks are removed if
//
//   - they are those of refs, HEAD, packed-refs or the commit graph, and files of this user;
//   - no git works in the repository after they were seen, so that they have no holder.
//
// The lock of an index is never removed: there may be something in it. Time is what git waits, and
// no clock.
func (r *RefStore) runRefCommand(ctx context.Context, c call) error {
	_, err := command.Run(ctx, c)
	if lockNamedIn(err) == "" {
		return err
	}
	seen := r.refLocks()
	holders, ok := process.Users("git", r.Top, r.Common, r.Dir)
	if !ok || len(holders) > 0 || seen[lockNamedIn(err)] == nil || !c.CanRepeat() {
		return err
	}
	now := r.refLocks()
	for path, was := range seen {
		if isSameFile(was, now[path]) {
			_ = os.Remove(path) // or git says that it is there
		}
	}
	_, err = command.Run(ctx, c)
	return err
}

// lockNamedIn is the lock that a command failed at; empty for any other error.
func lockNamedIn(err error) string {
	var e *command.Error
	if !errors.As(err, &e) {
		return ""
	}
	_, path, _ := strings.Cut(e.Stderr, "Unable to create '")
	path, _, there := strings.Cut(path, "': File exists")
	if !there {
		return ""
	}
	return path
}

// refLocks are the locks of refs that are files of this user, by path.
func (r *RefStore) refLocks() map[string]os.FileInfo {
	locks := map[string]os.FileInfo{}
	add := func(path string) {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			return
		}
		if own, ok := info.Sys().(*syscall.Stat_t); ok && int(own.Uid) == os.Geteuid() {
			locks[path] = info
		}
	}
	for _, dir := range []string{r.Dir, r.Common} {
		add(filepath.Join(dir, "HEAD.lock"))
		add(filepath.Join(dir, "packed-refs.lock"))
		add(filepath.Join(dir, "objects", "info", "commit-graph.lock"))
		_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".lock") {
				add(path)
			}
			return nil // what cannot be read is left
		})
	}
	return locks
}

// isSameFile reports whether a lock was not given back and taken again.
func isSameFile(was, is os.FileInfo) bool {
	return was != nil && is != nil && os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}
