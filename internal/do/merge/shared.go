package merge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// Where several machines work on the board the target is the remote's branch. What a
// clone has of its own is a person's: it is not verified, not pushed, and in no way.

// isShared reports whether the target is the remote's branch.
func (q *Queue) isShared() bool {
	stays := !q.o.Policy.Push && !q.o.Policy.Propose
	return q.o.Travel != "" && q.remote.name != "" && !stays
}

// isRemoteAway reports whether the target is the remote's branch, and that does not answer.
// What is known of it here may be behind what another machine saw: nothing follows from that.
func (q *Queue) isRemoteAway() bool { return q.isShared() && q.remote.away != nil }

// targetRef is the ref of the target.
func (q *Queue) targetRef() string {
	if q.isShared() {
		return q.trackingRef()
	}
	return q.target
}

// Tip is the target's commit; "" when there is no such branch. Where the target is the
// remote's branch it is what the remote answered last.
func (q *Queue) Tip(ctx context.Context) (string, error) {
	said := q.remote.lastAnswer()
	if q.isShared() && said.none {
		return "", nil
	}
	tip, err := q.o.Repo.Find(ctx, q.targetRef())
	if err == nil && tip == "" && q.isShared() {
		err = said.away
	}
	return tip, err
}

// landThere moves the remote's branch, and then the branch here if it can follow.
func (q *Queue) landThere(ctx context.Context, c queue.Command) (queue.Event, error) {
	for try := 0; ; try++ {
		tip, err := q.o.Repo.Find(ctx, q.targetRef())
		if err != nil {
			return queue.Event{}, err
		}
		if tip != c.From {
			there, err := q.o.Repo.IsAncestor(ctx, c.To, tip)
			if err != nil || there {
				return queue.Event{Kind: queue.Landed, Warnings: q.followRemote(ctx)}, err
			}
			return refusedEvent(queue.Refusal{Moved: true}), nil
		}
		if !q.o.Repo.Whole(ctx, c.From, c.To) && ctx.Err() == nil { // it is made again
			return refusedEvent(queue.Refusal{Moved: true}), nil
		}
		q.o.point("before sent")
		p := q.sendCommit(ctx, c.To, c.From)
		q.o.point("after sent")
		switch {
		case p.Refused:
			return refusedEvent(queue.Refusal{Why: p.Failed}), nil
		case p.Failed != "":
			return queue.Event{}, errors.New(p.Failed)
		case p.Diverged == "":
			return queue.Event{Kind: queue.Landed, Warnings: q.followRemote(ctx)}, nil
		case try > 0:
			return queue.Event{}, fmt.Errorf("%s rejects a push to %s, and has nothing new there", q.remote.name,
				branchName(q.remote.ref))
		}
		if _, err := q.askRemote(ctx, true); err != nil || q.remote.away != nil {
			return queue.Event{}, errors.Join(err, q.remote.away)
		}
	}
}

// followRemote moves the branch here to where the remote's is, if it is only behind and nothing
// of a person's is in the way. Else it stays, which is said once.
func (q *Queue) followRemote(ctx context.Context) (warnings []string) {
	stays, warnings, err := q.reasonStays(ctx)
	if err != nil && ctx.Err() == nil {
		stays = err.Error()
	}
	if kind, _, _ := strings.Cut(stays, ":"); stays == "" || kind != q.remote.told {
		q.remote.told = kind
		if stays != "" {
			warnings = append(warnings, stays)
		}
	}
	return warnings
}

// reasonStays: the branch here cannot follow that of the remote; "" when it could. Two
// reasons with the same text before the first colon are the same notice.
func (q *Queue) reasonStays(ctx context.Context) (why string, warnings []string, err error) {
	here, err := q.o.Repo.Find(ctx, q.target)
	if err != nil || here == "" {
		return "", nil, err
	}
	there, err := q.o.Repo.Find(ctx, q.trackingRef())
	if err != nil || there == "" || here == there {
		return "", nil, err
	}
	behind, err := q.o.Repo.IsAncestor(ctx, here, there)
	if err != nil {
		return "", nil, err
	}
	if behind {
		warnings, err = q.forwardTarget(ctx, here, there)
		return "", warnings, err
	}
	count, err := q.o.Repo.Count(ctx, there, here)
	if err != nil {
		return "", nil, err
	}
	const named = 3
	own, err := q.o.Repo.Own(ctx, there, here, named)
	if err != nil {
		return "", nil, err
	}
	if count > named {
		own = append(own, "…")
	}
	return fmt.Sprintf("%s in %s on %s has commits that %s does not: %d (%s). They are not verified and not pushed, and "+
		"the branch stays where it is. To bring them there yourself: git pull --rebase, then git push",
		branchName(q.target), q.o.Repo.Top, q.o.Owner.Host, q.remote.name, count, strings.Join(own, "; ")), nil, nil
}
