// Package check has the commands that judge without running anything: check asks
// whether an attempt may proceed, and explain says what a log shows.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/checklog"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Commands are the commands that judge.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{
		checkCommand(a), explainCommand(a),
	}
}

// The exit statuses of check besides those of all commands.
const (
	exitRetry  = 10
	exitReview = 11
)

func checkCommand(a *command.App) *cobra.Command {
	var history string
	var reset bool
	cmd := &cobra.Command{
		Use: "check [FILE|-]", Short: "Say whether an attempt may proceed, should be tried again, or needs a person",
		Args: command.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case !cmd.Flags().Changed("history"):
				return decideNext(cmd.Context(), a, append(args, "")[0], reset)
			case len(args) > 0, reset:
				return command.Usage("--history takes one FILE and nothing else: pawl check --history FILE")
			}
			return checkHistory(a, history)
		},
	}
	cmd.Flags().StringVar(&history, "history", "", "ask the guards about the iterations in `FILE|-` instead")
	cmd.Flags().BoolVar(&reset, "reset", false,
		"forget the attempts before this one; with a task_id instead of a FILE, that is all")
	return cmd
}

func decideNext(ctx context.Context, a *command.App, from string, reset bool) error {
	if reset && from != "" && from != "-" && !isInputFile(a, from) {
		return resetTask(ctx, a, from)
	}
	name, data, err := readInput(a, from)
	if err != nil {
		return err
	}
	in, err := config.ReadIterationCheck(name, data)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	c, err := a.Load(nil)
	if err != nil {
		return err
	}
	k := &check{a: a, in: in, set: checkSettings(c, in), root: c.Root, log: checklog.Log{Task: in.TaskID}}
	return k.decideAndPrint(ctx, reset)
}

// isInputFile reports whether the file exists, or the name looks like one.
func isInputFile(a *command.App, name string) bool {
	return command.LooksLikeFile(name) || strings.HasSuffix(name, ".json") || files.IsFile(a.InDir(name))
}

// readInput reads FILE, or stdin for "-" and "".
func readInput(a *command.App, from string) (name string, data []byte, err error) {
	if from == "" && a.Interactive() {
		return "", nil, command.Usage("nothing to check: name a FILE, or - for stdin").
			Hint("The format: pawl check --help, docs/iteration-control.md")
	}
	in, name, err := a.OpenInput(from)
	if err != nil {
		return name, nil, err
	}
	defer in.Close()
	data, err = io.ReadAll(io.LimitReader(in, config.MaxDocument+1))
	if err != nil {
		return name, nil, command.CannotRead(name, err)
	}
	if len(data) > config.MaxDocument {
		return name, nil, command.Usage("%s is over 4 MB: keep only the end of the test output", name)
	}
	return name, data, nil
}

// checkSettings are the configuration's, with what the input says over them. A
// rejection always counts; a review that is missing counts where the
// configuration wants one, or where the input speaks of one and the
// configuration does not say that there is none.
func checkSettings(c *config.Config, in config.IterationCheck) control.Settings {
	set := planner.ControlSettings(c.IterationControl)
	if in.MaxIterations > 0 {
		set.MaxIterations = in.MaxIterations
	}
	set.Review = c.Review.Mode != "skip"
	if r := in.ReviewResult; r != nil && !set.Review {
		set.Review = r.Status == "reject" || !c.IsSet("review.mode")
	}
	return set
}

// check is one call: an attempt, and what is remembered of those before.
type check struct {
	a      *command.App
	in     config.IterationCheck
	set    control.Settings
	root   string
	log    checklog.Log
	action control.Action
	why    string        // what a retry, or the escalation, is to know beside the feedback
	cured  failure.Class // what a person must cure first
}

func (k *check) decideAndPrint(ctx context.Context, reset bool) error {
	o := k.buildOutcome()
	k.action, _ = control.Decide(o.Attempt, k.set)
	k.recordAttempt(ctx, o, reset)
	d := k.buildDecision(ctx, o)
	if err := printDecision(k.a, d, k.in.JSON || k.a.JSON); err != nil {
		return err
	}
	switch k.action {
	case control.Retry:
		return command.StatusError(exitRetry)
	case control.Review:
		return command.StatusError(exitReview)
	case control.Escalate:
		return command.StatusError(command.ExitPerson)
	}
	return nil
}

