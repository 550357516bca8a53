package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// notesLimit is the number of notes that a rollback returns.
const notesLimit = 100

var (
	errMeanwhile = errors.New("what is there is not what the snapshot of now has")
	errFolder    = errors.New("a folder that is not empty is there")
)

// RollbackOptions make a rollback stricter.
type RollbackOptions struct {
	// Expect is the tree that the work tree must have now; empty: any.
	Expect string
	// Ended is when the run ended; zero: it has not, or nobody knows. A branch that got
	// commits later is not moved.
	Ended time.Time
}

// Rollback is what was done.
type Rollback struct {
	// Refused says why nothing was done; empty otherwise.
	Refused string `json:"refused,omitempty"`
	// Recovery is the ref with everything as it was before; see [Checkout.RollbackTo].
	Recovery    string   `json:"recovery,omitempty"`
	To          Snapshot `json:"to"`
	Restored    []string `json:"restored,omitempty"` // written
	Removed     []string `json:"removed,omitempty"`
	BranchMoved bool     `json:"branch_moved"`
	Notes       []string `json:"notes,omitempty"` // what was left alone, and why; at most 100

	left []Conflict // paths that could not be written or removed
}

func (b *Rollback) note(format string, args ...any) {
	switch {
	case len(b.Notes) < notesLimit-1:
		b.Notes = append(b.Notes, fmt.Sprintf(format, args...))
	case len(b.Notes) == notesLimit-1:
		b.Notes = append(b.Notes, "more was left alone; the snapshots can be compared to see it")
	}
}

// Rollback puts the work tree back to snapshot n of the run, as the package
// comment says. A path that cannot be put back is a note, not an error; after
// an error or a kill it can be run again.
func (c *Checkout) Rollback(ctx context.Context, run string, n int, o RollbackOptions) (Rollback, error) {
	return c.rollbackTo(ctx, run, runRef(run, n, ""), o)
}

// Foresee says which files Rollback would write and remove now.
func (c *Checkout) Foresee(ctx context.Context, run string, n int) (Rollback, error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return Rollback{}, err
	}
	defer r.close()
	want, err := c.find(ctx, run, runRef(run, n, ""))
	if err != nil {
		return Rollback{}, err
	}
	b := Rollback{To: want}
	now, err := r.scan(ctx)
	if err != nil {
		return b, err
	}
	changes, _, err := r.c.shadow.Changes(ctx, now.tree, want.Tree, false, 0)
	if err != nil {
		return b, err
	}
	for _, ch := range r.touchable(changes, now, want, &b) {
		if ch.NewObject == "" {
			b.Removed = append(b.Removed, ch.Path)
		} else {
			b.Restored = append(b.Restored, ch.Path)
		}
	}
	return b, nil
}

// RollbackTo goes to any ref of pawl's: a run's snapshot or a recovery, so it
// also undoes a rollback.
func (c *Checkout) RollbackTo(ctx context.Context, ref string, o RollbackOptions) (Rollback, error) {
	rest, ok := strings.CutPrefix(ref, runPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(ref, recoveryPrefix)
	}
	run, _, two := strings.Cut(rest, "/")
	if !ok || !two {
		return Rollback{}, fmt.Errorf("cannot roll back to %q: it is no snapshot of pawl's", ref)
	}
	return c.rollbackTo(ctx, run, ref, o)
}

// Rewind is a rollback between two iterations: it does nothing, and says so in
// Refused, unless the work tree still has the tree that the agent left, since
// then a person has worked in it.
func (c *Checkout) Rewind(ctx context.Context, run string, n int, left string) (Rollback, error) {
	if left == "" {
		return Rollback{}, errors.New("cannot rewind: the tree that the agent left is not known")
	}
	return c.Rollback(ctx, run, n, RollbackOptions{Expect: left})
}

func (c *Checkout) rollbackTo(ctx context.Context, run, ref string, o RollbackOptions) (Rollback, error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return Rollback{}, err
	}
	defer r.close()
	want, err := c.find(ctx, run, ref)
	if err != nil {
		return Rollback{}, err
	}
	b := Rollback{To: want}
	now, err := r.scan(ctx)
	if err != nil {
		return b, fmt.Errorf("cannot roll back to %s: %w", ref, err)
	}
	if o.Expect != "" && now.tree != o.Expect {
		b.Refused = "files were changed after the agent ended" + c.named(ctx, o.Expect, now.tree)
		return b, nil
	}
	if b.Recovery, err = r.recovery(ctx, now); err != nil {
		return b, fmt.Errorf("cannot keep the state before the rollback, so nothing was changed: %w", err)
	}
	if err := r.restore(ctx, now, want, &b); err != nil {
		return b, fmt.Errorf("cannot finish the rollback to %s (run it again, or undo it with %s): %w", ref, b.Recovery, err)
	}
	if err := r.moveBranch(ctx, now.head, want, o.Ended, &b); err != nil {
		return b, fmt.Errorf("cannot move the branch back, the files are at %s: %w", ref, err)
	}
	return b, nil
}

