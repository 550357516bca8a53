// Package action is what a person does to the work: to runs (pause, stop, answer,
// message, raise limits, roll back, apply), to tasks of the board (start, extend,
// move, review, roll back) and to the autopilot. The command line, the dashboard
// and the browser do it here, so that a key or a button does what the command
// does and says the same.
//
// What cannot be done is a [fault.Error] that says what to do instead. It starts
// no run: each run is driven by a process of its own.
package action

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Operator carries out the actions of a user or a program on one repository. [New] makes one.
type Operator struct {
	*Options
	Runs
	Lists
}

// Runs acts on runs and on the work that they came to, and finds the machine that has it.
type Runs struct{ *Options }

// Lists keeps tasks as the lists of tasks in files say, and the proposals of new ones.
type Lists struct{ *Options }

// New makes an operator.
func New(o Options) *Operator { return &Operator{Options: &o, Runs: Runs{&o}, Lists: Lists{&o}} }

// WithoutWords returns an operator that prints nothing about what it does.
func (p *Operator) WithoutWords() *Operator {
	o := *p.Options
	o.Say = func(string, ...any) {}
	return New(o)
}

// Options are the repository of an [Operator], and where its words go.
type Options struct {
	Store *store.Store
	Root  string   // the repository's
	Env   []string // K=V
	// Planner loads the configuration of a root, with flags in force.
	Planner func(root string, f planner.Flags) (*planner.Planner, error)
	Log     func(root string) *slog.Logger // of a root
	// Say gets what an action did, a line at a time. Result gets what was asked for,
	// ends of line included.
	Say, Result func(format string, args ...any)
}

// Way is how a person reached pawl, as the end of a sentence.
type Way string

// The ways.
const (
	Terminal Way = "at the terminal"
	Browser  Way = "in the browser"
	API      Way = "by a program over the API"
	MCP      Way = "by a program over MCP"
)

type wayKey struct{}

// Over is a context of what a person does in a way. Without one it is the terminal.
func Over(ctx context.Context, w Way) context.Context { return context.WithValue(ctx, wayKey{}, w) }

// WayOf is the way that a context was made for.
func WayOf(ctx context.Context) Way {
	w, _ := ctx.Value(wayKey{}).(Way)
	return cmp.Or(w, Terminal)
}

// Done is what an action made of a task.
type Done struct {
	Case board.Case
	Text string // a line for the person
}

// CollectLines runs an action and returns the lines that it printed.
func (p *Operator) CollectLines(do func(*Operator) error) (said []string, err error) {
	hearing := New(*p.Options)
	hearing.Say = func(format string, args ...any) {
		for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				said = append(said, line)
			}
		}
	}
	hearing.Result = hearing.Say
	if err := Explain(do(hearing)); err != nil {
		return nil, err
	}
	return said, nil
}
