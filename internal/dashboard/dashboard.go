package dashboard

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/loop"
)

// ActionKind is something that a person can ask for.
type ActionKind string

// The kinds.
const (
	Pause   ActionKind = "pause"   // the autopilot
	Resume  ActionKind = "resume"  // the autopilot
	Mode    ActionKind = "mode"    // Text: auto or semi-auto
	StopAll ActionKind = "stopall" // the autopilot and its runs
	StopRun ActionKind = "stop"    // Run
	Answer  ActionKind = "answer"  // Need, Choice, Text
	Retry   ActionKind = "retry"   // Need
)

// Action is what a person asks for.
type Action struct {
	Kind   ActionKind
	Run    string
	Need   autopilot.Need
	Choice int    // of the question's choices, from 1; 0 is words alone
	Text   string // the person's words
}

// Options is what a dashboard shows and can do.
type Options struct {
	Look func(context.Context) (autopilot.View, error)
	// Log is the end of what a run's agent did, a line each, the oldest first.
	Log func(ctx context.Context, run string) ([]string, error)
	// Question is what a person is asked.
	Question func(context.Context, autopilot.Need) (loop.Question, error)
	// Do carries out an action, and returns its result in words.
	Do func(context.Context, Action) (string, error)
	// Own: the dashboard belongs to the autopilot's own process, which ends
	// when a person leaves. Else leaving changes nothing.
	Own bool
	// Interrupt is Ctrl+C, where Own is set: a terminal that is read key by key
	// sends no signal.
	Interrupt func()

	In  io.Reader
	Out io.Writer
	Env []string // of the terminal: TERM, NO_COLOR and the like
}

// Every is how often the dashboard looks by itself.
const Every = 500 * time.Millisecond

// Watch shows the dashboard until the person leaves.
func Watch(ctx context.Context, o Options) error {
	if _, err := program(ctx, o).Run(); ctx.Err() == nil {
		return err
	}
	return nil
}

// Own shows the dashboard while work runs, which is given a function that
// makes the dashboard look at once. It returns when work has returned; lost is
// called when the dashboard cannot go on; work continues without it.
func Own(ctx context.Context, o Options, lost func(error), work func(wake func()) error) error {
	o.Own = true
	p := program(ctx, o)
	done := make(chan error, 1)
	go func() {
		err := work(func() { p.Send(wakeMsg{}) })
		done <- err
		p.Send(overMsg{})
	}()
	if _, err := p.Run(); err != nil && ctx.Err() == nil {
		lost(err)
	}
	return <-done
}

func program(ctx context.Context, o Options) *tea.Program {
	return tea.NewProgram(newModel(ctx, o), tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithEnvironment(o.Env), tea.WithoutSignalHandler(), tea.WithFPS(20))
}
