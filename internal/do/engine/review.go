package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

// This file carries out the review of green work: a job of the supervisor like
// the author's, with files of its own in the iteration's folder. The rules are:
//   - It is adopted after a crash as the author is: a review that was begun is
//     not begun again under its number.
//   - A reviewer is asked to change nothing, and what it changed is put back.
//   - What fails here fails the review, and never the iteration.

// performReview carries out one try of a review.
func (w *worker) performReview(ctx context.Context, s loop.State) input {
	c, p := s.Command, w.attempt(s.Command.Iteration, s.Command.Attempt)
	b, known := p.ReadBegun(p.ReviewBegunFile(c.Review))
	var res supervisor.Result
	var err error
	switch {
	case known && !w.missing:
		w.adoptBase(b)
		res, _, err = w.resumeMeteredJob(ctx, b.Job, func(e agent.Event) { w.onAgentEvent(ctx, e) })
	case !w.awaitRoom(ctx):
		err = errNoRoom
	case !w.Acquire(ctx, c):
		return w.throttled(c)
	default:
		w.missing = false
		b, res, err = w.runAgent(ctx, s, w.beginReview)
	}
	v := loop.Review{Verdict: loop.Undecided, Agent: c.Agent, CostSource: "none", Tries: 1}
	switch {
	case errors.Is(err, supervisor.ErrTaken):
		return w.takenInput()
	case errors.Is(err, errNoRoom):
		v.Summary, v.Ended = err.Error(), loop.EndedStop
	case err != nil:
		v.Summary = err.Error()
		v.Failure = &failure.Analysis{Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical,
			Summary: v.Summary, Fingerprint: ending.CannotStart}
	default:
		v = w.readReview(c, res)
		after, cancel := w.aftermath(w.hard)
		defer cancel()
		w.unchanged(after, b, &v)
	}
	return input{event: w.stampEvent(loop.Event{Kind: loop.Reviewed, For: c.Seq, Review: &v})}
}

// beginReview prepares a try: prompt, command line, and the tree to compare with.
func (w *worker) beginReview(ctx context.Context, s loop.State, p attemptdir.Folder) (attemptdir.Begun, error) {
	c := s.Command
	b := attemptdir.Begun{Attempt: c.Attempt, At: time.Now()}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return b, fmt.Errorf("cannot make the folder of the iteration: %w", err)
	}
	w.lookForReview(ctx, &b)
	text, err := w.composeReview(ctx, s, b)
	if err != nil {
		return b, err
	}
	if err := os.WriteFile(p.ReviewPromptFile(c.Review), []byte(text.Text), 0o600); err != nil {
		return b, fmt.Errorf("cannot write the prompt of the review: %w", err)
	}
	job, warm, err := w.agentJob(c, p, agentCall{
		id: attemptdir.ReviewID(c), files: p.ReviewFiles(c.Review), prompt: p.ReviewPromptFile(c.Review),
		size: int64(len(text.Text)), readOnly: true,
	})
	if err != nil {
		return b, err
	}
	w.jobs.WarmUp(ctx, w.o.StateDir, c.Agent, &job, warm, w.warn)
	b.Job = job
	return b, b.Write(p.ReviewBegunFile(c.Review))
}

// lookForReview notes the tree that is reviewed, and what is checked out.
func (w *worker) lookForReview(ctx context.Context, b *attemptdir.Begun) {
	if w.o.Tree == nil {
		return
	}
	now, err := w.o.Tree.See(ctx, w.id)
	if err != nil {
		w.treeWarning(ctx, fmt.Sprintf("cannot read the files before the review, so changes by a reviewer are not "+
			"noticed: %v", err))
		return
	}
	b.TreeBefore, b.HeadBefore, b.BranchBefore = now.Tree, now.Head.Commit, now.Head.Branch
}

// maxReviewed is how much of a patch is read for a review, in bytes.
const maxReviewed = 8 << 20

// composeReview assembles the prompt of a review.
func (w *worker) composeReview(ctx context.Context, s loop.State, b attemptdir.Begun) (prompt.Prompt, error) {
	c, r := s.Command, &s.PendingReview.Record
	work := w.plan.Prompt
	work.Iteration, work.MaxIterations, work.Run, work.Agent, work.Strategy = r.Number, s.Limit, w.id,
		c.Agent, r.Strategy
	in := prompt.Review{
		Work: work, Fragment: w.plan.Review.Fragment, Author: r.Agent,
		Purpose: w.plan.Review.Purpose, Checks: r.Gates, Unknown: true,
	}
	if reviewer, ok := w.plan.Agents[c.Agent]; ok && reviewer.Adapter.About().Facts != nil {
		in.Limit = int(reviewer.Adapter.About().PromptLimit)
	}
	if base := cmp.Or(w.treeBeforeWork(), r.TreeBefore); base != "" && b.TreeBefore != "" {
		patch, cut, err := w.o.Tree.Diff(ctx, base, b.TreeBefore, maxReviewed)
		if err != nil {
			return prompt.Prompt{}, fmt.Errorf("cannot list the change for the review: %v", err)
		}
		in.Patch, in.Cut, in.Unknown = patch, cut, false
	}
	text, err := prompt.ComposeReview(in)
	if err != nil {
		return text, fmt.Errorf("cannot assemble the prompt of the review: %v", err)
	}
	if text.Over {
		w.warn(fmt.Sprintf("The review's prompt exceeds the token budget: %s > %s", prompt.Thousands(text.Tokens),
			prompt.Thousands(work.Budget)))
	}
	return text, nil
}

