package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/action"
	boardcli "github.com/pawl-dev/pawl/internal/cli/board"
	"github.com/pawl-dev/pawl/internal/cli/command"
	queuecli "github.com/pawl-dev/pawl/internal/cli/queue"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/web"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// maxChildren is how many runs one server drives at once.
const maxChildren = 20

// childrenEnd is how long all children may take to end their agents.
const childrenEnd = 25 * time.Second

// children are the runs that were started from a browser: each is a pawl of its
// own in the background, as if it had been started in a terminal. They end with
// the server, as runs in a terminal end with it.
type children struct {
	a    *command.App
	root string

	mu   sync.Mutex
	list []*child
}

// child is one of them.
type child struct {
	*process.Detached
	id   process.Identity
	errs string // the file of its messages
}

// start starts pawl with these arguments.
func (c *children) start(args []string) (*child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidy()
	if len(c.list) >= maxChildren {
		return nil, fault.Refuse("%d runs work for this server already", maxChildren).
			Hint("Wait until one has ended, or start the run in a terminal")
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot start pawl: %v", err)
	}
	dir := web.SessionDir(config.StateDir(c.root, c.a.Env))
	errs, err := os.CreateTemp(dir, "run-*.err")
	if err != nil {
		return nil, fmt.Errorf("cannot start pawl: %v", err)
	}
	defer func() { _ = errs.Close() }()
	line := []string{exe, "-C", c.root, "--quiet", "--color=never"}
	if c.a.File != "" {
		file, err := filepath.Abs(filepath.Join(c.a.Dir, c.a.File))
		if err == nil {
			line = append(line, "--config="+file)
		}
	}
	d, err := process.StartDetached(process.Command{Path: exe, Args: append(line, args...), Dir: c.root, Env: c.a.Env,
		Stderr: errs})
	if err != nil {
		_ = os.Remove(errs.Name())
		return nil, err
	}
	one := &child{Detached: d, errs: errs.Name()}
	one.id, _ = process.Identify(d.PID) // of one that has ended at once there is none, and nothing to end
	c.list = append(c.list, one)
	return one, nil
}

// tidy forgets those that have ended.
func (c *children) tidy() {
	var kept []*child
	for _, one := range c.list {
		select {
		case <-one.Done():
			_ = os.Remove(one.errs)
		default:
			kept = append(kept, one)
		}
	}
	c.list = kept
}

// said is what the child said last; it is an error when it has ended at once.
func (c *child) said() string {
	data, err := os.ReadFile(c.errs)
	if err != nil {
		return ""
	}
	const enough = 2000
	text := strings.TrimSpace(string(data[max(0, len(data)-enough):]))
	return strings.TrimPrefix(text, "pawl: ")
}

// end ends all that still run. They end their agents first; who takes too long
// is killed, and its supervisor ends the agent.
func (c *children) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidy()
	for _, one := range c.list {
		_ = one.id.Signal(syscall.SIGTERM) // gone already
	}
	late, kill := context.WithTimeout(context.Background(), childrenEnd)
	defer kill()
	for _, one := range c.list {
		select {
		case <-one.Done():
		case <-late.Done():
			_ = one.id.Signal(syscall.SIGKILL)
			<-one.Done()
		}
		_ = os.Remove(one.errs)
	}
	if n := len(c.list); n > 0 {
		c.a.Say("%d run(s) that were started from the browser were stopped; 'pawl ps -a' lists them, 'pawl resume' goes on.", n)
	}
}

// webActions do for a browser what the commands of the same names do, and say
// the same. A run that is started or resumed is a process of its own: see children.
type webActions struct {
	a        *command.App // that prints nothing and asks nobody
	store    *sqlite.Store
	root     string
	children *children
}

func newWebActions(a *command.App, store *sqlite.Store, root string) *webActions {
	silent := *a
	silent.Stdin, silent.Stdout, silent.Stderr = strings.NewReader(""), io.Discard, io.Discard
	silent.Dir, silent.JSON, silent.Color = root, false, "never"
	return &webActions{a: &silent, store: store, root: root, children: &children{a: a, root: root}}
}

// config is the configuration as it is now.
func (w *webActions) config() (*config.Config, error) { return w.a.Load(nil) }

// act does something as a person at a browser.
func (w *webActions) act(do func(*action.Operator) error) (web.Result, error) {
	p := w.a.Operator(w.store, w.root)
	said, err := p.Heard(do)
	return web.Result{Lines: said}, err
}

// run finds a run and does something with it.
func (w *webActions) run(ctx context.Context, run string, do func(*action.Operator, sqlite.Run) error) (web.Result,
	error) {
	r, err := w.store.Run(ctx, run)
	if err != nil {
		return web.Result{}, err
	}
	return w.act(func(p *action.Operator) error { return do(p, r) })
}

// saying is one line that was said.
func saying(format string, args ...any) web.Result {
	return web.Result{Lines: []string{fmt.Sprintf(format, args...)}}
}

