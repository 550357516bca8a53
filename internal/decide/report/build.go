package report

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Bounds of the lists.
const (
	maxSteps  = 500 // of them headSteps from the beginning
	headSteps = 50
	maxFiles  = 500
	maxNotes  = 100
	maxWork   = 300
	longText  = 600
)

// New makes the report.
func New(in Input) *Report {
	in.Executions = slices.Clone(in.Executions)
	for i := range in.Executions {
		in.Executions[i].Output = lastSpokenLine(in.Executions[i].Output)
	}
	r := &Report{Question: openQuestion(in)}
	r.Input, _ = withTextsOnOneLine(reflect.ValueOf(in), longText).Interface().(Input)
	in = r.Input
	spent := in.State.Spent
	r.Cost = cmp.Or(spent.Money(), "unknown")
	if !spent.CostKnown && in.isWorkflow() && spent.Calls == 0 && len(in.State.Policy.Agent) == 0 {
		r.Cost = "none"
	}
	r.Iterations.Done, r.Iterations.Limit = in.State.Iteration, in.State.Limit
	all := r.labelIterations()
	r.countFailures(all)
	r.countStrategies(all)
	r.countChanges()
	r.sumSteps()
	r.addNotes()
	r.addTimes()
	r.Proof = ProofsOf(&in.Task, in.Records)
	r.Steps = all
	if r.LeftOut = max(0, len(all)-maxSteps); r.LeftOut > 0 {
		r.Steps = slices.Concat(all[:headSteps], all[headSteps+r.LeftOut:])
	}
	return r
}

// withTextsOnOneLine copies a value and makes each text in it one line.
func withTextsOnOneLine(v reflect.Value, limit int) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(Line(v.String(), limit)).Convert(v.Type())
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(withTextsOnOneLine(v.Elem(), limit))
		return out
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(withTextsOnOneLine(v.Index(i), limit))
		}
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if out.Field(i).CanSet() {
				out.Field(i).Set(withTextsOnOneLine(v.Field(i), limit))
			}
		}
		return out
	}
	return v
}

// openQuestion returns the question to a person; nil while the run works.
func openQuestion(in Input) *loop.Question {
	if in.State.Question == nil || in.Status.Active() || in.Status == loop.Completed {
		return nil
	}
	q, _ := withTextsOnOneLine(reflect.ValueOf(in.State.Question), 2000).Interface().(*loop.Question)
	return q
}

// labelIterations labels the attempts and adds them up.
func (r *Report) labelIterations() []Iteration {
	why := map[[2]int]string{}
	for _, m := range r.Moments {
		if m.Kind == Chosen {
			why[[2]int{m.Number, m.Attempt}] = m.Text
		}
	}
	var all []Iteration
	for i := range r.Records {
		rec := &r.Records[i]
		all = append(all, Iteration{rec, labelOfAttempt(rec), why[[2]int{rec.Number, rec.Attempt}]})
		if rec.Agent != "" && !slices.Contains(r.Agents, rec.Agent) {
			r.Agents = append(r.Agents, rec.Agent)
		}
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
		if rec.Steps != nil {
			r.StepCount = rec.Steps.String()
		}
	}
	return all
}

// labelOfAttempt gives the number, with the attempt where there was more than one.
func labelOfAttempt(rec *loop.Record) string {
	if rec.Attempt > 1 || rec.Outcome == loop.Waited {
		return fmt.Sprintf("%d.%d", rec.Number, rec.Attempt)
	}
	return fmt.Sprint(rec.Number)
}

// countFailures groups them by fingerprint.
func (r *Report) countFailures(all []Iteration) {
	for _, it := range all {
		if it.Failure == nil {
			continue
		}
		n := slices.IndexFunc(r.Failures, func(f Failure) bool { return f.Fingerprint == it.Failure.Fingerprint })
		if n < 0 {
			n = len(r.Failures)
			r.Failures = append(r.Failures, Failure{})
		}
		f := &r.Failures[n]
		f.Analysis = it.Failure
		f.Times++
		f.Where = append(f.Where, it.Label)
	}
	slices.SortStableFunc(r.Failures, func(a, b Failure) int { return b.Times - a.Times })
}

// countStrategies sums up what each was used for.
func (r *Report) countStrategies(all []Iteration) {
	for _, it := range all {
		name := cmp.Or(it.Strategy, "none")
		n := slices.IndexFunc(r.Strategies, func(s Strategy) bool { return s.Name == name })
		if n < 0 {
			n = len(r.Strategies)
			r.Strategies = append(r.Strategies, Strategy{Name: name})
		}
		s := &r.Strategies[n]
		s.Used++
		s.Where = append(s.Where, it.Label)
		s.Took += it.Took()
		s.Cost += it.Cost
		s.CostKnown, s.CostPartial = s.CostKnown || it.costKnown(), s.CostPartial || it.CostSource == loop.CostPartial
		switch it.Outcome {
		case loop.Success:
			s.Succeeded++
		case loop.Failed:
			s.Failed++
		}
	}
}

