package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// This file is the review of green work. The rules are:
//   - The iteration is used up when its agent ends, and decided when the
//     review has said approve or reject; until then its review is pending.
//   - Nothing but a verdict decides: a reviewer that fails, is stopped or says
//     nothing neither approves nor rejects.
//   - A reviewer that says nothing gets one more try, then a person is asked.
//     One that a limit of its provider cut off is waited for.
//   - What a review costs is the run's, and what it may cost is what the
//     iteration and the run have left.

// PendingReview is an iteration whose work is green and waits for its review.
type PendingReview struct {
	Record Record `json:"record"`
	// Tries counts the reviews that were begun: each has files of its own.
	Tries int `json:"tries,omitempty"`
	// Silent counts those in a row that ended without a verdict.
	Silent int `json:"silent,omitempty"`
}

// maxReverted bounds the files that a review lists as put back.
const maxReverted = 100

// maxSilent is how many reviews without a verdict make a person's.
const maxSilent = 2

// resultText names the changes of complete work and what proves it.
func (r *Record) resultText() string {
	var parts []string
	if r.Steps != nil {
		parts = append(parts, r.Steps.String())
	}
	if z := r.Size; z != nil && z.Files > 0 {
		parts = append(parts, fmt.Sprintf("%s, +%d -%d", fault.Numbered(z.Files, "file"), z.Added, z.Deleted))
	} else if z != nil && r.Steps == nil {
		parts = append(parts, "no file changed by this run")
	}
	passed := slices.DeleteFunc(slices.Clone(r.Gates), func(g Gate) bool { return g.Status != GatePassed })
	switch all := fault.Numbered(len(r.Gates), "gate"); {
	case len(passed) < len(r.Gates):
		parts = append(parts, fmt.Sprintf("%d of %s passed", len(passed), all))
	case len(passed) > 0:
		parts = append(parts, all+" passed")
	case r.Steps == nil:
		parts = append(parts, "no verification configured")
	}
	proofs := lists.Each(passed, func(g Gate) string { return g.Criterion })
	if shown := lists.Union(nil, slices.DeleteFunc(proofs, func(c string) bool { return c == "" })...); len(shown) > 0 {
		parts = append(parts, fmt.Sprintf("criteria shown: %d", len(shown)))
	}
	if r.isApproved() {
		return strings.Join(parts, "; ") + ", and " + r.Review.reviewerName() + " approves"
	}
	return strings.Join(parts, "; ")
}

func (v *Review) reviewerName() string {
	if v.Agent == Person {
		return "a person"
	}
	return cmp.Or(v.Agent, "the review")
}

// mustReview reports whether green work that would end the run is reviewed first.
func (s *State) mustReview(r *Record) bool {
	if !s.Policy.Review || r.Review != nil || s.StopAsked != NoCause || !r.Valid() || r.Signal.Kind == signal.Blocked {
		return false
	}
	if s.Policy.Kind == Controlled && r.testVerdict() == control.Passed {
		return true
	}
	ok, _ := r.Completes()
	return ok || r.areAllDone()
}

// issueReview issues the pending review, or what stands in its way.
func (s turn) issueReview(e *Event, why string) {
	h := *s.PendingReview
	r := &h.Record
	decided := r.Review != nil && r.Review.Verdict != Undecided
	if decided || !s.Policy.Review {
		s.reviewOver(e, r)
		return
	}
	if s.Policy.Reviewer == Person {
		s.askReview(r.resultText() + "; it waits for a review")
		return
	}
	if c := s.endByLimits(nil); c != nil {
		s.finishSession(c)
		return
	}
	limits := s.reviewBounds(r)
	if limits.Cost == 0 || limits.Calls == 0 {
		s.askReview("nothing is left of the iteration's limits for its review")
		return
	}
	h.Tries++
	s.PendingReview = &h
	s.Status = Running
	s.issueCommand(&Command{
		Kind: RunReview, Why: why, Iteration: r.Number, Attempt: r.Attempt, Review: h.Tries,
		Agent: s.reviewerOf(r), Strategy: r.Strategy, Limits: limits,
	})
}

// reviewerOf is the author's program unless another is named.
func (s *State) reviewerOf(r *Record) string { return cmp.Or(s.Policy.Reviewer, r.Agent) }

// reviewBounds are the rest of the limits of the iteration and the run.
func (s *State) reviewBounds(r *Record) CommandLimits {
	p := &s.Policy
	spent, calls, tokens := max(0, r.Cost), max(0, r.Calls), max(0, r.TokensIn)+max(0, r.TokensOut)
	if v := r.Review; v != nil {
		spent, calls = spent+max(0, v.Cost), calls+max(0, v.Calls)
		tokens += max(0, v.TokensIn) + max(0, v.TokensOut)
	}
	l := CommandLimits{Cost: p.MaxIterationCost, Calls: p.MaxIterationCalls}
	l.Wall, l.Idle = p.IterationTimeout, p.IdleTimeout
	if l.Cost >= 0 {
		l.Cost = max(0, l.Cost-spent)
	}
	if l.Calls >= 0 {
		l.Calls = max(0, l.Calls-calls)
	}
	l.Tokens = leftOfLimit(p.Tokens.Iteration, tokens)
	return s.withinRun(l)
}