// buildOutcome returns the input as iteration control sees it.
func (k *check) buildOutcome() control.Outcome {
	in := k.in
	o := control.Outcome{Attempt: control.Attempt{Number: in.CurrentIteration, Tests: control.Tests(in.TestResult.Status),
		Review: control.Undecided}}
	if o.Tests == control.Failed {
		a := failure.Analysis{Class: failure.TestFailure,
			Items: []failure.Item{{Message: "There is no test output: run the tests and see what fails"}}}
		if strings.TrimSpace(in.TestResult.Output) != "" {
			a = failure.Analyse(failure.Evidence{Source: "gate", Name: "tests", ExitCode: 1, Output: in.TestResult.Output,
				Now: time.Now()})
		}
		o.Failure = &a
	}
	if r := in.ReviewResult; r != nil {
		o.Review = map[string]control.Verdict{"approve": control.Approved, "reject": control.Rejected,
			"pending": control.Undecided}[r.Status]
		o.Found = control.FromReview(r.Feedback)
	}
	return o
}

// recordAttempt stores the attempt, and reads the earlier ones into k.log. An error is only
// printed as a warning, and does not change the decision.
func (k *check) recordAttempt(ctx context.Context, o control.Outcome, reset bool) {
	tree := checkTree(ctx, k.a, k.root)
	store, err := checklog.Open(ctx, k.root)
	if err == nil {
		err = k.recordIn(ctx, store, tree, o, reset)
		if cerr := store.Close(); err == nil {
			err = cerr
		}
	} else {
		k.log = k.logWithAttempt(o)
	}
	if err != nil {
		k.a.Say("Warning: %v", err)
	}
}

func (k *check) recordIn(ctx context.Context, store *checklog.Store, tree *workspace.Checkout, o control.Outcome,
	reset bool) error {
	before, err := store.Load(k.in.TaskID)
	if err != nil && !errors.Is(err, checklog.ErrCorrupt) {
		k.log = k.logWithAttempt(o)
		return err
	}
	if reset {
		before = checklog.Log{Task: k.in.TaskID}
	}
	k.log = before
	k.log = k.logWithAttempt(o)
	if k.log.Base == "" && tree != nil {
		now, _ := tree.See(ctx, checkRun)
		k.log.Base = now.Head.Commit
	}
	if k.action == control.Proceed {
		_, ferr := store.Forget(k.in.TaskID)
		return errors.Join(err, ferr)
	}
	return errors.Join(err, store.Save(k.log))
}

// logWithAttempt returns the log with this attempt. Numbers that begin anew begin a round:
// after an escalation a person answered, and the count is 0 again.
func (k *check) logWithAttempt(o control.Outcome) checklog.Log {
	now := checklog.Attempt{Round: 1, Iteration: o.Number, At: time.Now().UTC(), Summary: o.Summary(), Where: o.Where()}
	if o.Failure != nil {
		now.Class, now.Fingerprint = string(o.Failure.Class), o.Failure.Fingerprint
	} else if o.Review == control.Rejected {
		now.Class, now.Fingerprint = string(failure.Validation), summaryPrint(now.Summary)
	}
	if n := len(k.log.Attempts); n > 0 {
		last := k.log.Attempts[n-1]
		now.Round = last.Round
		answered := last.Action == string(control.Escalate) && last.Iteration == now.Iteration && last.Summary != now.Summary
		if now.Iteration < last.Iteration || answered {
			now.Round++
		}
	}
	k.escalateRetry(o.Failure, k.sameBefore(now)+1)
	now.Action = string(k.action)
	return k.log.Add(now)
}

// sameBefore is how many attempts right before this one failed alike.
func (k *check) sameBefore(now checklog.Attempt) int {
	n := 0
	for _, at := range slices.Backward(k.log.Attempts) {
		if at.Round != now.Round || at.Fingerprint != now.Fingerprint || at.Fingerprint == "" {
			break
		}
		if at.Iteration != now.Iteration {
			n++
		}
	}
	return n
}

