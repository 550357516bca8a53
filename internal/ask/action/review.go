package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// sendBackForChanges sends verified work back with what must change, which goes into the next
// prompt.
func (p *Operator) sendBackForChanges(ctx context.Context, id, feedback string) (Done, error) {
	if strings.TrimSpace(feedback) == "" {
		return Done{}, fault.Refuse("say what must change: it goes into the next prompt")
	}
	return p.storeDecision(ctx, id, store.Redo, feedback, board.Redo)
}

// storeDecision stores a redo or a rejection.
func (p *Operator) storeDecision(ctx context.Context, id, decision, text string, action board.Action) (Done, error) {
	v := store.Verdict{
		Case: id, Decision: decision, Feedback: text,
		Change: board.Change{Action: action, By: board.Person, Why: text, At: time.Now()},
	}
	if ok, err := p.Store.DecideReview(ctx, v); err != nil {
		return Done{}, err
	} else if !ok {
		return Done{}, p.nothingToReview(ctx, id)
	}
	p.noteDecision(ctx, id, decision)
	return p.describeCase(ctx, id)
}

// describeCase says how a case is.
func (p *Operator) describeCase(ctx context.Context, id string) (Done, error) {
	c, err := p.Store.Case(ctx, id)
	return Done{c, fmt.Sprintf("%s is %s.", id, statusPhraseOf(&c))}, err
}

// approveWork puts the work into the merge queue. The decision and the entry are stored
// in one transaction: work that somebody else decided about meanwhile is refused.
func (p *Operator) approveWork(ctx context.Context, id, why string) (Done, error) {
	list, err := p.Store.CaseReviews(ctx, id)
	if err != nil {
		return Done{}, err
	}
	if len(list) == 0 || list[len(list)-1].Decision != "" {
		return Done{}, p.nothingToReview(ctx, id)
	}
	var e queue.Entry
	if err := json.Unmarshal(list[len(list)-1].Work, &e); err != nil {
		return Done{}, fmt.Errorf("cannot read the work of %s that is to land: %v", id, err)
	}
	q, err := p.openQueue(ctx)
	if err != nil {
		return Done{}, err
	}
	ask, err := q.Offer(ctx, e)
	if err != nil {
		return Done{}, err
	}
	v := store.Verdict{
		Case: id, Review: list[len(list)-1].Seq, Decision: store.Approved,
		Change: board.Change{Action: board.Approve, By: board.Person,
			Why: strings.TrimSuffix("approved "+string(WayOf(ctx))+"\n"+why, "\n"), At: ask.At},
		Land: &ask,
	}
	if ok, err := p.Store.DecideReview(ctx, v); err != nil {
		return Done{}, err
	} else if !ok {
		return Done{}, p.nothingToReview(ctx, id)
	}
	p.noteDecision(ctx, id, store.Approved)
	done, err := p.describeCase(ctx, id)
	done.Text = fmt.Sprintf("%s is approved, and waits to land on %s.", id, q.Branch())
	return done, err
}

// openQueue opens the queue of the target, to add to it.
func (p *Operator) openQueue(ctx context.Context) (*merge.Queue, error) {
	pl, err := p.Planner(p.Root, planner.Flags{})
	if err != nil {
		return nil, err
	}
	repo, err := git.OpenStore(ctx, pl.Config.Root)
	if err != nil {
		return nil, err
	}
	target, err := LandingTarget(ctx, pl.Config, repo)
	if err != nil {
		return nil, err
	}
	o := merge.Options{Store: p.Store, Repo: repo, Target: target,
		Dir: filepath.Join(statedir.Of(pl.Config.Root, p.Env), "queue")}
	o.Policy.Push, o.Policy.Propose = pl.Config.Merge.Push, pl.Config.Merge.Mode == "pull-request"
	if p.Store.BoardName() != "" && pl.Config.Cluster.Engine != "" {
		o.Travel = pl.Config.Cluster.Remote
	}
	return merge.Open(ctx, o)
}

