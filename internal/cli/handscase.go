package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/web"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// command runs a command line of pawl in this process and returns what it said.
// Words of a person stand after "--" or in their own flag, so that none of them
// is taken for a flag.
func (h *hands) command(ctx context.Context, args ...string) (web.Said, error) {
	b, said := h.muted()
	root := b.root()
	root.SetArgs(append([]string{"-C", h.root, "--color=never"}, args...))
	root.SetOut(said)
	root.SetErr(said)
	err := root.ExecuteContext(ctx)
	var code status
	if errors.As(err, &code) { // what is wrong is said already
		return web.Said{}, fault.Refuse("%s", strings.Join(saidOf(said.String()).Lines, " "))
	}
	var known *fault.Error
	if errors.As(err, &known) { // what it said before tells why
		return web.Said{}, &fault.Error{Kind: fault.Refused, Err: known, Hints: append(saidOf(said.String()).Lines, known.Hints...)}
	}
	return saidOf(said.String()), err
}

func (h *hands) Case(ctx context.Context, verb, id string, w web.CaseWish) (web.Said, error) {
	args := []string{"case", verb}
	if w.To != nil {
		args = append(args, "--to="+strconv.Itoa(*w.To))
	}
	if w.Undo {
		args = append(args, "--undo")
	}
	if l := w.Limits; l.MaxIterations != "" {
		args = append(args, "--max-iterations="+l.MaxIterations)
	}
	if l := w.Limits; l.Timeout != "" {
		args = append(args, "--timeout="+l.Timeout)
	}
	switch {
	case w.Text == "":
	case verb == "redo":
		args = append(args, "--feedback="+w.Text)
	case verb == "reject":
		args = append(args, "--why="+w.Text)
	}
	return h.command(ctx, append(args, "--", id)...)
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
	b, _ := h.muted()
	tree, err := b.treeOf(ctx, r)
	return tree, err
}

// AskQueue asks something of the merge queue. To land is done in the background:
// it runs gates.
func (h *hands) AskQueue(ctx context.Context, wish, id, why string) (web.Said, error) {
	if wish == "land" {
		return h.land(ctx)
	}
	args := []string{"queue", wish, "--why=" + why}
	if id != "" {
		args = append(args, "--", id)
	}
	if _, err := h.command(ctx, args...); err != nil {
		return web.Said{}, err
	}
	what := map[string]string{
		"hold": "%s is held back.", "release": "%s goes on.", "retry": "%s is tried again.", "drop": "%s is out of the queue; its work is kept.",
		"pause": "Nothing lands until the queue is resumed.", "resume": "The queue goes on.",
	}[wish]
	if id != "" {
		what = fmt.Sprintf(what, id)
	}
	return web.Said{Lines: []string{what}}, nil
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
		return web.Said{Lines: []string{"What could land has landed."}}, nil
	}
	if err != nil {
		return web.Said{}, err
	}
	return web.Said{Lines: []string{"Landing has begun."}}, nil
}
