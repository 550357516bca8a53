package autopilot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

// agents is what the plans of tasks said of the agents that work on them.
type agents struct {
	mu       sync.Mutex
	accounts map[string]string // by the agent's name
	usual    string            // who works on a task that does not say
}

// recordPlanAgent records a plan's agent. Where another agent takes over when one is limited, no
// task waits for one.
func (a *agents) recordPlanAgent(t Task, p *runplan.Plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := p.Policy.Agent
	if a.accounts == nil {
		a.accounts = map[string]string{}
	}
	if a.accounts[name] = p.Agents[name].Account; len(p.Policy.Fallback) > 0 {
		delete(a.accounts, name)
	}
	if t.Agent == "" && t.Case.Agent() == "" {
		a.usual = name
	}
}

func (a *agents) hasPlanned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.usual != "" || len(a.accounts) > 0
}

// planTask plans a task. An agent's program that was there before may be being updated: it
// is waited for.
func (p *attempts) planTask(ctx, ready context.Context, task Task) (runplan.Plan, *workspace.Checkout, error) {
	plan, tree, err := p.o.Plan(ctx, task)
	if errors.Is(err, engine.ErrNoProgram) && p.agents.hasPlanned() {
		p.warnAbout(task.Case.ID, fmt.Sprintf("%v; as this may be an update, pawl "+
			"waits up to %s for it", err, loop.Duration(engine.AwayFor)))
	}
	for by := time.Now().Add(engine.AwayFor); errors.Is(err, engine.ErrNoProgram) && p.agents.hasPlanned(); {
		if time.Now().After(by) || !process.Sleep(ready, time.Second) {
			break
		}
		plan, tree, err = p.o.Plan(ctx, task)
	}
	if err == nil {
		p.agents.recordPlanAgent(task, &plan)
	}
	return plan, tree, err
}

// limitedNow lists the agents that may not be called, and when the first one may.
func (a *agents) limitedNow(known *ratelimit.Store, now time.Time) (names []string, usual bool, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, account := range a.accounts {
		l, ok := known.Look(account, now)
		if !ok {
			continue
		}
		end, _ := l.BlockedUntil("", now)
		if end.IsZero() {
			continue
		}
		names, usual = append(names, name), usual || name == a.usual
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return names, usual, until
}

// chooseServed chooses a task whose agent may be called now. Where all that are ready wait
// for a provider the event says until when.
func (p *attempts) chooseServed(ctx context.Context, exclude []string, e *schedule.Event) (board.Choice, bool, error) {
	names, usual, until := p.agents.limitedNow(p.o.Accounts, time.Now())
	if len(names) == 0 {
		return p.o.Store.NextCaseOf(ctx, p.o.Filter, exclude)
	}
	f := p.o.Filter
	f.OwnAgent = usual
	for _, name := range names {
		f.NotTags = append(f.NotTags[:len(f.NotTags):len(f.NotTags)], board.AgentTag+name)
	}
	next, ok, err := p.o.Store.NextCaseOf(ctx, f, exclude)
	if ok || err != nil {
		return next, ok, err
	}
	_, waits, err := p.o.Store.NextCaseOf(ctx, p.o.Filter, exclude)
	if waits {
		e.Again = until
		e.Why = fmt.Sprintf("what is ready waits for the provider of %s", strings.Join(names, ", "))
	}
	return next, false, err
}
