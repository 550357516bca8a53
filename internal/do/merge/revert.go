package merge

import (
	"context"
	"fmt"

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
			Hint("See where it is: pawl case show %s", id)
	case list[0].Revert:
		return queue.Landing{}, fault.Refuse("%s was taken back already, by %.10s", id, list[0].Commit)
	case list[0].Empty:
		return queue.Landing{}, fault.Refuse("%s changed nothing: there is nothing to take back", id)
	}
	tip, err := q.Tip(ctx)
	if err != nil {
		return queue.Landing{}, err
	}
	on, err := q.o.Repo.IsAncestor(ctx, list[0].Commit, tip)
	if err == nil && !on {
		err = fault.Refuse("%s landed as %.10s, which is not on %s any more", id, list[0].Commit, branchName(q.ref))
	}
	return list[0], err
}

// OfferRevert prepares what the caller stores to have the landing of a task taken back: a change on top of
// that landing with the files as they were before it, so that the queue merges it like any other. why goes
// into its message.
func (q *Queue) OfferRevert(ctx context.Context, id, title, why string) (store.QueueAsk, error) {
	landing, err := q.landingToRevert(ctx, id)
	if err != nil {
		return store.QueueAsk{}, err
	}
	before, err := q.o.Repo.TreeOf(ctx, landing.Commit+"^1")
	if err != nil {
		return store.QueueAsk{}, err
	}
	title = "Revert " + report.Line(title, 200)
	message := fmt.Sprintf("%s: %s\n\n%s\n\nThis takes back %s.\n", id, title, why, landing.Commit)
	commit, err := q.shadow.CommitTree(ctx, q.shadow.Who, before, message, landing.Commit)
	if err != nil {
		return store.QueueAsk{}, err
	}
	if q.o.Travel != "" {
		if err := q.o.Repo.PushWork(ctx, q.o.Travel, id, commit); err != nil {
			return store.QueueAsk{}, err
		}
	}
	// What the task was let change of protected files is taken back, too.
	return q.Offer(ctx, Entry{ID: id, Title: title, Commit: commit, Base: landing.Commit, Revert: why,
		Allow: []string{"**"}, Needs: []string{}})
}
