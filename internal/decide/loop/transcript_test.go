package loop_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/test/transcript"
)

// TestTranscripts plays the files in testdata. Each block is one event in
// words; below the line of dashes stands what the kernel made of it. The
// notation:
//
//	start KIND [max=N] [breaker=N] [cost=USD] [task-cost=USD] [earlier=USD] [run-tokens=N] [task-calls=N] [timeout=D] [tasktime=D] [leveltime=D] [fallback=a,b] [stuck=N] [stuck-limit=N] [pause-on-stuck] [in-words] …
//	end [exit=N] [say=COMPLETE|BLOCKED:why|…] [gates=tests:pass,lint:fail,docs:skip?] [tree=T] [class=C] [print=F] …
//	    … [review=approve|reject:why|pending:why] [expected=V received=V]
//	review approve|reject:why|silent [failed=CLASS] [resets=D] [ended=E] [usd=C] [after=D]
//	wait-over · answer TEXT · choose N [TEXT] · pause · stop [CAUSE] · resume [max=N] [cost=USD] · lost · again (the last event once more) · barred
//	… limited=AGENT/CLASS/FOR[/RUN[/PROBE]],…: what is known of limits when the event comes
//
// A gate with "?" is optional. Times pass with after=D (default 10s an iteration).
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) func(string) string {
		p := &player{t: t, at: time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC)}
		return p.event
	})
}

type player struct {
	t    *testing.T
	s    loop.State
	at   time.Time
	last loop.Event
	tree string
	n    int
}

// event performs one line and shows what came of it.
func (p *player) event(line string) string {
	words := strings.Fields(line)
	args := transcript.Arguments(words[1:])
	e, known := p.read(words[0], line, args)
	if !known {
		p.t.Fatalf("unknown event %q", line)
	}
	e.At = p.at
	if words[0] != "again" {
		e.Limited = p.limited(args["limited"])
	}
	before := p.s
	kept, _ := json.Marshal(before)
	after, c := loop.Step(before, e)
	if now, _ := json.Marshal(before); !bytes.Equal(now, kept) {
		p.t.Fatalf("%q changed the state before it", line)
	}
	p.last, p.s = e, after
	return p.show(before, after, c)
}

func (p *player) read(verb, line string, args map[string]string) (loop.Event, bool) {
	after := args["after"]
	if after == "" && (verb == "end" || verb == "lost" || verb == "review") {
		after = "10s"
	}
	elapsed, _ := time.ParseDuration(after)
	p.at = p.at.Add(elapsed)
	switch verb {
	case "start":
		pol := p.policy(defaults(loop.Kind(strings.Fields(line)[1])), args)
		return loop.Event{Kind: loop.Started, Policy: &pol, Learned: learned(args["learned"])}, true
	case "end":
		return loop.Event{Kind: loop.IterationEnded, For: p.s.Command.Seq, Record: p.record(args, elapsed)}, true
	case "review":
		return loop.Event{Kind: loop.Reviewed, For: p.s.Command.Seq, Review: p.review(line, args, elapsed)}, true
	case "lost":
		r := p.record(args, elapsed)
		r.Exit = loop.Exit{Code: -1, Ended: loop.EndedLost}
		return loop.Event{Kind: loop.Recovered, For: p.s.Command.Seq, Record: r}, true
	case "wait-over":
		if p.s.Command.Until.After(p.at) {
			p.at = p.s.Command.Until
		}
		return loop.Event{Kind: loop.WaitOver, For: p.s.Command.Seq}, true
	case "barred":
		why, _, _ := strings.Cut(strings.TrimPrefix(line, "barred"), "limited=")
		return loop.Event{Kind: loop.Throttled, For: p.s.Command.Seq, Text: strings.TrimSpace(why)}, true
	case "answer":
		answer, _, _ := strings.Cut(line, " limited=")
		return loop.Event{Kind: loop.Answered, Text: strings.TrimPrefix(answer, "answer ")}, true
	case "reply":
		step, text, _ := strings.Cut(strings.TrimPrefix(line, "reply "), ":")
		return loop.Event{Kind: loop.Answered, Replies: []loop.Asks{{Step: step, Text: text}}}, true
	case "choose":
		n, text, _ := strings.Cut(strings.TrimPrefix(line, "choose "), " ")
		choice, err := strconv.Atoi(n)
		if err != nil {
			p.t.Fatalf("%s: %v", line, err)
		}
		return loop.Event{Kind: loop.Answered, Choice: choice, Text: text}, true
	case "pause":
		return loop.Event{Kind: loop.PauseAsked}, true
	case "stop":
		cause := loop.CauseInterrupt
		if w := strings.Fields(line); len(w) > 1 {
			cause = loop.Cause(w[1])
		}
		return loop.Event{Kind: loop.StopAsked, Cause: cause}, true
	case "resume":
		pol := p.policy(p.s.Policy, args)
		return loop.Event{Kind: loop.Resumed, Policy: &pol}, true
	case "raise":
		pol := p.policy(p.s.Policy, args)
		return loop.Event{Kind: loop.Raised, Policy: &pol}, true
	case "again":
		return p.last, true
	}
	return loop.Event{}, false
}