// Revert has the queue take back what a task landed; then the task is open again, for the reason.
func (p *Operator) Revert(ctx context.Context, id, why string) (Done, error) {
	c, err := p.Store.Case(ctx, id)
	if err != nil {
		return Done{}, err
	}
	switch {
	case c.Type != board.Task:
		return Done{}, fault.Refuse("%s is an operation; only a task can be reverted", id)
	case c.Status == board.Review && p.isBeingReverted(ctx, id):
		return Done{}, fault.Refuse("the revert of %s is queued already", id).Hint("Land it: pawl queue land")
	case c.Status != board.Done:
		return Done{}, fault.Refuse("%s is %s: only what has landed can be reverted", id, statusPhraseOf(&c)).
			Hint("See it: pawl case show %s", id)
	}
	q, err := p.openQueue(ctx)
	if err != nil {
		return Done{}, err
	}
	ask, err := q.OfferRevert(ctx, id, c.Title, cmp.Or(strings.TrimSpace(why), "reverted by a person"))
	if err == nil {
		_, err = p.Store.AskQueue(ctx, ask)
	}
	if err != nil {
		return Done{}, err
	}
	needing, err := q.DoneNeeding(ctx, id)
	c, serr := p.Store.Case(ctx, id)
	text := fmt.Sprintf("%s is queued to be reverted on %s. Then it is open again, for another try; "+
		"to have it wait: pawl case block %s.%s", id, q.Branch(), id, needing)
	return Done{c, text}, errors.Join(err, serr)
}

// isBeingReverted reports whether a merge queue has the revert of a task.
func (p *Operator) isBeingReverted(ctx context.Context, id string) bool {
	targets, err := p.Store.QueueTargets(ctx)
	return err == nil && slices.ContainsFunc(targets, func(target string) bool {
		row, _, err := p.Store.Queue(ctx, target)
		e, isIn := row.State.Find(id)
		return err == nil && isIn && e.Revert != ""
	})
}

// noteDecision adds the decision to the statistics of the sprint that it is about.
func (p *Operator) noteDecision(ctx context.Context, id, decision string) {
	if err := autopilot.NoteDecision(ctx, p.Store, p.Root, id, decision); err != nil {
		p.Say("Warning: the sprint's statistics lack the decision: %v", err)
	}
}

// nothingToReview is the error that there is nothing to decide, with the decision that was first.
func (p *Operator) nothingToReview(ctx context.Context, id string) error {
	c, err := p.Store.Case(ctx, id)
	if err != nil {
		return err
	}
	list, err := p.Store.CaseReviews(ctx, id)
	if err != nil {
		return err
	}
	became := ""
	if len(list) > 0 && list[len(list)-1].Decision != "" {
		became = describeDecision(&list[len(list)-1]) + ", and "
	}
	if c.Status == board.Review {
		return fault.Refuse("no review of %s waits for you: %sit waits to land", id, became).Hint("See it: pawl queue")
	}
	return fault.Refuse("no review of %s waits for you: %sit is %s", id, became, c.Status.Phrase()).
		Hint("See what needs you: pawl autopilot status")
}

// describeDecision returns the middle of a sentence: "it was approved at …".
func describeDecision(r *store.CaseReview) string {
	words := map[string]string{store.Approved: "it was approved", store.Redo: "it was sent back",
		store.Rejected: "it was rejected"}
	text := words[r.Decision] + " at " + r.DecidedAt.Local().Format(time.DateTime)
	if r.Feedback != "" {
		text += " (" + report.Line(r.Feedback, 200) + ")"
	}
	return text
}

// LandingTarget is the full name of the branch that work lands on.
func LandingTarget(ctx context.Context, c *config.Config, repo *git.Repo) (string, error) {
	var head git.Head
	var err error
	name := merge.Ref(c.Merge.Target)
	if c.Merge.Target != "" {
		head.Commit, err = repo.Find(ctx, name)
	} else {
		head, err = repo.Head(ctx)
		name = head.Branch
	}
	readable := head.Commit
	if err == nil && name != "" {
		readable, err = repo.Find(ctx, name)
	}
	switch short := report.Line(strings.TrimPrefix(name, "refs/heads/"), 200); {
	case err != nil:
		return "", err
	case name == "":
		return "", fault.Refuse("no branch is checked out here, so there is none to land on").
			Hint("Name one in pawl.yaml: merge: {target: main}")
	case head.Commit == "" && c.Merge.Target != "":
		return "", fault.Refuse("there is no branch %s, which merge.target names", short).
			Hint("Create it, or name another in pawl.yaml: git branch %s", short)
	case readable == "" && head.Commit != "":
		return "", fault.Refuse("git cannot read %s, the commit of the branch %s", head.Commit, short).
			Hint("Check the repository: git fsck")
	case head.Commit == "":
		return "", fault.Refuse("the branch %s has no commit yet, so there is nothing to land on", short).
			Hint("Create the first one: git add -A && git commit")
	}
	return name, nil
}
