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
func (t *target) isShared() bool {
	stays := !t.o.Policy.Push && !t.o.Policy.Propose
	return t.o.Travel != "" && t.remote.name != "" && !stays
}

// isRemoteAway reports whether the target is the remote's branch, and that does not answer.
// What is known of it here may be behind what another machine saw: nothing follows from that.
func (t *target) isRemoteAway() bool { return t.isShared() && t.remote.away != nil }

// targetRef is the ref of the target.
func (t *target) targetRef() string {
	if t.isShared() {
		return t.trackingRef()
	}
	return t.ref
}

// Tip is the target's commit; "" when there is no such branch. Where the target is the
// remote's branch it is what the remote answered last.
func (t *target) Tip(ctx context.Context) (string, error) {
	said := t.remote.answer.Load()
	if !t.isShared() || said == nil {
		return t.o.Repo.Find(ctx, t.targetRef())
	}
	if said.none {
		return "", nil
	}
	tip, err := t.o.Repo.Find(ctx, t.targetRef())
	if err == nil && tip == "" {
		err = said.away
	}
	return tip, err
}

// landThere moves the remote's branch, and then the branch here if it can follow.
func (t *target) landThere(ctx context.Context, c queue.Command) (queue.Event, error) {
	for try := 0; ; try++ {
		landed, moved, err := t.compareStart(ctx, t.targetRef(), c)
		switch {
		case err != nil:
			return queue.Event{}, err
		case landed:
			return queue.Event{Kind: queue.Landed, Warnings: t.followRemote(ctx)}, nil
		case moved:
			return refusedEvent(queue.Refusal{Moved: true}), nil
		}
		t.o.point("before sent")
		p := t.sendCommit(ctx, c.To, c.From)
		t.o.point("after sent")
		switch {
		case p.Refused && queue.IsAboutCommits(p.Words):
			return refusedEvent(queue.Refusal{Why: p.Words, Commits: true}), nil
		case p.Refused:
			return refusedEvent(queue.Refusal{Why: p.Failed}), nil
		case p.Failed != "":
			return queue.Event{}, errors.New(p.Failed)
		case p.Diverged == "":
			return queue.Event{Kind: queue.Landed, Warnings: t.followRemote(ctx)}, nil
		case try > 0:
			return queue.Event{}, fmt.Errorf("%s rejects a push to %s, and has nothing new there", t.remote.name,
				branchName(t.remote.ref))
		}
		if _, err := t.askRemote(ctx, true); err != nil || t.remote.away != nil {
			return queue.Event{}, errors.Join(err, t.remote.away)
		}
	}
}

// followRemote moves the branch here to where the remote's is, if it is only behind and nothing
// of a person's is in the way. Else it stays, which is said once.
func (t *target) followRemote(ctx context.Context) (warnings []string) {
	stays, warnings, err := t.reasonStays(ctx)
	if err != nil && ctx.Err() == nil {
		stays = err.Error()
	}
	if kind, _, _ := strings.Cut(stays, ":"); stays == "" || kind != t.remote.told {
		t.remote.told = kind
		if stays != "" {
			warnings = append(warnings, stays)
		}
	}
	return warnings
}

// reasonStays: the branch here cannot follow that of the remote; "" when it could. Two
// reasons with the same text before the first colon are the same notice.
func (t *target) reasonStays(ctx context.Context) (why string, warnings []string, err error) {
	here, there, err := t.localAndRemoteTips(ctx)
	if err != nil || here == "" || there == "" || here == there {
		return "", nil, err
	}
	behind, err := t.o.Repo.IsAncestor(ctx, here, there)
	if err != nil {
		return "", nil, err
	}
	if behind {
		warnings, err = t.forwardTarget(ctx, here, there)
		return "", warnings, err
	}
	count, err := t.o.Repo.Count(ctx, there, here)
	if err != nil {
		return "", nil, err
	}
	const named = 3
	own, err := t.o.Repo.Own(ctx, there, here, named)
	if err != nil {
		return "", nil, err
	}
	if count > named {
		own = append(own, "…")
	}
	return fmt.Sprintf("%s in %s on %s has commits that %s does not: %d (%s). They are not verified and not "+
		"pushed, and the branch stays where it is. To bring them there yourself: git pull --rebase, then git push",
		branchName(t.ref), t.o.Repo.Top, t.o.Owner.Host, t.remote.name, count, strings.Join(own, "; ")), nil, nil
}
