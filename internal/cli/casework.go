package cli

import (
	"context"
	"encoding/json"

	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/merge"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) caseStartCommand() *cobra.Command {
	return &cobra.Command{
		Use: "start ID...", Short: "Give a ready task the next free slot of the autopilot that runs",
		Args: someIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withBoard(cmd.Context(), func(store *sqlite.Store) error {
				if _, err := running(cmd.Context(), store); err != nil {
					return err
				}
				return a.eachCase(args, func(id string) error { return a.assign(cmd.Context(), store, id) })
			})
		},
	}
}

func (a *app) assign(ctx context.Context, store *sqlite.Store, id string) error {
	c, err := store.Case(ctx, id)
	if err != nil {
		return err
	}
	if !c.IsReady() {
		why := c.NotReady()
		if c.Status != board.Pending || c.Type != board.Task {
			why = fmt.Sprintf("%s is %s", c.ID, c.Status)
		}
		return usage("%s cannot be started: %s", id, why)
	}
	if _, err := store.AskAutopilot(ctx, sqlite.AutopilotControl{Kind: sqlite.AutopilotStart, Text: id, At: time.Now()}); err != nil {
		return err
	}
	a.say("%s gets the next free slot.", id)
	return nil
}

func (a *app) caseExtendCommand() *cobra.Command {
	var iterations, timeout string
	cmd := &cobra.Command{
		Use: "extend ID", Short: "Give a task more iterations or time, also while it works; a timed-out one goes on",
		Example: "  pawl case extend 42 --max-iterations 80\n  pawl case extend 42 --timeout 1h",
		Args:    exactlyOne("the id of a task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := readLimits(iterations, timeout)
			if err != nil {
				return err
			}
			id, err := caseID(args[0])
			if err != nil {
				return err
			}
			return a.withBoard(cmd.Context(), func(store *sqlite.Store) error { return a.extend(cmd.Context(), store, id, l) })
		},
	}
	cmd.Flags().StringVarP(&iterations, "max-iterations", "n", "", "allow `N` iterations in all")
	cmd.Flags().StringVar(&timeout, "timeout", "", "allow `DURATION` in all, waits aside")
	return cmd
}

func readLimits(iterations, timeout string) (l sqlite.CaseLimits, err error) {
	if iterations == "" && timeout == "" {
		return l, usage("say how far: --max-iterations N or --timeout DURATION")
	}
	if iterations != "" {
		if l.MaxIterations, err = strconv.Atoi(iterations); err != nil || l.MaxIterations < 1 {
			return l, usage("--max-iterations %s: write a whole number, 1 or more", iterations)
		}
	}
	if timeout != "" {
		if l.Timeout, err = time.ParseDuration(timeout); err != nil || l.Timeout <= 0 {
			return l, usage("--timeout %s: write a duration such as 45m or 1h30m", timeout)
		}
	}
	l.At = time.Now()
	return l, nil
}

// extend raises a task's own limits; one that has timed out is pending again,
// and its run goes on.
func (a *app) extend(ctx context.Context, store *sqlite.Store, id string, l sqlite.CaseLimits) error {
	c, err := store.Case(ctx, id)
	if err != nil {
		return err
	}
	if c.Type != board.Task || c.Status == board.Done {
		return usage("%s cannot be extended: it is %s", id, map[bool]string{true: "done", false: "an operation"}[c.Type == board.Task])
	}
	root, err := config.FindRoot(a.dir)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	r, rerr := store.Latest(ctx, root, id)
	if rerr == nil {
		if err := roomFor(r, l.MaxIterations); err != nil {
			return err
		}
	}
	if err := store.SetCaseLimits(ctx, id, l); err != nil {
		return err
	}
	if rerr == nil && works(r) {
		if err := a.raiseTask(ctx, store, r, l); err != nil {
			return err
		}
		return a.sayCase(&c, "%s has its new limits, and so has its run.", id)
	}
	if c.Status != board.Timeout {
		return a.sayCase(&c, "%s has its new limits.", id)
	}
	c, err = store.MoveCase(ctx, id, board.Change{Action: board.Retry, By: board.Person, Why: "it was given more room", At: time.Now()})
	if err != nil {
		return err
	}
	return a.sayCase(&c, "%s is %s, and its run goes on where it was.", c.ID, state(&c))
}

// reviewCommands are what a person decides about verified work.
func (a *app) reviewCommands() []*cobra.Command {
	one := func(use, short, flag, doc string, needed bool, do func(context.Context, *sqlite.Store, string, string) error) *cobra.Command {
		var text string
		cmd := &cobra.Command{
			Use: use, Short: short, Args: someIDs,
			RunE: func(cmd *cobra.Command, args []string) error {
				if needed && text == "" {
					return usage("say what must change: pawl case %s --%s \"…\"", use, flag)
				}
				return a.withBoard(cmd.Context(), func(store *sqlite.Store) error {
					return a.eachCase(args, func(id string) error { return do(cmd.Context(), store, id, text) })
				})
			},
		}
		if flag != "" {
			cmd.Flags().StringVarP(&text, flag, flag[:1], "", doc)
		}
		return cmd
	}
	return []*cobra.Command{
		one("approve ID...", "Let verified work that waits for your review land", "", "", false, a.approve),
		one("redo ID...", "Send verified work back, with what must change", "feedback", "the `TEXT` goes into the next prompt", true,
			func(ctx context.Context, store *sqlite.Store, id, text string) error {
				return a.decide(ctx, store, id, sqlite.Redo, text, board.Redo)
			}),
		one("reject ID...", "Refuse verified work; the task is blocked", "why", "the `REASON`, kept in the history", false,
			func(ctx context.Context, store *sqlite.Store, id, text string) error {
				return a.decide(ctx, store, id, sqlite.Rejected, text, board.Reject)
			}),
	}
}

