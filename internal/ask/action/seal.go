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
	"github.com/pawl-dev/pawl/internal/keep/files"
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

// TakeSealed gives a task the sealed checks that the last run of [planner.Sealing] wrote, and discards that
// run: its files are in no other workspace.
func (p *Operator) TakeSealed(ctx context.Context, id string) (board.Case, error) {
	r, err := p.Store.Latest(ctx, p.Root, planner.Sealing)
	if err != nil {
		return board.Case{}, err
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
