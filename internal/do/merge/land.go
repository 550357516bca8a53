package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/checkout"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// landLimit is for one landing, files of work trees included.
const landLimit = 5 * time.Minute

// landBatch moves the target, and the files of work trees that have it checked out.
// The command is in the database by now. It is safe to repeat.
func (t *target) landBatch(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	if c.From == c.To {
		return queue.Event{Kind: queue.Landed}, nil
	}
	if t.o.Before != nil && len(c.IDs) > 0 {
		entries := lists.Pick(c.IDs, s.Find)
		t.o.Before(ctx, entries, c.To)
	}
	if t.isShared() {
		return t.landThere(ctx, c)
	}
	sent, e, err := t.sendFirst(ctx, s, c)
	if err == nil && e.Kind == "" {
		e, err = t.moveTargetHere(ctx, s, c, false)
	}
	if sent {
		e.Push = &queue.Push{}
	}
	return e, err
}

// sendFirst has the remote take a landing before the branch here moves: what it refuses has not landed then. It is
// asked only where it is at the start of the landing, since else more than that is to be pushed. An event without a
// kind lets the landing go on.
func (t *target) sendFirst(ctx context.Context, s *queue.State, c queue.Command) (sent bool, e queue.Event, err error) {
	there, err := t.o.Repo.Find(ctx, t.trackingRef())
	asks := t.o.Policy.Push && t.remote.name != "" && t.remote.away == nil
	if err != nil || !asks || there != c.From {
		return false, e, err
	}
	if e, err = t.moveTargetHere(ctx, s, c, true); err != nil || e.Kind != "" {
		return false, e, err
	}
	t.o.point("before sent")
	p := t.sendCommit(ctx, c.To, c.From)
	t.o.point("after sent")
	switch {
	case p.Refused && queue.IsAboutCommits(p.Words):
		return false, refusedEvent(queue.Refusal{Why: p.Words, Commits: true}), nil
	case p.Diverged == "":
		return p.Failed == "", e, nil
	}
	if _, err = t.askRemote(ctx, true); err == nil {
		there, err = t.o.Repo.Find(ctx, t.trackingRef())
	}
	if there != c.From {
		e = refusedEvent(queue.Refusal{Moved: true})
	}
	return false, e, err
}

// moveTargetHere moves the target here. dry: nothing is moved, and an event says what is in the way.
func (t *target) moveTargetHere(ctx context.Context, s *queue.State, c queue.Command, dry bool) (queue.Event, error) {
	hold, left, err := t.lockTrees(ctx)
	if err != nil {
		return queue.Event{}, err
	}
	defer func() { _ = hold.Close() }()
	landed, moved, err := t.compareStart(ctx, t.ref, c)
	switch {
	case err != nil:
		return queue.Event{}, err
	case landed:
		return queue.Event{Kind: queue.Landed, Warnings: left}, nil
	case moved:
		return refusedEvent(queue.Refusal{Moved: true}), nil
	}
	return t.moveTarget(ctx, s, c, hold, dry)
}

// compareStart compares a ref with where a landing begins: it has landed before, or the ref has moved. What is
// not whole any more counts as moved: it is made again.
func (t *target) compareStart(ctx context.Context, ref string, c queue.Command) (landed, moved bool, err error) {
	tip, err := t.o.Repo.Find(ctx, ref)
	if err == nil && tip != c.From {
		landed, err = t.o.Repo.IsAncestor(ctx, c.To, tip)
		return landed, !landed, err
	}
	return false, err == nil && !t.o.Repo.Whole(ctx, c.From, c.To) && ctx.Err() == nil, err
}

func refusedEvent(r queue.Refusal) queue.Event { return queue.Event{Kind: queue.Refused, Refusal: &r} }

// moveTarget locks and compares all work trees, moves the target, then the files.
func (t *target) moveTarget(ctx context.Context, s *queue.State, c queue.Command, hold *os.File, dry bool,
) (queue.Event, error) {
	trees, err := t.o.Repo.Checkouts(ctx, t.ref)
	if err != nil {
		return queue.Event{}, err
	}
	var moves []*checkout.FastForward
	defer func() {
		for _, m := range moves {
			m.End()
		}
	}()
	for _, tree := range trees {
		if busy := tree.Busy(); busy != "" {
			why := fmt.Sprintf("a %s is in progress in %s, where %s is checked out", busy, tree.Top, branchName(t.ref))
			return refusedEvent(queue.Refusal{Why: why}), nil
		}
		m, err := beginMove(ctx, tree, c.From, c.To, hold)
		if errors.Is(err, checkout.ErrIndexLocked) {
			return refusedEvent(queue.Refusal{Why: err.Error()}), nil
		}
		if err != nil {
			return queue.Event{}, err
		}
		moves = append(moves, m)
		paths, err := m.Overlap(ctx)
		if err != nil {
			return queue.Event{}, err
		}
		if len(paths) > 0 {
			why := fmt.Sprintf("%s is changed or untracked in your checkout; commit it or move it away, in %s",
				strings.Join(paths[:min(len(paths), 5)], ", "), tree.Top)
			ids, err := t.touchingIDs(ctx, s, c, paths)
			return refusedEvent(queue.Refusal{Why: why, IDs: ids}), err
		}
	}
	t.o.point("files locked")
	if dry {
		return queue.Event{}, nil
	}
	if err := (movement{Target: t.ref, From: c.From, To: c.To}).writeToFile(hold); err != nil {
		return queue.Event{}, err
	}
	t.o.point("before ref")
	reason := "pawl: land " + strings.Join(c.IDs[:min(len(c.IDs), 5)], ", ")
	changed, err := t.o.Repo.SetRef(ctx, t.ref, c.To, c.From, reason)
	if err != nil {
		return queue.Event{}, err
	}
	if changed {
		return refusedEvent(queue.Refusal{Moved: true}), nil
	}
	t.o.point("after ref")
	left, err := t.moveFiles(ctx, trees, moves, hold)
	return queue.Event{Kind: queue.Landed, Warnings: left}, err
}

