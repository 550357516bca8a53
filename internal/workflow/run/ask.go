package run

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
)

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
