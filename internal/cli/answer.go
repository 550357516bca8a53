package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/screen"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

func (a *app) answerCommand() *cobra.Command {
	step := ""
	cmd := &cobra.Command{
		Use: "answer RUN TEXT|NUMBER", Short: "Answer a run's question, in words or with the number of an option",
		Long: "Answer a run's question. Words go into the next prompt. A number alone chooses an option of the question;\n" +
			"words after it go with it. An option that ends the run is carried out at once.\n" +
			"Where several steps of a workflow ask, --step says whose question it is.",
		Example: "  pawl answer build \"use port 8080\" && pawl resume build\n  pawl answer build 2\n  pawl answer build 1 \"look at the fixture first\"\n  pawl answer release --step approve yes",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || strings.TrimSpace(strings.Join(args[1:], " ")) == "" {
				return usage("an answer needs a run and a text: pawl answer RUN TEXT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), args[0], func(st *sqlite.Store, r sqlite.Run) error {
				return a.answer(cmd.Context(), st, r, step, args[1:])
			})
		},
	}
	cmd.Flags().StringVar(&step, "step", "", "the step of a workflow that is answered, where several ask")
	return cmd
}

// reply is what a person answered.
type reply struct {
	number int            // of the option, 1-based; 0 for words alone
	choice control.Choice // of number
	text   string
	steps  []loop.Asks // answers to steps that ask; then the others are none
}

// readReply understands an answer to the question of s. A number counts only
// alone, or with words after it as arguments of their own, and only where the
// question has options: an agent's own question may be answered with any number.
func readReply(s *loop.State, words []string) (reply, error) {
	text := strings.TrimSpace(strings.Join(words, " "))
	q := s.Question
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(words[0]), ".)"))
	if err != nil || q == nil || len(q.Choices) == 0 {
		return inWords(s, text)
	}
	if n < 1 || n > len(q.Choices) {
		return reply{}, usage("there is no option %d: the question has 1 to %d", n, len(q.Choices)).Hint("To answer with a number as such, write a sentence")
	}
	r := reply{number: n, choice: q.Choices[n-1], text: strings.TrimSpace(strings.Join(words[1:], " "))}
	if r.text != "" && !r.choice.Advice {
		return reply{}, usage("option %d (%s) takes no words", n, r.choice.Text)
	}
	return r, nil
}

// inWords understands an answer without a number. About work that waits for its
// review it must be a verdict, which is that option of the question.
func inWords(s *loop.State, text string) (reply, error) {
	if s.Held == nil || s.Question == nil {
		return reply{text: text}, nil
	}
	said, ok := loop.ReadAnswer(text)
	for i, c := range s.Question.Choices {
		if ok && c.Do == said.Do {
			return reply{number: i + 1, choice: c, text: said.Text}, nil
		}
	}
	return reply{}, usage("%q is no verdict: answer \"approve\", \"reject: what must change\", or the number of an option", report.Line(text, 100))
}

// complete says what is missing of an option that needs words.
func (r reply) complete() error {
	if r.number == 0 || !r.choice.Needs || r.text != "" {
		return nil
	}
	return usage("option %d (%s) needs words", r.number, r.choice.Text).Hint("pawl answer RUN %d \"what must change\"", r.number)
}

// ends is true for an option after which no agent works.
func (r reply) ends() bool {
	switch r.choice.Do {
	case control.Accept, control.TakeOver, control.GiveUp:
		return r.number != 0
	}
	return false
}

func (r reply) event(p *loop.Policy) loop.Event {
	return loop.Event{Kind: loop.Answered, Text: r.text, Choice: r.number, Replies: r.steps, Policy: p}
}

// row is the reply as it waits in the database.
func (r reply) row() (kind, text string) {
	if r.number == 0 {
		return sqlite.ControlAnswer, r.text
	}
	return sqlite.ControlChoice, strings.TrimSpace(fmt.Sprintf("%d %s", r.number, r.text))
}

