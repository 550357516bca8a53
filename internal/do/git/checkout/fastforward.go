// Package checkout moves a person's checkout to where its branch goes: the files and the index
// of a work tree, or the index alone where the caller moves the files. What is staged or changed
// there stays, what is in the way is named before anything moves, and what a crash cuts off is
// finished by the next who has the lock. It refuses a checkout that no work can be delivered into.
// It moves no branch: that is the caller's, between the beginning and the move.
package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// FastForward moves the files of a work tree from one commit to another, as `git
// merge --ff-only` does: paths that do not differ between the two are not
// looked at, and what is staged or changed there stays.
//
//	Begin: the index is locked, and compared: Overlap names what is in the way
//	…      the caller moves the branch
//	Move   files, then the index
//	End    the lock is given back
//
// The index is worked on as a copy beside the file hold, where no agent can put a link
// in its place, and replaced whole. The lock file has a mark, by which a lock that a
// dead pawl left differs from that of a running git. The file gets its name when the
// mark is synced, so that a power loss cannot take the mark away. The caller holds the lock file hold, which git inherits: two pawls
// never move the same work tree.
//
// Files are synced before the index says that they are there. A move that was cut off
// is finished by another one. Until then the index stays locked: who committed all that
// differs would take back what the branch was moved to.
type FastForward struct {
	repo     *git.Repo
	from, to string
	hold     *os.File
	private  string // the copy of the index
	changes  []git.Change

	cut      bool     // the move began, and did not end
	unfilter []string // settings that leave the person's filters out, whose programs are not there
}

// ErrIndexLocked is returned when another git command has the lock of the index.
var ErrIndexLocked = errors.New("another git command holds the index")

const lockMark = "pawl moves this work tree\n"

// BeginFastForward locks the index of r. The error is [ErrIndexLocked] when
// another program has it. The caller ends it in any case.
func BeginFastForward(ctx context.Context, r *git.Repo, from, to string, hold *os.File) (*FastForward, error) {
	a, err := BeginIndexMove(ctx, r, from, to, hold)
	if err != nil {
		return nil, err
	}
	if err := a.refreshIndex(ctx); err != nil {
		a.End()
		return nil, err
	}
	return a, nil
}

func (a *FastForward) lockIndex() error {
	dir, name := filepath.Split(a.repo.Index + ".lock")
	err := files.MakeBelow(dir, name, []byte(lockMark))
	if errors.Is(err, fs.ErrExist) {
		if isPawlLock(a.repo.Index + ".lock") {
			return nil // a dead pawl's: who is alive holds the file hold
		}
		return describeLocked(a.repo)
	}
	if err != nil {
		return fmt.Errorf("cannot lock the index of %s: %v", a.repo.Top, err)
	}
	return nil
}

// describeLocked is an error that says whose the lock may be. The lock is git's and
// is never removed, since there may be work in it.
func describeLocked(r *git.Repo) error {
	name := r.Index + ".lock"
	info, err := os.Lstat(name)
	if err == nil && info.ModTime().Before(process.Booted()) {
		return fmt.Errorf("%w of %s: %s was left by one that the machine's end cut off; if no git works there, "+
			"remove it",
			ErrIndexLocked, r.Top, name)
	}
	return fmt.Errorf("%w of %s; if none runs there any more, remove %s", ErrIndexLocked, r.Top, name)
}

// End gives the lock back, but for that of a move that was cut off.
func (a *FastForward) End() {
	_ = os.Remove(a.private)
	_ = os.Remove(a.private + ".lock")
	if !a.cut && isPawlLock(a.repo.Index+".lock") {
		_ = os.Remove(a.repo.Index + ".lock")
	}
}

func isPawlLock(path string) bool {
	dir, name := filepath.Split(path)
	data, err := files.ReadBelow(dir, name, int64(len(lockMark)))
	return err == nil && string(data) == lockMark
}

func (a *FastForward) copyIndex() error {
	err := copyIndex(a.repo.Index, a.private, false)
	if errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(a.private)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot copy the index of %s: %v", a.repo.Top, err)
	}
	return nil
}

// copyIndex copies an index file with its permissions and its time, by which git
// knows that a file may have changed right after the index was written.
func copyIndex(from, to string, synced bool) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := files.Replace(to, data, info.Mode().Perm(), synced); err != nil {
		return err
	}
	return files.SetTime(to, info.ModTime())
}

func (a *FastForward) newIndexCall(args ...string) command.Call {
	c := a.repo.NewCall(args...)
	c.Env = append(c.Env, "GIT_INDEX_FILE="+a.private, "GIT_OPTIONAL_LOCKS=1")
	c.Lock, c.Settings = a.hold, a.unfilter
	return c
}