// decide stores a redo or a rejection.
func (a *app) decide(ctx context.Context, store *sqlite.Store, id, decision, text string, action board.Action) error {
	ch := board.Change{Action: action, By: board.Person, Why: text, At: time.Now()}
	if _, ok, err := store.DecideReview(ctx, id, decision, text, ch); err != nil {
		return err
	} else if !ok {
		return noReview(ctx, store, id)
	}
	a.noteDecision(ctx, store, id, decision)
	c, err := store.Case(ctx, id)
	if err != nil {
		return err
	}
	return a.sayCase(&c, "%s is %s.", id, state(&c))
}

// approve hands the work to the merge queue, and then notes the decision: an
// approval that was given is never without its landing.
func (a *app) approve(ctx context.Context, store *sqlite.Store, id, _ string) error {
	list, err := store.CaseReviews(ctx, id)
	if err != nil {
		return err
	}
	if len(list) == 0 || list[len(list)-1].Decision != "" {
		return noReview(ctx, store, id)
	}
	var e queue.Entry
	if err := json.Unmarshal(list[len(list)-1].Work, &e); err != nil {
		return fmt.Errorf("cannot read what is to land of %s: %v", id, err)
	}
	c, err := a.load(nil)
	if err != nil {
		return err
	}
	repo, err := git.OpenStore(ctx, c.Root)
	if err != nil {
		return err
	}
	target, err := landingTarget(ctx, c, repo)
	if err != nil {
		return err
	}
	q, err := merge.Open(ctx, merge.Options{Store: store, Repo: repo, Dir: filepath.Join(stateDir(c.Root, a.env), "queue"), Target: target})
	if err != nil {
		return err
	}
	if err := q.Add(ctx, e); err != nil {
		return err
	}
	if _, _, err := store.DecideReview(ctx, id, sqlite.Approved, "", board.Change{By: board.Person, At: time.Now()}); err != nil {
		return err
	}
	a.noteDecision(ctx, store, id, sqlite.Approved)
	one, err := store.Case(ctx, id)
	if err != nil {
		return err
	}
	return a.sayCase(&one, "%s is approved, and waits to land on %s.", id, target)
}

// noteDecision adds the decision to the statistics of the sprint that it is about.
func (a *app) noteDecision(ctx context.Context, store *sqlite.Store, id, decision string) {
	root, err := config.FindRoot(a.dir)
	if err == nil {
		err = autopilot.NoteDecision(ctx, store, root, id, decision)
	}
	if err != nil {
		a.say("Warning: the sprint's statistics lack the decision: %v", err)
	}
}

func noReview(ctx context.Context, store *sqlite.Store, id string) error {
	c, err := store.Case(ctx, id)
	if err != nil {
		return err
	}
	return usage("no review of %s waits for you: it is %s", id, c.Status).Hint("See what needs you: pawl autopilot status")
}

// reopenTask lets the autopilot go on with a task that a person has answered.
func (a *app) reopenTask(ctx context.Context, store *sqlite.Store, r sqlite.Run, why string) error {
	c, err := store.Case(ctx, r.Name)
	if err != nil {
		return caseError(err)
	}
	if c.Status == board.Blocked {
		if c, err = store.MoveCase(ctx, c.ID, board.Change{Action: board.Unblock, By: board.Person, Why: why, At: time.Now()}); err != nil {
			return caseError(err)
		}
	}
	switch c.Status {
	case board.Pending, board.Active:
	default:
		return usage("%s does not go on: it is %s", c.ID, c.Status).Hint("Begin anew:        pawl case retry %s", c.ID).
			Hint("Give it more room: pawl case extend %s --max-iterations N", c.ID)
	}
	a.say("%s is %s.", c.ID, state(&c))
	if _, err := running(ctx, store); err != nil {
		a.say("The autopilot goes on with it: pawl autopilot")
	}
	return nil
}

// treeOf is the tree that a run worked on: for a task that of its workspace.
func (a *app) treeOf(ctx context.Context, r sqlite.Run) (*workspace.Checkout, error) {
	dir := placeOf(r)
	if dir == r.Root {
		return a.tree(ctx, r.Root)
	}
	tree, err := workspace.Open(ctx, dir, workspace.Options{StateDir: autopilot.TreeDir(stateDir(r.Root, a.env), r.Name)})
	if err != nil {
		return nil, (fault.Of(fault.Refused, fmt.Errorf("the workspace of %s is gone", r.Name))).
			Hint("What landed of it: git log --first-parent --grep '^%s: '", r.Name)
	}
	return tree, nil
}

// placeOf is the folder in which the agents of a run worked.
func placeOf(r sqlite.Run) string {
	var setup struct {
		Place string `json:"place"`
	}
	if json.Unmarshal(r.Setup, &setup) == nil && setup.Place != "" {
		return setup.Place
	}
	return r.Root
}
