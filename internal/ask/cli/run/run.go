// Package run has the commands about runs: run, plan, resume, stop, discard, pause, answer,
// message, rollback, apply, settle, ps, show, logs, stats and gc. What they change is
// changed by action.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/console"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Commands are the commands about runs.
func Commands(a *command.App) []*cobra.Command {
	return []*cobra.Command{
		runCommand(a), resumeCommand(a), psCommand(a), showCommand(a), logsCommand(a),
		statsCommand(a), workflowCommand(a), planCommand(a), sealCommand(a), stopCommand(a),
		a.OnRun("discard RUN", "Discard a waiting run; files and history are kept", (*action.Operator).DiscardRun),
		a.OnRun("pause RUN", "Pause a run at the end of its iteration", (*action.Operator).Pause),
		answerCommand(a), messageCommand(a), rollbackCommand(a), applyCommand(a), settleCommand(a), gcCommand(a),
	}
}

func resumeCommand(a *command.App) *cobra.Command {
	var f planner.Flags
	cmd := command.Leaf("resume NAME|RUN", "Continue a run that was interrupted, paused, blocked or aborted",
		command.ExactlyOne("a procedure or a run", command.SeeRuns),
		func(ctx context.Context, args []string) error { return resumeByName(ctx, a, args[0], f) })
	addLimitFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.Iterate, "iterate", false, "repeat the workflow from now on until all its steps are done")
	cmd.Flags().StringVar(&f.Strategy, "strategy", "",
		"`NAME`: auto, conservative, aggressive, or one strategy for the rest of the run")
	cmd.Flags().StringVar(&f.Agent, "agent", "", "continue with the agent `NAME`")
	return cmd
}

func resumeByName(ctx context.Context, a *command.App, name string, f planner.Flags) error {
	var run store.Run
	elsewhere := false
	err := a.WithOperator(ctx, func(p *action.Operator) (err error) {
		name = a.RunName(name)
		run, err = command.FindRun(ctx, p.Store, p.Root, name)
		if imported, ierr := session.AdoptFile(ctx, p.Store, p.Root, name, run, err); ierr == nil {
			run, err = imported, nil
		} else if !errors.Is(ierr, statefile.ErrNone) {
			err = ierr
		}
		if err == nil {
			run, err = p.WaitUntilReleased(ctx, run)
		}
		if err == nil {
			a.PinTo(run.Root, run.ID)
			elsewhere, err = p.ResumeElsewhere(ctx, run, f)
		}
		if err == nil {
			f, err = action.StoredFlags(run, f)
		}
		return a.ExplainNotFound(err, name)
	})
	if err != nil || elsewhere {
		return err
	}
	a.Dir = run.Root
	open := func(ctx context.Context, run store.Run, f planner.Flags) (*session.Session, error) {
		return resumeRun(ctx, a, run, f)
	}
	if run.Kind == "workflow" {
		open = func(ctx context.Context, run store.Run, f planner.Flags) (*session.Session, error) {
			return resumeWorkflow(ctx, a, run, f)
		}
	}
	s, err := open(ctx, run, f)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := resumeEvent(ctx, s, run)
	if err != nil {
		return err
	}
	if err := storeResume(ctx, s, run, e); err != nil {
		return err
	}
	err = s.DriveOn(ctx, run.ID, e)
	if err == nil && run.Name == planner.Sealing {
		a.Say("Its checks are kept; add them to the task with: pawl seal TASK")
	}
	return err
}

func resumeRun(ctx context.Context, a *command.App, run store.Run, f planner.Flags) (*session.Session, error) {
	c, err := a.Load(f.Paths())
	if err != nil {
		return nil, err
	}
	plan, err := planProcedure(a, c, run.Name, f)
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, a, c, plan, f.Unsandboxed)
}

// storeResume stores that a person resumes the run, unless that is about to be refused.
func storeResume(ctx context.Context, s *session.Session, run store.Run, e loop.Event) error {
	state, err := storedrun.StateOf(run)
	continues := state.Status.Active() || e.Kind == loop.Answered || state.CanResume(e.Policy) == nil
	if err == nil && continues && !storedrun.Alive(run.Owner) {
		_, err = s.Store.AddControl(ctx, store.Control{Run: run.ID, Kind: store.ControlResume, At: time.Now()})
	}
	return err
}

