package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// maxSeal bounds the file with sealed checks, in bytes.
const maxSeal = 1 << 20

// ReadSeal reads the sealed checks that an agent wrote into [planner.SealFile] in a folder. It follows no link.
func ReadSeal(dir string) ([]board.TaskCheck, error) {
	data, err := files.ReadBelow(dir, planner.SealFile, maxSeal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s", planner.SealFile)
	}
	var list []board.TaskCheck
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", planner.SealFile, err)
	}
	c := board.Tidy(board.Case{Type: board.Task, Title: "checks", Checks: board.Checks{Sealed: list}})
	switch wrong := board.Check(c); {
	case len(wrong) > 0:
		return nil, fmt.Errorf("%s: %s", planner.SealFile, wrong[0])
	case len(c.Sealed) == 0:
		return nil, fmt.Errorf("%s has no check", planner.SealFile)
	}
	return c.Sealed, nil
}

// SealRun returns the last run of [planner.Sealing], if it wrote checks of that work and they were not taken: who
// asked for them was stopped before.
func (p *Operator) SealRun(ctx context.Context, work string) (r store.Run, ok bool) {
	r, err := p.Store.Latest(ctx, p.Root, planner.Sealing)
	setup := SetupOf(r)
	isDone := err == nil && r.Status == string(loop.Completed) && setup.Undelivered != ""
	return r, isDone && setup.Flags.Work == work
}

// TakeSealed gives a task the sealed checks that a run of [planner.Sealing] wrote for its work, and discards that
// run: its files are in no other workspace.
func (p *Operator) TakeSealed(ctx context.Context, id, work string) (board.Case, error) {
	r, has := p.SealRun(ctx, work)
	if !has {
		return board.Case{}, fault.Refuse("the checks of %s are gone: another run of %s came after", id,
			planner.Sealing)
	}
	w, err := p.workspaceOf(ctx, r)
	if err != nil {
		return board.Case{}, err
	}
	list, err := ReadSeal(w.Place().Dir)
	if err := errors.Join(err, w.Release(ctx, "its run rests")); err != nil {
		return board.Case{}, err
	}
	c, err := p.Store.EditCase(ctx, id, board.Person, time.Now(), func(to *board.Case) error {
		if err := board.CanEdit(to); err != nil {
			return err
		}
		to.Sealed = list
		return nil
	})
	if err != nil {
		return c, fault.Of(fault.Failed, err)
	}
	quiet := *p
	quiet.Say = func(string, ...any) {}
	return c, quiet.DiscardRun(ctx, r)
}
