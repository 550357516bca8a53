package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/signal"
)

// layOut makes the folder from which pawl's tools tell an agent of its task. What an
// earlier attempt said is gone.
func (w *worker) layOut(c loop.Command, p place) (string, error) {
	dir, task := p.tools(), w.plan.Prompt.Case
	if err := files.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("cannot empty the folder of the agent's tools: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("cannot make the folder of the agent's tools: %v", err)
	}
	b := agent.Brief{ID: task.ID, Title: task.Title, Description: task.Description, Acceptance: task.Acceptance,
		Iteration: c.Iteration}
	b.ID = cmp.Or(b.ID, w.plan.Name)
	for _, g := range w.plan.Gates {
		b.Gates = append(b.Gates, g.Name+": "+g.Command)
	}
	return dir, writeFile(filepath.Join(dir, agent.BriefFile), encode(b))
}

// followUps is how many tasks an agent may propose in an iteration.
const followUps = 5

// readTools takes in what an agent said by pawl's tools. It is a claim like what a
// message says, which counts before it.
func (w *worker) readTools(ctx context.Context, r *loop.Record, p place) {
	if !w.plan.Agents[r.Agent].Tools || !r.Valid() {
		return
	}
	text, err := files.ReadBelow(p.dir, filepath.Join(filepath.Base(p.tools()), agent.SaidFile), agent.SaidLimit)
	if err != nil { // it said nothing, or made of the file what it is not
		return
	}
	kinds := map[string]signal.Kind{
		agent.SaysAsk: signal.Pending, agent.SaysBlocked: signal.Blocked, agent.SaysComplete: signal.Complete,
	}
	var claim signal.Signal
	var proposed []agent.Said
	for line := range strings.Lines(string(text)) {
		var s agent.Said
		if json.Unmarshal([]byte(line), &s) != nil {
			continue
		}
		switch kind := kinds[s.Kind]; {
		case kind != signal.None:
			claim = signal.Signal{Kind: kind, Text: strings.TrimSpace(board.Visible(s.Text))}
		case s.Kind == agent.SaysProgress && s.Percent >= 0 && s.Percent <= 100 && r.Progress < 0:
			r.Progress = s.Percent
		case s.Kind == agent.SaysFollowUp && strings.TrimSpace(s.Title) != "" && len(proposed) < followUps:
			proposed = append(proposed, s)
		}
	}
	if r.Signal.Kind == signal.None {
		r.Signal = claim
	}
	w.propose(ctx, r, proposed)
}

// propose puts tasks on the board that a person has to allow. One that is there
// already, since before a crash, stays.
func (w *worker) propose(ctx context.Context, r *loop.Record, proposed []agent.Said) {
	if w.o.Store == nil || len(proposed) == 0 {
		return
	}
	own, _ := w.o.Store.Case(ctx, board.TaskOf(w.plan.Name)) // of another kind of run there is none
	for i, s := range proposed {
		c := board.FollowUp(own.Ref, fmt.Sprintf("%s.%d.%d.%d", w.id, r.Number, r.Attempt, i+1), s.Title, s.Text)
		_, err := w.o.Store.AddCases(ctx, []board.Draft{{Case: c}}, board.Pawl, time.Now())
		var wrong *board.ProblemsError
		if err != nil && (!errors.As(err, &wrong) || !wrong.AllKnown()) {
			w.warn(fmt.Sprintf("a task that the agent proposes is not added: %v", err))
		}
	}
}
