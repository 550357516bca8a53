// Package queue has the commands of the merge queue: what waits to land, what a
// person asks of it, and landing here and now.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Command is the parent of all that a person does with the merge queue.
func Command(a *command.App) *cobra.Command {
	list := func(ctx context.Context) error {
		return WithQueue(ctx, a, func(q *OpenQueue) error { return listQueue(ctx, a, q) })
	}
	return command.Group("queue", "The merge queue: what waits to land on the target branch, and why", list,
		command.Plain("list", "List what waits to land, in the order of landing", list),
		queueAddCommand(a), queueLandCommand(a),
		queueWishCommand(a, queue.WishHold, true, "Hold an entry"),
		queueWishCommand(a, queue.WishRelease, true, "Release a held entry"),
		queueWishCommand(a, queue.WishRetry, true,
			"Try an entry that waits for a person again, with all attempts of an agent"),
		queueWishCommand(a, queue.WishDrop, true, "Take an entry out of the queue; its work is kept"),
		queueWishCommand(a, queue.WishPause, false, "Land nothing until the queue is resumed"),
		queueWishCommand(a, queue.WishResume, false,
			"Continue after a pause, or after a red, rewritten or diverged target"))
}

// OpenQueue is a queue with what it came from.
type OpenQueue struct {
	*merge.Queue
	l      *session.Landing
	store  *store.Store
	config *config.Config
}

// WithQueue opens the queue of the target, without a sandbox: to look and to ask.
func WithQueue(ctx context.Context, a *command.App, do func(*OpenQueue) error) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	return a.WithOperator(ctx, func(p *action.Operator) error {
		q, err := openQueue(ctx, a, c, p.Store)
		if err != nil {
			return err
		}
		return do(q)
	})
}

func openQueue(ctx context.Context, a *command.App, c *config.Config, db *store.Store) (*OpenQueue, error) {
	l, err := session.OpenLanding(ctx, a, c, db)
	if err != nil {
		return nil, err
	}
	o, err := l.QueueOptions(ctx, func(n queue.Note) { session.SayNote(a, n) })
	if err != nil {
		return nil, err
	}
	q, err := merge.Open(ctx, o)
	return &OpenQueue{q, l, db, c}, err
}

// queueWishCommand asks something of entries, or of the whole queue.
func queueWishCommand(a *command.App, wish queue.Wish, entries bool, short string) *cobra.Command {
	why, use, args := "", string(wish), command.AtMost(0)
	if entries {
		use, args = use+" ID...", command.SomeIDs
	}
	cmd := command.Leaf(use, short, args, func(ctx context.Context, args []string) error {
		return WithQueue(ctx, a, func(q *OpenQueue) error {
			asks := []queue.Ask{{Wish: wish, Why: why}}
			if entries {
				asks = nil
			}
			err := command.EachCase(args, func(id string) error {
				asks = append(asks, queue.Ask{Wish: wish, ID: id, Why: why})
				return nil
			})
			if err != nil {
				return err
			}
			return AskQueue(ctx, a, q, asks)
		})
	})
	cmd.Flags().StringVar(&why, "why", "", "the `REASON`, shown in the list")
	return cmd
}

const landHint = "No pawl process works on the queue now. To land what is ready: pawl queue land"

// AskQueue stores the requests and has them carried out: by this process if no other
// works on the queue, and else by that one within moments.
func AskQueue(ctx context.Context, a *command.App, q *OpenQueue, asks []queue.Ask) error {
	for _, ask := range asks {
		if ask.ID != "" {
			if err := checkIsQueued(ctx, q, ask.ID); err != nil {
				return err
			}
		}
	}
	for _, ask := range asks {
		if err := q.Ask(ctx, ask); err != nil {
			return err
		}
		if ask.Wish == queue.WishRetry {
			a.Say("%s has all attempts of an agent again, which cost anew (merge.conflict_retries).", ask.ID)
		}
	}
	done, err := q.Absorb(ctx)
	if err != nil {
		return err
	}
	if !done {
		a.Say("Requested; the pawl process that runs the queue does it.")
		return nil
	}
	if slices.ContainsFunc(asks, func(ask queue.Ask) bool { return ask.Wish == queue.WishRetry }) {
		a.Say(landHint)
	}
	return listQueue(ctx, a, q)
}

// checkIsQueued refuses for a task that is not in the queue.
func checkIsQueued(ctx context.Context, q *OpenQueue, id string) error {
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
	return command.Usage("%s is not in the queue", id).Hint("List the queue: pawl queue")
}

// maxAsks limits the number of new entries that are read at once.
const maxAsks = 10_000

func queueAddCommand(a *command.App) *cobra.Command {
	var commit string
	var allow []string
	cmd := command.Leaf("add TASK", "Queue a task's change to be landed", command.ExactlyOne("the id of a task"),
		func(ctx context.Context, args []string) error {
			return WithQueue(ctx, a, func(q *OpenQueue) error {
				id, err := queueTask(ctx, a, q, args[0], commit, allow)
				if err != nil {
					return err
				}
				alone, err := q.Absorb(ctx)
				if err != nil {
					return err
				}
				a.Say("%s waits to be landed on %s.", id, command.BranchName(q.Target()))
				if alone {
					a.Say(landHint)
				}
				return nil
			})
		})
	cmd.Flags().StringVar(&commit, "commit", "", "land this `COMMIT`, branch or tag")
	cmd.Flags().StringArrayVar(&allow, "allow", nil, "let it change protected files under this `PATTERN` (repeatable)")
	return cmd
}