// resumeEvent is Answered when an answer waits for the run, else Resumed.
func resumeEvent(ctx context.Context, s *session.Session, run store.Run) (loop.Event, error) {
	rows, err := s.Store.Controls(ctx, run.ID)
	if err != nil {
		return loop.Event{}, err
	}
	if answer, ok := storedrun.Replies(rows, &s.Plan.Policy); ok {
		return answer, nil
	}
	return loop.Event{Kind: loop.Resumed, Policy: &s.Plan.Policy}, nil
}

func runCommand(a *command.App) *cobra.Command {
	var f planner.Flags
	var dry, fresh, iterate bool
	cmd := command.Leaf("run NAME [TEXT|-] | FILE.yaml", "Run a procedure, or a workflow",
		cobra.ArbitraryArgs,
		func(ctx context.Context, args []string) error {
			isWorkflow := len(args) > 0 && command.LooksLikeFile(args[0])
			var name string
			var err error
			if isWorkflow {
				err = refuseWorkText(args)
			} else if name, err = oneProcedure(a, args); err == nil {
				f.Work, err = readWorkText(a, args[1:])
			}
			if err == nil && !dry {
				err = session.NotInside(a)
			}
			if err != nil {
				return err
			}
			if isWorkflow {
				f.File, f.Iterate = args[0], iterate
				return runWorkflow(ctx, a, f, dry, fresh)
			}
			return runProcedure(ctx, a, name, f, dry, fresh)
		})
	cmd.AddCommand(command.OpensShell("shell RUN",
		"Open a shell in the private workspace of a run, in the sandbox that its agent has; or run COMMAND there",
		func(ctx context.Context, args []string) error {
			return a.WithRun(ctx, args[0], func(p *action.Operator, r store.Run) error {
				return session.Shell(ctx, a, p, r, args[1:])
			})
		}))
	a.Checks[cmd] = func(args []string) error {
		dry = true
		return cmd.RunE(cmd, args)
	}
	addStartFlags(cmd, &f)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.Verify, "verify", nil, "a `CHECK` of this run beside the gates: a command (repeatable)")
	fl.StringVar(&f.Strategy, "strategy", "",
		"`NAME`: auto, conservative, aggressive, or one strategy for the whole run")
	fl.BoolVar(&dry, "dry-run", false, "print the prompt, or a workflow's plan, and run nothing")
	fl.BoolVar(&fresh, "fresh", false, "start a new run even if an earlier one could be resumed")
	fl.BoolVar(&iterate, "iterate", false,
		"repeat a workflow until all its steps are done (procedures always iterate)")
	fl.StringVar(&f.Checkpoint, "checkpoint-interval", "", "`N` iterations between full checkpoints of a workflow")
	return cmd
}

// addStartFlags adds the flags that run and plan share.
func addStartFlags(cmd *cobra.Command, f *planner.Flags) {
	addLimitFlags(cmd, f)
	fl := cmd.Flags()
	fl.StringVar(&f.Agent, "agent", "", "use the agent `NAME`")
	fl.StringVar(&f.AgentCmd, "agent-cmd", "", "use `\"CMD ARGS\"` as the agent; the prompt comes on stdin")
	fl.StringArrayVarP(&f.Context, "context", "c", nil, "add `TEXT|FILE` to the prompt; may be repeated")
}

// addLimitFlags adds the flags that run and resume share.
func addLimitFlags(cmd *cobra.Command, f *planner.Flags) {
	fl := cmd.Flags()
	fl.StringVarP(&f.Max, "max-iterations", "n", "", "stop after `N` iterations; 0 is unlimited")
	fl.StringVar(&f.MaxCost, "max-cost", "", "stop at `USD`")
	fl.StringVar(&f.Timeout, "timeout", "", "stop after `DURATION` of wall clock, waits included")
	fl.StringVar(&f.Safety, "safety", "", "`LEVEL`: permissive, normal or paranoid")
	fl.BoolVar(&f.Unsandboxed, "unsandboxed", false, "run without a sandbox at every level; reports say so")
}

