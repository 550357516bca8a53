package action

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Reply is what a person answered.
type Reply struct {
	Number int            // of the option, 1-based; 0 for words alone
	Choice control.Choice // of Number
	Text   string
	Steps  []loop.Asks // answers to steps that ask; then the others are none
}

// ReadReply understands an answer to the question of s. A number counts only
// alone, or with words after it as arguments of their own, and only where the
// question has options: an agent's own question may be answered with any number.
func ReadReply(s *loop.State, words []string) (Reply, error) {
	text := strings.TrimSpace(strings.Join(words, " "))
	q := s.Question
	n, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(words[0]), ".)"))
	if err != nil || q == nil || len(q.Choices) == 0 {
		return readWordedAnswer(s, text)
	}
	if n < 1 || n > len(q.Choices) {
		return Reply{}, fault.Refuse("there is no option %d: the question has 1 to %d", n, len(q.Choices)).
			Hint("To answer with a number as such, write a sentence")
	}
	r := Reply{Number: n, Choice: q.Choices[n-1], Text: strings.TrimSpace(strings.Join(words[1:], " "))}
	if r.Text != "" && !r.Choice.Advice {
		return Reply{}, fault.Refuse("option %d (%s) takes no words", n, r.Choice.Text)
	}
	return r, nil
}

// readWordedAnswer understands an answer without a number. About work that waits for its
// review it must be a verdict, which is that option of the question.
func readWordedAnswer(s *loop.State, text string) (Reply, error) {
	if s.PendingReview == nil || s.Question == nil {
		return Reply{Text: text}, nil
	}
	said, ok := loop.ReadAnswer(text)
	for i, c := range s.Question.Choices {
		if ok && c.Do == said.Do {
			return Reply{Number: i + 1, Choice: c, Text: said.Text}, nil
		}
	}
	return Reply{}, fault.Refuse("%q is not a verdict: answer \"approve\", \"reject: what must change\", "+
		"or the number of an option", report.Line(text, 100))
}

// CheckWords returns an error if the chosen option needs a text and there is none.
func (r Reply) CheckWords() error {
	if r.Number == 0 || !r.Choice.Needs || r.Text != "" {
		return nil
	}
	return fault.Refuse("option %d (%s) needs words", r.Number, r.Choice.Text).
		Hint("pawl answer RUN %d \"what must change\"", r.Number)
}

// EndsRun reports whether the chosen option ends the run; words of a person's own never do.
func (r Reply) EndsRun() bool { return r.Number != 0 && r.Choice.Do.EndsRun() }

// Event is the reply as the kernel takes it.
func (r Reply) Event(p *loop.Policy) loop.Event {
	return loop.Event{Kind: loop.Answered, Text: r.Text, Choice: r.Number, Replies: r.Steps, Policy: p}
}

// controlRow returns the reply as it waits in the database.
func (r Reply) controlRow() (kind, text string) {
	if r.Number == 0 {
		return store.ControlAnswer, r.Text
	}
	return store.ControlChoice, strings.TrimSpace(fmt.Sprintf("%d %s", r.Number, r.Text))
}

// Words are an answer as it is typed: the number of an option, 0 for none, and a text.
func Words(choice int, text string) []string {
	if choice > 0 {
		return []string{strconv.Itoa(choice), text}
	}
	return []string{text}
}

// Answer stores an answer, or carries out an option that ends the run. kept
// is true when the run is to go on with it. step is the one that is answered,
// "" where only one asks or the run itself does.
func (p *Operator) Answer(ctx context.Context, r store.Run, step string, words []string) (kept bool, err error) {
	if strings.TrimSpace(strings.Join(words, "")) == "" {
		return false, fault.Refuse("an answer to run %s needs words, or the number of an option", r.ID)
	}
	switch loop.Status(r.Status) {
	case loop.Pending, loop.Blocked, loop.Aborted, loop.FailedRun, loop.Paused:
	default:
		if r.Kind == string(loop.Task) {
			return false, p.suggestForTask(ctx, fault.Refuse("run %s asks nothing: it is %s", r.ID, r.Status), r)
		}
		return false, refuseEnded(r, "run %s asks nothing: it is %s", r.ID, r.Status)
	}
	s, err := storedrun.StateOf(r)
	if err == nil {
		err = p.CheckTask(ctx, r, true)
	}
	if err != nil {
		return false, err
	}
	if step != "" || len(s.Question.Asked()) > 1 {
		return p.answerStep(ctx, r, s.Question.Asked(), step, words)
	}
	rep, err := ReadReply(&s, words)
	if err == nil {
		err = rep.CheckWords()
	}
	if err != nil {
		return false, err
	}
	if rep.EndsRun() {
		return false, p.EndByOption(ctx, r, rep)
	}
	kind, text := rep.controlRow()
	if err := p.storeControl(ctx, r, kind, text); err != nil {
		return false, err
	}
	if rep.Number != 0 {
		p.Say("You chose option %d: %s", rep.Number, report.Line(rep.Choice.Text, 200))
	}
	if r.Kind == "task" {
		return false, p.Reopen(ctx, r, "a person answered")
	}
	p.reportKeptAnswer(&s, rep)
	return true, nil
}

