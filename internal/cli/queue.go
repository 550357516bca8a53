package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/planner"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// queueCommand is the parent of all that a person does with the merge queue.
func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "queue", Short: "The merge queue: what waits to land on the target branch, and why",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return a.withQueue(cmd.Context(), func(q *openQueue) error { return a.listQueue(cmd.Context(), q) })
		},
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.AddCommand(
		a.queueListCommand(), a.queueAddCommand(), a.queueLandCommand(),
		a.queueWishCommand(queue.WishHold, "Hold an entry back"),
		a.queueWishCommand(queue.WishRelease, "Let an entry go on that was held"),
		a.queueWishCommand(queue.WishRetry, "Try an entry again that waits for a person"),
		a.queueWishCommand(queue.WishDrop, "Take an entry out of the queue; its work is kept"),
		a.queueStopCommand(queue.WishPause, "Land nothing until the queue is resumed"),
		a.queueStopCommand(queue.WishResume, "Go on after a pause, a red target, or one that was rewritten or diverged"),
	)
	return cmd
}

// openQueue is a queue with what it came from.
type openQueue struct {
	*merge.Queue
	l     *landing
	store *sqlite.Store
}

// withQueue opens the queue of the target, without a sandbox: to look and to ask.
func (a *app) withQueue(ctx context.Context, do func(*openQueue) error) error {
	c, err := a.load(nil)
	if err != nil {
		return err
	}
	return a.withBoard(ctx, func(store *sqlite.Store) error {
		l, err := a.openLanding(ctx, c, store)
		if err != nil {
			return err
		}
		o, err := l.options(ctx, a.sayNote)
		if err != nil {
			return err
		}
		q, err := merge.Open(ctx, o)
		if err != nil {
			return err
		}
		return do(&openQueue{q, l, store})
	})
}

func (a *app) queueListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what waits to land, in the order of landing",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withQueue(cmd.Context(), func(q *openQueue) error { return a.listQueue(cmd.Context(), q) })
		},
	}
}