// limited reads AGENT/CLASS/FOR[/RUN[/PROBE]], several with commas. A limit is
// named unless FOR starts with "~"; a negative one is over.
func (p *player) limited(text string) []loop.Limited {
	var list []loop.Limited
	for one := range strings.SplitSeq(text, ",") {
		w := append(strings.Split(one, "/"), "", "")
		if len(w) < 5 {
			continue
		}
		span, unnamed := strings.CutPrefix(w[2], "~")
		d, err := time.ParseDuration(span)
		if err != nil {
			p.t.Fatalf("%s: %v", one, err)
		}
		list = append(list, loop.Limited{Agent: w[0], Class: failure.Class(w[1]), Until: p.at.Add(d), Named: !unnamed, Times: 1, Run: w[3], Probe: w[4]})
	}
	return list
}

func defaults(k loop.Kind) loop.Policy {
	p := loop.Policy{
		Kind: k, FailureThreshold: 3, Thrashing: 5, Stuck: 5, Repeated: 5, MaxWaits: 20, MaxWait: 6 * time.Hour,
		Costs: loop.Costs{MaxCost: loop.NoLimit, MaxIterationCost: loop.NoLimit, MaxIterationCalls: loop.NoLimit}, Workers: loop.Workers{Agent: "claude"},
	}
	if k != loop.Procedure {
		p.MaxIterations = 50
	}
	return p
}

func (p *player) policy(pol loop.Policy, args map[string]string) loop.Policy {
	number := func(name string, to *int) {
		if v, ok := args[name]; ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				p.t.Fatalf("%s=%s: %v", name, v, err)
			}
			*to = n
		}
	}
	span := func(name string, to *time.Duration) {
		if v, ok := args[name]; ok {
			d, err := time.ParseDuration(v)
			if err != nil {
				p.t.Fatalf("%s=%s: %v", name, v, err)
			}
			*to = d
		}
	}
	number("max", &pol.MaxIterations)
	number("breaker", &pol.FailureThreshold)
	number("thrashing", &pol.Thrashing)
	number("stuck", &pol.Stuck)
	number("stuck-limit", &pol.StuckLimit)
	number("repeated", &pol.Repeated)
	number("waits", &pol.MaxWaits)
	span("max-wait", &pol.MaxWait)
	span("timeout", &pol.Timeout)
	span("tasktime", &pol.TaskTimeout)
	span("leveltime", &pol.MaxDuration)
	span("iteration-timeout", &pol.IterationTimeout)
	if v, ok := args["cost"]; ok {
		pol.MaxCost = usd(v)
	}
	if v, ok := args["task-cost"]; ok {
		limit := usd(v)
		pol.MaxTaskCost = &limit
	}
	if v, ok := args["earlier"]; ok {
		pol.TaskCost = usd(v)
	}
	for name, to := range map[string]**int64{
		"iteration-tokens": &pol.Tokens.Iteration, "run-tokens": &pol.Tokens.Run, "task-tokens": &pol.Tokens.Task,
		"run-calls": &pol.Calls.Run, "task-calls": &pol.Calls.Task,
	} {
		var n int
		if number(name, &n); args[name] != "" {
			limit := int64(n)
			*to = &limit
		}
	}
	number("iteration-calls", &pol.MaxIterationCalls)
	for name, to := range map[string]*int64{"earlier-tokens": &pol.Tokens.Others, "earlier-calls": &pol.Calls.Others} {
		var n int
		if number(name, &n); n > 0 {
			*to = int64(n)
		}
	}
	if v, ok := args["iteration-cost"]; ok {
		pol.MaxIterationCost = usd(v)
	}
	if v, ok := args["fallback"]; ok {
		pol.Fallback = strings.Split(v, ",")
	}
	if v, ok := args["stronger"]; ok {
		pol.Stronger = v
	}
	span("ceiling", &pol.IterationCeiling)
	pol.Mode, pol.Strategy = strategy.Mode(cmp.Or(args["mode"], string(pol.Mode))), cmp.Or(args["strategy"], pol.Strategy)
	if v, ok := args["own"]; ok {
		pol.Strategies = []strategy.Strategy{own(v)}
	}
	_, once := args["once"]
	pol.Once = pol.Once || once
	_, optional := args["optional"]
	pol.HasOptional = pol.HasOptional || optional
	controlPolicy(&pol, args, number)
	_, pol.InWords = args["in-words"]
	_, on := args["pause-on-stuck"]
	pol.PauseOnStuck = pol.PauseOnStuck || on
	return pol
}