// queueTask queues the result of one task.
func queueTask(ctx context.Context, a *command.App, q *OpenQueue, text, commit string, allow []string) (string, error) {
	id, err := action.CaseID(text)
	if err != nil {
		return "", err
	}
	c, err := q.store.Case(ctx, id)
	if err != nil {
		return "", action.Explain(err)
	}
	if c.Type != board.Task {
		return "", command.Usage("%s is an operation; only tasks are landed", id)
	}
	if commit == "" {
		if commit, err = collectWork(ctx, a, q, &c); err == nil && commit == "" {
			commit, err = findWorkCommit(ctx, q, id)
		}
		if err != nil {
			return "", err
		}
	} else if found, err := q.l.Repo.Find(ctx, commit); err != nil || found == "" {
		return "", command.Usage("there is no commit %q in the repository", report.Line(commit, 80))
	}
	e := merge.Entry{ID: id, Commit: commit, Title: c.Title, Priority: c.Priority, Allow: allow}
	return id, q.Add(ctx, e)
}

// collectWork commits what is in the workspace of a task that no agent works on, as when a person
// has taken it over; "" where there is no change, or no workspace here.
func collectWork(ctx context.Context, a *command.App, q *OpenQueue, c *board.Case) (string, error) {
	row, isKept, err := q.store.Workspace(ctx, c.ID)
	isBusy := c.Status == board.Active || c.Status == board.Review || c.Status == board.Done
	if _, gone := os.Stat(row.Dir); err != nil || !isKept || isBusy || gone != nil {
		return "", err
	}
	clones, err := a.Pool(ctx, q.config, q.store)
	if err != nil {
		return "", err
	}
	w, err := clones.Reclaim(ctx, c.ID, row.Base)
	if err != nil {
		return "", err
	}
	commit, err := clones.Collect(ctx, w, fmt.Sprintf("%s: %s\n\nPawl-Task: %[1]s\n", c.ID, c.Title))
	err = errors.Join(err, clones.Release(context.WithoutCancel(ctx), w, pool.Keep(row.Why)))
	if err != nil || commit == row.Base {
		return "", err
	}
	a.Say("The work in the workspace of %s is commit %.10s.", c.ID, commit)
	return commit, nil
}

// findWorkCommit returns the commit of a task's work, or of its branch if that is not
// recorded.
func findWorkCommit(ctx context.Context, q *OpenQueue, id string) (string, error) {
	for _, ref := range []string{"refs/pawl/tasks/" + id, "refs/heads/pawl/" + id} {
		commit, err := q.l.Repo.Find(ctx, ref)
		if err != nil || commit != "" {
			return commit, err
		}
	}
	return "", command.Usage("%s has no finished work", id).Hint("Name it: pawl queue add %s --commit BRANCH", id)
}

func queueLandCommand(a *command.App) *cobra.Command {
	var commit string
	var allow []string
	var unsandboxed bool
	cmd := command.Leaf("land [TASK...]", "Land what waits, here and now; with TASKs, queue these first",
		cobra.ArbitraryArgs,
		func(ctx context.Context, args []string) error {
			if commit != "" && len(args) != 1 {
				return command.Usage("--commit is for one task: pawl queue land TASK --commit BRANCH")
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				return withQueue(ctx, a, p, unsandboxed, func(q *OpenQueue) error {
					for _, t := range args {
						if err := queueAndRelease(ctx, a, q, t, commit, allow); err != nil {
							return err
						}
					}
					return drainQueue(ctx, a, q, "")
				})
			})
		})
	f := cmd.Flags()
	f.StringVar(&commit, "commit", "", "land this `COMMIT`, branch or tag")
	f.StringArrayVar(&allow, "allow", nil, "let the tasks change protected files under this `PATTERN` (repeatable)")
	f.BoolVar(&unsandboxed, "unsandboxed", false, "run the gates without the sandbox")
	return cmd
}

// RevertCommand takes back what a task landed.
func RevertCommand(a *command.App) *cobra.Command {
	why := ""
	unsandboxed := false
	cmd := command.Leaf("revert TASK", "Revert what a task landed, and reopen the task",
		command.ExactlyOne("the id of a task"), func(ctx context.Context, args []string) error {
			id, err := action.CaseID(args[0])
			if err != nil {
				return err
			}
			return a.WithOperator(ctx, func(p *action.Operator) error {
				if err := a.Done(p.Revert(ctx, id, why)); err != nil {
					return action.Explain(err)
				}
				err := withQueue(ctx, a, p, unsandboxed, func(q *OpenQueue) error { return drainQueue(ctx, a, q, id) })
				if fault.Is[*store.QueueOwnedError](err) {
					a.Say("The pawl process that runs the queue lands it.")
					return nil
				}
				return err
			})
		})
	cmd.Flags().StringVar(&why, "why", "", "the `REASON`, for the history and for the next agent")
	cmd.Flags().BoolVar(&unsandboxed, "unsandboxed", false, "run the gates without the sandbox")
	return cmd
}

