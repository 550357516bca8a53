package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Bounds of the lists.
const (
	maxSteps    = 500 // of them headSteps from the beginning
	headSteps   = 50
	maxFailures = 8
	maxFiles    = 500
	maxItems    = 5
	maxNames    = 12 // files of an iteration
	maxLabels   = 20
	maxNotes    = 100
	longText    = 600
)

// New makes the report.
func New(in Input) *Report {
	r := &Report{
		Run: Line(in.Run, 60), Name: Line(in.Name, 200), Kind: Line(in.Kind, 60), Status: Line(string(in.Status), 60), Why: Line(in.Why, longText), Tone: tone(in.Status),
		Started: in.StartedAt, Made: in.Now, Sandbox: Line(in.Sandbox, longText), Version: Line(in.Version, 100),
		Cost: "unknown", TokensIn: in.State.Spent.TokensIn, TokensOut: in.State.Spent.TokensOut, Calls: in.State.Spent.Calls,
	}
	if in.State.Spent.CostKnown {
		r.Cost = in.State.Spent.Cost.String()
	} else if in.ofSteps() && in.State.Spent.Calls == 0 && len(in.State.Policy.Agent) == 0 {
		r.Cost = "none"
	}
	for _, n := range in.Next {
		r.Next = append(r.Next, Advice{Line(n.What, 200), Line(n.Command, 500)})
	}
	r.Iterations.Done, r.Iterations.Limit = in.State.Iteration, in.State.Limit
	why := map[[2]int]string{}
	for _, m := range in.Moments {
		if m.Kind == Chosen {
			why[[2]int{m.Number, m.Attempt}] = Line(m.Text, longText)
		}
	}
	var all []Iteration
	for i := range in.Records {
		rec := &in.Records[i]
		it := iteration(rec, in.StartedAt.Location())
		it.StrategyWhy = why[[2]int{rec.Number, rec.Attempt}]
		all = append(all, it)
		if !slices.Contains(r.Agents, it.Agent) && it.Agent != "" {
			r.Agents = append(r.Agents, it.Agent)
		}
		r.count(rec)
	}
	r.cut(all)
	r.failures(in.Records, all)
	r.strategies(in.Records, all)
	r.changes(in)
	r.steps(in)
	r.question(in)
	r.notes(in.Moments)
	r.times(in)
	r.Timeline = timeline(in, all)
	return r
}

func tone(s loop.Status) Tone {
	switch s {
	case loop.Completed:
		return Good
	case loop.Running, loop.Waiting:
		return Going
	case loop.Paused, loop.Pending, loop.Blocked, loop.Interrupted, loop.Stopped:
		return Wait
	}
	return Bad
}

// count adds an attempt to the totals.
func (r *Report) count(rec *loop.Record) {
	switch rec.Outcome {
	case loop.Success:
		r.Iterations.Succeeded++
	case loop.Failed:
		r.Iterations.Failed++
	case loop.Waited:
		r.Iterations.Cuts++
	}
	r.Times.Agents += rec.Elapsed
	r.Times.Gates += rec.Verifying()
	if rec.Review != nil {
		r.Times.Reviews += rec.Review.Elapsed
	}
}

// cut keeps the first and the last iterations.
func (r *Report) cut(all []Iteration) {
	if len(all) <= maxSteps {
		r.Steps = all
		return
	}
	r.LeftOut, r.LeftAfter = len(all)-maxSteps, headSteps
	r.Steps = slices.Concat(all[:headSteps], all[len(all)-maxSteps+headSteps:])
}

func iteration(rec *loop.Record, zone *time.Location) Iteration {
	it := Iteration{
		Label: label(rec), Outcome: Line(string(rec.Outcome), 60), Tone: outcomeTone(rec.Outcome), Agent: Line(rec.Agent, 60), Strategy: Line(rec.Strategy, 60),
		StartedAt: rec.StartedAt.In(zone), Took: rec.Took(), Agents: rec.Elapsed, Verifying: rec.Verifying(), Ending: ending(rec.Exit),
		Said: said(rec), Tokens: rec.TokensIn + rec.TokensOut,
	}
	if rec.CostSource != "none" && rec.CostSource != "" {
		it.Cost = rec.Cost.String()
	}
	for _, g := range rec.Gates {
		it.Gates = append(it.Gates, gate(g))
	}
	if rec.Review != nil {
		it.Review = review(rec.Review)
		it.Review.Told = rec.Failure != nil && rec.Review.Verdict == loop.Rejected
	}
	if f := rec.Failure; f != nil {
		it.Class, it.Summary, it.Step = Line(string(f.Class), 60), Line(f.Summary, longText), Line(f.Step, 100)
		for i, item := range f.Items {
			if i == maxItems {
				it.MoreItems = len(f.Items) - i
				break
			}
			it.Items = append(it.Items, itemLine(item))
		}
	}
	for i, f := range rec.Files {
		if i == maxNames {
			it.MoreFiles = len(rec.Files) - i
			break
		}
		it.Files = append(it.Files, path(f))
	}
	it.Warnings = warnings(rec)
	return it
}

