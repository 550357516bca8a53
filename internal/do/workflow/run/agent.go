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
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// agentOf is the agent that does a work of a step.
func (p *pass) agentOf(n *node, w workflow.Work) string {
	return agentFor(w.Agent, p.h.Plan().Policy.Agent, p.c.Agent, p.latest(n.id))
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

// agent gives the step's prompt to an agent.
func (d *activeAttempt) agent(ctx context.Context) error {
	p, name := d.s.p, d.e.record.Agent
	wall, iteration := d.s.wall(p.timeout(d.n.in.Step))
	limits, ended := p.limits.left()
	if ended != loop.NotEnded {
		return d.nothingLeft(ended)
	}
	limits.Wall, limits.Idle = wall, p.c.Limits.Idle
	if f := p.h.Throttled(ctx, name); f != nil && !d.resumed {
		return d.cannotStart(*f)
	}
	dir := d.n.given.dir
	job, err := p.h.AgentJob(ctx, engine.AgentCall{
		ID: jobID(d.e, ""), Step: d.n.id, Files: d.s.files(d.e), Agent: name, Prompt: d.prompt(), Dir: dir,
		Env:    d.n.given.environ("PAWL_STEP=" + d.n.id),
		Limits: limits,
	})
	if err != nil {
		return d.cannotStart(uncallable(err))
	}
	res, err := d.run(ctx, job)
	if err != nil {
		return err
	}
	end := p.h.AgentEnded(ctx, name, job, res)
	d.e.record.Usage = usageOf(end.Record)
	p.stopFor(p.limits.end(d.n.id, d.e.record.Usage))
	p.judged(d.e, end.Record.Exit, end.Record.Failure, iteration)
	if x := end.Record.Exit.Ended; x == loop.EndedCost || x == loop.EndedCalls || x == loop.EndedTokens {
		p.stopFor(x)
	}
	if d.e.Status != store.StepSuccess {
		return nil
	}
	d.e.Output, d.e.record.Cut = cutText(end.Message)
	if q := end.Record.Signal; q.Kind == signal.Pending || q.Kind == signal.Blocked {
		return d.asks(q)
	}
	return d.succeed(ctx, nil)
}

// prompt is what the agent is told: the step's text, and what is known of the
// attempts before.
func (d *activeAttempt) prompt() string {
	var b strings.Builder
	b.WriteString(d.content)
	f := d.s.p.c.Feedback
	var notes []string
	if last := d.s.p.latest(d.n.id); last != nil {
		red := last.Status == store.StepFailure || last.Status == store.StepRefused
		if why := last.record.Failure; red && why != nil {
			notes = append(notes, outcomeBefore(last)+oneLine(why.Summary))
			for i, it := range why.Items {
				if i == maxItems {
					break
				}
				notes = append(notes, "- "+oneLine(report.ItemLine(it)))
			}
		}
		if a, ok := f.AnswerTo(d.n.id); ok {
			notes = append(notes, "You asked: "+oneLine(last.record.Question), "The answer: "+a.Text)
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

// outcomeBefore begins to tell an agent what came of its work before.
func outcomeBefore(e *execution) string {
	switch f := e.record.Failure; {
	case e.Status != store.StepRefused:
		return "This was tried before, and failed: "
	case f.Step == "review":
		return "This was done before, and is refused: "
	case f.Step != "":
		return "This was done before, and then gate " + oneLine(f.Step) + " was red: "
	}
	return "This was done before, and is refused: "
}

// maxItems bounds what a prompt lists of a failure.
const maxItems = 20

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cutText bounds what is kept of an agent's words.
func cutText(text string) (kept string, cut bool) {
	if len(text) <= maxOutput {
		return strings.TrimRight(text, "\r\n"), false
	}
	return strings.ToValidUTF8(text[:maxOutput], ""), true
}

// asks leaves the step to a person, where its agent cannot go on alone.
func (d *activeAttempt) asks(q signal.Signal) error {
	text := q.Text
	if q.Kind == signal.Blocked {
		text = "it is blocked: " + q.Text
	}
	d.e.Status, d.e.record.Question = store.StepAsking, q.Text
	d.s.p.question(d.n.id, text)
	return nil
}

// fails ends an attempt with a failure that pawl itself has found.
func (d *activeAttempt) fails(f failure.Analysis) {
	d.e.Status, d.e.record.Failure = store.StepFailure, &f
}

// cannotStart stores an attempt that fails before anything of it is started.
func (d *activeAttempt) cannotStart(f failure.Analysis) error {
	d.fails(f)
	return d.s.p.begin(d.s, d.n, d.e)
}

// uncallable is the failure of an agent or a procedure that cannot even be called.
func uncallable(err error) failure.Analysis {
	return failure.Analysis{
		Class: failure.Unknown, Kind: failure.Permanent, Severity: failure.Critical,
		Fingerprint: engine.CannotStart, Summary: err.Error(),
	}
}

// nothingLeft fails a step for whose agent the limits leave nothing.
func (d *activeAttempt) nothingLeft(ended loop.Ended) error {
	what := map[loop.Ended]string{
		loop.EndedCost: "cost", loop.EndedCalls: "model calls", loop.EndedTokens: "tokens",
	}[ended]
	d.s.p.stopFor(ended)
	return d.cannotStart(failure.Analysis{
		Class: failure.LimitExceeded, Kind: failure.Work, Severity: failure.Medium, Fingerprint: "limit-" + string(ended),
		Summary: "the iteration's limit on " + what + " leaves nothing for the step's agent",
	})
}

// listen is who hears the events of a step's agent: whoever watches, and the
// budget, which ends the step when all agents together have used it up.
func (d *activeAttempt) listen(ctx context.Context, job supervisor.Job) (context.Context, func(agent.Event), func()) {
	if job.Parser == "" {
		return ctx, nil, func() {}
	}
	p := d.s.p
	c := agent.NewCollector()
	c.SetPrices(job.Prices)
	c.SetModel(job.Model)
	p.limits.begin(d.n.id, c)
	ctx, stop := context.WithCancel(ctx)
	return ctx, func(e agent.Event) {
		p.h.TellAgent(d.n.id, e)
		if ended := p.limits.see(d.n.id, e); ended != loop.NotEnded {
			p.stopFor(ended)
			stop()
		}
	}, stop
}

// maxAsks bounds the questions of one pass.
const maxAsks = 100

// ask takes a person's answer for the step's output, or leaves the step until
// there is one.
func (s *scope) ask(ctx context.Context, n *node) {
	p := s.p
	e, begun := s.unfinished(n)
	if last := p.latest(n.id); last != nil && last.Status == store.StepAsking {
		e, begun = last, true
	}
	if !begun {
		e = s.execution(n, attempt{try: 1})
		e.record.Kind = "ask"
	}
	e.Hash, e.Input, e.record.Question = n.in.Hash, n.in.InputHash(n.given.input()), n.given.content
	answer, answered := p.c.Feedback.AnswerTo(n.id)
	if answered = answered && answer.Question == n.given.content; !answered {
		n.phase = deferred
		p.question(n.id, n.given.content)
		if begun && e.Status == store.StepAsking {
			return
		}
		e.Status = store.StepAsking
		if err := p.begin(s, n, e); err != nil {
			p.fail(err)
		}
		p.h.Tell(engine.StepEnded, s.notice(n, engine.StepNotice{Status: store.StepAsking, Why: n.given.content}))
		return
	}
	d := &activeAttempt{s: s, n: n, e: e}
	e.Status, e.Output, e.Elapsed = store.StepSuccess, answer.Text, time.Since(e.StartedAt)
	if !begun {
		if err := p.begin(s, n, e); err != nil {
			p.fail(err)
			n.phase = deferred
			return
		}
	}
	if err := d.succeed(ctx, nil); err != nil {
		p.fail(err)
	}
	if err := p.finished(n, s, e); err != nil {
		p.fail(err)
		n.phase = deferred
		return
	}
	n.result, n.phase = e.result(), settled
	if e.Status != store.StepSuccess {
		n.result = e.result()
		s.failed(n)
	}
}

// question notes what a person is asked, in the order in which it comes up.
func (p *pass) question(step, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asks) < maxAsks {
		p.asks = append(p.asks, loop.Asks{Step: step, Text: text})
	}
}