// reviewEnded takes how one try of a review ended.
func (s turn) reviewEnded(e *Event) {
	awaited := s.Status == Running && s.Command.Kind == RunReview && e.For == s.Command.Seq
	if !awaited || e.Review == nil || s.PendingReview == nil {
		return
	}
	s.advanceClock(e.At)
	s.spendReview(e.Review)
	h := *s.PendingReview
	h.Record = WithReview(h.Record, *e.Review)
	h.Record.Outcome = h.Record.Judge()
	s.PendingReview, e.judged = &h, &h.Record
	v := h.Record.Review
	switch {
	case s.StopAsked != NoCause:
		s.finishSession(stopCommand(s.StopAsked))
	case v.Ended == EndedStop:
		s.finishSession(stopCommand(CauseStop))
	case v.Verdict != Undecided:
		s.reviewOver(e, &h.Record)
	case v.Failure != nil && v.Failure.Provider && v.Failure.Kind == failure.Transient:
		s.waitForReview(e, v)
	case v.Failure != nil:
		s.askReview("there is no review: " + v.Summary)
	default:
		s.silentReview(e, v)
	}
}

// silentReview answers a review without a verdict that counts.
func (s turn) silentReview(e *Event, v *Review) {
	h := *s.PendingReview
	h.Silent++
	s.PendingReview = &h
	switch {
	case h.Silent >= maxSilent:
		s.askReview("there is no verdict: " + v.Summary)
	case s.PauseAsked:
		s.finishSession(&Command{Status: Paused, Why: "paused before the review is tried again"})
	default:
		s.issueReview(e, "once more: "+v.Summary)
	}
}

// waitForReview answers a limit of the reviewer's provider as [turn.waitForProvider]
// answers one of the author's, but no other program takes the review over.
func (s turn) waitForReview(e *Event, v *Review) {
	s.Waits++
	if s.PauseAsked {
		s.finishSession(&Command{Status: Paused, Why: "paused while the review waits"})
		return
	}
	l := s.limitMetBy(e, &Record{Agent: v.Agent, Failure: v.Failure})
	s.delayReview(e, &l)
}

// delayReview lets a review wait for the end of a limit.
func (s turn) delayReview(e *Event, l *Limited) {
	if s.Policy.MaxWaits >= 0 && s.Waits > s.Policy.MaxWaits {
		s.restUntilProviderAnswers(l)
		return
	}
	if s.Policy.MaxWait > 0 && l.Until.Sub(e.At) > s.Policy.MaxWait {
		if s.Policy.Kind == Task {
			s.restUntilLimit(l, s.waitTooLongText(l))
			return
		}
		s.askReview("there is no review: " + s.waitTooLongText(l))
		return
	}
	s.Status = Waiting
	c := &s.Command
	s.issueCommand(&Command{
		Kind: Wait, Resting: Resting{Until: s.endOfWait(e, l.Until.Sub(e.At)), Limited: true},
		Why:       l.Reason() + ", which reviews",
		Iteration: c.Iteration, Attempt: c.Attempt,
		Review: c.Review, Agent: c.Agent, Strategy: c.Strategy,
	})
}

// reviewOver takes up the decision that waited for the review of an iteration.
func (s turn) reviewOver(e *Event, r *Record) {
	s.PendingReview, s.Waits = nil, 0
	s.Status = Running
	done := *r
	if !s.Policy.Review { // switched off since: what is green counts
		done.Review = nil
	}
	done.Outcome = done.Judge()
	s.decideJudged(e, &done)
}

// askReview asks a person for the verdict.
func (s turn) askReview(why string) {
	choices := control.Verdicts(s.Policy.Reviewer != Person, s.Policy.Kind == Task)
	s.finishSession(&Command{Status: Pending, Why: why, Question: s.newQuestion(why+"\n\nApprove or reject?", choices)})
}

// Answer is what a person says about work that waits for its review.
type Answer struct {
	Do   control.Effect
	Text string
}

// ReadAnswer reads "approve", "reject: why" or "again", in any case. A
// rejection needs its reason; ok is false for anything else.
func ReadAnswer(text string) (a Answer, ok bool) {
	word, why := strings.TrimSpace(text), ""
	if n := strings.IndexAny(word, ":, \t\n"); n >= 0 {
		word, why = word[:n], strings.TrimSpace(strings.TrimLeft(word[n:], ":, \t\n"))
	}
	switch strings.ToLower(strings.TrimRight(word, ".")) {
	case "approve", "approved":
		return Answer{control.Accept, why}, true
	case "reject", "rejected":
		return Answer{control.TryAgain, why}, why != ""
	case "again":
		return Answer{control.ReviewAgain, ""}, why == ""
	}
	return a, false
}