// label is the number, with the attempt where there was more than one.
func label(rec *loop.Record) string {
	if rec.Attempt > 1 || rec.Outcome == loop.Waited {
		return fmt.Sprintf("%d.%d", rec.Number, rec.Attempt)
	}
	return fmt.Sprint(rec.Number)
}

func outcomeTone(o loop.Outcome) Tone {
	switch o {
	case loop.Success:
		return Good
	case loop.Failed:
		return Bad
	case loop.Waited:
		return Wait
	}
	return Plain
}

func ending(x loop.Exit) string {
	switch {
	case x.Ended != loop.NotEnded:
		return Line("ended: "+string(x.Ended), 60)
	case x.Signal != "":
		return Line("signal: "+x.Signal, 60)
	case x.Code != 0:
		return fmt.Sprintf("exit %d", x.Code)
	}
	return ""
}

func said(rec *loop.Record) string {
	switch {
	case rec.Signal.Kind != "":
		return Line(strings.ToUpper(string(rec.Signal.Kind))+" "+rec.Signal.Text, 300)
	case rec.Progress >= 0:
		return fmt.Sprintf("PROGRESS %d", rec.Progress)
	}
	return ""
}

func warnings(rec *loop.Record) []string {
	var out []string
	if n := len(rec.Tampered); n > 0 {
		out = append(out, fmt.Sprintf("changed %s: %s", numbered(n, "protected file"), path(rec.Tampered[0])))
	}
	if rec.Refused != nil {
		out = append(out, "a forbidden command was refused: "+Line(rec.Refused.Reason(), 300))
	}
	if n := len(rec.Secrets); n > 0 {
		out = append(out, fmt.Sprintf("%s look like secrets, the first in %s:%d", numbered(n, "added place"), path(rec.Secrets[0].File), rec.Secrets[0].Line))
	}
	return out
}

func gate(g loop.Gate) Gate {
	out := Gate{Name: Line(g.Name, 100), Status: Line(string(g.Status), 60), Mark: "✗", Tone: Bad, Took: g.Elapsed, Note: Line(g.Note, 200), Optional: !g.Required}
	switch g.Status {
	case loop.GatePassed:
		out.Mark, out.Tone = "✓", Good
	case loop.GateNotRun:
		out.Mark, out.Tone = "○", Plain
	default:
		if out.Optional {
			out.Tone = Wait
		}
	}
	if g.Test && g.Total >= 0 {
		out.Tests = fmt.Sprintf("%d/%d", g.Passed, g.Total)
	}
	return out
}

func review(v *loop.Review) *Review {
	out := &Review{Verdict: Line(string(v.Verdict), 60), By: Line(v.Agent, 60), Summary: Line(v.Summary, longText), Tone: Wait, Took: v.Elapsed}
	switch v.Verdict {
	case loop.Approved:
		out.Tone = Good
	case loop.Rejected:
		out.Tone = Bad
	}
	for i, f := range v.Items {
		if i == maxItems {
			out.Items = append(out.Items, fmt.Sprintf("… %d more", len(v.Items)-i))
			break
		}
		out.Items = append(out.Items, Line(fmt.Sprintf("[%s] %s", f.Severity, itemLine(f.Item)), 400))
	}
	return out
}

func itemLine(i failure.Item) string {
	place := i.File
	if place != "" && i.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, i.Line)
	}
	var parts []string
	for _, p := range []string{place, i.Test, i.Message} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if i.Expected != "" || i.Received != "" {
		parts = append(parts, fmt.Sprintf("expected %s, received %s", i.Expected, i.Received))
	}
	return Line(strings.Join(parts, ": "), 300)
}