// oneProcedure checks the arguments of run.
func oneProcedure(a *command.App, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	c, err := a.Load(nil)
	if err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(c.Procedures))
	if len(args) > 0 {
		isName := func(arg string) bool { return slices.Contains(names, arg) }
		if slices.ContainsFunc(args[1:], func(arg string) bool { return !isName(arg) }) {
			return args[0], nil
		}
		return "", command.Usage("one procedure at a time: got %s", strings.Join(args, " ")).
			Hint("Each 'pawl run' drives one; start another in a second terminal").
			Hint("If these words are the task, quote them as one argument")
	}
	if len(names) == 0 {
		return "", planner.WithoutProcedures(c)
	}
	e := command.Usage("name a procedure: pawl run NAME")
	for _, n := range names {
		e = e.Hint("%-16s %s", n, c.Procedures[n].Summary)
	}
	return "", e
}

func runProcedure(ctx context.Context, a *command.App, name string, f planner.Flags, dry, fresh bool) error {
	c, err := a.Load(f.Paths())
	if err != nil {
		return err
	}
	if dry {
		return printFirstPrompt(a, c, name, f)
	}
	plan, err := planProcedure(a, c, name, f)
	if err != nil {
		return err
	}
	s, err := session.Open(ctx, a, c, plan, f.Unsandboxed)
	if err != nil {
		return err
	}
	defer s.Close()
	return startRun(ctx, s, f, fresh)
}

// planProcedure returns the plan of a run in the person's own files.
func planProcedure(a *command.App, c *config.Config, name string, f planner.Flags) (runplan.Plan, error) {
	plan, err := a.Planner(c, f).Procedure(name)
	// The gate of these is red until the agent has written its list.
	writesList := name == planner.Proposal || name == planner.Sealing
	plan.OnBase, plan.SetUp = c.Verification.OnBase && !writesList, c.Workspace.Setup
	return plan, err
}

// startRun starts the run, or resumes an earlier one where the person wants that.
func startRun(ctx context.Context, s *session.Session, f planner.Flags, fresh bool) error {
	err := s.MayStart(ctx, fresh)
	switch {
	case errors.Is(err, session.ErrResumeInstead):
		last, err := s.Store.Latest(ctx, s.Plan.Root, s.Plan.Name)
		if err == nil {
			err = keepsItsWork(f, last)
		}
		if err != nil {
			return err
		}
		return resumeByName(ctx, s.App, s.Plan.Name, f)
	case err != nil:
		return err
	}
	s.PrintPreamble()
	return s.Drive(ctx, engine.Start)
}

// printFirstPrompt prints the prompt of the first iteration. It touches neither
// state nor lock, and does not need the agent to be installed.
func printFirstPrompt(a *command.App, c *config.Config, name string, f planner.Flags) error {
	in, command, err := a.Planner(c, f).DryRun(name)
	if err != nil {
		return err
	}
	text, err := prompt.Compose(in)
	if err != nil {
		return fault.Of(fault.Refused, err)
	}
	if a.JSON {
		return a.Document(struct {
			Procedure string `json:"procedure"`
			Command   string `json:"command"`
			Tokens    int    `json:"tokens"`
			Budget    int    `json:"token_budget"`
			Prompt    string `json:"prompt"`
		}{name, command, text.Tokens, in.Budget, text.Text})
	}
	a.Result("%s", prompt.DryRun(text, name, command, in.Budget))
	program, _, _ := strings.Cut(command, " ")
	if _, err := a.LookPath(program); err != nil && !strings.Contains(program, "/") {
		a.Say("Warning: %s is not installed here, so a run does not start; see: pawl doctor", program)
	}
	if text.Over {
		a.Say("WARNING: Prompt exceeds token budget: %s > %s", prompt.Thousands(text.Tokens),
			prompt.Thousands(in.Budget))
	}
	return nil
}

// workflowCommand is the name that some know run and stop by.
func workflowCommand(a *command.App) *cobra.Command {
	run := runCommand(a)
	run.Use, run.Short, run.Args = "run FILE.yaml", "Run a workflow", command.ExactlyOne("a workflow file")
	return command.Group("workflow", "Run or stop a workflow: the same as 'pawl run FILE.yaml' and 'pawl stop RUN'", nil,
		run, stopCommand(a))
}

// runWorkflow runs a workflow file, or prints its plan.
func runWorkflow(ctx context.Context, a *command.App, f planner.Flags, dry, fresh bool) error {
	w, err := a.LoadWorkflow(f.File)
	if err != nil {
		return err
	}
	if dry {
		return planWorkflow(a, w)
	}
	if f.File, err = filepath.Abs(w.Path); err != nil {
		return fmt.Errorf("cannot tell where the workflow is: %v", err)
	}
	s, err := session.WorkflowSession(ctx, a, w, f)
	if err != nil {
		return err
	}
	defer s.Close()
	for _, note := range w.Notes {
		a.Say("Warning: %s", note)
	}
	return startRun(ctx, s, f, fresh)
}