// controlPolicy reads review, ask-on-red, ask-on-reject, no-diff, feedback=N.
func controlPolicy(pol *loop.Policy, args map[string]string, number func(string, *int)) {
	if who, review := args["review"]; review {
		pol.Review, pol.Reviewer = who != "off", strings.TrimPrefix(who, "author")
	}
	_, controlled := args["controlled"] // a workflow that is
	if pol.Kind != loop.Controlled && !controlled || pol.Control != nil {
		return
	}
	_, red := args["ask-on-red"]
	_, reject := args["ask-on-reject"]
	_, noDiff := args["no-diff"]
	pol.Control = &control.Settings{RetryTestFail: !red, RetryReviewReject: !reject, IncludeDiff: !noDiff, FeedbackMax: 500}
	number("feedback", &pol.Control.FeedbackMax)
}

// own reads NAME:CLASS[:BACKOFF], a strategy that is tried first and uses the
// agent of its name.
func own(text string) strategy.Strategy {
	w := append(strings.Split(text, ":"), "")
	return strategy.Strategy{Name: w[0], Priority: 20, Classes: []failure.Class{failure.Class(w[1])}, Backoff: strategy.Backoff(w[2]), Agent: w[0]}
}

// learned reads CLASS/STRATEGY/SUCCESSES/FAILURES, several with commas.
func learned(text string) []strategy.Tally {
	var list []strategy.Tally
	for one := range strings.SplitSeq(text, ",") {
		w := strings.Split(one, "/")
		if len(w) != 4 {
			continue
		}
		wins, _ := strconv.Atoi(w[2])
		losses, _ := strconv.Atoi(w[3])
		list = append(list, strategy.Tally{Class: failure.Class(w[0]), Strategy: w[1], Wins: 1000 * wins, Losses: 1000 * losses, Day: 20490})
	}
	return list
}

func usd(s string) loop.MicroUSD {
	f, _ := strconv.ParseFloat(s, 64)
	return loop.MicroUSD(f*1e6 + 0.5)
}