// refreshIndex looks at files whose times have changed. That some differ is no error. Where the
// program of a filter is not there, none is run: files that one filters, and whose times have
// changed, then count as changed.
func (a *FastForward) refreshIndex(ctx context.Context) error {
	_, err := command.Run(ctx, a.newIndexCall("update-index", "-q", "--refresh"))
	code := command.ExitCode(err)
	if code == 128 && a.unfilter == nil {
		settings, cerr := a.repo.Config(ctx)
		if cerr != nil {
			return cerr
		}
		if a.unfilter = withoutFilters(settings); len(a.unfilter) > 0 {
			return a.refreshIndex(ctx)
		}
	}
	if err != nil && code <= 0 { // it was killed, or never began
		return err
	}
	return nil
}

// withoutFilters are settings by which git runs no filter that others name.
func withoutFilters(settings []git.Setting) []string {
	none := map[string]string{"clean": "", "smudge": "", "process": "", "required": "false"}
	var off []string
	for _, s := range settings {
		value, known := none[s.Key[strings.LastIndexByte(s.Key, '.')+1:]]
		if known && strings.HasPrefix(s.Key, "filter.") {
			off = append(off, "-c", s.Key+"="+value)
		}
	}
	return off
}

// Overlap returns the paths that stop the move: it changes them, and they have staged or local
// changes, or a file that git does not know. Empty means that the move can be made.
func (a *FastForward) Overlap(ctx context.Context) ([]string, error) {
	dirty, err := a.changedPaths(ctx, a.from)
	if err != nil {
		return nil, err
	}
	known, err := a.knownPaths(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, c := range a.changes {
		inWay := c.Status == 'A' && !known[c.Path] && a.isOccupied(c.Path, known)
		if inWay || dirty[c.Path] {
			found = append(found, c.Path)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	_, err = command.Run(ctx, a.newIndexCall("read-tree", "-n", "-m", "-u", a.from, a.to))
	if e, ok := errors.AsType[*command.Error](err); ok && e.Code > 0 {
		return []string{pathInWay(e.Stderr)}, nil
	}
	return nil, err
}

// pathInWay is the path that a refusal of git's names, or the refusal itself.
func pathInWay(said string) string {
	if _, rest, ok := strings.Cut(said, "'"); ok {
		if path, _, ok := strings.Cut(rest, "'"); ok {
			return path
		}
	}
	return strings.TrimSpace(said)
}

// onlyNames makes a comparison list paths.
var onlyNames = []string{"--name-only", "-z", "--no-ext-diff", "--no-renames", "--ignore-submodules=dirty"}

// changedPaths returns the paths whose file or index entry is not that of a commit.
func (a *FastForward) changedPaths(ctx context.Context, commit string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, args := range [][]string{{"diff-files"}, {"diff-index", "--cached", commit}} {
		c := a.newIndexCall(slices.Concat(args[:1], onlyNames, args[1:])...)
		out, err := command.Run(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("cannot look for changes in %s: %w", a.repo.Top, err)
		}
		for _, p := range command.SplitRecords(out) {
			set[p] = true
		}
	}
	return set, nil
}

func (a *FastForward) knownPaths(ctx context.Context) (map[string]bool, error) {
	names, err := command.Records(ctx, a.newIndexCall("ls-files", "-z"), "list the index of "+a.repo.Top)
	return lists.Set(names), err
}

// isOccupied reports whether a file that git does not know is at a path or above it. One that git
// ignores counts: there is no other copy of it.
func (a *FastForward) isOccupied(path string, known map[string]bool) bool {
	parts := strings.Split(path, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		info, err := os.Lstat(filepath.Join(a.repo.Top, at))
		if err != nil {
			return false
		}
		if i == len(parts)-1 || !info.IsDir() {
			return !known[at]
		}
	}
	return false
}

// Move moves files and index. Files that meanwhile got in the way, or that an
// earlier move did not come to, are seen to one by one: what is as it was
// before is moved, what is as it is to be stays, and anything else is the
// user's; those are returned.
func (a *FastForward) Move(ctx context.Context) (left []string, err error) {
	a.cut = true
	_, err = command.Run(ctx, a.newIndexCall("read-tree", "-m", "-u", a.from, a.to))
	if _, refused := errors.AsType[*command.Error](err); refused && ctx.Err() == nil {
		left, err = a.moveFiles(ctx)
	}
	if err != nil {
		return left, fmt.Errorf("cannot move the files of %s: %w", a.repo.Top, err)
	}
	if err := files.Sync(a.movedFiles(left)...); err != nil {
		return left, fmt.Errorf("cannot keep the files of %s on the disk: %v", a.repo.Top, err)
	}
	if err := copyIndex(a.private, a.repo.Index, true); err != nil {
		return left, fmt.Errorf("cannot replace the index of %s: %v", a.repo.Top, err)
	}
	a.cut = false
	return left, nil
}

// movedFiles returns the files that were moved, and their folders.
func (a *FastForward) movedFiles(left []string) []string {
	var paths []string
	for _, c := range a.changes {
		if slices.Contains(left, c.Path) || c.NewMode == git.ModeNested {
			continue
		}
		name := filepath.Join(a.repo.Top, filepath.FromSlash(c.Path))
		if c.NewMode == git.ModeFile || c.NewMode == git.ModeExec {
			paths = append(paths, name)
		}
		paths = append(paths, files.Folders(name, a.repo.Top)...)
	}
	return paths
}

// moveFiles moves path by path.
func (a *FastForward) moveFiles(ctx context.Context) (left []string, err error) {
	if err := a.copyIndex(); err != nil {
		return nil, err
	}
	over, err := a.StagedOver(ctx, nil)
	if err != nil {
		return nil, err
	}
	staged := lists.Set(over) // the user's
	before, err := a.resetIndex(ctx, a.from, staged)
	if err != nil {
		return nil, err
	}
	after, err := a.resetIndex(ctx, a.to, staged)
	if err != nil {
		return nil, err
	}
	var write, gone []string
	for _, c := range a.changes {
		switch {
		case staged[c.Path]:
			left = append(left, c.Path)
		case !after[c.Path]:
		case before[c.Path] && !a.isHalfWritten(ctx, c):
			left = append(left, c.Path)
		case c.Status == 'D':
			gone = append(gone, c.Path)
		default:
			write = append(write, c.Path)
		}
	}
	if len(write) > 0 {
		c := a.newIndexCall("checkout-index", "-f", "-u", "-q", "-z", "--stdin")
		c.Stdin = command.JoinPaths(write)
		if _, err := command.Run(ctx, c); err != nil {
			return left, err
		}
	}
	for _, p := range gone {
		if err := os.Remove(filepath.Join(a.repo.Top, p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return left, err
		}
	}
	return left, a.refreshIndex(ctx)
}

// isHalfWritten reports whether a file is what a move that was cut off left: none, zeros, or whole
// sectors from the beginning of what it is to be.
func (a *FastForward) isHalfWritten(ctx context.Context, c git.Change) bool {
	name := filepath.Join(a.repo.Top, filepath.FromSlash(c.Path))
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > halfLimit {
		return false
	}
	data, err := files.ReadBelow(a.repo.Top, filepath.FromSlash(c.Path), halfLimit)
	if err != nil {
		return false
	}
	if len(bytes.Trim(data, "\x00")) == 0 {
		return true
	}
	is, err := command.Run(ctx, a.repo.NewCall("cat-file", "--filters", "--path="+c.Path, c.NewObject))
	return err == nil && len(data)%sector == 0 && len(data) < len(is) && bytes.HasPrefix(is, data)
}

// halfLimit is the size in bytes of a file that is looked into.
const halfLimit = 64 << 20

// sector is the size that disks write at once.
const sector = 512

// resetIndex puts the changed paths of the index to what a commit has, but for staged ones, and
// returns those whose file is another. A file where the commit has none differs.
func (a *FastForward) resetIndex(ctx context.Context, commit string, staged map[string]bool) (map[string]bool, error) {
	var put []git.Entry
	set := map[string]bool{}
	for _, c := range a.changes {
		if staged[c.Path] {
			continue
		}
		e := git.Entry{Mode: c.OldMode, Object: c.OldObject, Path: c.Path}
		if commit == a.to {
			e.Mode, e.Object = c.NewMode, c.NewObject
		}
		if e.Object == "" {
			if _, err := os.Lstat(filepath.Join(a.repo.Top, c.Path)); err == nil {
				set[c.Path] = true
			}
		}
		put = append(put, e)
	}
	if err := a.setEntries(ctx, put); err != nil {
		return nil, err
	}
	if err := a.refreshIndex(ctx); err != nil {
		return nil, err
	}
	out, err := command.Run(ctx, a.newIndexCall(append([]string{"diff-files"}, onlyNames...)...))
	if err != nil {
		return nil, err
	}
	for _, p := range command.SplitRecords(out) {
		if slices.ContainsFunc(a.changes, func(c git.Change) bool { return c.Path == p }) {
			set[p] = true
		}
	}
	return set, nil
}