func (a *app) queueWishCommand(wish queue.Wish, short string) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: string(wish) + " ID...", Short: short, Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withQueue(cmd.Context(), func(q *openQueue) error {
				var all []queue.Ask
				err := a.eachCase(args, func(id string) error {
					all = append(all, queue.Ask{Wish: wish, ID: id, Why: why})
					return nil
				})
				if err != nil {
					return err
				}
				return a.askQueue(cmd.Context(), q, all)
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the `REASON`, shown in the list")
	return cmd
}

func (a *app) queueStopCommand(wish queue.Wish, short string) *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: string(wish), Short: short, Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withQueue(cmd.Context(), func(q *openQueue) error {
				return a.askQueue(cmd.Context(), q, []queue.Ask{{Wish: wish, Why: why}})
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the `REASON`, shown in the list")
	return cmd
}

// askQueue asks, and has it taken in: here when nobody works on the queue, and
// by whoever does within moments.
func (a *app) askQueue(ctx context.Context, q *openQueue, asks []queue.Ask) error {
	for _, ask := range asks {
		if ask.ID != "" {
			if err := a.inQueue(ctx, q, ask.ID); err != nil {
				return err
			}
		}
	}
	for _, ask := range asks {
		if err := q.Ask(ctx, ask); err != nil {
			return err
		}
	}
	done, err := q.Absorb(ctx)
	if err != nil {
		return err
	}
	if !done {
		a.say("Asked; the pawl that works on the queue takes it in.")
		return nil
	}
	return a.listQueue(ctx, q)
}

// inQueue refuses for a task that is not in the queue.
func (a *app) inQueue(ctx context.Context, q *openQueue, id string) error {
	row, _, err := q.store.Queue(ctx, q.Target())
	if err != nil {
		return err
	}
	if _, ok := row.State.Find(id); ok {
		return nil
	}
	asks, err := q.store.QueueAsks(ctx, q.Target(), maxAsks)
	if err != nil {
		return err
	}
	for _, ask := range asks {
		if e := ask.Event.Entry; e != nil && e.ID == id {
			return nil
		}
	}
	return usage("%s is not in the queue", id).Hint("See what is: pawl queue")
}

// maxAsks is how many entries that nobody has taken in yet are looked at.
const maxAsks = 10_000

func (a *app) queueAddCommand() *cobra.Command {
	var commit string
	var allow []string
	cmd := &cobra.Command{
		Use: "add TASK", Short: "Queue a task's change to be landed",
		Long: "Queue a task's change: what its workspace was collected to, or the commit, branch or tag that --commit names.\nIt lands when an autopilot runs, or with: pawl queue land",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withQueue(cmd.Context(), func(q *openQueue) error {
				id, err := a.queueTask(cmd.Context(), q, args[0], commit, allow)
				if err != nil {
					return err
				}
				if _, err := q.Absorb(cmd.Context()); err != nil {
					return err
				}
				a.say("%s waits to be landed on %s.", id, shortRef(q.Target()))
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&commit, "commit", "", "land this `COMMIT`, branch or tag")
	f.StringArrayVar(&allow, "allow", nil, "let it change protected files under this `PATTERN` (repeatable)")
	return cmd
}

// queueTask queues one task with what it came to.
func (a *app) queueTask(ctx context.Context, q *openQueue, text, commit string, allow []string) (string, error) {
	id, err := action.CaseID(text)
	if err != nil {
		return "", err
	}
	c, err := q.store.Case(ctx, id)
	if err != nil {
		return "", action.Explain(err)
	}
	if c.Type != board.Task {
		return "", usage("%s is an operation; only tasks are landed", id)
	}
	if commit == "" {
		if commit, err = a.collected(ctx, q, id); err != nil {
			return "", err
		}
	} else if found, err := q.l.repo.Find(ctx, commit); err != nil || found == "" {
		return "", usage("there is no commit %q in the repository", report.Line(commit, 80))
	}
	e := merge.Entry{ID: id, Commit: commit, Title: c.Title, Priority: c.Priority, Allow: allow}
	return id, q.Add(ctx, e)
}

// collected is the commit of a task's work, and its branch where there is none.
func (a *app) collected(ctx context.Context, q *openQueue, id string) (string, error) {
	for _, ref := range []string{"refs/pawl/tasks/" + id, "refs/heads/pawl/" + id} {
		commit, err := q.l.repo.Find(ctx, ref)
		if err != nil || commit != "" {
			return commit, err
		}
	}
	return "", usage("nothing is known that %s came to", id).Hint("Name it: pawl queue add %s --commit BRANCH", id)
}

func (a *app) queueLandCommand() *cobra.Command {
	var commit string
	var allow []string
	var unsandboxed bool
	cmd := &cobra.Command{
		Use: "land [TASK...]", Short: "Land what waits, now and here; with TASKs, queue these first",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if commit != "" && len(args) != 1 {
				return usage("--commit is for one task: pawl queue land TASK --commit BRANCH")
			}
			return a.landNow(cmd.Context(), args, commit, allow, unsandboxed)
		},
	}
	f := cmd.Flags()
	f.StringVar(&commit, "commit", "", "land this `COMMIT`, branch or tag")
	f.StringArrayVar(&allow, "allow", nil, "let the tasks change protected files under this `PATTERN` (repeatable)")
	f.BoolVar(&unsandboxed, "unsandboxed", false, "run the gates without the sandbox")
	return cmd
}

// landNow lands until all that is left waits for a person or another time.
func (a *app) landNow(ctx context.Context, tasks []string, commit string, allow []string, unsandboxed bool) error {
	c, err := a.load(nil)
	if err != nil {
		return err
	}
	return a.withBoard(ctx, func(store *sqlite.Store) error {
		l, err := a.openLanding(ctx, c, store)
		if err != nil {
			return err
		}
		if err := l.box(ctx, unsandboxed); err != nil {
			return err
		}
		s := &session{a: a, c: c, plan: l.plan, stateDir: config.StateDir(c.Root, a.env)}
		defer s.close()
		o, err := l.options(ctx, s.noteHeard(ctx))
		if err != nil {
			return err
		}
		if err := l.canPropose(ctx, &o); err != nil {
			return err
		}
		s.tellOfLanding(ctx, l, &o)
		if p, err := a.pool(ctx, c, store); err == nil {
			l.useWorkspaces(&o, p)
			o.Resolve = a.resolving(ctx, c, store, p, unsandboxed)
		}
		o.Policy.Ask = false // a person is here
		m, err := merge.Open(ctx, o)
		if err != nil {
			return err
		}
		q := &openQueue{m, l, store}
		for _, t := range tasks {
			if err := a.queueAndRelease(ctx, q, t, commit, allow); err != nil {
				return err
			}
		}
		return a.drain(ctx, q)
	})
}

// queueAndRelease queues a task that is not queued as it is, and lets it go on
// where it was held.
func (a *app) queueAndRelease(ctx context.Context, q *openQueue, text, commit string, allow []string) error {
	id, err := action.CaseID(text)
	if err != nil {
		return err
	}
	row, _, err := q.store.Queue(ctx, q.Target())
	if err != nil {
		return err
	}
	e, queued := row.State.Find(id)
	if !queued || commit != "" {
		if _, err := a.queueTask(ctx, q, id, commit, allow); err != nil {
			return err
		}
	}
	if queued && e.Status == queue.Held {
		return q.Ask(ctx, queue.Ask{Wish: queue.WishRelease, ID: id})
	}
	return nil
}

// resolving is an agent for conflicts; nil where none can run.
func (a *app) resolving(ctx context.Context, c *config.Config, store *sqlite.Store, p *pool.Pool, unsandboxed bool) func(context.Context, merge.Problem) (string, error) {
	if c.Merge.ConflictRetries == 0 {
		return nil
	}
	quiet := *a
	quiet.quiet = true // the gates said it already
	t, _, err := quiet.newTaskPlanner(ctx, c, config.StateDir(c.Root, a.env), planner.Flags{Unsandboxed: unsandboxed})
	if err != nil {
		return nil
	}
	return t.resolver(p, store).Resolve
}

func (a *app) drain(ctx context.Context, q *openQueue) error {
	err := q.Drain(ctx)
	var owned *sqlite.QueueOwnedError
	switch {
	case errors.As(err, &owned):
		return fault.Of(fault.Refused, err).Hint("What is queued lands there; see it with: pawl queue")
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	row, _, err := q.store.Queue(ctx, q.Target())
	if err != nil {
		return err
	}
	if err := a.showQueue(ctx, q, row); err != nil {
		return err
	}
	if row.State.Stop != nil || len(row.State.Entries) > 0 {
		return fault.Of(fault.Waiting, errors.New("not everything has landed; the list says what waits for what"))
	}
	return nil
}

// sayNote tells what a queue says.
func (a *app) sayNote(n queue.Note) {
	if n.Parked {
		return // what a person is asked says it
	}
	who := ""
	if n.ID != "" {
		who = n.ID + ": "
	}
	a.say("%s %s%s", time.Now().Format("[15:04:05]"), who, report.Line(n.Text, 400))
}

func (a *app) listQueue(ctx context.Context, q *openQueue) error {
	row, _, err := q.store.Queue(ctx, q.Target())
	if err != nil {
		return err
	}
	return a.showQueue(ctx, q, row)
}

// queueJSON is a queue for scripts.
type queueJSON struct {
	Target  string      `json:"target"`
	Working int         `json:"working,omitempty"` // the process that lands
	Stopped string      `json:"stopped,omitempty"` // why the queue stands still
	Cause   queue.Cause `json:"cause,omitempty"`
	Doing   string      `json:"doing"`
	Window  int         `json:"window"`
	Entries []entryJSON `json:"entries"`
}

type entryJSON struct {
	ID       string     `json:"id"`
	Title    string     `json:"title"`
	Status   string     `json:"status"` // waiting, held, resolving, parked, proposed, arriving; landing for those in the batch
	Why      string     `json:"why,omitempty"`
	Commit   string     `json:"commit"`
	Run      string     `json:"run,omitempty"`
	Priority int        `json:"priority"`
	Needs    []string   `json:"needs,omitempty"`
	Attempts int        `json:"attempts,omitempty"`
	Ahead    []string   `json:"conflict_ahead,omitempty"`
	Request  string     `json:"pull_request,omitempty"`
	AddedAt  time.Time  `json:"added_at"`
	Until    *time.Time `json:"until,omitempty"`
}

func (a *app) showQueue(ctx context.Context, q *openQueue, row sqlite.Queue) error {
	asks, err := q.store.QueueAsks(ctx, q.Target(), maxAsks)
	if err != nil {
		return err
	}
	out := queueJSON{Target: q.Target(), Window: row.State.Window, Doing: "nothing", Entries: []entryJSON{}}
	if engine.Alive(row.Owner) {
		out.Working = row.Owner.PID
		out.Doing = strings.TrimSpace(string(row.State.Command.Kind) + ": " + row.State.Command.Why)
	}
	if s := row.State.Stop; s != nil {
		out.Stopped, out.Cause = s.Why, s.Cause
	}
	for _, e := range row.State.InOrder(time.Now()) {
		out.Entries = append(out.Entries, shownEntry(&row.State, &e, out.Working != 0))
	}
	for _, ask := range asks {
		if e := ask.Event.Entry; e != nil {
			out.Entries = append(out.Entries, entryJSON{ID: e.ID, Title: e.Title, Status: "arriving", Commit: e.Commit, Run: e.Run, Priority: e.Priority, Needs: e.Needs, AddedAt: ask.At})
		}
	}
	if a.json {
		data, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return err
		}
		a.result("%s\n", data)
		return nil
	}
	a.queueTable(&out)
	return nil
}

func shownEntry(s *queue.State, e *queue.Entry, working bool) entryJSON {
	j := entryJSON{
		ID: e.ID, Title: e.Title, Status: string(e.Status), Why: e.Why, Commit: e.Commit, Run: e.Run, Priority: e.Priority,
		Needs: e.Needs, Attempts: e.Attempts, Ahead: e.Ahead, Request: e.Request, AddedAt: e.AddedAt,
	}
	if !e.Until.IsZero() {
		j.Until = &e.Until
	}
	if b := s.Batch; b != nil && working {
		for _, id := range b.IDs {
			if id == e.ID {
				j.Status = "landing"
			}
		}
	}
	return j
}

func (a *app) queueTable(out *queueJSON) {
	if out.Stopped != "" {
		a.result("%s stands still: %s\n", shortRef(out.Target), report.Line(out.Stopped, 400))
	}
	if len(out.Entries) == 0 {
		a.say("Nothing waits to land on %s.", shortRef(out.Target))
		return
	}
	rows := [][]string{{"ID", "STATUS", "PRI", "WHY", "TITLE"}}
	width := make([]int, 4)
	for _, e := range out.Entries {
		why := e.Why
		if why == "" && len(e.Needs) > 0 {
			why = "needs " + strings.Join(e.Needs, ", ")
		}
		if why == "" && len(e.Ahead) > 0 {
			why = "will conflict in " + strings.Join(e.Ahead, ", ")
		}
		rows = append(rows, []string{e.ID, e.Status, fmt.Sprint(e.Priority), report.Line(why, 100), report.Line(e.Title, 60)})
	}
	for _, r := range rows {
		for i := range width {
			width[i] = max(width[i], columns(r[i]))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r[:4] {
			b.WriteString(cell + strings.Repeat(" ", width[i]-columns(cell)+2))
		}
		a.result("%s\n", strings.TrimRight(b.String()+r[4], " "))
	}
	if out.Working != 0 {
		a.say("Process %d lands: %s", out.Working, report.Line(out.Doing, 200))
	}
}

func shortRef(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }
