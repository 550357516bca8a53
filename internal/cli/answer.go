package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) answerCommand() *cobra.Command {
	step := ""
	cmd := leaf("answer RUN TEXT|NUMBER", "Answer a run's question, in words or with the number of an option", aRunAndText("an answer", "answer"),
		func(ctx context.Context, args []string) error {
			return a.withRun(ctx, args[0], func(p *action.Operator, r sqlite.Run) error {
				goesOn, err := p.Answer(ctx, r, step, args[1:])
				if goesOn {
					a.say("Go on with: pawl resume %s", r.ID)
				}
				return err
			})
		})
	cmd.Long = "Answer a run's question. Words go into the next prompt. A number alone chooses an option of the question;\n" +
		"words after it go with it. An option that ends the run is carried out at once.\n" +
		"Where several steps of a workflow ask, --step says whose question it is."
	cmd.Example = "  pawl answer build \"use port 8080\" && pawl resume build\n  pawl answer build 2\n" +
		"  pawl answer build 1 \"look at the fixture first\"\n  pawl answer release --step approve yes"
	cmd.Flags().StringVar(&step, "step", "", "the step of a workflow that is answered, where several ask")
	return cmd
}

// askPerson asks on the terminal until it has an answer. ok is false when the
// question is to wait; Ctrl+C ends pawl, and the question waits too.
func (a *app) askPerson(run string, s loop.State) (rep action.Reply, ok bool) {
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
		rep, err := action.ReadReply(&s, []string{line})
		if err == nil && rep.Number != 0 && rep.Choice.Advice {
			more := "Anything that the agent should know (Enter: nothing)? "
			if rep.Choice.Needs {
				more = "What must change? "
			}
			rep.Text, _ = a.readLine(in, more)
			err = rep.Complete()
		}
		if err == nil {
			return rep, true
		}
		a.say("%v", err)
	}
}

// askForSteps asks on the terminal for each step; ok is false when all wait.
func (a *app) askForSteps(in *bufio.Reader, run string, asked []loop.Asks) (rep action.Reply, ok bool) {
	for _, q := range asked {
		line, err := a.readLine(in, "Your answer to "+report.Line(q.Step, 200)+" (Enter: later): ")
		if line != "" {
			rep.Steps = append(rep.Steps, loop.Asks{Step: q.Step, Text: line})
		}
		if err != nil {
			break
		}
	}
	if len(rep.Steps) == 0 {
		a.say("The questions wait. Answer one with: pawl answer %s --step STEP TEXT", run)
	}
	return rep, len(rep.Steps) > 0
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
func (s *session) answered(ctx context.Context, run string, rep action.Reply) error {
	if !rep.Ends() {
		s.showing.Lock()
		s.screen = console.New(s.a.terminal(), s.plan.Name)
		s.showing.Unlock()
		return s.driveOn(ctx, run, rep.Event(&s.plan.Policy))
	}
	r, err := s.store.Run(ctx, run)
	if err == nil {
		err = s.a.operator(s.store, r.Root).Settle(ctx, r, rep)
	}
	if err != nil {
		return s.a.lookupError(err, run)
	}
	switch rep.Choice.Do {
	case control.TakeOver:
		return status(exitPerson)
	case control.GiveUp:
		return status(exitFailed)
	}
	return nil
}