// countChanges counts how many iterations changed each file. Without snapshots
// the records are all that is known.
func (r *Report) countChanges() {
	times := map[string]int{}
	var seen []File
	for i := range r.Records {
		for _, f := range r.Records[i].Files {
			if times[f]++; times[f] == 1 {
				seen = append(seen, File{Status: "changed", Path: f})
			}
		}
	}
	if r.Changes == nil {
		if seen == nil {
			return
		}
		r.Changes = &Changes{Files: seen}
	}
	c := r.Changes
	if len(c.Files) > maxFiles {
		c.Files, c.More = c.Files[:maxFiles], true
	}
	for i := range c.Files {
		c.Files[i].Times = times[c.Files[i].Path]
	}
}

// sumSteps sums up the executions of each step, in the order in which they began.
func (r *Report) sumSteps() {
	active := r.Status.Active()
	for _, e := range r.Executions {
		n := slices.IndexFunc(r.Work, func(s Step) bool { return s.Step == e.Step })
		if n < 0 {
			n = len(r.Work)
			r.Work = append(r.Work, Step{})
		}
		s := &r.Work[n]
		if s.Runs == 0 {
			s.Iterations = fmt.Sprint(e.Iteration)
		} else if s.Iteration != e.Iteration {
			s.Iterations += fmt.Sprintf(", %d", e.Iteration)
		}
		s.Execution = e
		s.Status, s.Tone, s.Mark = stepStatus(e, active)
		s.Runs++
		s.Took += e.Elapsed
	}
	r.MoreWork = max(0, len(r.Work)-maxWork)
	r.Work = r.Work[:len(r.Work)-r.MoreWork]
}

// stepStatus is how a step stands; one that runs in a run that does not was cut off.
func stepStatus(e Execution, active bool) (status string, tone Tone, mark string) {
	switch e.Status {
	case "success":
		return "done", Good, "✓"
	case "failure":
		if e.Optional {
			return "failed, optional", Wait, "✗"
		}
		return "failed", Bad, "✗"
	case "refused":
		return "refused", Bad, "✗"
	case "asking":
		return "asks", Wait, "?"
	case "running":
		if active {
			return "running", Going, "●"
		}
		return "interrupted", Wait, "–"
	}
	return e.Status, Wait, "–"
}

// lastSpokenLine is the last line of an output that says something: not an empty one,
// and an agent's signal only where there is nothing else.
func lastSpokenLine(output string) string {
	signal := ""
	for _, line := range slices.Backward(strings.Split(output, "\n")) {
		line = strings.TrimSpace(line)
		if line != "" && !IsSignal(line) {
			return line
		}
		signal = cmp.Or(signal, line)
	}
	return signal
}

// IsSignal reports whether a line has nothing but a signal of an agent.
func IsSignal(line string) bool {
	return strings.HasPrefix(line, "<promise>") && strings.HasSuffix(line, "</promise>")
}

// noteWords are the moments that a person should know of: the words, what joins
// them to the moment's text, and whether they are a warning.
var noteWords = map[MomentKind]struct {
	words, joint string
	warn         bool
}{
	Resumed:    {"resumed", " from ", false},
	Recovered:  {"found again after a crash", ": ", true},
	Asked:      {"a person was asked", ": ", true},
	Answered:   {"answered", ": ", false},
	Warned:     {"", "", true},
	RolledBack: {"rolled back", " to ", true},
}

func (r *Report) addNotes() {
	for _, m := range r.Moments {
		w, ok := noteWords[m.Kind]
		if !ok {
			continue
		}
		text := w.words
		if m.Text != "" {
			text += w.joint + m.Text
		}
		r.Notes = append(r.Notes, Note{m.At, text, w.warn})
	}
	r.Notes = r.Notes[max(0, len(r.Notes)-maxNotes):]
}

// addTimes divides the duration of the run among agents, gates, reviews and waits. The rest is
// pawl's own.
func (r *Report) addTimes() {
	t := &r.Times
	t.Stepped = r.isWorkflow()
	worked := t.Agents + t.Gates + t.Reviews
	t.Wall = max(r.State.Spent.Wall, worked)
	if t.Going = r.State.Command.Kind == loop.Run; t.Going && r.Status.Active() { // what is under way is not spent yet
		t.Wall += max(0, r.Now.Sub(r.lastChange()))
	}
	t.Waits = min(r.sumWaits(), t.Wall-worked) // without a driver a run does not wait
	t.Rest = t.Wall - worked - t.Waits
}

// isBetween reports whether nothing begins or ends at the moment.
func (m Moment) isBetween() bool {
	return slices.Contains([]MomentKind{Chosen, Asked, Answered, Warned, RolledBack}, m.Kind)
}

// lastChange returns the time of the last moment at which anything began or ended, or r.Now.
func (r *Report) lastChange() time.Time {
	for _, m := range slices.Backward(r.Moments) {
		if !m.isBetween() {
			return m.At
		}
	}
	return r.Now
}

// sumWaits adds up how long the run waited. A wait ends with the next moment of any kind.
func (r *Report) sumWaits() (sum time.Duration) {
	var since time.Time // zero: it does not wait
	end := func(at time.Time) {
		if !since.IsZero() {
			sum += max(0, at.Sub(since))
		}
		since = time.Time{}
	}
	for _, m := range r.Moments {
		if m.isBetween() {
			continue
		}
		if end(m.At); m.Kind == WaitBegan {
			since = m.At
		}
	}
	if r.Status == loop.Waiting {
		end(r.Now)
	}
	return sum
}

// isWorkflow is true when the run is a workflow's.
func (in *Input) isWorkflow() bool { return len(in.Executions) > 0 || in.Kind == string(loop.Workflow) }
