package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// startTask gives a ready task the next free slot of the autopilot that runs.
func (p *Operator) startTask(ctx context.Context, id string) (Done, error) {
	c, err := p.findStartable(ctx, id)
	if err != nil {
		return Done{}, err
	}
	ask := store.AutopilotControl{Kind: store.AutopilotStart, Text: id, At: time.Now()}
	_, err = p.Store.AskAutopilot(ctx, ask)
	return Done{c, id + " gets the next free slot."}, err
}

// findStartable refuses a task that the autopilot could not start, and every task
// while none runs.
func (p *Operator) findStartable(ctx context.Context, id string) (board.Case, error) {
	if _, err := p.Autopilot(ctx); err != nil {
		return board.Case{}, err
	}
	c, err := p.Store.Case(ctx, id)
	if err != nil || c.IsReady() {
		return c, err
	}
	why := c.NotReady()
	if c.Status != board.Pending || c.Type != board.Task {
		why = fmt.Sprintf("%s is %s", c.ID, c.Status.Phrase())
	}
	return c, fault.Refuse("%s cannot be started: %s", id, why)
}

// Redirect stops the run of a task and gives its slot to another task that is
// ready. Both are asked for, or neither is.
func (p *Operator) Redirect(ctx context.Context, r store.Run, to string) error {
	if r.Kind != string(loop.Task) {
		return fault.Refuse("run %s has no slot: it is a %s", r.ID, r.Kind).Hint("Stop it: pawl stop %s", r.ID)
	}
	if !loop.Status(r.Status).Active() || !storedrun.Alive(r.Owner) {
		return fault.Refuse("run %s of %s has no slot: it is not running", r.ID, r.Name).
			Hint("Start the other task: pawl case start %s", to)
	}
	if _, err := p.findStartable(ctx, to); err != nil {
		return err
	}
	if err := p.Store.Redirect(ctx, r.ID, to, time.Now()); err != nil {
		return err
	}
	p.Say("Run %s of %s is stopping, and its work is kept. %s gets the slot.", r.ID, r.Name, to)
	return nil
}

// TaskOf returns a run's task; an empty one where it has none, or it is gone.
func TaskOf(ctx context.Context, db *store.Store, r store.Run) (c board.Case) {
	if r.Kind == string(loop.Task) {
		c, _ = db.Case(ctx, board.TaskOf(r.Name))
	}
	return c
}

// WaitsForReview reports whether a person has to decide about the work of a task before it lands.
func WaitsForReview(ctx context.Context, db *store.Store, id string) bool {
	list, err := db.CaseReviews(ctx, id)
	return err == nil && len(list) > 0 && list[len(list)-1].Decision == ""
}

// suggestForTask adds to a refusal that is about a run of a task what can be done with the task.
func (p *Runs) suggestForTask(ctx context.Context, e *fault.Error, r store.Run) error {
	switch c := TaskOf(ctx, p.Store, r); {
	case WaitsForReview(ctx, p.Store, c.ID):
		e = e.Hint("It waits for your review: pawl case approve %s", c.ID).
			Hint("Or have it changed:       pawl case redo %s --feedback TEXT", c.ID)
	case c.Status == board.Review:
		e = e.Hint("It waits to land: pawl queue land")
	}
	return e.Hint("See its task: pawl case show %s", board.TaskOf(r.Name)).Hint("See what it did: pawl show %s", r.ID)
}

// CheckTask refuses what is asked of the run of a task if the task does not continue with it. reopens is for what
// has the task continue at once.
func (p *Runs) CheckTask(ctx context.Context, r store.Run, reopens bool) error {
	if r.Kind != string(loop.Task) || IsDriven(r) {
		return nil
	}
	id := board.TaskOf(r.Name)
	c, err := p.Store.Case(ctx, id)
	if err != nil {
		return Explain(err)
	}
	last, err := p.Store.Latest(ctx, r.Root, r.Name)
	isOpen := slices.Contains([]board.Status{board.Pending, board.Active, board.Blocked}, c.Status)
	switch {
	case err == nil && last.ID != r.ID:
		return fault.Refuse("run %s has worked on %s since", last.ID, id).Hint("See it: pawl show %s", last.ID)
	case strings.HasPrefix(strings.TrimPrefix(r.Name, id), "-race"):
		return fault.Refuse("%s does not continue with run %s, which raced for it", id, r.ID).
			Hint("Start over: pawl case retry %s", id)
	case c.Status == board.Review:
		return p.suggestForTask(ctx, fault.Refuse("%s cannot continue: its work is verified", id), r)
	case c.Status == board.Done:
		return fault.Refuse("%s cannot continue: it is done", id).Hint("Take it back: pawl revert %s", id)
	case reopens && !isOpen:
		return fault.Refuse("%s cannot continue: it is %s", id, c.Status.Phrase()).
			Hint("Start over:          pawl case retry %s", id).
			Hint("Raise its limits:    pawl case extend %s --max-iterations N", id)
	}
	return nil
}