// escalateRetry changes a plain retry to what a loop would do: a failure that only a
// person can cure, and one that keeps coming back, become questions to a person, with who
// is to act.
func (k *check) escalateRetry(f *failure.Analysis, same int) {
	asks := k.action == control.Escalate
	if f == nil || k.action != control.Retry && !asks {
		return
	}
	what := string(f.Class)
	if len(f.Actions) > 0 {
		what += "): " + f.Actions[0]
	} else {
		what += ")."
	}
	again := fmt.Sprintf("The same failure %d times in a row", same)
	switch {
	case f.Kind == failure.Permanent:
		k.action, k.why, k.cured = control.Escalate, "Only a person can fix this ("+what, f.Class
	case f.Kind == failure.Transient && asks:
		k.why = "This may go away by itself (" + string(f.Class) + "). The work did not cause it."
	case f.Kind == failure.Transient:
		k.why = fmt.Sprintf("This may go away by itself (%s): wait%s, try again. The work did not cause it.", f.Class,
			formatUntil(f.WaitUntil))
	case asks: // the pattern is in the context
	case same >= planner.RepeatedThreshold:
		k.action, k.why = control.Escalate, again+"."
	case same > 1:
		k.why = again + ": earlier attempts to fix it did not help. Find its cause before you change anything."
	default:
		k.why = f.Advice()
	}
}

func formatUntil(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + t.Format("Mon 15:04:05")
}

// summaryPrint is the fingerprint of a failure of which only a line is known.
func summaryPrint(summary string) string {
	return failure.Fingerprint(failure.Analysis{Class: failure.Validation}, summary)
}

// checkRun names the private index that check looks at the tree with.
const checkRun = "check"

// checkTree is the work tree, nil outside of git.
func checkTree(ctx context.Context, a *command.App, root string) *workspace.Checkout {
	tree, err := workspace.Open(ctx, root, workspace.Options{StateDir: statedir.Of(root, a.Env)})
	if err != nil {
		if !errors.Is(err, git.ErrNotRepository) && !errors.Is(err, git.ErrNoGit) {
			a.Say("Warning: no diff: %v", err)
		}
		return nil
	}
	if err := tree.IgnoreOwnFolder(); err != nil {
		a.Say("Warning: %v", err)
	}
	return tree
}

// resetTask is check --reset TASK.
func resetTask(ctx context.Context, a *command.App, task string) error {
	root, err := a.Root()
	if err != nil {
		return err
	}
	store, err := checklog.Open(ctx, root)
	if err != nil {
		return err
	}
	gone, err := store.Forget(task)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if gone {
		a.Say("The attempts at %s are forgotten.", task)
	} else {
		a.Say("No attempts at %s are recorded here.", task)
	}
	return nil
}

// listAttempts returns the attempts of an escalation, oldest first.
func (k *check) listAttempts() (lines []string, past []control.Past) {
	if k.in.Attempts != nil {
		return k.givenAttempts()
	}
	all := k.log.Attempts
	round := all[len(all)-1].Round
	for _, at := range all {
		line := fmt.Sprintf("Iteration %d: %s", at.Iteration, formatSummary(at.Summary))
		if at.Round < round {
			line = fmt.Sprintf("Round %d, iteration %d: %s", at.Round, at.Iteration, formatSummary(at.Summary))
		} else if at.Class != "" {
			past = append(past, control.Past{Class: failure.Class(at.Class), Fingerprint: at.Fingerprint, Summary: at.Summary,
				Where: at.Where})
		}
		lines = append(lines, line)
	}
	return lines, past
}

// givenAttempts returns the attempts of the input, and this one.
func (k *check) givenAttempts() (lines []string, past []control.Past) {
	for i, at := range k.in.Attempts {
		at.Iteration = cmp.Or(at.Iteration, i+1)
		if at.Iteration == k.in.CurrentIteration {
			continue
		}
		lines = append(lines, fmt.Sprintf("Iteration %d: %s", at.Iteration, formatSummary(at.Summary)))
		past = append(past, control.Past{Class: failure.TestFailure, Fingerprint: summaryPrint(at.Summary),
			Summary: at.Summary})
	}
	now := k.log.Attempts[len(k.log.Attempts)-1]
	return append(lines, fmt.Sprintf("Iteration %d: %s", now.Iteration, formatSummary(now.Summary))),
		append(past, control.Past{Class: failure.Class(now.Class), Fingerprint: summaryPrint(now.Summary),
			Summary: now.Summary})
}

// formatSummary returns a summary as a list of attempts shows it: "Test failed - why".
func formatSummary(summary string) string {
	return strings.Replace(strings.Join(strings.Fields(summary), " "), ": ", " - ", 1)
}