// personsVerdict is the answer to the question about a pending review: a choice with what
// the person added, or words. ok is false for what decides nothing.
func (s *State) personsVerdict(e *Event) (a Answer, ok bool) {
	if e.Choice == 0 {
		a, ok = ReadAnswer(e.Text)
		asksAgent := a.Do == control.ReviewAgain && s.Policy.Reviewer == Person // there is none
		return a, ok && !asksAgent
	}
	c, ok := s.choiceAt(e.Choice)
	a = Answer{c.Do, strings.TrimSpace(e.Text)}
	wordless := a.Do == control.TryAgain && a.Text == ""
	return a, ok && !wordless
}

// personReviewed takes a person's verdict. Like every answer it arms the
// guards anew and grants a fresh allowance. Anything but a verdict changes
// nothing.
func (s turn) personReviewed(e *Event) {
	a, ok := s.personsVerdict(e)
	if !ok || s.chosenOver(a) {
		return
	}
	s.raiseLimits(e.Policy)
	s.rearmGuards()
	s.Status, s.Why, s.LastAt = Running, "", e.At
	h := *s.PendingReview
	h.Silent = 0
	if a.Do != control.ReviewAgain {
		h.Record = WithReview(h.Record, a.asReview())
		h.Record.Outcome = h.Record.Judge()
		e.judged = &h.Record
	}
	if a.Do == control.TryAgain {
		s.addMemory(Said{Iteration: h.Record.Number, Question: "Is the work good?", Text: a.Text})
	}
	s.PendingReview = &h
	s.issueReview(e, "requested again by a person")
}

// chosenOver ends the run without a verdict, when that was chosen: the next
// session begins with an iteration of its own.
func (s turn) chosenOver(a Answer) bool {
	if a.Do != control.TakeOver && a.Do != control.GiveUp {
		return false
	}
	s.PendingReview = nil
	return s.carryOutChoice(control.Choice{Do: a.Do})
}

// asReview is the person's verdict as a review.
func (a Answer) asReview() Review {
	v := Review{Verdict: Approved, Agent: Person, CostSource: "none", Summary: firstLine(a.Text)}
	if a.Do == control.TryAgain {
		v.Verdict, v.Items = Rejected, control.FromReview(a.Text)
		if len(v.Items) == 0 && v.Summary != a.Text {
			v.Items = []Finding{{Item: failure.Item{Message: cutToBytes(a.Text, maxFinding)}, Severity: failure.Medium}}
		}
	}
	return v
}

// ReviewBy reads an agent's final message as its review: the verdict is its
// signal's, the findings are what it lists.
func ReviewBy(agent, message string) Review {
	said := signal.Read(message)
	v := Review{Verdict: Undecided, Agent: agent}
	switch said.Signal.Kind {
	case signal.Approve:
		v.Verdict = Approved
		v.Items = control.Listed(message)
	case signal.Reject:
		v.Verdict, v.Summary = Rejected, firstLine(said.Signal.Text)
		v.Items = control.Listed(message)
		if v.Summary != said.Signal.Text {
			whole := failure.Item{Message: cutToBytes(said.Signal.Text, maxFinding)}
			rest := v.Items[:min(len(v.Items), maxFindings-1)]
			v.Items = append([]Finding{{Item: whole, Severity: failure.Medium}}, rest...)
		}
	default:
		v.Summary = reasonNoVerdict(agent, said)
	}
	return v
}

func reasonNoVerdict(agent string, said signal.Reading) string {
	switch {
	case said.Signal.Text != "":
		return firstLine(agent + " answered " + strings.ToUpper(string(said.Signal.Kind)) + ": " + said.Signal.Text)
	case said.Signal.Kind != signal.None:
		return agent + " answered " + strings.ToUpper(string(said.Signal.Kind)) + " instead of APPROVE or REJECT"
	case len(said.Malformed) > 0:
		return firstLine(agent + "'s verdict did not count: " + said.Malformed[0])
	}
	return agent + " ended without APPROVE or REJECT"
}

// WithReview is r after one more try of its review: the newest verdict, and
// the sum of what all tries used. A rejection becomes the record's failure.
func WithReview(r Record, v Review) Record {
	if old := r.Review; old != nil {
		v.Elapsed += old.Elapsed
		v.Cost += old.Cost
		v.TokensIn += old.TokensIn
		v.TokensOut += old.TokensOut
		v.Calls += old.Calls
		v.Tries += old.Tries
		v.Reverted = append(append([]string(nil), old.Reverted...), v.Reverted...)
		v.Reverted = v.Reverted[:min(len(v.Reverted), maxReverted)]
		if v.CostSource == "" || v.CostSource == "none" {
			v.CostSource = old.CostSource
		}
	}
	r.Review = &v
	if f := v.Rejection(); f != nil {
		r.Failure = f
	}
	return r
}
