package autopilot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// collectWork makes of a complete run what can land.
func (p *reporter) collectWork(ctx context.Context, l *slot, w pool.Workspace, s loop.State, o *schedule.Outcome) {
	run := l.idOfRun()
	commit, err := p.o.Pool.Collect(ctx, w, commitMessage(l.task, run))
	if err == nil {
		o.Secrets, err = p.secretsIn(ctx, run)
	}
	if err == nil && p.o.Remote != "" {
		err = p.o.pushWork(ctx, l.task.ID, commit)
	}
	switch {
	case errors.Is(err, pool.ErrRefused):
		*o = schedule.Outcome{Status: loop.Blocked, Why: "it is complete, but " + err.Error()}
		past, herr := p.o.Store.CaseHistory(ctx, l.task.ID)
		// The next attempt reads why, before a person does.
		o.Refused = herr == nil && !slices.ContainsFunc(past, func(e board.Entry) bool {
			return e.Action == board.Return && e.Why == o.Why
		})
		return
	case err != nil: // its run is complete, and stays so: the next start collects again
		*o = schedule.Outcome{Status: loop.Completed, NotStarted: true, Machine: true,
			Why: "it is complete, but " + err.Error()}
		return
	}
	o.Empty, o.Hold = commit == w.Base, cmp.Or(l.hold, p.reasonSentBack(ctx, l.task.ID, s.Changed))
	if o.Hold == "" && !o.Empty {
		o.Hold = p.reasonToConfirm(ctx, &l.task, w.Base, commit)
	}
	l.result = queue.Entry{
		ID: l.task.ID, Title: l.task.Title, Result: s.Why, Run: run, Commit: commit, Base: w.Base,
		Priority: l.task.Priority, Allow: l.allow, Closed: l.closed, AddedAt: s.LastAt,
	}
}

// reasonSentBack returns what a person criticised when they sent the work of a task back, or "" if they did not,
// or have approved it since. hasChanged: this run changed files.
func (p *reporter) reasonSentBack(ctx context.Context, id string, hasChanged bool) string {
	history, err := p.o.Store.CaseHistory(ctx, id)
	if err != nil {
		return "it is unknown whether you sent it back: " + err.Error()
	}
	reviews := []board.Action{board.Approve, board.Redo, board.Reject}
	for _, e := range slices.Backward(history) {
		if !slices.Contains(reviews, e.Action) {
			continue
		}
		if e.Action == board.Approve {
			break
		}
		what := map[board.Action]string{board.Redo: "it was sent back", board.Reject: "it was rejected"}[e.Action]
		if !hasChanged {
			what += ", and this run has changed nothing since"
		}
		return what + ": " + e.Why
	}
	return ""
}

// ReviewWhen is the work that waits for a person. 0 and no paths are no limits.
type ReviewWhen struct {
	Files, Lines int
	Paths        []string
	Unproved     bool // a criterion that no check names
}

// reasonToReview to have a person see the work of a task; "" where there is none.
func (w *ReviewWhen) reasonToReview(task *board.Case, paths []string, lines int) string {
	isNamed := func(path string) bool {
		return slices.ContainsFunc(w.Paths, func(p string) bool { return gate.Match(p, path) })
	}
	proofs := report.ProofsOf(task, nil)
	unproved := slices.IndexFunc(proofs, func(p report.Proof) bool { return p.Check == "" })
	switch at := slices.IndexFunc(paths, isNamed); {
	case at >= 0:
		return fmt.Sprintf("it changes %s (review.when.paths)", paths[at])
	case w.Files > 0 && len(paths) > w.Files:
		return fmt.Sprintf("it changes %d files, more than review.when.files: %d", len(paths), w.Files)
	case w.Lines > 0 && lines > w.Lines:
		return fmt.Sprintf("it changes %d lines, more than review.when.lines: %d", lines, w.Lines)
	case w.Unproved && unproved >= 0:
		return fmt.Sprintf("none of its checks shows that %q (review.when.unproved)",
			fault.Cut(proofs[unproved].Criterion, 200))
	}
	return ""
}

// reasonToConfirm: a person has to see the work before it lands, since it changes what
// their own programs run by themselves, or they want to. "" where there is none.
func (p *reporter) reasonToConfirm(ctx context.Context, task *board.Case, base, commit string) string {
	changes, err := p.o.Repo.Changes(ctx, base, commit)
	var found, paths []string
	var size git.Stat
	if err == nil && p.o.ReviewWhen.Lines > 0 {
		size, err = p.o.Repo.DiffStat(ctx, base, commit)
	}
	if err == nil {
		paths = lists.Each(changes, func(c git.Change) string { return c.Path })
		found, err = delivery.RunsItself(ctx, p.o.Repo, paths, p.o.Confirm)
	}
	switch {
	case err != nil:
		return "it is unknown whether it changes files that your own programs run by themselves: " + err.Error()
	case len(found) > 0:
		return "it changes " + deliver.Some(found) + ", which your own programs run by themselves"
	}
	return p.o.ReviewWhen.reasonToReview(task, paths, size.Added+size.Deleted)
}

// blameOthers looks what the task of a run that failed is not to blame for: a disk that was full, or
// what only a person can set right for an agent. An agent that an earlier pawl began may have ended on a disk that has
// room now.
func (p *reporter) blameOthers(ctx context.Context, l *slot, o *schedule.Outcome) {
	end, by, began := endOfAgent(ctx, p.o.Store, l.idOfRun())
	room, _ := p.o.Pool.Room()
	switch {
	case end == loop.EndedDisk && began.Before(l.since) && room < pool.RoomClean:
		o.Status, o.Why = loop.Interrupted, "the disk was nearly full when its agent ended, and has room again"
	case end == loop.EndedDisk:
		o.NotStarted, o.Machine = true, true
	case o.Status == loop.FailedRun:
		o.Person = by
	}
}

// commitMessage is for the commit of what was not committed.
func commitMessage(c board.Case, run string) string {
	return fmt.Sprintf("%s: %s\n\nPawl-Task: %s\nPawl-Run: %s\n", c.ID, c.Title, c.ID, run)
}

// secretsIn lists places where the work may still hold a secret, by the last
// iteration.
func (p *reporter) secretsIn(ctx context.Context, run string) (string, error) {
	list, err := p.o.Store.LastIterations(ctx, run, 1)
	if err != nil || len(list) == 0 {
		return "", err
	}
	found := list[len(list)-1].Secrets
	if len(found) == 0 {
		return "", nil
	}
	where := fmt.Sprintf("%s:%d (%s)", found[0].File, found[0].Line, found[0].Kind)
	if len(found) > 1 {
		where += fmt.Sprintf(" and %d more", len(found)-1)
	}
	return where, nil
}
