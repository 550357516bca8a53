package checkout

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// BeginIndexMove locks the index of r for a move from one commit to another whose files
// the caller moves itself: the branch is moved, then the files, then
// [FastForward.MoveIndex]. An empty commit is none. The error is [ErrIndexLocked] when
// another program has the index. The caller ends it in any case.
func BeginIndexMove(ctx context.Context, r *git.Repo, from, to string, hold *os.File) (*FastForward, error) {
	sum := sha256.Sum256([]byte(r.Dir))
	private := hold.Name() + "." + hex.EncodeToString(sum[:4]) + ".index"
	a := &FastForward{repo: r, from: from, to: to, hold: hold, private: private}
	if err := a.lockIndex(); err != nil {
		return nil, err
	}
	err := a.findChanges(ctx)
	if err == nil {
		err = a.copyIndex()
	}
	if err != nil {
		a.End()
		return nil, err
	}
	return a, nil
}

const (
	lockWaits = 20 // tries for an index that another git has
	lockPause = 100 * time.Millisecond
)

// WhenUnlocked begins a move of files or of an index, and waits a little for a git that has
// the index.
func WhenUnlocked(ctx context.Context, begin func() (*FastForward, error)) (*FastForward, error) {
	for try := 0; ; try++ {
		a, err := begin()
		if !errors.Is(err, ErrIndexLocked) || try == lockWaits || !process.Sleep(ctx, lockPause) {
			return a, err
		}
	}
}

// findChanges finds what the move changes.
func (a *FastForward) findChanges(ctx context.Context) error {
	if a.from == a.to {
		return nil
	}
	none, err := a.repo.EmptyTree(ctx)
	if err == nil {
		a.changes, err = a.repo.Changes(ctx, cmp.Or(a.from, none), cmp.Or(a.to, none))
	}
	return err
}

// Entries lists the index as it was locked.
func (a *FastForward) Entries(ctx context.Context) ([]git.Entry, error) {
	return git.ListEntries(ctx, a.newIndexCall())
}

// StagedOver is [StagedOver] for the move, in the index as it was locked.
func (a *FastForward) StagedOver(ctx context.Context, built map[string]git.Entry) ([]string, error) {
	all, err := a.Entries(ctx)
	return StagedOver(all, a.changes, built), err
}

// StagedOver are the paths of changes for which an index has something staged that is
// neither what was there, nor what is to be, nor what built has: the content that the
// work began with.
func StagedOver(index []git.Entry, changes []git.Change, built map[string]git.Entry) []string {
	has := lists.ToMap(index, func(e git.Entry) (string, git.Entry) { return e.Path, e })
	var over []string
	for _, c := range changes {
		e := has[c.Path]
		old := e.Object == c.OldObject && e.Mode == c.OldMode
		now := e.Object == c.NewObject && e.Mode == c.NewMode
		b, known := built[c.Path]
		began := known && e.Object == b.Object && e.Mode == b.Mode
		if e.Stage > 0 || !old && !now && !began {
			over = append(over, c.Path)
		}
	}
	return over
}

// Changes lists the files that differ between the two commits.
func (a *FastForward) Changes() []git.Change { return a.changes }

// StoreFile stores a file in the repository, which outlives a power loss before an index names it.
func (a *FastForward) StoreFile(ctx context.Context, data []byte) error {
	c := a.newIndexCall("hash-object", "-w", "--no-filters", "--stdin")
	c.Settings = append(c.Settings, "-c", "core.fsync=loose-object")
	c.Stdin = bytes.NewReader(data)
	_, err := command.Text(ctx, c, "store a blob")
	return err
}

// MoveIndex makes the index entries of the paths that the move changes those of its end, or
// those of staged. Their files are compared when git looks at them next.
func (a *FastForward) MoveIndex(ctx context.Context, staged ...git.Entry) error {
	a.cut = true
	again := lists.ToMap(staged, func(e git.Entry) (string, git.Entry) { return e.Path, e })
	var put []git.Entry
	for _, c := range a.changes {
		e, is := again[c.Path]
		if !is {
			e = git.Entry{Mode: c.NewMode, Object: c.NewObject, Path: c.Path}
		}
		put = append(put, e)
	}
	if len(put) > 0 {
		if err := a.setEntries(ctx, put); err != nil {
			return fmt.Errorf("cannot move the index of %s: %w", a.repo.Top, err)
		}
		if err := copyIndex(a.private, a.repo.Index, true); err != nil {
			return fmt.Errorf("cannot replace the index of %s: %v", a.repo.Top, err)
		}
	}
	a.cut = false
	return nil
}

// setEntries enters what is at paths into the copy of the index; one without an object goes.
func (a *FastForward) setEntries(ctx context.Context, all []git.Entry) error {
	var in bytes.Buffer
	for _, e := range all {
		if e.Object == "" {
			e.Mode, e.Object = "0", a.repo.Zero()
		}
		in.WriteString(e.Mode + " " + e.Object + "\t" + e.Path + "\x00")
	}
	put := a.newIndexCall("update-index", "-z", "--add", "--replace", "--index-info")
	put.Stdin = &in
	_, err := command.Run(ctx, put)
	return err
}