// Reopen lets the autopilot go on with a task that a person has answered.
func (p *Operator) Reopen(ctx context.Context, r store.Run, why string) error {
	if err := p.CheckTask(ctx, r, true); err != nil {
		return err
	}
	c, err := p.Store.Case(ctx, board.TaskOf(r.Name))
	if err == nil && c.Status == board.Blocked {
		c, err = p.Store.MoveCase(ctx, c.ID,
			board.Change{Action: board.Unblock, By: board.Person, Why: why, At: time.Now()})
	}
	if err != nil {
		return Explain(err)
	}
	p.Say("%s is %s.", c.ID, statusPhraseOf(&c))
	if _, err := p.Autopilot(ctx); err != nil {
		p.Say("The autopilot continues it: pawl autopilot")
	}
	return nil
}

// Change does with a case what the command of the verb does. text is the reason,
// or for redo what must change.
func (p *Operator) Change(ctx context.Context, verb, id, text string) (Done, error) {
	switch verb {
	case "start":
		return p.startTask(ctx, id)
	case "approve":
		return p.approveWork(ctx, id, text)
	case "redo":
		return p.sendBackForChanges(ctx, id, text)
	case "revert":
		return p.Revert(ctx, id, text)
	case "reject":
		return p.storeDecision(ctx, id, store.Rejected, text, board.Reject)
	}
	return p.moveTask(ctx, id, board.Action(verb), text)
}

// moveTask changes the status of a case.
func (p *Operator) moveTask(ctx context.Context, id string, action board.Action, why string) (Done, error) {
	c, err := p.Store.MoveCase(ctx, id, board.Change{Action: action, By: board.Person, Why: why, At: time.Now()})
	_, isKept, _ := p.Store.Workspace(ctx, c.ID)
	stays := isKept || p.Store.BoardName() != ""
	switch {
	case err != nil:
	case action == board.Block, action == board.Retry && !stays:
		err = p.leaveQueues(ctx, id, c.Why)
	}
	text := fmt.Sprintf("%s is %s: %s", c.ID, statusPhraseOf(&c), report.Line(c.Why, 200))
	if isKept && action == board.Retry {
		text += "; it continues in its workspace. To start from the target as it is now: pawl case clean " + c.ID
	}
	return Done{c, text}, err
}

// CheckRollback returns an error if the task cannot be rolled back in its present status.
func (p *Operator) CheckRollback(ctx context.Context, id string) error {
	c, err := p.Store.Case(ctx, id)
	if err != nil || staysPending(c) {
		return err
	}
	_, _, err = board.Move(c, board.Change{Action: board.Rollback, By: board.Person, At: time.Now()})
	return err
}

// RollbackTask takes the work of a task back. It asks the board first: a task that is being worked on, waits for
// its landing or has landed is not taken back.
func (p *Operator) RollbackTask(ctx context.Context, clones *pool.Pool, id string, to BackTo) (Done, error) {
	c, err := p.Store.Case(ctx, id)
	if err != nil {
		return Done{}, err
	}
	ch := board.Change{Action: board.Rollback, By: board.Person, At: time.Now()}
	open := staysPending(c)
	if !open {
		if _, _, err := board.Move(c, ch); err != nil {
			return Done{}, err
		}
	}
	where, err := p.revertWork(ctx, clones, id, to)
	if err != nil {
		return Done{}, err
	}
	ch.Why = "its work was rolled back to " + where
	if !open {
		if _, err := p.Store.MoveCase(ctx, id, ch); err != nil {
			return Done{}, err
		}
	}
	return p.describeCase(ctx, id)
}