func (a *app) answer(ctx context.Context, st *sqlite.Store, r sqlite.Run, step string, words []string) error {
	kept, err := a.keepAnswer(ctx, st, r, step, words)
	if kept {
		a.say("Go on with: pawl resume %s", r.ID)
	}
	return err
}

// keepAnswer stores an answer, or carries out an option that ends the run. kept
// is true when the run is to go on with it. step is the one that is answered,
// "" where only one asks or the run itself does.
func (a *app) keepAnswer(ctx context.Context, st *sqlite.Store, r sqlite.Run, step string, words []string) (kept bool, err error) {
	switch loop.Status(r.Status) {
	case loop.Pending, loop.Blocked, loop.Aborted, loop.FailedRun, loop.Paused:
	default:
		return false, usage("run %s asks nothing: it is %s", r.ID, r.Status)
	}
	var s loop.State
	if err := json.Unmarshal(r.State, &s); err != nil {
		return false, fault.Of(fault.Failed, fmt.Errorf("cannot read the state of run %s: %v", r.ID, err))
	}
	if step != "" || len(s.Question.Asked()) > 1 {
		return a.answerStep(ctx, st, r, s.Question.Asked(), step, words)
	}
	rep, err := readReply(&s, words)
	if err == nil {
		err = rep.complete()
	}
	if err != nil {
		return false, err
	}
	if rep.ends() {
		return false, a.settle(ctx, st, r, rep)
	}
	kind, text := rep.row()
	if err := ask(ctx, st, r, kind, text); err != nil {
		return false, err
	}
	if rep.number != 0 {
		a.say("Option %d it is: %s", rep.number, report.Line(rep.choice.Text, 200))
	}
	if r.Kind == "task" {
		return false, a.reopenTask(ctx, st, r, "a person answered")
	}
	where := "The answer is kept and goes into the next prompt."
	if s.Question != nil && s.Question.Asker != "" {
		where = "The answer is kept."
	}
	if rep.choice.Do == control.ReviewAgain {
		where = "The answer is kept."
	}
	a.say("%s", where)
	return true, nil
}

// settle carries out an option that ends a run. It needs no agent and no
// configuration.
func (a *app) settle(ctx context.Context, st *sqlite.Store, r sqlite.Run, rep reply) error {
	dir := config.StateDir(r.Root, a.env)
	tree, err := a.treeOf(ctx, r)
	if err != nil {
		tree = nil
	}
	logger, closeLog := openLog(r.Root)
	defer closeLog()
	_, err = engine.Resume(ctx, engine.Options{
		Plan: engine.Plan{Kind: r.Kind, Name: r.Name, Root: placeOf(r), Project: r.Root, Copy: workedOnCopy(r)}, StateDir: dir, Store: st, Tree: tree, Log: logger,
		Notify: func(n engine.Notice) {
			if n.Kind == engine.Warning {
				a.say("Warning: %s", report.Line(n.Text, 500))
			}
		},
	}, r.ID, rep.event(nil))
	if err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("cannot answer run %s: %w", r.ID, err))
	}
	if r.Kind == "task" {
		return a.settledTask(ctx, st, r, rep.choice.Do)
	}
	switch rep.choice.Do {
	case control.Accept:
		a.say("Run %s is completed: you accepted its work as it is.", r.ID)
	case control.TakeOver:
		a.say("Run %s is stopped, and the work is yours: the files are as the last iteration left them.", r.ID)
		if workedOnCopy(r) {
			a.say("  Get it from its copy:  pawl apply %s", r.ID)
		}
		a.say("  What happened:         pawl show %s, pawl show %s --diff", r.ID, r.ID)
		a.say("  Give it back to pawl:  pawl resume %s --max-iterations %d", r.ID, r.Iteration+3)
	case control.GiveUp:
		a.say("Run %s is given up.", r.ID)
		return a.undoAll(ctx, st, r, tree)
	}
	return nil
}