// resumeWorkflow resumes the run of a workflow. The file is read again: steps that
// changed since then run again.
func resumeWorkflow(ctx context.Context, a *command.App, run store.Run, f planner.Flags) (*session.Session, error) {
	if f.File == "" {
		return nil, fmt.Errorf("cannot resume run %s: its workflow file is not known", run.ID)
	}
	w, err := a.LoadWorkflow(f.File)
	if err != nil {
		return nil, err
	}
	w.Plan.Name = run.Name
	return session.WorkflowSession(ctx, a, w, f)
}

// This file is what a person wants from a procedure, in words.

// readWorkText is the text after the procedure's name, or what is on stdin: where "-" asks
// for it, or where stdin is a file that has not been read from. A pipe is not read unasked,
// since it may never end.
func readWorkText(a *command.App, words []string) (string, error) {
	text := strings.Join(words, " ")
	asked := slices.Contains(words, "-")
	waiting := stdinKindOf(a.Stdin)
	switch {
	case asked && len(words) > 1, waiting == inFile && len(words) > 0 && !asked:
		return "", command.Usage("the task is given twice: as an argument and on stdin").
			Hint("Give only one; add other files for the agent with -c FILE")
	case asked, waiting == inFile:
		data, err := io.ReadAll(io.LimitReader(a.Stdin, prompt.MaxWork+1))
		if err != nil {
			return "", fmt.Errorf("cannot read stdin: %v", err)
		}
		text = string(data)
	case len(words) == 0 && waiting == inPipe:
		return "", command.Usage("there is input on stdin, but nothing says that it is the task").
			Hint("Use it as the task: pawl run NAME -").
			Hint("Ignore it:          pawl run NAME </dev/null")
	case len(words) == 0:
		return "", nil
	}
	return text, checkWork(text)
}

func checkWork(text string) error {
	const instead = "Write it to a file of the repository, and name the file: " +
		"pawl run NAME \"do what issue.md asks for\""
	switch {
	case strings.TrimSpace(text) == "":
		return command.Usage("the task is empty: say what to do, or leave it out").
			Hint("Without it the procedure's prompt says where the agent finds its work: pawl run NAME --dry-run")
	case len(text) > prompt.MaxWork:
		return command.Usage("the task is too long: at most %d KiB", prompt.MaxWork>>10).Hint(instead)
	case !utf8.ValidString(text), strings.Contains(text, "\x00"):
		return command.Usage("the task is not text").Hint(instead)
	}
	return nil
}

// refuseWorkText refuses words after a workflow file.
func refuseWorkText(args []string) error {
	if len(args) == 1 {
		return nil
	}
	return command.Usage("a workflow takes no text: its file says what its steps do").
		Hint("Give it values: pawl run %s --context NAME=VALUE", args[0])
}

// What is on stdin before anything is read.
type stdinKind int

const (
	inNothing stdinKind = iota
	inFile              // a file, from its beginning
	inPipe              // bytes that wait in a pipe
)

func stdinKindOf(r io.Reader) stdinKind {
	f, ok := r.(*os.File)
	if !ok {
		return inNothing
	}
	info, err := f.Stat()
	if err != nil {
		return inNothing
	}
	switch {
	case info.Mode().IsRegular() && info.Size() > 0:
		if at, err := f.Seek(0, io.SeekCurrent); err == nil && at == 0 {
			return inFile
		}
	case info.Mode()&os.ModeNamedPipe != 0 && console.Waits(f):
		return inPipe
	}
	return inNothing
}

// keepsItsWork refuses to go on with a run whose work is another than the one that was
// just given.
func keepsItsWork(f planner.Flags, last store.Run) error {
	work := action.SetupOf(last).Flags.Work
	if f.Work == "" || f.Work == work {
		return nil
	}
	own := "what its procedure says"
	if work != "" {
		own = fmt.Sprintf("%q", report.Line(work, 100))
	}
	return command.Usage("run %s already has a task: %s", last.ID, own).
		Hint("Continue it:            pawl resume %s", last.Name).
		Hint("Tell its agent more:    pawl message %s TEXT", last.Name).
		Hint("Start the new task:     pawl run %s --fresh TEXT", last.Name)
}
