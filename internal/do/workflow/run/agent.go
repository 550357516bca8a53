package run

import (
	"context"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// agentOfStep is the agent that does a work of a step.
func (p *pass) agentOfStep(n *node, w workflow.Work) string {
	return agentFor(w.Agent, p.h.Plan().Policy.Agent, p.c.Agent, p.latestOf(n.id))
}

// agentFor is the agent that a work names, or the run's own. Where the run has
// moved on from its own to another one, that does the work of the run's own, and
// of one whose provider did not do it when it was tried last.
func agentFor(named, own, current string, last *execution) string {
	if named == "" || named == own {
		return current
	}
	if current == own || last == nil || last.record.Agent != named {
		return named
	}
	if f := last.record.Failure; f == nil || !f.Provider {
		return named
	}
	return current
}

// runAgentStep gives the step's prompt to an agent.
func (d *activeAttempt) runAgentStep(ctx context.Context) error {
	p, name := d.s.p, d.e.record.Agent
	wall, iteration := d.s.timeLimitOf(p.timeoutOf(d.n.in.Step))
	limits, ended := p.limits.limitsLeft()
	if ended != loop.NotEnded {
		return d.nothingLeft(ended)
	}
	limits.Wall, limits.Idle = wall, p.c.Limits.Idle
	if f := p.h.Throttled(ctx, name); f != nil && !d.resumed {
		return d.cannotStart(*f)
	}
	dir := d.n.given.dir
	job, err := p.h.AgentJob(ctx, engine.AgentCall{
		ID: jobID(d.e, ""), Step: d.n.id, Files: d.s.filesPrefix(d.e), Agent: name, Prompt: d.promptText(), Dir: dir,
		Env:    d.n.given.envWith("PAWL_STEP=" + d.n.id),
		Limits: limits,
	})
	if err != nil {
		return d.cannotStart(uncallableFailure(err))
	}
	res, err := d.runOwnJob(ctx, job)
	if err != nil {
		return err
	}
	end := p.h.AgentEnded(ctx, name, job, res)
	d.e.record.Usage = usageOfRecord(end.Record)
	p.noteLimitReached(p.limits.endAgent(d.n.id, d.e.record.Usage))
	p.setStatus(d.e, end.Record.Exit, end.Record.Failure, iteration)
	if x := end.Record.Exit.Ended; x == loop.EndedCost || x == loop.EndedCalls || x == loop.EndedTokens {
		p.noteLimitReached(x)
	}
	if d.e.Status != store.StepSuccess {
		return nil
	}
	d.e.Output, d.e.record.Cut = boundOutput(end.Message)
	if q := end.Record.Signal; q.Kind == signal.Pending || q.Kind == signal.Blocked {
		return d.leaveToPerson(q)
	}
	return d.completeAttempt(ctx, nil)
}

// promptText makes the agent's prompt: the step's text, and what is known of the
// attempts before.
func (d *activeAttempt) promptText() string {
	var b strings.Builder
	b.WriteString(d.content)
	f := d.s.p.c.Feedback
	var notes []string
	if last := d.s.p.latestOf(d.n.id); last != nil {
		red := last.Status == store.StepFailure || last.Status == store.StepRefused
		if why := last.record.Failure; red && why != nil {
			notes = append(notes, outcomeBefore(last)+joinLines(why.Summary))
			for i, it := range why.Items {
				if i == maxItems {
					break
				}
				notes = append(notes, "- "+joinLines(report.ItemLine(it)))
			}
		}
		if a, ok := f.AnswerTo(d.n.id); ok {
			notes = append(notes, "You asked: "+joinLines(last.record.Question), "The answer: "+a.Text)
		}
	}
	if f != nil && f.Instruction != "" && len(notes) > 0 {
		notes = append(notes, f.Instruction)
	}
	if len(notes) > 0 {
		b.WriteString("\n\n## FEEDBACK\n\n" + strings.Join(notes, "\n") + "\n")
	}
	return b.String()
}

// outcomeBefore begins a sentence about the outcome of the agent's work before.
func outcomeBefore(e *execution) string {
	switch f := e.record.Failure; {
	case e.Status != store.StepRefused:
		return "This was tried before, and failed: "
	case f.Step == "review":
		return "This was done before, and was refused: "
	case f.Step != "":
		return "This was done before, and then gate " + joinLines(f.Step) + " was red: "
	}
	return "This was done before, and was refused: "
}

// maxItems bounds what a prompt lists of a failure.
const maxItems = 20

func joinLines(s string) string { return strings.Join(strings.Fields(s), " ") }

// boundOutput bounds what is kept of an agent's words.
func boundOutput(text string) (kept string, cut bool) {
	if len(text) <= maxOutput {
		return strings.TrimRight(text, "\r\n"), false
	}
	return strings.ToValidUTF8(text[:maxOutput], ""), true
}

// leaveToPerson leaves the step to a person, where its agent cannot go on alone.
func (d *activeAttempt) leaveToPerson(q signal.Signal) error {
	text := q.Text
	if q.Kind == signal.Blocked {
		text = "it is blocked: " + q.Text
	}
	d.e.Status, d.e.record.Question = store.StepAsking, q.Text
	d.s.p.addQuestion(d.n.id, text)
	return nil
}

// failAttempt ends an attempt with a failure that pawl itself has found.
func (d *activeAttempt) failAttempt(f failure.Analysis) {
	d.e.Status, d.e.record.Failure = store.StepFailure, &f
}

// cannotStart stores an attempt that fails before anything of it is started.
func (d *activeAttempt) cannotStart(f failure.Analysis) error {
	d.failAttempt(f)
	return d.s.p.storeBegin(d.s, d.n, d.e)
}

// uncallableFailure is the failure of an agent or a procedure that cannot even be called.
func uncallableFailure(err error) failure.Analysis {
	return failure.Analysis{
		Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical,
		Fingerprint: ending.CannotStart, Summary: err.Error(),
	}
}

// nothingLeft fails a step for whose agent the limits leave nothing.
func (d *activeAttempt) nothingLeft(ended loop.Ended) error {
	what := map[loop.Ended]string{
		loop.EndedCost: "cost", loop.EndedCalls: "model calls", loop.EndedTokens: "tokens",
	}[ended]
	d.s.p.noteLimitReached(ended)
	return d.cannotStart(failure.Analysis{
		Class: failure.LimitExceeded, Kind: failure.Work, Severity: failure.Medium,
		Fingerprint: "limit-" + string(ended),
		Summary:     "the iteration's limit on " + what + " leaves nothing for the step's agent",
	})
}

// listenTo passes the events of a step's agent to the watcher and to the budget,
// which ends the step when all agents together have used it up.
func (d *activeAttempt) listenTo(ctx context.Context, job supervisor.Job) (context.Context, func(agent.Event), func()) {
	if job.Parser == "" {
		return ctx, nil, func() {}
	}
	p := d.s.p
	c := agent.NewCollector()
	c.SetPrices(job.Prices)
	c.SetModel(job.Model)
	p.limits.beginAgent(d.n.id, c)
	ctx, stop := context.WithCancel(ctx)
	return ctx, func(e agent.Event) {
		p.h.TellAgent(d.n.id, e)
		if ended := p.limits.countEvent(d.n.id, e); ended != loop.NotEnded {
			p.noteLimitReached(ended)
			stop()
		}
	}, stop
}

// maxAsks bounds the questions of one pass.
const maxAsks = 100

// askPerson takes a person's answer for the step's output, or leaves the step until
// there is one.
func (s *scope) askPerson(ctx context.Context, n *node) {
	p := s.p
	e, begun := s.unfinishedAttempt(n)
	if last := p.latestOf(n.id); last != nil && last.Status == store.StepAsking {
		e, begun = last, true
	}
	if !begun {
		e = s.newExecution(n, attempt{try: 1})
		e.record.Kind = "ask"
	}
	e.Hash, e.Input, e.record.Question = n.in.Hash, n.in.InputHash(n.given.inputKey()), n.given.content
	answer, answered := p.c.Feedback.AnswerTo(n.id)
	if answered = answered && answer.Question == n.given.content; !answered {
		n.phase = deferred
		p.addQuestion(n.id, n.given.content)
		if begun && e.Status == store.StepAsking {
			return
		}
		e.Status = store.StepAsking
		if err := p.storeBegin(s, n, e); err != nil {
			p.recordError(err)
		}
		p.h.Tell(engine.StepEnded, s.noticeOf(n, journal.Step{Status: store.StepAsking, Why: n.given.content}))
		return
	}
	d := &activeAttempt{s: s, n: n, e: e}
	e.Status, e.Output, e.Elapsed = store.StepSuccess, answer.Text, time.Since(e.StartedAt)
	if !begun {
		if err := p.storeBegin(s, n, e); err != nil {
			p.recordError(err)
			n.phase = deferred
			return
		}
	}
	if err := d.completeAttempt(ctx, nil); err != nil {
		p.recordError(err)
	}
	if err := p.storeEnd(n, s, e); err != nil {
		p.recordError(err)
		n.phase = deferred
		return
	}
	n.result, n.phase = e.resultOf(), settled
	if e.Status != store.StepSuccess {
		n.result = e.resultOf()
		s.failStep(n)
	}
}

// addQuestion notes what a person is asked, in the order in which it comes up.
func (p *pass) addQuestion(step, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asks) < maxAsks {
		p.asks = append(p.asks, loop.Asks{Step: step, Text: text})
	}
}