// named are the first files in which two trees differ, in brackets.
func (c *Checkout) named(ctx context.Context, from, to string) string {
	const shown = 3
	all, more, err := c.FileChanges(ctx, from, to, shown)
	if err != nil || len(all) == 0 {
		return ""
	}
	names := lists.Each(all, func(f git.FileChange) string { return fault.Cut(f.Path, 80) })
	if more {
		names = append(names, "…")
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// find reads the snapshot at a ref of the run.
func (c *Checkout) find(ctx context.Context, run, ref string) (Snapshot, error) {
	all, err := c.list(ctx, run, ref[:strings.LastIndexByte(ref, '/')+1])
	if err != nil {
		return Snapshot{}, err
	}
	for _, s := range all {
		if s.Ref == ref {
			return s, nil
		}
	}
	return Snapshot{}, fmt.Errorf("cannot roll back to %s: there is no such snapshot", ref)
}

// recovery keeps the scanned tree, HEAD and the user's index under the next
// free recovery ref.
func (r *session) recovery(ctx context.Context, now state) (string, error) {
	before, err := r.c.Recoveries(ctx, r.run)
	if err != nil {
		return "", err
	}
	next := 1
	if len(before) > 0 {
		next = recoveryNumber(before[len(before)-1].Ref) + 1
	}
	index, err := r.keepIndex(ctx)
	if err != nil {
		return "", err
	}
	s := Snapshot{Run: r.run, Tree: now.tree, Head: now.head.Commit, Branch: now.head.Branch, Skipped: now.skipped}
	commit, err := r.c.shadow.Commit(ctx, s.Tree, s.message("pawl "+r.run+": before a rollback"), s.Head, index)
	if err != nil {
		return "", err
	}
	ref := fmt.Sprintf("%s%s/%d", recoveryPrefix, r.run, next)
	// What it keeps is about to be overwritten.
	if err := r.c.Repo.SyncObjects(ctx, s.Head, commit); err != nil {
		return "", err
	}
	return ref, r.change(ctx, func() error {
		return r.c.Repo.KeepRef(ctx, ref, commit, r.c.Repo.Zero(), "pawl: before a rollback")
	}, ref, commit)
}

// keepIndex stores the user's index as a commit, or "" if there is none: the
// file as "index", each entry below the number of its stage.
func (r *session) keepIndex(ctx context.Context) (string, error) {
	f, err := files.OpenBelow(filepath.Split(r.c.Repo.Index))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	blob, err := r.c.shadow.Store(ctx, f)
	if err != nil {
		return "", err
	}
	all, err := r.c.Repo.IndexEntries(ctx)
	if err != nil {
		all = nil // broken: the file is all that there is to keep
	}
	for i := range all {
		all[i].Path = fmt.Sprintf("%d/%s", all[i].Stage, all[i].Path)
		all[i].Stage = 0
	}
	all = append(all, git.Entry{Mode: git.ModeFile, Object: blob, Path: "index"})
	file := filepath.Join(r.dir, "kept")
	_ = os.Remove(file + ".lock") // as for the private index
	kept := r.c.shadow.Index(file, r.lock)
	if err := kept.ReadTree(ctx, ""); err != nil {
		return "", err
	}
	if err := kept.Set(ctx, all); err != nil {
		return "", err
	}
	tree, err := kept.WriteTree(ctx)
	if err != nil {
		return "", err
	}
	return r.c.shadow.Commit(ctx, tree, "pawl: the index\n")
}

// restore makes the files those of want.
func (r *session) restore(ctx context.Context, now state, want Snapshot, b *Rollback) error {
	changes, _, err := r.c.shadow.Changes(ctx, now.tree, want.Tree, false, 0)
	if err != nil {
		return err
	}
	w := newRestorer(r.c.Repo, r.c.inside())
	w.sweep(now.strays)
	return r.carryOut(ctx, w, r.touchable(changes, now, want, b), b)
}

// carryOut removes, then writes; what could not be done is noted.
func (r *session) carryOut(ctx context.Context, w *restorer, changes []git.Change, b *Rollback) error {
	var writes []git.Change
	var blobs []string
	for _, ch := range slices.Backward(changes) {
		if ch.NewObject == "" {
			done, reason := w.remove(ch.Path, ch.OldMode, ch.OldObject)
			b.removed(ch.Path, done, reason)
		}
	}
	for _, ch := range changes {
		if ch.NewObject != "" {
			writes, blobs = append(writes, ch), append(blobs, ch.NewObject)
		}
	}
	return r.c.shadow.Blobs(ctx, blobs, func(i int, size int64, body io.Reader) error {
		done, reason := w.write(writes[i], size, body)
		if errors.Is(reason, syscall.ENOSPC) || errors.Is(reason, syscall.EDQUOT) {
			return fmt.Errorf("%q is as it was: %w; make room on the disk of %s", writes[i].Path, reason, r.c.Repo.Top)
		}
		b.restored(writes[i].Path, done, reason)
		return ctx.Err()
	})
}

func (b *Rollback) removed(p string, done bool, reason error) {
	if done {
		b.Removed = append(b.Removed, p)
	}
	if reason != nil {
		b.left = append(b.left, Conflict{p, reason.Error()})
		b.note("%q was not removed: %v", p, reason)
	}
}

func (b *Rollback) restored(p string, done bool, reason error) {
	if done {
		b.Restored = append(b.Restored, p)
	}
	if reason != nil {
		b.left = append(b.left, Conflict{p, reason.Error()})
		b.note("%q was not put back: %v", p, reason)
	}
}

// touchable leaves out what neither snapshot really has: paths that one of
// them skipped, and nested repositories.
func (r *session) touchable(changes []git.Change, now state, want Snapshot, b *Rollback) []git.Change {
	skipped := lists.Set(slices.Concat(now.skipped, want.Skipped))
	return slices.DeleteFunc(changes, func(ch git.Change) bool {
		switch {
		case ch.OldMode == git.ModeNested || ch.NewMode == git.ModeNested:
			b.note("%q was left alone: it is a nested repository", ch.Path)
		case path.Base(ch.Path) == "HEAD" && ch.OldObject == "" && want.N > 0:
			b.note("%q was left alone: by its name git could take the folder for a repository, and run what that names", ch.Path)
		case skipped[ch.Path]:
			b.note("%q was left alone: it is too large or cannot be read, so a snapshot does not have it", ch.Path)
		case underAny(ch.Path, skipped):
			b.note("%q was left alone: it is in a nested repository", ch.Path)
		default:
			return false
		}
		return true
	})
}

func underAny(p string, dirs map[string]bool) bool {
	for i := range len(p) {
		if p[i] == '/' && dirs[p[:i]] {
			return true
		}
	}
	return false
}

// moveBranch puts the branch back to where it was in want, if that takes
// nothing away that the run did not make; otherwise a note says why not.
func (r *session) moveBranch(ctx context.Context, now git.Head, want Snapshot, ended time.Time, b *Rollback) error {
	if now.Commit == want.Head && now.Branch == want.Branch {
		return nil
	}
	why, err := r.mayMove(ctx, now, want, ended)
	if err != nil {
		return err
	}
	if why != "" {
		b.note("only files were changed, no branch was moved: %s", why)
		return nil
	}
	repo, reason := r.c.Repo, "pawl: roll back run "+r.run
	moved := true
	if err := repo.MoveIndex(ctx, now.Commit, want.Head); err != nil {
		moved = false
		b.note("the index was left as it is, because something staged or a lock stands in the way: %v", err)
	}
	switch {
	case want.Head == "":
		err = repo.DeleteRef(ctx, want.Branch, now.Commit, reason)
	case now.Commit == "":
		err = repo.UpdateRef(ctx, want.Branch, want.Head, repo.Zero(), reason)
	default:
		err = repo.UpdateRef(ctx, want.Branch, want.Head, now.Commit, reason)
	}
	if err == nil {
		b.BranchMoved = true
		return nil
	}
	if moved {
		err = errors.Join(err, repo.MoveIndex(ctx, want.Head, now.Commit))
	}
	b.note("only files were changed, %s was not moved: %v", want.Branch, err)
	return nil
}

// mayMove says why the branch must stay, or "".
func (r *session) mayMove(ctx context.Context, now git.Head, want Snapshot, ended time.Time) (string, error) {
	switch {
	case want.Branch == "" || now.Branch == "":
		return "HEAD is or was detached", nil
	case now.Branch != want.Branch:
		return fmt.Sprintf("%s is checked out now, and %s was then", now.Branch, want.Branch), nil
	}
	if op := r.c.Repo.Busy(); op != "" {
		return "a " + op + " is going on", nil
	}
	began, ok, err := r.began(ctx)
	if err != nil {
		return "", err
	}
	if !ok {
		return "the run's first snapshot is gone, so it is not known which commits the run made", nil
	}
	if now.Commit == "" {
		return "", nil
	}
	foreign, err := r.c.Repo.CommitOutside(ctx, want.Head, now.Commit, began, ended)
	if err != nil || foreign == "" {
		return "", err
	}
	return fmt.Sprintf("commit %s would go, and it was not made during the run, or is already tagged or on a remote",
		foreign), nil
}

// began is when the run's snapshot 0 was taken.
func (r *session) began(ctx context.Context) (when time.Time, ok bool, err error) {
	all, err := r.c.Snapshots(ctx, r.run)
	if err != nil || len(all) == 0 || all[0].N != 0 {
		return time.Time{}, false, err
	}
	return all[0].When, true, nil
}