// reportKeptAnswer reports how an answer is used that lets the run continue.
func (p *Operator) reportKeptAnswer(s *loop.State, rep Reply) {
	ofStep := s.Question != nil && s.Question.Asker != ""
	switch {
	case ofStep, rep.Choice.Do == control.ReviewAgain:
		p.Say("The answer is kept.")
	case rep.Text == "" && rep.Choice.Answer == "":
		p.Say("The agent tries again, with what is known of the failure and no words of yours. Words can follow the "+
			"number: %d \"what to do differently\"", rep.Number)
	default:
		p.Say("The answer is kept and goes into the next prompt.")
	}
}

// EndByOption carries out an option that ends the run. It needs no agent and no
// configuration.
func (p *Operator) EndByOption(ctx context.Context, r store.Run, rep Reply) error {
	dir := statedir.Of(r.Root, p.Env)
	_, err := engine.Resume(ctx, engine.Options{
		Settles: true, Plan: runplan.Plan{Kind: r.Kind, Name: r.Name, Root: PlaceOf(r), Project: r.Root}, StateDir: dir,
		Store: p.Store, Log: p.Log(r.Root),
		Notify: func(n engine.Notice) {
			if n.Kind == engine.Warning {
				p.Say("Warning: %s", report.Line(n.Text, 500))
			}
		},
	}, r.ID, rep.Event(nil))
	if err != nil {
		return fmt.Errorf("cannot answer run %s: %w", r.ID, err)
	}
	if r.Kind == "task" {
		return p.printTaskEnded(ctx, r, rep.Choice)
	}
	switch rep.Choice.Do {
	case control.Accept:
		p.Say("Run %s is completed: you accepted its work as it is.", r.ID)
		return p.applyAfter(ctx, r)
	case control.TakeOver:
		p.Say("Run %s is stopped, and you have taken over its work, as the last iteration left it.", r.ID)
		err := p.applyAfter(ctx, r)
		p.Say("  What happened:         pawl show %s, pawl show %s --diff", r.ID, r.ID)
		p.Say("  Give it back to pawl:  pawl resume %s", r.ID)
		return err
	case control.GiveUp:
		p.Say("Run %s is discarded.", r.ID)
		return p.undoDelivery(ctx, r, rep.Choice.To)
	}
	return nil
}

// applyAfter brings what a run came to into the person's files after they chose so.
func (p *Operator) applyAfter(ctx context.Context, r store.Run) error {
	if SetupOf(r).Private == "" {
		return nil // it worked in them
	}
	out, err := p.Apply(ctx, r, ApplyOptions{})
	if err == nil {
		p.PrintApplied(out, false)
	}
	return err
}

// printTaskEnded prints the effect on its task of an option that ended the run.
func (p *Operator) printTaskEnded(ctx context.Context, r store.Run, chosen control.Choice) error {
	switch chosen.Do {
	case control.Accept:
		p.Say("You accepted the work of %s as it is.", r.Name)
		return p.Reopen(ctx, r, "a person accepted its work as it is")
	case control.TakeOver:
		where := PlaceOf(r)
		if host := p.RemoteHost(ctx, r); host != "" {
			where += " on " + host + "; see its work here: pawl show " + r.Name + " --diff"
		}
		p.Say("You have taken over %s, which stays blocked. Its workspace: %s", r.Name, where)
		p.Say("  Land what you finished there:  pawl queue land %s", r.Name)
		p.Say("  Give it back to pawl:          pawl case retry %s", r.Name)
	case control.GiveUp:
		return p.giveUpTask(ctx, r, chosen.To)
	}
	return nil
}

// giveUpTask takes the work of a blocked task back and puts the task off.
func (p *Operator) giveUpTask(ctx context.Context, r store.Run, to int) error {
	if err := p.takeAllBack(ctx, r, to); err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("%s stays blocked, since its work was not rolled back: %w",
			r.Name, err)).
			Hint("Try again: pawl case rollback %s --to %d", r.Name, to)
	}
	if _, err := p.moveTask(ctx, r.Name, board.Defer, "given up by a person"); err != nil {
		return err
	}
	p.Say("%s is deferred.", r.Name)
	p.Say("  Resume work on it:   pawl case undefer %s", r.Name)
	p.Say("  Free its workspace:  pawl case clean %s", r.Name)
	return nil
}

func (p *Operator) takeAllBack(ctx context.Context, r store.Run, to int) error {
	pl, err := p.Planner(r.Root, planner.Flags{})
	if err != nil {
		return err
	}
	clones, err := Pool(ctx, pl.Config, p.Env, p.Store)
	if err != nil {
		return err
	}
	_, err = p.revertWork(ctx, clones, r.Name, BackTo{N: to})
	return err
}

// undoDelivery rolls the user's files back to the state after iteration to of a run that was
// given up; 0 is the state before the run. Work that was not delivered stays out of the files.
func (p *Operator) undoDelivery(ctx context.Context, r store.Run, to int) error {
	run, err := p.Store.Run(ctx, r.ID)
	if err == nil && len(SetupOf(run).Deliveries) == 0 && SetupOf(run).Private != "" {
		p.Say("Nothing of it was delivered: your files are unchanged.")
		return storedrun.ClearUndelivered(ctx, p.Store, r.ID, "the undelivered work was discarded")
	}
	if err == nil {
		err = p.Rollback(ctx, run, BackTo{N: to})
	}
	if err != nil {
		return fault.Of(fault.Failed, fmt.Errorf("the files were not restored: %w", err)).
			Hint("%s", fmt.Sprintf("Try again: pawl rollback %s --to %d", r.ID, to))
	}
	return storedrun.ClearUndelivered(ctx, p.Store, r.ID, "the undelivered work was discarded")
}
