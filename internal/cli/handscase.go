package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/web"
	"github.com/pawl-dev/pawl/internal/workspace"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// Case does what 'pawl case VERB' does.
func (h *hands) Case(ctx context.Context, verb, id string, w web.CaseWish) (web.Said, error) {
	if verb == "clean" {
		return h.clean(ctx, id)
	}
	return h.act(func(p *action.Operator) error {
		done, err := h.changeCase(ctx, p, verb, id, w)
		if err == nil {
			p.Say("%s", done.Text)
		}
		return err
	})
}

func (h *hands) changeCase(ctx context.Context, p *action.Operator, verb, id string, w web.CaseWish) (done action.Done, err error) {
	switch verb {
	case "extend":
		l, err := action.ReadLimits(w.Limits.MaxIterations, w.Limits.Timeout)
		if err != nil {
			return done, err
		}
		return p.Extend(ctx, id, l)
	case "rollback":
		b, _ := h.a.muted(h.root)
		clones, err := h.pool(ctx, b)
		if err != nil {
			return done, err
		}
		to := action.BackTo{Undo: w.Undo}
		if w.To != nil {
			to.N = *w.To
		}
		return p.RollbackTask(ctx, clones, id, to)
	}
	return changeCase(ctx, p, verb, id, w.Text)
}

// clean removes the workspace of a task. That it stays is a refusal; what was
// said tells why.
func (h *hands) clean(ctx context.Context, id string) (web.Said, error) {
	b, said := h.a.muted(h.root)
	clones, err := h.pool(ctx, b)
	if err == nil {
		err = b.cleanCases(ctx, clones, []string{id}, false)
	}
	if err != nil {
		return web.Said{}, &fault.Error{Kind: fault.Refused, Err: err, Hints: saidOf(said.String()).Lines}
	}
	return saidOf(said.String()), nil
}

func (h *hands) pool(ctx context.Context, b *app) (*pool.Pool, error) {
	c, err := b.load(nil)
	if err != nil {
		return nil, err
	}
	return b.pool(ctx, c, h.store)
}

// StartSprint starts one in the background.
func (h *hands) StartSprint(ctx context.Context, w web.SprintWish) (web.Said, error) {
	args := []string{"sprint"}
	for flag, value := range map[string]string{"--count=": w.Count, "--hours=": w.Hours, "--until=": w.Until} {
		if value != "" {
			args = append(args, flag+value)
		}
	}
	for flag, values := range map[string][]string{"--op=": w.Operations, "--tag=": w.Tags, "--exclude-tag=": w.ExcludeTags} {
		for _, v := range values {
			args = append(args, flag+v)
		}
	}
	for flag, on := range map[string]bool{"--no-ready": w.NoReady, "--pause-on-error": w.PauseOnError, "--batch-review": w.BatchReview} {
		if on {
			args = append(args, flag)
		}
	}
	if w.Checkpoint != nil {
		args = append(args, "--checkpoint="+strconv.FormatBool(*w.Checkpoint))
	}
	if w.MaxParallel > 0 {
		args = append(args, "--max-parallel="+strconv.Itoa(w.MaxParallel))
	}
	return h.pilot(ctx, args, "The sprint has started.")
}

// Tree is the history of the files that a run worked on: for a task that of its
// workspace.
func (h *hands) Tree(ctx context.Context, r sqlite.Run) (*workspace.Checkout, error) {
	return h.a.operator(h.store, h.root).Tree(ctx, r)
}

// AskQueue asks something of the merge queue. To land is done in the background:
// it runs gates.
func (h *hands) AskQueue(ctx context.Context, wish, id, why string) (web.Said, error) {
	if wish == "land" {
		return h.land(ctx)
	}
	b, _ := h.a.muted(h.root)
	err := b.withQueue(ctx, func(q *openQueue) error {
		return b.askQueue(ctx, q, []queue.Ask{{Wish: queue.Wish(wish), ID: id, Why: why}})
	})
	if err != nil {
		return web.Said{}, err
	}
	if id == "" {
		return saying("%s", queueSaid[wish]), nil
	}
	return saying(queueSaid[wish], id), nil
}

// queueSaid is what came of a wish.
var queueSaid = map[string]string{
	"hold": "%s is held back.", "release": "%s goes on.", "retry": "%s is tried again.", "drop": "%s is out of the queue; its work is kept.",
	"pause": "Nothing lands until the queue is resumed.", "resume": "The queue goes on.",
}

// land starts the landing of what waits, and waits until it works on the queue
// or has ended.
func (h *hands) land(ctx context.Context) (web.Said, error) {
	_, err := h.launch(ctx, []string{"queue", "land"}, func(pid int) (string, bool, error) {
		targets, err := h.store.QueueTargets(ctx)
		for _, t := range targets {
			if q, ok, err := h.store.Queue(ctx, t); err == nil && ok && q.Owner.PID == pid {
				return t, true, nil
			}
		}
		return "", false, err
	})
	var ended *fault.Error
	if errors.As(err, &ended) && ended.Error() == endedAtOnce("queue") {
		return saying("What could land has landed."), nil
	}
	return saying("Landing has begun."), err
}
