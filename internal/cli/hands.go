package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/web"
)

// hands do for a browser what the commands of the same names do, and say the
// same. A run that goes on is a process of its own: see children.
type hands struct {
	a        *app
	store    *sqlite.Store
	root     string
	children *children
}

func newHands(a *app, store *sqlite.Store, root string) *hands {
	return &hands{a: a, store: store, root: root, children: newChildren(a, root)}
}

// end ends what was started from here.
func (h *hands) end() {
	if n := h.children.end(); n > 0 {
		h.a.say("%d run(s) that were started from the browser were stopped; 'pawl ps -a' lists them, 'pawl resume' goes on.", n)
	}
}

// muted is an app that says what it says into a buffer and asks nobody.
func (h *hands) muted() (*app, *bytes.Buffer) {
	b, said := *h.a, &bytes.Buffer{}
	b.stdin, b.stdout, b.stderr = strings.NewReader(""), said, said
	b.dir, b.json, b.quiet, b.verbose, b.color = h.root, false, false, false, "never"
	return &b, said
}

// do finds a run and does something with it as a command would.
func (h *hands) do(ctx context.Context, run string, do func(*app, sqlite.Run) error) (web.Said, error) {
	r, err := h.store.Run(ctx, run)
	if err != nil {
		return web.Said{}, err
	}
	b, said := h.muted()
	err = do(b, r)
	var code status
	if errors.As(err, &code) { // what is wrong is said already
		lines := saidOf(said.String()).Lines
		return web.Said{}, &web.RefusalError{Message: strings.Join(lines, " ")}
	}
	if err != nil {
		return web.Said{}, refusal(err)
	}
	return saidOf(said.String()), nil
}

func saidOf(text string) web.Said {
	var s web.Said
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			s.Lines = append(s.Lines, line)
		}
	}
	return s
}

// refusal tells what a person asked for and cannot have from what went wrong.
func refusal(err error) error {
	var e *exitError
	if errors.As(err, &e) && e.code == exitUsage {
		return &web.RefusalError{Message: e.Error(), Hints: trimmed(e.hints)}
	}
	return err
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.Join(strings.Fields(l), " ")
	}
	return out
}

func (h *hands) Pause(ctx context.Context, run string) (web.Said, error) {
	return h.do(ctx, run, func(b *app, r sqlite.Run) error { return b.pause(ctx, h.store, r) })
}

// Stop asks a run to stop and does not wait for its end, which the events tell.
func (h *hands) Stop(ctx context.Context, run string) (web.Said, error) {
	return h.do(ctx, run, func(b *app, r sqlite.Run) error {
		if !loop.Status(r.Status).Active() {
			return usage("run %s does not run: it is %s", r.ID, r.Status)
		}
		if !engine.Alive(r.Owner) {
			return b.stopUnattended(ctx, r)
		}
		if err := ask(ctx, h.store, r, sqlite.ControlStop, ""); err != nil {
			return err
		}
		b.say("Run %s is stopping: its agent is ended, its work is kept.", r.ID)
		return nil
	})
}

func (h *hands) Answer(ctx context.Context, run string, choice int, text string) (s web.Said, goesOn bool, err error) {
	words := []string{text}
	if choice > 0 {
		words = []string{strconv.Itoa(choice), text}
	}
	s, err = h.do(ctx, run, func(b *app, r sqlite.Run) error {
		kept, err := b.keepAnswer(ctx, h.store, r, words)
		goesOn = kept
		return err
	})
	return s, goesOn, err
}

func (h *hands) Rollback(ctx context.Context, run string, to int, undo bool) (web.Said, error) {
	return h.do(ctx, run, func(b *app, r sqlite.Run) error { return b.rollback(ctx, h.store, r, backTo{n: to, undo: undo}) })
}

func (h *hands) Apply(ctx context.Context, run string) (web.Said, error) {
	return h.do(ctx, run, func(b *app, r sqlite.Run) error { return b.apply(ctx, h.store, r, applying{}) })
}

func (h *hands) Gather(ctx context.Context, run string) error {
	_, err := h.do(ctx, run, func(b *app, r sqlite.Run) error {
		tree, err := b.tree(ctx, r.Root)
		if err != nil {
			return err
		}
		return b.gather(ctx, h.store, tree, r)
	})
	return err
}

func (h *hands) Resume(ctx context.Context, run string, raise web.Raise) (web.Said, error) {
	r, err := h.store.Run(ctx, run)
	if err != nil {
		return web.Said{}, err
	}
	if r.Owner.PID != 0 && engine.Alive(r.Owner) {
		return web.Said{}, &web.RefusalError{Message: fmt.Sprintf("run %s is running already, as process %d", r.ID, r.Owner.PID)}
	}
	args := append([]string{"resume", r.ID}, limitArgs(raise)...)
	id, err := h.launch(ctx, args, func(now sqlite.Run) bool { return now.ID == r.ID })
	if err != nil {
		return web.Said{}, err
	}
	return web.Said{Lines: []string{fmt.Sprintf("Run %s of %s goes on.", id, r.Name)}}, nil
}

func (h *hands) Start(ctx context.Context, procedure string, fresh bool, raise web.Raise) (string, web.Said, error) {
	b, _ := h.muted()
	c, err := b.load(nil)
	if err != nil {
		return "", web.Said{}, refusal(err)
	}
	if _, ok := c.Procedures[procedure]; !ok {
		return "", web.Said{}, refusal(unknownProcedure(c, procedure))
	}
	args := append([]string{"run", procedure}, limitArgs(raise)...)
	if fresh {
		args = append(args, "--fresh")
	}
	id, err := h.launch(ctx, args, func(now sqlite.Run) bool { return now.Name == procedure })
	if err != nil {
		return "", web.Said{}, err
	}
	return id, web.Said{Lines: []string{fmt.Sprintf("Run %s of %s has started.", id, procedure)}}, nil
}

func limitArgs(r web.Raise) []string {
	var args []string
	for flag, value := range map[string]string{"--max-iterations=": r.MaxIterations, "--max-cost=": r.MaxCost, "--timeout=": r.Timeout} {
		if value != "" {
			args = append(args, flag+value)
		}
	}
	return args
}

// launchTime is how long a run may take until it says that it works: the
// machine's sandbox is tried in it.
const launchTime = 30 * time.Second

// launch starts pawl in the background, and waits until it owns a run that
// fits, or has ended.
func (h *hands) launch(ctx context.Context, args []string, fits func(sqlite.Run) bool) (run string, err error) {
	child, err := h.children.start(args)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(launchTime)
	defer late.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ended := false; ; {
		runs, err := h.store.Runs(ctx, sqlite.Filter{Root: h.root, Limit: 200})
		if err != nil {
			return "", err
		}
		for _, r := range runs {
			if fits(r) && r.Owner.PID == child.PID {
				return r.ID, nil
			}
		}
		if ended {
			return "", &web.RefusalError{Message: cmp.Or(child.said(), "pawl "+args[0]+" ended at once")}
		}
		select {
		case <-child.Done():
			ended = true // one more look: it may have been quick
		case <-tick.C:
		case <-late.C:
			return "", fmt.Errorf("pawl %s has not begun within %s; see 'pawl ps'", args[0], launchTime)
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}