// failures groups them by fingerprint.
func (r *Report) failures(records []loop.Record, all []Iteration) {
	number := map[string]int{}
	var groups []Failure
	for i := range records {
		f := records[i].Failure
		if f == nil {
			continue
		}
		n, ok := number[f.Fingerprint]
		if !ok {
			n = len(groups)
			number[f.Fingerprint] = n
			groups = append(groups, Failure{})
		}
		g := &groups[n]
		g.Class, g.Summary, g.Step, g.Severity, g.Transient = Line(string(f.Class), 60), Line(f.Summary, longText), Line(f.Step, 100), Line(string(f.Severity), 60), f.Transient
		g.Times++
		g.Where = labelled(g.Where, all[i].Label, g.Times)
		g.Actions = nil
		for _, a := range f.Actions {
			g.Actions = append(g.Actions, Line(a, 300))
		}
	}
	slices.SortStableFunc(groups, func(a, b Failure) int { return b.Times - a.Times })
	r.Failures, r.MoreKinds = groups[:min(len(groups), maxFailures)], max(0, len(groups)-maxFailures)
}

// labelled appends the n-th label, or a mark that there are more.
func labelled(list []string, label string, n int) []string {
	switch {
	case n <= maxLabels:
		return append(list, label)
	case n == maxLabels+1:
		return append(list, "…")
	}
	return list
}

// strategies sums up what each was used for.
func (r *Report) strategies(records []loop.Record, all []Iteration) {
	number := map[string]int{}
	var costs []loop.MicroUSD
	var known []bool
	for i := range records {
		rec := &records[i]
		n, ok := number[rec.Strategy]
		if !ok {
			n = len(r.Strategies)
			number[rec.Strategy] = n
			r.Strategies = append(r.Strategies, Strategy{Name: cmp.Or(all[i].Strategy, "none")})
			costs, known = append(costs, 0), append(known, false)
		}
		s := &r.Strategies[n]
		s.Used++
		s.Where = labelled(s.Where, all[i].Label, s.Used)
		s.Took += rec.Took()
		costs[n] += rec.Cost
		known[n] = known[n] || all[i].Cost != ""
		switch rec.Outcome {
		case loop.Success:
			s.Succeeded++
		case loop.Failed:
			s.Failed++
		}
	}
	for n := range r.Strategies {
		if known[n] {
			r.Strategies[n].Cost = costs[n].String()
		}
	}
}

// changes counts how many iterations changed each file. Without snapshots the
// records are all that is known.
func (r *Report) changes(in Input) {
	times := map[string]int{}
	var order []string
	for i := range in.Records {
		for _, f := range in.Records[i].Files {
			if times[f]++; times[f] == 1 {
				order = append(order, f)
			}
		}
	}
	c := Changes{}
	if in.Changes != nil {
		c = *in.Changes
		c.Files = slices.Clone(c.Files)
		for i := range c.Files {
			c.Files[i].Times = times[c.Files[i].Path]
		}
	} else {
		for _, f := range order {
			c.Files = append(c.Files, File{Status: "changed", Path: f, Times: times[f]})
		}
	}
	if in.Changes == nil && len(order) == 0 {
		return
	}
	if len(c.Files) > maxFiles {
		c.Files, c.More = c.Files[:maxFiles], true
	}
	for i := range c.Files {
		c.Files[i].Path = path(c.Files[i].Path)
	}
	r.Changes = &c
}

func (r *Report) question(in Input) {
	q := in.State.Question
	if q == nil || in.Status.Active() || in.Status == loop.Completed {
		return
	}
	r.Question = &Question{Text: Line(q.Text, 2000), Pattern: Line(q.Pattern, longText)}
	for _, a := range q.Attempts {
		r.Question.Attempts = append(r.Question.Attempts, Line(a, 300))
	}
	for _, c := range q.Choices {
		r.Question.Options = append(r.Question.Options, Line(c.Text, 200))
	}
}

// notes are the moments that a person should know of.
func (r *Report) notes(moments []Moment) {
	for _, m := range moments {
		n := Note{At: m.At, Tone: Plain}
		text := Line(m.Text, longText)
		switch m.Kind {
		case Resumed:
			n.Text = "resumed" + after(" from ", text)
		case Recovered:
			n.Text, n.Tone = "found again after a crash"+after(": ", text), Wait
		case Asked:
			n.Text, n.Tone = "a person was asked"+after(": ", text), Wait
		case Answered:
			n.Text = "answered" + after(": ", text)
		case Warned:
			n.Text, n.Tone = text, Wait
		case RolledBack:
			n.Text, n.Tone = "rolled back"+after(" to ", text), Wait
		case Applied:
			n.Text = "applied" + after(": ", text)
		default:
			continue
		}
		r.Notes = append(r.Notes, n)
	}
	if over := len(r.Notes) - maxNotes; over > 0 {
		r.Notes = r.Notes[over:]
	}
}

func after(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