func (p *player) record(args map[string]string, elapsed time.Duration) *loop.Record {
	c := p.s.Command
	r := &loop.Record{
		Number: c.Iteration, Attempt: c.Attempt, StartedAt: p.at.Add(-elapsed), Elapsed: elapsed, Agent: c.Agent, Strategy: c.Strategy,
		Progress: -1, Score: -1, Verified: true, TreeKnown: true, TreeBefore: p.tree, CostSource: "none", Output: 10,
	}
	p.n++
	r.TreeAfter = "t" + strconv.Itoa(p.n)
	if v, ok := args["tree"]; ok {
		r.TreeAfter = v
		if v == "same" {
			r.TreeAfter = r.TreeBefore
		}
	}
	if _, ok := args["no-git"]; ok {
		r.TreeKnown = false
	}
	if _, ok := args["silent"]; ok {
		r.Output = 0
	}
	p.tree = r.TreeAfter
	r.Snapshot = "snap-" + r.TreeAfter
	r.Exit.Code, _ = strconv.Atoi(args["exit"])
	r.Exit.Ended = loop.Ended(args["ended"])
	r.Exit.Terminal = loop.Terminal(args["terminal"])
	r.Commits, _ = strconv.Atoi(args["commits"])
	if v, ok := args["usd"]; ok {
		r.Cost, r.CostSource = usd(v), "reported"
	}
	r.TokensIn, _ = strconv.ParseInt(args["tokens"], 10, 64)
	r.Calls, _ = strconv.Atoi(args["calls"])
	if v, ok := args["files"]; ok {
		r.Files = strings.Split(v, ",")
	}
	if v, ok := args["progress"]; ok {
		r.Progress, _ = strconv.Atoi(v)
	}
	said(r, args["say"])
	if v, ok := args["nearly"]; ok {
		r.Malformed = []string{"Line 1: " + strings.ReplaceAll(v, "_", " ")}
	}
	r.WarnedTime, r.WarnedRunTime = strings.Contains(args["warned"], "own"), strings.Contains(args["warned"], "run")
	gates(r, args["gates"])
	if v, ok := args["score"]; ok {
		r.Score, _ = strconv.Atoi(v)
	}
	failWith(r, args, p.at)
	stepped(r, args)
	reviewed(r, args)
	return r
}

// stepped reads steps=DONE/TOTAL, step=THE-ONE-THAT-FAILED, asks=STEP:TEXT,STEP:TEXT, held.
func stepped(r *loop.Record, args map[string]string) {
	done, total, ok := strings.Cut(args["steps"], "/")
	if !ok {
		return
	}
	r.Steps = &loop.Steps{}
	r.Steps.Done, _ = strconv.Atoi(done)
	r.Steps.Total, _ = strconv.Atoi(total)
	r.Steps.Complete = done == total
	r.Score = r.Steps.Done * 1000 / r.Steps.Total
	if r.Failure != nil {
		r.Failure.Step = args["step"]
	}
	var open []loop.Asks
	for one := range strings.SplitSeq(args["asks"], ",") {
		if step, text, ok := strings.Cut(one, ":"); ok {
			open = append(open, loop.Asks{Step: step, Text: strings.ReplaceAll(text, "_", " ")})
		}
	}
	if len(open) > 0 {
		r.Steps.Asks = &open[0]
	}
	if len(open) > 1 {
		r.Steps.Open = open
	}
	_, r.Steps.Pausing = args["held"]
}

// review is one try of a review: the second word of the line says how it ended.
func (p *player) review(line string, args map[string]string, elapsed time.Duration) *loop.Review {
	c := p.s.Command
	v := &loop.Review{Verdict: loop.Undecided, Agent: c.Agent, Elapsed: elapsed, CostSource: "none", Tries: 1, Ended: loop.Ended(args["ended"])}
	word, why, _ := strings.Cut(strings.Fields(line)[1], ":")
	switch word {
	case "approve":
		v.Verdict = loop.Approved
	case "reject":
		v.Verdict, v.Summary = loop.Rejected, why
		v.Items = []loop.Finding{{Item: failure.Item{File: "a.go", Message: why}, Severity: failure.High}}
	default:
		v.Summary = "nothing was said"
	}
	if class, ok := args["failed"]; ok {
		r := loop.Record{}
		failWith(&r, map[string]string{"class": class, "resets": args["resets"]}, p.at)
		v.Failure, v.Summary = r.Failure, r.Failure.Summary
	}
	if v2, ok := args["usd"]; ok {
		v.Cost, v.CostSource = usd(v2), "reported"
	}
	return v
}

func said(r *loop.Record, word string) {
	kind, text, _ := strings.Cut(word, ":")
	kinds := map[string]signal.Kind{"COMPLETE": signal.Complete, "BLOCKED": signal.Blocked, "PENDING": signal.Pending, "FAILURE": signal.Failure}
	r.Signal = signal.Signal{Kind: kinds[kind], Text: text}
}