// revertWork takes the work of a task back, and returns its state in words. Where its workspace is on another machine,
// the board says what the next machine starts from.
func (p *Operator) revertWork(ctx context.Context, clones *pool.Pool, id string, to BackTo) (where string, err error) {
	r, host, err := p.TaskElsewhere(ctx, id)
	if err != nil {
		return "", err
	}
	if host != "" {
		return p.takeBackElsewhere(ctx, r, host, to)
	}
	point, where, err := p.targetOf(ctx, clones, id, to)
	if err != nil {
		return "", err
	}
	ref, err := clones.Rollback(ctx, id, point)
	switch {
	case errors.Is(err, pool.ErrNone):
		p.Say("%s has no workspace, so no files were changed.", id)
		return where, nil
	case errors.Is(err, pool.ErrTaken):
		return "", fault.Of(fault.Refused, err).Hint("Stop the process that uses it first")
	case err != nil:
		return "", err
	}
	p.Say("The workspace of %s is restored to %s.", id, where)
	p.Say("What was there before is kept: %s. To restore it: pawl case rollback %s --undo", ref, id)
	return where, p.noteTakenBack(ctx, r, journal.Rollback{To: to.N, Recovery: ref, Undo: to.Undo, Here: true})
}

// noteTakenBack notes a rollback for the machine that continues the task: it may be another one than this.
func (p *Operator) noteTakenBack(ctx context.Context, r store.Run, back journal.Rollback) error {
	if p.Store.BoardName() == "" || r.ID == "" {
		return nil
	}
	_, err := journal.Append(ctx, p.Store, r.ID, time.Now(), journal.RolledBack, back)
	return err
}

// takeBackElsewhere has the next machine start from what was sent after an iteration, whatever the machine with the
// workspace has.
func (p *Operator) takeBackElsewhere(ctx context.Context, r store.Run, host string, to BackTo) (string, error) {
	if pl, err := p.Planner(p.Root, planner.Flags{}); err != nil {
		return "", err
	} else if pl.Config.Cluster.Engine == "" { // nothing is sent
		return "", fault.Refuse("the workspace of %s is not on this machine: it is %s on %s; nothing was changed", r.Name,
			PlaceOf(r), host).Hint("Do it there: pawl case rollback %s", r.Name)
	}
	where := "how it started"
	if to.Undo {
		back, err := storedrun.TakenBack(ctx, p.Store, r.ID)
		if isNone := back == nil || back.Undo; err == nil && isNone {
			err = fault.Refuse("there is no rollback of %s to undo", r.Name)
		}
		if err != nil {
			return "", err
		}
		to.N, where = r.Iteration, "what there was before the rollback"
	}
	if to.N > 0 {
		w, _, err := p.WorkBetween(ctx, r, 0, to.N)
		if err != nil {
			return "", err
		}
		if !to.Undo {
			where = snapshotName(to.N)
		}
		p.Say("%s", w.Said)
	}
	if err := p.noteTakenBack(ctx, r, journal.Rollback{To: to.N, Undo: to.Undo}); err != nil {
		return "", err
	}
	p.Say("The workspace of %s is on %s. The next machine that works on it starts from %s.", r.Name, host, where)
	p.Say("To undo that: pawl case rollback %s --undo", r.Name)
	return where, nil
}

// targetOf returns the target of a task's rollback, and its description for people.
func (p *Operator) targetOf(ctx context.Context, clones *pool.Pool, id string, to BackTo) (pool.Point, string, error) {
	if to.Undo {
		point, r, err := clones.Recovered(ctx, id)
		if err == nil && r.Ref == "" {
			err = fault.Refuse("there is no rollback of %s to undo", id)
		}
		return point, "what " + r.Ref + " has", err
	}
	if to.N == 0 {
		return pool.Point{}, "how it started", nil
	}
	run, err := p.Store.Latest(ctx, clones.Root(), id)
	if errors.Is(err, store.ErrNotFound) {
		return pool.Point{}, "", fault.Refuse("%s has no run with snapshots to go back to", id)
	}
	if err != nil {
		return pool.Point{}, "", err
	}
	tree, err := p.RootTree(ctx, clones.Root())
	if err != nil {
		return pool.Point{}, "", err
	}
	snaps, err := tree.Snapshots(ctx, run.ID)
	if err != nil {
		return pool.Point{}, "", err
	}
	if s := SnapshotAfter(snaps, to.N); s != nil {
		return pool.Point{Head: s.Head, Tree: s.Tree}, snapshotName(to.N), nil
	}
	return pool.Point{}, "", fault.Refuse("run %s of %s has no snapshot %d", run.ID, id, to.N)
}