// settledTask says what an option that ended the run of a task means for it.
func (a *app) settledTask(ctx context.Context, st *sqlite.Store, r sqlite.Run, do control.Deed) error {
	switch do {
	case control.Accept:
		a.say("You accepted the work of %s as it is.", r.Name)
		return a.reopenTask(ctx, st, r, "a person accepted its work as it is")
	case control.TakeOver:
		a.say("%s is yours, and stays blocked. Its workspace: %s", r.Name, placeOf(r))
		a.say("  Give it back to pawl:  pawl case retry %s", r.Name)
	case control.GiveUp:
		a.say("%s is given up, and stays blocked.", r.Name)
		a.say("  Take its work back:    pawl case rollback %s", r.Name)
		a.say("  Free its workspace:    pawl case clean %s", r.Name)
	}
	return nil
}

// undoAll puts the files back to how they were before a run that was given up.
func (a *app) undoAll(ctx context.Context, st *sqlite.Store, r sqlite.Run, tree *workspace.Checkout) error {
	if tree == nil {
		a.say("There are no snapshots here: the files stay as they are.")
		return nil
	}
	if workedOnCopy(r) {
		return a.discard(ctx, tree, r)
	}
	run, err := st.Run(ctx, r.ID)
	if err == nil {
		err = a.rollback(ctx, st, run, backTo{n: 0})
	}
	if err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("the files were not put back: %w", err)).Hint("%s", "Try again: pawl rollback "+r.ID+" --to 0")
	}
	return nil
}

// askPerson asks on the terminal until it has an answer. ok is false when the
// question is to wait; Ctrl+C ends pawl, and the question waits too.
func (a *app) askPerson(run string, s loop.State) (rep reply, ok bool) {
	in := bufio.NewReader(a.stdin)
	prompt := "Your answer (Enter: later): "
	if q := s.Question; len(q.Choices) > 0 {
		prompt = fmt.Sprintf("Your answer (1-%d, or in words; Enter: later): ", len(q.Choices))
	}
	if asked := s.Question.Asked(); len(asked) > 1 {
		return a.askForSteps(in, run, asked)
	}
	for {
		line, err := a.readLine(in, prompt)
		if line == "" || err != nil {
			a.say("The question waits. Answer it with: pawl answer %s NUMBER|TEXT", run)
			return rep, false
		}
		rep, err := readReply(&s, []string{line})
		if err == nil && rep.number != 0 && rep.choice.Advice {
			more := "Anything that the agent should know (Enter: nothing)? "
			if rep.choice.Needs {
				more = "What must change? "
			}
			rep.text, _ = a.readLine(in, more)
			err = rep.complete()
		}
		if err == nil {
			return rep, true
		}
		a.say("%v", err)
	}
}

func (a *app) readLine(in *bufio.Reader, prompt string) (string, error) {
	_, _ = fmt.Fprint(a.stderr, prompt)
	line, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		_, _ = fmt.Fprintln(a.stderr)
	}
	return strings.TrimSpace(line), err
}

// answered goes on with a run whose question was answered on the terminal, and
// makes the exit status of how it ended then.
func (s *session) answered(ctx context.Context, run string, rep reply) error {
	if !rep.ends() {
		s.showing.Lock()
		s.screen = screen.New(s.a.terminal(), s.plan.Name)
		s.showing.Unlock()
		return s.drive(ctx, func(ctx context.Context, o engine.Options) (*engine.Driver, error) {
			return engine.Resume(ctx, o, run, rep.event(&s.plan.Policy))
		})
	}
	r, err := s.store.Run(ctx, run)
	if err == nil {
		err = s.a.settle(ctx, s.store, r, rep)
	}
	if err != nil {
		return s.a.lookupError(err, run)
	}
	switch rep.choice.Do {
	case control.TakeOver:
		return status(exitPerson)
	case control.GiveUp:
		return status(exitFailed)
	}
	return nil
}