func gates(r *loop.Record, list string) {
	if list == "" {
		return
	}
	passed := 0
	status := map[string]loop.GateStatus{"pass": loop.GatePassed, "fail": loop.GateFailed, "timeout": loop.GateTimedOut, "skip": loop.GateNotRun}
	all := strings.Split(list, ",")
	for _, g := range all {
		name, how, _ := strings.Cut(g, ":")
		how, optional := strings.CutSuffix(how, "?")
		r.Gates = append(r.Gates, loop.Gate{Name: name, Required: !optional, Status: status[how]})
		if how == "pass" {
			passed++
		}
		if how == "fail" && !optional && r.Failure == nil {
			r.Failure = &failure.Analysis{Class: failure.TestFailure, Kind: failure.Work, Summary: name + " failed", Step: name, Fingerprint: "fp-" + name}
		}
	}
	r.Score = 1000 * passed / len(all)
}

func reviewed(r *loop.Record, args map[string]string) {
	if want, ok := args["expected"]; ok && r.Failure != nil {
		r.Failure.Items = []failure.Item{
			{File: "add_test.go", Line: 9, Test: "TestAdd", Message: "wrong", Expected: want, Received: args["received"]},
			{File: "sub_test.go", Line: 12, Message: "TestSub fails in the same way"},
		}
	}
	how, ok := args["review"]
	if !ok || how == "" {
		return
	}
	how, why, _ := strings.Cut(how, ":")
	verdict := map[string]loop.Verdict{"approve": loop.Approved, "reject": loop.Rejected, "pending": loop.Undecided}[how]
	r.Review = &loop.Review{Verdict: verdict, Agent: "codex", Summary: strings.ReplaceAll(why, "_", " "), Cost: 1000, CostSource: "reported"}
	if verdict == loop.Rejected {
		r.Review.Items = control.FromReview(strings.ReplaceAll(strings.ReplaceAll(why, "_", " "), ";", "\n"))
	}
}

func failWith(r *loop.Record, args map[string]string, now time.Time) {
	class, ok := args["class"]
	if !ok {
		if r.Failure == nil && (r.Exit.Code != 0 || r.Exit.Ended != "") {
			r.Failure = &failure.Analysis{Class: failure.Unknown, Kind: failure.Work, Summary: "exit " + strconv.Itoa(r.Exit.Code), Fingerprint: "fp-exit"}
		}
		return
	}
	f := &failure.Analysis{Class: failure.Class(class), Kind: failure.Work, Summary: class, Fingerprint: "fp-" + class}
	switch f.Class {
	case failure.RateLimit, failure.ServiceUnavailable:
		f.Kind, f.Transient, f.Provider = failure.Transient, true, true
	case failure.QuotaExhausted:
		f.Kind, f.Provider = failure.Permanent, true
	case failure.Timeout, failure.Network, failure.ResourceExhausted:
		f.Kind, f.Transient = failure.Transient, true
	case failure.Auth, failure.MissingCommand:
		f.Kind = failure.Permanent
	case failure.OutputLimit:
		f.Actions = []string{"write in smaller pieces", "and for a person"}
	}
	if v := args["resets"]; v != "" {
		d, _ := time.ParseDuration(v)
		f.WaitUntil = now.Add(d)
		f.Kind = failure.Transient
	}
	if v, ok := args["print"]; ok {
		f.Fingerprint = v
	}
	r.Failure = f
}

