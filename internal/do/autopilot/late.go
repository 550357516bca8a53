package autopilot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// This file is about gates that run on what has landed: which landing made one red is looked for, and that is
// taken back, or a person is asked.

// Late are these gates.
type Late struct {
	Gates  []gate.Spec
	Every  time.Duration // the least time between two of their runs
	Revert bool          // takes back what made one red, without asking
}

// lateKeys name the records of the last verdict, and of the last green one. Their trees are commits.
func lateKeys(target string) (last, green string) { return "late " + target, "late green " + target }

// commitToJudge returns the last landing if these gates have not seen it and it is their time, else "".
func (p *pilot) commitToJudge(ctx context.Context) (string, error) {
	if len(p.o.Late.Gates) == 0 {
		return "", nil
	}
	landed, err := p.o.Store.Landings(ctx, p.queue.Target(), "", 1)
	if err != nil || len(landed) == 0 {
		return "", err
	}
	last, _ := lateKeys(p.queue.Target())
	r, _, err := p.o.Store.GateRecord(ctx, last)
	if err != nil || r.Verdict.Tree == landed[0].To || time.Since(r.At) < p.o.Late.Every {
		return "", err
	}
	return landed[0].To, nil
}

// beginLateJudging begins what is due, and reports whether it is not over.
func (p *pilot) beginLateJudging(ctx context.Context) bool {
	if p.judgesLate.Load() {
		return true
	}
	commit, err := p.commitToJudge(ctx)
	if err != nil {
		p.o.Log.Warn(err.Error())
	}
	if commit != "" {
		p.judgesLate.Store(true)
		p.late <- commit
	}
	return commit != ""
}

// judgeLandings runs the gates when they are due, until ctx ends.
func (p *pilot) judgeLandings(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case commit := <-p.late:
			if err := p.judgeLanding(ctx, commit); err != nil && ctx.Err() == nil {
				p.warnAbout("", "the later gates cannot run: "+err.Error())
			}
		}
		p.judgesLate.Store(false)
		p.sendEvent(ctx, schedule.Event{Kind: schedule.Changed})
	}
}

// judgeLanding runs the gates on a commit of the target, and acts on what is red. The verdict is stored last: what
// a kill cut off is done anew.
func (p *pilot) judgeLanding(ctx context.Context, commit string) error {
	target := p.queue.Target()
	name := p.queue.Branch()
	p.notify(Notice{Kind: Told, Text: fmt.Sprintf("the later gates run on %s, at %.10s", name, commit)})
	rep, err := p.queue.Judge(ctx, commit, p.o.Late.Gates)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	v := queue.Verdict{Tree: commit, Green: err == nil && rep.Passed(), Summary: rep.Summary}
	last, green := lateKeys(target)
	switch {
	case err != nil: // not tried again before something else lands
		v.Summary = err.Error()
	case v.Green:
		err = p.o.Store.PutGateRecord(ctx, store.GateRecord{Key: green, Verdict: v, At: time.Now()})
		p.notify(Notice{Kind: Told, Text: fmt.Sprintf("the later gates are green on %s, at %.10s", name, commit)})
	default:
		err = p.blameLanding(ctx, commit, rep)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, p.o.Store.PutGateRecord(ctx, store.GateRecord{Key: last, Verdict: v, At: time.Now()}))
}

// blameLanding finds the landing that made a gate red, and takes it back or asks a person.
func (p *pilot) blameLanding(ctx context.Context, commit string, rep gate.Report) error {
	at := slices.IndexFunc(rep.Gates, gate.IsRed)
	spec := p.o.Late.Gates[max(at, 0)]
	_, green := lateKeys(p.queue.Target())
	r, _, err := p.o.Store.GateRecord(ctx, green)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("the gate %s is red on what has landed: %s", spec.Name, rep.Summary)
	p.warnAbout("", text+"; looking for the landing that made it red")
	found, err := p.queue.Bisect(ctx, []gate.Spec{spec}, r.Verdict.Tree, func(string, gate.Report) error { return nil })
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, merge.ErrGreen): // it is flaky, or what landed meanwhile repaired it
		return nil
	case err != nil:
		found = merge.Culprit{Commit: commit, Title: "the landing is unknown: " + err.Error()}
	}
	text = fmt.Sprintf("the gate %s is red since %.10s (%s): %s", spec.Name, found.Commit, found.Title, rep.Summary)
	if p.o.Late.Revert && len(found.Tasks) == 1 {
		if err = p.takeBackLandedWork(ctx, found.Tasks[0], text); err == nil {
			needing, err := p.queue.DoneNeeding(ctx, found.Tasks[0])
			p.warnAbout(found.Tasks[0], text+"; it is reverted."+needing)
			return err
		}
		text += "; it is not reverted: " + err.Error()
	}
	return p.askAboutLanding(ctx, spec, found, text)
}

// takeBackLandedWork has the queue take back what a task landed. A second time that is for a person: work that
// comes again as it was would land and be paid for without end.
func (p *pilot) takeBackLandedWork(ctx context.Context, id, why string) error {
	history, err := p.o.Store.CaseHistory(ctx, id)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(history, func(e board.Entry) bool { return e.Action == board.Reopen }) {
		return errors.New("that was already done once")
	}
	c, err := p.o.Store.Case(ctx, id)
	if err != nil {
		return err
	}
	ask, err := p.queue.OfferRevert(ctx, id, c.Title, why)
	if err == nil {
		_, err = p.o.Store.AskQueue(ctx, ask)
	}
	return err
}

// askAboutLanding puts a task to repair it on the board, which waits for a person. Of one landing and gate there
// is one such task.
func (p *pilot) askAboutLanding(ctx context.Context, spec gate.Spec, found merge.Culprit, text string) error {
	c := board.Case{
		Type: board.Task, Title: fmt.Sprintf("Repair: %s is red since %.10s", spec.Name, found.Commit),
		Description: text + "\n\nIn the state before it is green: " + found.Good, Status: board.Blocked,
		Ref: fmt.Sprintf("late:%.10s:%s", found.Commit, spec.Name), Needs: found.Tasks,
		Checks: board.Checks{Verify: []board.TaskCheck{{Name: spec.Name, Command: spec.Command}}},
		Why:    text + ". Unblock this to have an agent repair it",
	}
	for _, id := range found.Tasks {
		c.Why += "; or revert it: pawl revert " + id
	}
	_, err := p.o.Store.AddCases(ctx, []board.Draft{{Case: c}}, board.Pawl, time.Now())
	if problems, ok := errors.AsType[*board.ProblemsError](err); ok && problems.AllKnown() {
		return nil
	}
	p.warnAbout("", c.Why)
	return err
}