// beginMove locks and compares the files of a work tree.
func beginMove(ctx context.Context, tree *git.Repo, from, to string, hold *os.File) (*checkout.FastForward, error) {
	return checkout.WhenUnlocked(ctx, func() (*checkout.FastForward, error) {
		return checkout.BeginFastForward(ctx, tree, from, to, hold)
	})
}

// moveFiles moves the files of work trees, and forgets the movement. It returns warnings.
func (t *target) moveFiles(ctx context.Context, trees []*git.Repo, moves []*checkout.FastForward, hold *os.File,
) ([]string, error) {
	var warnings []string
	for i, m := range moves {
		left, err := m.Move(ctx)
		if err != nil {
			return nil, err
		}
		t.o.point("after files")
		if len(left) > 0 {
			warnings = append(warnings, fmt.Sprintf("in %s these files have changes of yours and were not updated: %s",
				trees[i].Top, strings.Join(left, ", ")))
		}
	}
	return warnings, hold.Truncate(0)
}

// touchingIDs are the entries of a batch that change one of some paths.
func (t *target) touchingIDs(ctx context.Context, s *queue.State, c queue.Command, paths []string) ([]string, error) {
	if s.Batch == nil {
		return nil, nil
	}
	var ids []string
	before := c.From
	for _, m := range s.Batch.Steps {
		if m.Empty {
			continue
		}
		changes, err := t.o.Repo.Changes(ctx, before, m.Commit)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(changes, func(ch git.Change) bool {
			return slices.ContainsFunc(paths, func(p string) bool {
				return ch.Path == p || strings.HasPrefix(ch.Path, p+"/") || strings.HasPrefix(p, ch.Path+"/")
			})
		}) {
			ids = append(ids, m.ID)
		}
		before = m.Commit
	}
	return ids, nil
}

func branchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// A movement is what the file checkout.lock says while a target and the files of its
// work trees are moved. It is on the disk before the target moves, and goes when all
// files are moved: what a crash, a killed git or a full disk cuts off is finished by
// the process that holds the file next.
type movement struct {
	Target string `json:"target"`
	From   string `json:"from"`
	To     string `json:"to"`
}

func (m movement) writeToFile(hold *os.File) error {
	text, err := json.Marshal(m)
	if err == nil {
		_, err = hold.WriteAt(text, 0)
	}
	err = errors.Join(err, hold.Truncate(int64(len(text))))
	if err == nil {
		err = files.Sync(hold.Name(), filepath.Dir(hold.Name()))
	}
	if err != nil {
		return fmt.Errorf("cannot record where %s moves to: %v", m.Target, err)
	}
	return nil
}

// lockTrees locks the work trees against other pawls, and finishes what is left of an
// earlier movement. It returns warnings.
func (t *target) lockTrees(ctx context.Context) (*os.File, []string, error) {
	hold, err := files.Lock(ctx, filepath.Join(t.o.Dir, "checkout.lock"))
	if err != nil {
		return nil, nil, err
	}
	warnings, err := t.finishMovement(ctx, hold)
	if err != nil {
		_ = hold.Close()
		return nil, nil, err
	}
	return hold, warnings, nil
}

// finishMovement moves the files that an earlier movement left behind to where its target is
// now: somebody may have committed meanwhile.
func (t *target) finishMovement(ctx context.Context, hold *os.File) ([]string, error) {
	var m movement
	data, err := io.ReadAll(io.NewSectionReader(hold, 0, 4096))
	if err != nil {
		return nil, fmt.Errorf("cannot read the last move: %v", err)
	}
	if json.Unmarshal(data, &m) != nil || m.Target == "" {
		return nil, nil // none is left, or its note was cut off before it began
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), landLimit) // not ended half way
	defer cancel()
	tip, err := t.o.Repo.Find(ctx, m.Target)
	if err != nil {
		return nil, err
	}
	moved := false
	if tip != "" {
		if moved, err = t.o.Repo.IsAncestor(ctx, m.To, tip); err != nil {
			return nil, err
		}
	}
	if !moved { // nothing but locks can be left
		tip = m.From
	}
	trees, err := t.o.Repo.Checkouts(ctx, m.Target)
	if err != nil {
		return nil, err
	}
	var moves []*checkout.FastForward
	defer func() {
		for _, f := range moves {
			f.End()
		}
	}()
	for _, tree := range trees {
		if busy := tree.Busy(); busy != "" && moved {
			return nil, fmt.Errorf("cannot move the files of %s to %.10s: a %s is under way", tree.Top, tip, busy)
		}
		f, err := beginMove(ctx, tree, m.From, tip, hold)
		if err != nil {
			return nil, err
		}
		moves = append(moves, f)
	}
	if !moved {
		return nil, hold.Truncate(0)
	}
	return t.moveFiles(ctx, trees, moves, hold)
}