// withQueue opens the queue to land from this terminal.
func withQueue(ctx context.Context, a *command.App, p *action.Operator, unsandboxed bool,
	land func(q *OpenQueue) error) error {
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	l, err := session.OpenLanding(ctx, a, c, p.Store)
	if err == nil {
		err = l.Box(ctx, unsandboxed)
	}
	if err != nil {
		return err
	}
	s := &session.Session{App: a, Config: c, Plan: l.Plan, StateDir: statedir.Of(c.Root, a.Env)}
	defer s.Close()
	o, err := l.QueueOptions(ctx, s.QueueNotes(ctx))
	if err != nil {
		return err
	}
	if err := l.UseForge(ctx, &o); err != nil {
		return err
	}
	s.WatchLanding(ctx, l, &o)
	if clones, err := a.Pool(ctx, c, p.Store); err == nil {
		l.UseWorkspaces(&o, clones)
		o.Resolve = buildResolver(ctx, a, c, l.Repo, p.Store, clones, unsandboxed)
	}
	o.Policy.Ask = false // a person is here
	m, err := merge.Open(ctx, o)
	if err != nil {
		return err
	}
	return land(&OpenQueue{m, l, p.Store, c})
}

// queueAndRelease queues a task that is not queued as it is, and lets it go on
// where it was on hold.
func queueAndRelease(ctx context.Context, a *command.App, q *OpenQueue, text, commit string, allow []string) error {
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
		if _, err := queueTask(ctx, a, q, id, commit, allow); err != nil {
			return err
		}
	}
	if queued && e.Status == queue.OnHold {
		return q.Ask(ctx, queue.Ask{Wish: queue.WishRelease, ID: id})
	}
	return nil
}

// buildResolver returns an agent for conflicts; nil where none can run.
func buildResolver(ctx context.Context, a *command.App, c *config.Config, repo *git.Repo, db *store.Store, p *pool.Pool,
	unsandboxed bool) func(context.Context, merge.Problem) (string, error) {
	if c.Merge.ConflictRetries == 0 {
		return nil
	}
	quiet := *a
	quiet.Quiet = true // the gates said it already
	t, _, err := session.NewTaskPlanner(ctx, &quiet, c, repo, statedir.Of(c.Root, a.Env),
		planner.Flags{Unsandboxed: unsandboxed})
	if err != nil {
		return nil
	}
	return t.Resolver(p, db).Resolve
}

// drainQueue lands until all that is left waits for a person or another time. It is an error if something is left,
// or with a task only if that is.
func drainQueue(ctx context.Context, a *command.App, q *OpenQueue, task string) error {
	err := q.Drain(ctx)
	switch {
	case fault.Is[*store.QueueOwnedError](err):
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
	if err := listQueue(ctx, a, q); err != nil {
		return err
	}
	if u := row.State.Unpushed; u != nil {
		why := cmp.Or(u.Why, "the queue is blocked")
		return fault.Of(fault.Waiting, fmt.Errorf("what landed is only here, not pushed: %s", why))
	}
	if _, waits := row.State.Find(task); task != "" && !waits {
		return nil
	}
	if row.State.Stop != nil || len(row.State.Entries) > 0 {
		return fault.Of(fault.Waiting, errors.New("not everything has landed; the list says what waits for what"))
	}
	return nil
}

func listQueue(ctx context.Context, a *command.App, q *OpenQueue) error {
	v, err := action.New(action.Options{Store: q.store}).Queue(ctx, q.Target())
	if err != nil {
		return err
	}
	if a.JSON {
		v.Target, v.Doing = q.Target(), cmp.Or(v.Doing, "nothing")
		return a.Document(v)
	}
	queueTable(a, &v)
	return nil
}

func queueTable(a *command.App, out *action.QueueView) {
	if out.Stopped != "" {
		a.Result("%s is blocked: %s\n", out.Target, report.Line(out.Stopped, 400))
	}
	if len(out.Entries) == 0 {
		a.Say("Nothing is waiting to land on %s.", out.Target)
		return
	}
	var rows [][]any
	for _, e := range out.Entries {
		why := e.Why
		if why == "" && len(e.Needs) > 0 {
			why = "needs " + strings.Join(e.Needs, ", ")
		}
		if why == "" && len(e.Ahead) > 0 {
			why = "will conflict in " + strings.Join(e.Ahead, ", ")
		}
		rows = append(rows, []any{e.ID, e.Status, e.Priority, report.Line(why, 100), report.Line(e.Title, 60)})
	}
	a.Table("ID\tSTATUS\tPRI\tWHY\tTITLE", rows, 0)
	if out.Working != 0 {
		a.Say("Process %d on %s is landing: %s", out.Working, out.Host, report.Line(out.Doing, 200))
	}
}
