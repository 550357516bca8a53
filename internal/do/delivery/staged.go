package delivery

import (
	"context"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/checkout"
)

// This file is about what a person has staged in files that an agent's commits change: it stays staged, on top
// of the commits.

// Staged is what was staged at a path that the commits changed, before they came.
type Staged struct {
	Path string `json:"path"`
	Side
	// Merged is what is staged on top of them; none where both changed the same lines.
	Merged *Side `json:"merged,omitempty"`
}

func (s Staged) mergedEntry() (git.Entry, bool) {
	if s.Merged == nil {
		return git.Entry{}, false
	}
	return git.Entry{Mode: s.Merged.Mode, Object: s.Merged.Object, Path: s.Path}, true
}

// mergeStaged merges what an index has staged with changes of the same files. over are the paths where that
// cannot be done, and where what is staged is not what the work began with, as built has it.
func (w carrier) mergeStaged(ctx context.Context, index []git.Entry, changes []git.Change,
	built map[string]git.Entry) (all []Staged, over []string, err error) {
	has := lists.ToMap(index, func(e git.Entry) (string, git.Entry) { return e.Path, e })
	over = checkout.StagedOver(index, changes, built)
	for _, ch := range changes {
		e := has[ch.Path]
		s := Staged{Path: ch.Path, Side: Side{e.Mode, e.Object}}
		if s.Side == sideBefore(ch) {
			continue
		}
		merged, isMerged, err := w.mergeFile(ctx, Conflict{Base: sideBefore(ch), Mine: s.Side, Agent: sideAfter(ch)})
		if err != nil {
			return nil, nil, err
		}
		if isMerged && e.Stage == 0 {
			s.Merged = &merged
			over = slices.DeleteFunc(over, func(path string) bool { return path == ch.Path })
		}
		all = append(all, s)
	}
	return all, over, nil
}

// stageOver merges what is staged with the move, and stores in the person's repository what the index names then.
func (w carrier) stageOver(ctx context.Context, move *checkout.FastForward, u Undelivered) ([]Staged, []string, error) {
	index, err := move.Entries(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, over, err := w.mergeStaged(ctx, index, move.Changes(), entriesOf(u.allChanges()))
	if err != nil {
		return nil, nil, err
	}
	objects := lists.Each(lists.Pick(all, Staged.mergedEntry), func(e git.Entry) string { return e.Object })
	texts, err := w.tree.Contents(ctx, mergeLimit, objects...)
	for _, text := range texts {
		if err := move.StoreFile(ctx, text); err != nil {
			return nil, nil, err
		}
	}
	return all, over, err
}

// findStaged finds what was staged before the first of deliveries, where it is on no commit.
func findStaged(all []Delivered) map[string]git.Entry {
	again := map[string]git.Entry{}
	for _, d := range slices.Backward(all) {
		for _, s := range d.Staged {
			again[s.Path] = git.Entry{Mode: s.Mode, Object: s.Object, Path: s.Path}
		}
	}
	return again
}

// stagedAfter finds what deliveries left staged on top of their commits, or else what was staged before them.
func stagedAfter(all []Delivered) map[string]git.Entry {
	left := findStaged(all)
	for _, d := range all {
		for _, e := range lists.Pick(d.Staged, Staged.mergedEntry) {
			left[e.Path] = e
		}
	}
	return left
}
