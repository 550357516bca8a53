package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/schedule"
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

// muted is an app at root that says what it says into a buffer and asks nobody.
func (a *app) muted(root string) (*app, *bytes.Buffer) {
	b, said := *a, &bytes.Buffer{}
	b.stdin, b.stdout, b.stderr = strings.NewReader(""), said, said
	b.dir, b.json, b.quiet, b.verbose, b.color = root, false, false, false, "never"
	return &b, said
}

// act does something as a person at a browser.
func (h *hands) act(do func(*action.Operator) error) (web.Said, error) {
	b, said := h.a.muted(h.root)
	if err := action.Explain(do(b.operator(h.store, h.root))); err != nil {
		return web.Said{}, err
	}
	return saidOf(said.String()), nil
}

// do finds a run and does something with it.
func (h *hands) do(ctx context.Context, run string, do func(*action.Operator, sqlite.Run) error) (web.Said, error) {
	r, err := h.store.Run(ctx, run)
	if err != nil {
		return web.Said{}, err
	}
	return h.act(func(p *action.Operator) error { return do(p, r) })
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

func (h *hands) Pause(ctx context.Context, run string) (web.Said, error) {
	return h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Pause(ctx, r) })
}

// Stop asks a run to stop and does not wait for its end, which the events tell.
func (h *hands) Stop(ctx context.Context, run string) (web.Said, error) {
	return h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Stop(ctx, r, false) })
}

// Redirect does not wait for the end of the run either.
func (h *hands) Redirect(ctx context.Context, run, task string) (web.Said, error) {
	return h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Redirect(ctx, r, task) })
}

func (h *hands) Message(ctx context.Context, run, text string) (web.Said, error) {
	return h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Message(ctx, r, text, "web") })
}

func (h *hands) Answer(ctx context.Context, run, step string, choice int, text string) (s web.Said, goesOn bool, err error) {
	words := []string{text}
	if choice > 0 {
		words = []string{strconv.Itoa(choice), text}
	}
	s, err = h.do(ctx, run, func(p *action.Operator, r sqlite.Run) (err error) {
		goesOn, err = p.Answer(ctx, r, step, words)
		return err
	})
	return s, goesOn, err
}

func (h *hands) Rollback(ctx context.Context, run string, to int, undo bool) (web.Said, error) {
	return h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error {
		return p.Rollback(ctx, r, action.BackTo{N: to, Undo: undo})
	})
}

func (h *hands) Apply(ctx context.Context, run string) (web.Said, error) {
	conflict := false
	said, err := h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error {
		out, err := p.Apply(ctx, r, false)
		if err == nil {
			p.TellApplied(out, false)
		}
		conflict = out.Status == "conflict"
		return err
	})
	if conflict {
		return web.Said{}, fault.Refuse("%s", strings.Join(said.Lines, " "))
	}
	return said, err
}

func (h *hands) Gather(ctx context.Context, run string) error {
	_, err := h.do(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Gather(ctx, r) })
	return err
}

func (h *hands) Resume(ctx context.Context, run string, raise web.Raise) (web.Said, error) {
	r, err := h.store.Run(ctx, run)
	if err != nil {
		return web.Said{}, err
	}
	f := planner.Flags{Max: raise.MaxIterations, MaxCost: raise.MaxCost, Timeout: raise.Timeout}
	changed := false
	said, err := h.act(func(p *action.Operator) error {
		changed, err = p.ResumeElsewhere(ctx, r, f)
		return err
	})
	if changed || err != nil {
		return said, err
	}
	if r.Owner.PID != 0 && engine.Alive(r.Owner) {
		return web.Said{}, fault.Refuse("run %s is running already, as process %d", r.ID, r.Owner.PID)
	}
	args := append([]string{"resume", r.ID}, limitArgs(raise)...)
	id, err := h.launch(ctx, args, h.owned(ctx, func(now sqlite.Run) bool { return now.ID == r.ID }))
	return saying("Run %s of %s goes on.", id, r.Name), err
}

// saying is one line that was said.
func saying(format string, args ...any) web.Said {
	return web.Said{Lines: []string{fmt.Sprintf(format, args...)}}
}

func (h *hands) Start(ctx context.Context, w web.StartWish) (string, web.Said, error) {
	b, _ := h.a.muted(h.root)
	c, err := b.load(nil)
	if err == nil {
		_, err = planner.Lookup(c, w.Procedure)
	}
	if err != nil {
		return "", web.Said{}, err
	}
	args := append([]string{"run", w.Procedure}, limitArgs(w.Raise)...)
	if w.Fresh {
		args = append(args, "--fresh")
	}
	for _, text := range w.Context {
		args = append(args, "--context="+text)
	}
	id, err := h.launch(ctx, args, h.owned(ctx, func(now sqlite.Run) bool { return now.Name == w.Procedure }))
	return id, saying("Run %s of %s has started.", id, w.Procedure), err
}

// AskAutopilot asks, and does not wait for the end after a stop.
func (h *hands) AskAutopilot(ctx context.Context, wish, text string) (web.Said, error) {
	return h.act(func(p *action.Operator) error { return p.AskAutopilot(ctx, wish, text, false) })
}

func (h *hands) StartAutopilot(ctx context.Context, w web.PilotWish) (web.Said, error) {
	args := []string{"autopilot"}
	if w.MaxParallel > 0 {
		args = append(args, "--max-parallel="+strconv.Itoa(w.MaxParallel))
	}
	if w.Mode == string(schedule.SemiAuto) {
		args = append(args, "--semi-auto")
	}
	if w.Keep {
		args = append(args, "--keep")
	}
	return h.pilot(ctx, args, "The autopilot has started.")
}

// pilot starts an autopilot in the background.
func (h *hands) pilot(ctx context.Context, args []string, said string) (web.Said, error) {
	if p, err := h.a.operator(h.store, h.root).Autopilot(ctx); err == nil {
		return web.Said{}, fault.Refuse("the autopilot is already running: process %d", p.Owner.PID)
	}
	_, err := h.launch(ctx, args, func(pid int) (string, bool, error) {
		p, ok, err := h.store.Autopilot(ctx)
		return p.Session, ok && p.Owner.PID == pid, err
	})
	return saying("%s", said), err
}

// owned finds a run that fits and that a process drives.
func (h *hands) owned(ctx context.Context, fits func(sqlite.Run) bool) func(pid int) (string, bool, error) {
	return func(pid int) (string, bool, error) {
		runs, err := h.store.Runs(ctx, sqlite.RunQuery{Root: h.root})
		for _, r := range runs {
			if fits(r) && r.Owner.PID == pid {
				return r.ID, true, nil
			}
		}
		return "", false, err
	}
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

func endedAtOnce(command string) string { return "pawl " + command + " ended at once" }

// launchTime is how long a run may take until it says that it works: the
// machine's sandbox is tried in it.
const launchTime = 30 * time.Second

// launch starts pawl in the background, and waits until it has begun, which
// begun finds out by its process, or has ended.
func (h *hands) launch(ctx context.Context, args []string, begun func(pid int) (id string, ok bool, err error)) (id string, err error) {
	child, err := h.children.start(args)
	if err != nil {
		return "", err
	}
	late := time.NewTimer(launchTime)
	defer late.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ended := false; ; {
		id, ok, err := begun(child.PID)
		if ok || err != nil {
			return id, err
		}
		if ended {
			return "", fault.Refuse("%s", cmp.Or(child.said(), endedAtOnce(args[0])))
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