// SnapshotAfter returns the snapshot after an iteration; nil where there is none.
func SnapshotAfter(snaps []workspace.Snapshot, n int) *workspace.Snapshot {
	i := slices.IndexFunc(snaps, func(s workspace.Snapshot) bool { return s.N == n && s.Attempt == "" })
	if i < 0 {
		return nil
	}
	return &snaps[i]
}

// LacksWorkspace refuses what needs the workspace of a task, which is not here.
func (p *Runs) LacksWorkspace(ctx context.Context, id string) error {
	_, host, err := p.TaskElsewhere(ctx, id)
	switch {
	case err != nil:
		return err
	case host != "":
		return fault.Refuse("the workspace of %s is on %s, and so is what it serves", id, host)
	}
	return fault.Refuse("%s has no workspace here", id).Hint("It gets one when work on it starts")
}

// Clean removes workspaces, and what pawl knew of their trees: without the tree it
// is of no use. With dry it only says what would be removed.
func (p *Operator) Clean(ctx context.Context, clones *pool.Pool, ids []string, dry bool) ([]pool.Verdict, error) {
	all, err := clones.Clean(ctx, ids, dry)
	for _, v := range all {
		if v.Remove && !dry && v.Kind == "task" {
			_ = autopilot.Forget(statedir.Of(clones.Root(), p.Env), v.ID)
		}
	}
	return all, err
}

// CleanTask removes the workspace of one task. That it has to stay is a refusal.
func (p *Operator) CleanTask(ctx context.Context, clones *pool.Pool, id string) (Done, error) {
	all, err := p.Clean(ctx, clones, []string{id}, false)
	if err != nil {
		return Done{}, err
	}
	if len(all) == 0 {
		if err := p.CleanElsewhere(ctx, id); err != nil {
			return Done{}, err
		}
	}
	done := Done{Text: id + " has no workspace."}
	for _, v := range all {
		if !v.Remove {
			return Done{}, fault.Refuse("the workspace of %s stays: %s", id, report.Line(v.Reason, 400))
		}
		done.Text = fmt.Sprintf("The workspace of %s is removed: %s.", id, report.Line(v.Reason, 400))
		if v.Ref != "" {
			done.Text += " Its work is kept: " + v.Ref
		}
	}
	return done, nil
}

// Explain adds the exit status and what to do next.
func Explain(err error) error {
	var known *fault.Error
	var refusal *board.RefusalError
	var problems *board.ProblemsError
	var cycle *board.CycleError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &refusal):
		e := fault.Refuse("%s", refusal.Why)
		if refusal.Instead != "" {
			e = e.Hint("%s", refusal.Instead)
		}
		return e
	case errors.As(err, &problems):
		e := fault.Refuse("nothing was stored: %s", report.Line(problems.Problems[0].String(), 400))
		for _, p := range problems.Problems[1:] {
			e = e.Hint("%s", report.Line(p.String(), 400))
		}
		if problems.More > 0 {
			e = e.Hint("and %d more", problems.More)
		}
		return e
	case errors.As(err, &cycle):
		return fault.Refuse("nothing was stored: %s", report.Line(cycle.Error(), 400))
	case errors.Is(err, store.ErrNoCase):
		return fault.Of(fault.Refused, err).Hint("List the board: pawl case list --all")
	}
	return err
}

// CaseID reads an id as a person writes it.
func CaseID(text string) (string, error) {
	if _, _, ok := board.ParseID(text); !ok {
		return "", fault.Refuse("%q is not the id of a task; write task-042, op-005, or 42 for task-042",
			report.Line(text, 60))
	}
	return board.Normal(text), nil
}

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
		return board.Case{}, fault.Refuse("the checks of %s no longer exist: there was a later run of %s", id,
			planner.Sealing)
	}
	w, err := p.workspaceOf(ctx, r)
	if err != nil {
		return board.Case{}, err
	}
	list, err := ReadSeal(w.Place().Dir)
	if err := errors.Join(err, w.Release(ctx, delivery.Kept)); err != nil {
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
	return c, p.WithoutWords().DiscardRun(ctx, r)
}