// arguments reads k=v words; a word alone is a flag.
func (p *player) show(before, after loop.State, c loop.Command) string {
	if c.Kind == loop.NoCommand || c.Kind == loop.Noted {
		switch {
		case reflect.DeepEqual(before, after):
			return "nothing\n"
		case after.StopAsked != before.StopAsked:
			return "noted: stop the agent now\n"
		}
		return "noted\n"
	}
	var b strings.Builder
	if r := c.Record; r != nil {
		b.WriteString(string(r.Outcome) + " -> ")
	}
	switch c.Kind {
	case loop.Run:
		fmt.Fprintf(&b, "run %d", c.Iteration)
		if c.Attempt > 1 {
			fmt.Fprintf(&b, " attempt %d", c.Attempt)
		}
		fmt.Fprintf(&b, " (%s, %s)", c.Agent, c.Strategy)
		if c.Insist {
			b.WriteString(" whatever is known of its limit")
		}
		if c.Rewind != 0 {
			fmt.Fprintf(&b, " rewind to snapshot %d", c.Rewind)
		}
		if c.SkipOptional {
			b.WriteString(" without optional gates")
		}
		if c.GateFactor > 1 {
			fmt.Fprintf(&b, " gates %d times longer", c.GateFactor)
		}
		if c.Limits.Wall > 0 {
			fmt.Fprintf(&b, " within %s", c.Limits.Wall)
		}
		if c.Limits.Cost >= 0 {
			fmt.Fprintf(&b, " for at most %s", c.Limits.Cost)
		}
		if c.Limits.Tokens != nil {
			fmt.Fprintf(&b, " with at most %d tokens", *c.Limits.Tokens)
		}
		if c.Limits.Calls >= 0 {
			fmt.Fprintf(&b, " in at most %d calls", c.Limits.Calls)
		}
	case loop.RunReview:
		fmt.Fprintf(&b, "review %d (%s, try %d)", c.Iteration, c.Agent, c.Review)
		if c.Limits.Wall > 0 {
			fmt.Fprintf(&b, " within %s", c.Limits.Wall)
		}
		if c.Limits.Cost >= 0 {
			fmt.Fprintf(&b, " for at most %s", c.Limits.Cost)
		}
		if c.Limits.Tokens != nil {
			fmt.Fprintf(&b, " with at most %d tokens", *c.Limits.Tokens)
		}
		if c.Limits.Calls >= 0 {
			fmt.Fprintf(&b, " in at most %d calls", c.Limits.Calls)
		}
	case loop.Wait:
		fmt.Fprintf(&b, "wait %s (%s)", c.Until.Sub(p.at).Round(time.Second), c.Why)
	default:
		fmt.Fprintf(&b, "%s %s: %s", c.Kind, c.Status, c.Why)
	}
	b.WriteString("\n")
	p.details(&b, c)
	return b.String()
}

func (p *player) details(b *strings.Builder, c loop.Command) {
	if _, not, ok := strings.Cut(c.StrategyWhy, "; not "); ok {
		fmt.Fprintf(b, "  not %s\n", not)
	}
	for _, l := range c.Learned {
		fmt.Fprintf(b, "  learned: %s %s against %s\n", l.Strategy, map[bool]string{true: "helps", false: "does not help"}[l.Success], l.Class)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(b, "  warning: %s\n", w)
	}
	if c.Message != "" {
		fmt.Fprintf(b, "  guard: %s\n", c.Message)
	}
	if f := c.Feedback; f != nil && c.Kind == loop.Run && p.s.Policy.Control != nil {
		for _, item := range f.Items {
			fmt.Fprintf(b, "  to repair: %s\n", control.Finding{Item: item})
		}
		if f.Dropped > 0 {
			fmt.Fprintf(b, "  dropped: %d\n", f.Dropped)
		}
	}
	if f := c.Feedback; f != nil && c.Kind == loop.Run {
		if f.Summary != "" || f.Answer != "" {
			fmt.Fprintf(b, "  feedback: %s\n", strings.TrimSpace(f.Summary+" "+f.Answer))
		}
		for _, a := range f.Answers {
			fmt.Fprintf(b, "  to %s (%s): %s\n", a.Step, a.Question, a.Text)
		}
		for _, n := range f.Notes {
			fmt.Fprintf(b, "  note: %s\n", n)
		}
	}
	if q := c.Question; q != nil && p.s.Policy.Control != nil {
		for line := range strings.Lines(q.Text + "\n") {
			if line != "\n" {
				fmt.Fprintf(b, "  asks: %s", line)
			}
		}
	}
	if q := c.Question; q != nil && (p.s.Policy.Control != nil || c.Guard != "") {
		for i, option := range q.Options {
			fmt.Fprintf(b, "  %d. %s\n", i+1, option)
		}
	}
	if q := c.Question; q != nil {
		for _, a := range q.Attempts {
			fmt.Fprintf(b, "  tried: %s\n", a)
		}
		if q.Pattern != "" {
			fmt.Fprintf(b, "  pattern: %s\n", q.Pattern)
		}
	}
}
