package merge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// landingToRevert returns the landing of a task that is on the target now. It is an error, for the
// person, if there is none.
func (q *Queue) landingToRevert(ctx context.Context, id string) (queue.Landing, error) {
	list, err := q.o.Store.Landings(ctx, q.ref, id, 1)
	if err != nil {
		return queue.Landing{}, err
	}
	switch {
	case len(list) == 0:
		return queue.Landing{}, fault.Refuse("%s has not landed on %s", id, branchName(q.ref)).
			Hint("See it: pawl case show %s", id)
	case list[0].Revert:
		return queue.Landing{}, fault.Refuse("%s was already reverted, by %.10s", id, list[0].Commit)
	case list[0].Empty:
		return queue.Landing{}, fault.Refuse("%s changed nothing: there is nothing to revert", id)
	}
	tip, err := q.askRemoteForTip(ctx)
	if err != nil {
		return queue.Landing{}, err
	}
	on, err := q.o.Repo.IsAncestor(ctx, list[0].Commit, tip)
	if err == nil && !on {
		branch := branchName(q.ref)
		const gone = "%s landed as %.10s, which is no longer on %s: it was rewritten"
		err = fault.Refuse(gone, id, list[0].Commit, branch).Hint("See what is left of it: git log %s --grep "+
			"'Pawl-Task: %s'. Revert that with git revert on a branch, as a task of its own", branch, id)
	}
	return list[0], err
}

// askRemoteForTip is the target's commit: the remote's, if that is the target or the branch here is behind it. The
// process that works on the queue does not ask again.
func (q *Queue) askRemoteForTip(ctx context.Context) (string, error) {
	if q.remote.name == "" || q.remote.answer.Load() != nil {
		return q.Tip(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	found, err := q.o.Repo.Fetch(bounded, q.remote.name, q.remote.ref, q.trackingRef())
	if err != nil || !found { // what is known here has to do
		return q.Tip(ctx)
	}
	there, err := q.o.Repo.Find(ctx, q.trackingRef())
	if err != nil || q.isShared() {
		return there, err
	}
	here, err := q.o.Repo.Find(ctx, q.ref)
	if err != nil || here == "" {
		return there, err
	}
	if behind, err := q.o.Repo.IsAncestor(ctx, here, there); err != nil || !behind {
		return here, err
	}
	return there, nil
}

// OfferRevert prepares what the caller stores to have the landing of a task taken back: a change on top of
// that landing with the files as they were before it, so that the queue merges it like any other. why goes
// into its message.
func (q *Queue) OfferRevert(ctx context.Context, id, title, why string) (store.QueueAsk, error) {
	landing, err := q.landingToRevert(ctx, id)
	if err != nil {
		return store.QueueAsk{}, err
	}
	// What the task was let change of protected files is taken back, too.
	e := Entry{ID: id, Title: "Revert " + report.Line(title, 200), Base: landing.Commit, Since: landing.Since,
		Revert: why, Allow: []string{"**"}, Needs: []string{}}
	if e.Commit, err = q.commitReverse(ctx, &e); err != nil {
		return store.QueueAsk{}, err
	}
	if q.o.Travel != "" {
		if err := q.o.Repo.PushWork(ctx, q.o.Travel, id, e.Commit); err != nil {
			return store.QueueAsk{}, err
		}
	}
	return q.Offer(ctx, e)
}

// commitReverse makes the commit of an entry that takes back a landing, its base.
func (q *Queue) commitReverse(ctx context.Context, e *Entry) (string, error) {
	landing := queue.Landing{Commit: e.Base, Since: e.Since}
	before, err := q.o.Repo.TreeOf(ctx, landing.Before())
	if err != nil {
		return "", err
	}
	message := fmt.Sprintf("%s: %s\n\n%s\n\nThis reverts %s.\n", e.ID, e.Title, e.Revert, e.Base)
	return q.shadow.CommitTree(ctx, q.shadow.Who, before, message, e.Base)
}

// remakeReverse makes that commit again where another machine made it, which shares the board only.
func (q *Queue) remakeReverse(ctx context.Context, e *Entry) error {
	if e.Revert == "" || q.o.Travel != "" {
		return nil
	}
	if here, err := q.o.Repo.Find(ctx, e.Commit); err != nil || here != "" {
		return err
	}
	if commit, err := q.commitReverse(ctx, e); err == nil { // else its landing is not here either
		e.Commit = commit
		return q.o.Repo.SetRefs(ctx, queuedTaskRef(e.ID), commit)
	}
	return nil
}

// DoneNeeding is a sentence that names the tasks that need one and are done: they may need what is taken back. ""
// is none.
func (q *Queue) DoneNeeding(ctx context.Context, id string) (string, error) {
	dependents, err := q.o.Store.Dependents(ctx, id)
	var done []string
	for _, other := range dependents {
		c, cerr := q.o.Store.Case(ctx, other)
		if err = errors.Join(err, cerr); cerr == nil && c.Status == board.Done {
			done = append(done, other)
		}
	}
	if len(done) == 0 {
		return "", err
	}
	return " These tasks need it and are already done; they may break: " + strings.Join(done, ", ") + ".", err
}