// readReview reads how the reviewer ended: a verdict only from one that ended
// well.
func (w *worker) readReview(c loop.Command, res supervisor.Result) loop.Review {
	r := ending.NewRecord(&w.plan, c, res)
	w.blameDisk(r, res)
	v := loop.Review{Verdict: loop.Undecided, Agent: c.Agent}
	switch x := r.Exit; {
	case x.Ended == loop.EndedDisk && w.waitsForStorage(): // the next try waits for room
		v.Summary = x.Why
	case x.Ended == loop.EndedStop:
		v.Summary = "it was stopped"
	case x.Ended == loop.EndedLost || x.Ended == loop.EndedLease:
		v.Summary = "it was lost when pawl's supervisor ended"
	case !r.Valid() || x.Code != 0 || x.Terminal == loop.TerminalFailed:
		if v.Failure = ending.FailureOfAgent(&w.plan, r, res); v.Failure != nil {
			v.Summary = ending.DescribeReviewer(c.Agent, x, v.Failure)
		}
	default:
		v = loop.ReviewBy(c.Agent, res.Agent.Message)
	}
	v.Tries, v.Ended, v.Elapsed = 1, r.Exit.Ended, r.Elapsed
	v.TokensIn, v.TokensOut, v.Cost, v.CostSource, v.Calls = r.TokensIn, r.TokensOut, r.Cost, r.CostSource, r.Calls
	return v
}

// unchanged compares the tree after a review with that before it, and puts
// back what the reviewer changed. An approval by one that changed what was
// there is no approval of the author's work.
func (w *worker) unchanged(ctx context.Context, b attemptdir.Begun, v *loop.Review) {
	if w.o.Tree == nil || b.TreeBefore == "" {
		return
	}
	now, err := w.o.Tree.See(ctx, w.id)
	if err != nil {
		w.treeWarning(ctx, fmt.Sprintf("cannot read the files after the review: %v", err))
		withdrawApproval(v, "the files can no longer be read")
		return
	}
	if now.Tree == b.TreeBefore && now.Head.Commit == b.HeadBefore {
		return
	}
	w.trees.headAt = time.Time{}
	changes, _, err := w.listChanges(ctx, b.TreeBefore, now.Tree)
	if err != nil {
		w.warn(fmt.Sprintf("cannot list what %s changed in its review: %v", v.Agent, err))
	}
	w.undoReview(ctx, b, v, changes)
	wasThere := func(c gate.Change) bool { return c.Status != 'A' } // unlike the report of its tests
	if now.Head.Commit != b.HeadBefore || err != nil || slices.ContainsFunc(changes, wasThere) {
		withdrawApproval(v, fmt.Sprintf("%s changed what it should review", v.Agent))
	}
}

// maxReverted bounds the files that a record lists as put back.
const maxReverted = 100

// errOthers is that files are not as they were, though nothing went wrong.
var errOthers = errors.New("somebody else changed them in the meantime")

// undoReview makes the tree what it was before the review.
func (w *worker) undoReview(ctx context.Context, b attemptdir.Begun, v *loop.Review, changes []gate.Change) {
	what := v.Agent + ", which reviews and may change nothing, changed " + fault.Numbered(len(changes), "file")
	if len(changes) == 0 {
		what = v.Agent + ", which reviews and may change nothing, moved HEAD"
	}
	was := workspace.Seen{Tree: b.TreeBefore, Head: git.Head{Commit: b.HeadBefore, Branch: b.BranchBefore}}
	err := w.restoreFiles(ctx, was)
	now, lerr := w.o.Tree.See(ctx, w.id)
	if lerr != nil || now.Tree != was.Tree || now.Head.Commit != was.Head.Commit {
		w.warn(fmt.Sprintf("%s, and that could not be restored: %v", what, cmp.Or(err, lerr, errOthers)))
		withdrawApproval(v, v.Agent+" changed files that could not be restored")
		return
	}
	w.warn(what + "; all was restored")
	for _, c := range changes[:min(len(changes), maxReverted)] {
		v.Reverted = append(v.Reverted, c.Path)
	}
}

// withdrawApproval takes an approval back.
func withdrawApproval(v *loop.Review, why string) {
	if v.Verdict == loop.Approved {
		v.Verdict, v.Summary = loop.Undecided, why+", so its approval does not count"
	}
}