// Pause asks a run to rest at the end of its iteration.
func (w *webActions) Pause(ctx context.Context, run string) (web.Result, error) {
	return w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Pause(ctx, r) })
}

// Stop asks a run to stop and does not wait for its end; the events show it.
func (w *webActions) Stop(ctx context.Context, run string) (web.Result, error) {
	return w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Stop(ctx, r, false) })
}

// Redirect does not wait for the end of the run either.
func (w *webActions) Redirect(ctx context.Context, run, task string) (web.Result, error) {
	return w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Redirect(ctx, r, task) })
}

// Message leaves words for the next prompt.
func (w *webActions) Message(ctx context.Context, run, text string) (web.Result, error) {
	return w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Message(ctx, r, text, "web") })
}

// Answer answers a question with the number of an option, or words, or both.
func (w *webActions) Answer(ctx context.Context, run, step string, choice int, text string) (s web.Result, goesOn bool,
	err error) {
	s, err = w.run(ctx, run, func(p *action.Operator, r sqlite.Run) (err error) {
		goesOn, err = p.Answer(ctx, r, step, action.Words(choice, text))
		return err
	})
	return s, goesOn, err
}

// Rollback puts the files of a run back.
func (w *webActions) Rollback(ctx context.Context, run string, to int, undo bool) (web.Result, error) {
	return w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error {
		return p.Rollback(ctx, r, action.BackTo{N: to, Undo: undo})
	})
}

// Apply brings the result of a run into the files. That it does not fit is a refusal.
func (w *webActions) Apply(ctx context.Context, run string) (web.Result, error) {
	conflict := false
	said, err := w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error {
		out, err := p.Apply(ctx, r, false)
		if err == nil {
			p.PrintApplied(out, false)
		}
		conflict = out.Status == "conflict"
		return err
	})
	if conflict {
		return web.Result{}, fault.Refuse("%s", strings.Join(said.Lines, " "))
	}
	return said, err
}

// Gather makes the result of a run that works on a copy readable as a diff.
func (w *webActions) Gather(ctx context.Context, run string) error {
	_, err := w.run(ctx, run, func(p *action.Operator, r sqlite.Run) error { return p.Gather(ctx, r) })
	return err
}

// Tree is the history of the files that a run worked on: for a task that of its
// workspace.
func (w *webActions) Tree(ctx context.Context, r sqlite.Run) (*workspace.Checkout, error) {
	return w.a.Operator(w.store, w.root).Tree(ctx, r)
}

// Resume resumes a run, with higher limits if they are given.
func (w *webActions) Resume(ctx context.Context, run string, raise web.Raise) (web.Result, error) {
	r, err := w.store.Run(ctx, run)
	if err != nil {
		return web.Result{}, err
	}
	f := planner.Flags{Max: raise.MaxIterations, MaxCost: raise.MaxCost, Timeout: raise.Timeout}
	elsewhere := false
	said, err := w.act(func(p *action.Operator) error {
		elsewhere, err = p.ResumeElsewhere(ctx, r, f)
		return err
	})
	if elsewhere || err != nil {
		return said, err
	}
	if r.Owner.PID != 0 && engine.Alive(r.Owner) {
		return web.Result{}, fault.Refuse("run %s is running already, as process %d", r.ID, r.Owner.PID)
	}
	id, err := w.launch(ctx, append([]string{"resume", r.ID}, flagsOf(raise)...),
		w.owned(ctx, func(now sqlite.Run) bool { return now.ID == r.ID }))
	return saying("Run %s of %s goes on.", id, r.Name), err
}

// Start starts a procedure in the background.
func (w *webActions) Start(ctx context.Context, wish web.StartWish) (string, web.Result, error) {
	c, err := w.config()
	if err == nil {
		_, err = planner.Lookup(c, wish.Procedure)
	}
	if err != nil {
		return "", web.Result{}, err
	}
	name := wish.Procedure
	wish.Procedure = ""
	id, err := w.launch(ctx, append([]string{"run", name}, flagsOf(wish)...),
		w.owned(ctx, func(now sqlite.Run) bool { return now.Name == name }))
	return id, saying("Run %s of %s has started.", id, name), err
}

// AskAutopilot asks, and does not wait for the end after a stop.
func (w *webActions) AskAutopilot(ctx context.Context, wish, text string) (web.Result, error) {
	return w.act(func(p *action.Operator) error { return p.AskAutopilot(ctx, wish, text, false) })
}

// StartAutopilot starts one in the background.
func (w *webActions) StartAutopilot(ctx context.Context, wish web.PilotWish) (web.Result, error) {
	args := []string{"autopilot"}
	if wish.Mode == string(schedule.SemiAuto) {
		args = append(args, "--semi-auto")
	}
	wish.Mode = ""
	return w.autopilot(ctx, append(args, flagsOf(wish)...), "The autopilot has started.")
}

// StartSprint starts one in the background.
func (w *webActions) StartSprint(ctx context.Context, wish web.SprintWish) (web.Result, error) {
	return w.autopilot(ctx, append([]string{"sprint"}, flagsOf(wish)...), "The sprint has started.")
}

func (w *webActions) autopilot(ctx context.Context, args []string, said string) (web.Result, error) {
	if p, err := w.a.Operator(w.store, w.root).Autopilot(ctx); err == nil {
		return web.Result{}, fault.Refuse("the autopilot is already running: process %d", p.Owner.PID)
	}
	_, err := w.launch(ctx, args, func(pid int) (string, bool, error) {
		p, ok, err := w.store.Autopilot(ctx)
		return p.Session, ok && p.Owner.PID == pid, err
	})
	return saying("%s", said), err
}

// flagNames are the flags whose names are not those of the API's fields.
var flagNames = map[string]string{"operations": "op", "tags": "tag", "exclude_tags": "exclude-tag"}

// flagsOf makes flags of a request of the API: each field that is
// set is the flag of its name.
func flagsOf(wish any) []string {
	var fields map[string]any
	data, err := json.Marshal(wish)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil { // requests always encode
		panic(err)
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		flag := cmp.Or(flagNames[name], strings.ReplaceAll(name, "_", "-"))
		values, isList := fields[name].([]any)
		if !isList {
			values = []any{fields[name]}
		}
		for _, v := range values {
			if v != "" {
				args = append(args, fmt.Sprintf("--%s=%v", flag, v))
			}
		}
	}
	return args
}

// Case does what 'pawl case VERB' does.
func (w *webActions) Case(ctx context.Context, verb, id string, wish web.CaseWish) (web.Result, error) {
	return w.act(func(p *action.Operator) error {
		done, err := w.changeCase(ctx, p, verb, id, wish)
		if err == nil {
			p.Say("%s", done.Text)
		}
		return err
	})
}

func (w *webActions) changeCase(ctx context.Context, p *action.Operator, verb, id string,
	wish web.CaseWish) (done action.Done, err error) {
	switch verb {
	case "extend":
		l, err := action.ReadLimits(wish.Limits.MaxIterations, wish.Limits.Timeout)
		if err != nil {
			return done, err
		}
		return p.Extend(ctx, id, l)
	case "clean", "rollback":
	default:
		return boardcli.ChangeCase(ctx, p, verb, id, wish.Text)
	}
	c, err := w.config()
	if err != nil {
		return done, err
	}
	clones, err := w.a.Pool(ctx, c, w.store)
	if err != nil {
		return done, err
	}
	if verb == "clean" {
		return p.CleanTask(ctx, clones, id)
	}
	to := action.BackTo{Undo: wish.Undo}
	if wish.To != nil {
		to.N = *wish.To
	}
	return p.RollbackTask(ctx, clones, id, to)
}

// queueSaid is what is answered to a request about the merge queue.
var queueSaid = map[string]string{
	"hold": "%s is held back.", "release": "%s goes on.", "retry": "%s is tried again.",
	"drop":  "%s is out of the queue; its work is kept.",
	"pause": "Nothing lands until the queue is resumed.", "resume": "The queue goes on.",
}

// AskQueue asks something of the merge queue. To land is done in the background:
// it runs gates.
func (w *webActions) AskQueue(ctx context.Context, wish, id, why string) (web.Result, error) {
	if wish == "land" {
		return w.land(ctx)
	}
	err := queuecli.WithQueue(ctx, w.a, func(q *queuecli.OpenQueue) error {
		return queuecli.AskQueue(ctx, w.a, q, []queue.Ask{{Wish: queue.Wish(wish), ID: id, Why: why}})
	})
	return saying("%s", strings.ReplaceAll(queueSaid[wish], "%s", id)), err
}

// land starts the landing of what waits, and waits until it works on the queue
// or has ended.
func (w *webActions) land(ctx context.Context) (web.Result, error) {
	_, err := w.launch(ctx, []string{"queue", "land"}, func(pid int) (string, bool, error) {
		targets, err := w.store.QueueTargets(ctx)
		for _, t := range targets {
			if q, ok, err := w.store.Queue(ctx, t); err == nil && ok && q.Owner.PID == pid {
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

// owned finds a run that fits and that a process drives.
func (w *webActions) owned(ctx context.Context, fits func(sqlite.Run) bool) func(pid int) (string, bool, error) {
	return func(pid int) (string, bool, error) {
		runs, err := w.store.Runs(ctx, sqlite.RunQuery{Root: w.root})
		for _, r := range runs {
			if fits(r) && r.Owner.PID == pid {
				return r.ID, true, nil
			}
		}
		return "", false, err
	}
}

func endedAtOnce(command string) string { return "pawl " + command + " ended at once" }

// launchTime is how long a run may take until it says that it works: the
// machine's sandbox is tried in it.
const launchTime = 30 * time.Second

// launch starts pawl in the background, and waits until it has begun, which
// begun finds out by its process, or has ended.
func (w *webActions) launch(ctx context.Context, args []string,
	begun func(pid int) (id string, ok bool, err error)) (id string, err error) {
	child, err := w.children.start(args)
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
