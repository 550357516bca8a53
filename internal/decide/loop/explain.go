package loop

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// feedbackOn makes the next prompt's text about an iteration.
func (s *State) feedbackOn(r *Record) *Feedback {
	f := &Feedback{Iteration: r.Number, Malformed: r.Malformed, Tried: s.failuresBefore(r.Number)}
	told := r.Outcome == Failed || r.Outcome == Asked
	if a := r.Failure; a != nil && told {
		f.Summary, f.Step, f.Items = a.Summary, a.Step, a.Items
		f.ExitCode = max(0, r.exitCodeOfGate(a.Step))
		if advice := a.Advice(); advice != "" {
			f.Notes = append(f.Notes, advice)
		}
	}
	s.boundFeedback(f, r)
	if again := s.sameAgain(); again != "" && r.Failure != nil && r.Failure.Kind == failure.Work {
		f.Notes = append(f.Notes, again)
	}
	if nudge := s.Guards.nudgeText(s.Policy.Stuck); nudge != "" {
		f.Notes = append(f.Notes, nudge)
	}
	if r.wasCutOff() {
		f.Notes = append(f.Notes, noteCut)
	}
	if r.Exit.Ended == EndedTimeout && r.Outcome != Failed {
		f.Notes = append(f.Notes, "The iteration before this one ran out of time after it had committed work.")
	}
	if len(r.Secrets) > 0 {
		f.Notes = append(f.Notes, secretNote(r.Secrets))
	}
	return f
}

// exitCodeOfGate is the exit status of a gate; 0 where it has none.
func (r *Record) exitCodeOfGate(gate string) int {
	for _, g := range r.Gates {
		if g.Name == gate {
			return g.ExitCode
		}
	}
	return 0
}

// sameAgain notes that the last iterations failed alike, so that the prompts of two
// agents differ; "" when they did not.
func (s *State) sameAgain() string {
	n, last := 0, ""
	for _, p := range slices.Backward(s.Recent) {
		if p.Outcome == Asked {
			continue
		}
		if n == 0 {
			last = p.Fingerprint
		}
		if p.Outcome != Failed || p.Fingerprint != last {
			break
		}
		n++
	}
	if n < 2 || last == "" {
		return ""
	}
	return fmt.Sprintf("The same failure %d times in a row: earlier repairs did not help.", n)
}

// noteRewind rewrites a feedback whose iteration's files were replaced by those of the
// best one: its items are about files that are not there any more.
func (s tactics) noteRewind(f *Feedback) {
	was := cmp.Or(f.Summary, "it failed")
	f.Summary, f.Step, f.ExitCode, f.Items, f.Dropped = "", "", 0, nil, 0
	note := fmt.Sprintf("The files are as iteration %d left them, the best so far", s.Best.Number)
	for _, p := range s.Recent {
		if p.Number == s.Best.Number && p.Summary != "" {
			note += "; what was wrong then: " + p.Summary
		}
	}
	f.Notes = append(f.Notes, note+".", fmt.Sprintf("The work of iteration %d was discarded: %s", f.Iteration, was))
}

// withInstruction adds what the strategy of the next iteration asks for. A fixed own
// strategy speaks in the first prompt too; the built-in ones speak of a failure.
func (s tactics) withInstruction(f *Feedback) *Feedback {
	if s.Strategy == strategy.Default {
		return f // nothing is kept, too: that would be the strategy
	}
	st := strategy.At(s.Strategy, s.Policy.Strategies)
	if f == nil {
		if st.Instruction == "" || strategy.BuiltIn(st.Name) {
			return nil
		}
		f = &Feedback{}
	}
	f.Strategy, f.Instruction = st.Name, st.Instruction
	for _, name := range s.Kept {
		if k := strategy.At(name, s.Policy.Strategies); name != s.Strategy && k.Instruction != "" {
			f.Notes = append(f.Notes, k.Instruction)
		}
	}
	return f
}

const noteCut = "The iteration before this one was interrupted; its changes may be incomplete."

// lastFeedback rebuilds the feedback of a resumed run.
func (s *State) lastFeedback() *Feedback {
	f := &Feedback{}
	if n := len(s.Recent); n > 0 {
		last := s.Recent[n-1]
		f.Iteration, f.Summary, f.Tried = last.Number, last.Summary, s.failuresBefore(last.Number)
		if last.Cut {
			f.Notes = append(f.Notes, noteCut)
		}
	}
	if c := s.Command.Feedback; c != nil && c.Iteration == f.Iteration {
		f.Items, f.Step = c.Items, c.Step
	}
	return f
}

// addToFeedback adds the question, what the last iteration left to repair, and what was noted about it.
func (q *Question) addToFeedback(f *Feedback) {
	if q != nil {
		f.Question, f.Asker, f.Items, f.Step, f.ExitCode = q.Text, q.Asker, q.Items, q.Step, q.ExitCode
		f.Notes = lists.Union(f.Notes, q.Notes...)
	}
}

const maxTried = 5

// failuresBefore has a line for each failed iteration before number, oldest first.
func (s *State) failuresBefore(number int) []string {
	var lines []string
	for _, p := range s.Recent {
		if p.Outcome == Failed && p.Number < number {
			lines = append(lines, p.summaryLine())
		}
	}
	return lines[max(0, len(lines)-maxTried):]
}

func (p *Past) summaryLine() string {
	text, how := cmp.Or(p.Summary, p.Found, string(p.Outcome)), p.Strategy
	if p.Step != "" {
		how += ", check " + p.Step
	}
	if p.Found != "" && !strings.Contains(p.Found, text) {
		text += " (" + p.Found + ")"
	} else if p.Found != "" {
		text = p.Found
	}
	return fmt.Sprintf("Iteration %d (%s): %s", p.Number, how, text)
}

// askAfterStop is a question after anything that stopped the loop; guard is the one that did.
func (s turn) askAfterStop(text, guard string) *Question {
	if hint := s.hintForGuard(guard); hint != "" {
		text += s.savingsText() + "\n\n" + hint
	}
	return s.newQuestion(text+"\n\nHow should it continue?", control.Choices(s.offerAfter(guard)))
}

// newQuestion makes an escalation from what was tried. Without choices any
// answer is for the agent.
func (s turn) newQuestion(text string, choices []control.Choice) *Question {
	q := &Question{Text: text, Choices: choices, NoDiff: s.isControlled() && !s.controlSettings().IncludeDiff}
	q.Options = append(q.Options, lists.Each(choices, func(c control.Choice) string { return c.Text })...)
	var history []control.Past
	for _, p := range s.Recent {
		q.Attempts = append(q.Attempts, p.summaryLine())
		if p.Outcome == Failed {
			history = append(history, control.Past{
				Class: failure.Class(p.Class), Fingerprint: p.Fingerprint, Summary: p.Summary, Where: p.Where,
			})
		}
	}
	q.Pattern = control.Pattern(history)
	return q
}

// Errors of CanResume.
var (
	ErrFinal       = errors.New("the run is completed")
	ErrActive      = errors.New("the run is active")
	ErrNeedsAnswer = errors.New("the run waits for an answer")
	ErrAtLimit     = errors.New("the run is at its limit")
)

// CanResume returns the reason for which a Resumed event with that policy would
// change nothing; nil means that the run resumes.
func (s State) CanResume(p *Policy) error {
	switch s.Status {
	case Completed, "":
		return ErrFinal
	case Running, Waiting:
		return ErrActive
	case Pending:
		return ErrNeedsAnswer
	}
	t := turn{tactics{&s}} // a copy
	t.renewPolicy(p)
	if c := t.endByLimits(nil); c != nil {
		return fmt.Errorf("%w: %s", ErrAtLimit, c.Why)
	}
	return nil
}

// String shows money as $1.23, and what is less than a cent in full: $0.004.
func (m MicroUSD) String() string {
	if m > 0 && m < 10_000 {
		return strings.TrimRight(fmt.Sprintf("$0.%06d", int64(m)), "0")
	}
	cents := (int64(m) + 5000) / 10000
	return fmt.Sprintf("$%d.%02d", cents/100, cents%100)
}

// Money is a cost for people; "" where nothing of it is known. "≥" is for one that is not all of it.
func Money(cost MicroUSD, known, partial bool) string {
	switch {
	case !known, partial && cost == 0:
		return ""
	case partial:
		return "≥ " + cost.String()
	}
	return cost.String()
}

// Money shows the cost with "≥" where it is not all of it.
func (s *Spent) Money() string { return Money(s.Cost, s.CostKnown, s.CostPartial) }

// limitText shows a limit: whole dollars without cents.
func (m MicroUSD) limitText() string {
	if m%1_000_000 == 0 {
		return fmt.Sprintf("$%d", int64(m)/1_000_000)
	}
	return m.String()
}

// Feedback is what the next prompt says about the iterations before it.
type Feedback struct {
	Iteration int    `json:"iteration"` // the one that it is about, 1-based
	Summary   string `json:"summary,omitempty"`
	Step      string `json:"step,omitempty"` // the gate that was red; empty for the agent itself
	// ExitCode is that of the red gate; 0 where it had none.
	ExitCode int            `json:"exit_code,omitempty"`
	Items    []failure.Item `json:"items,omitempty"` // at most 20
	// Dropped counts the items that iteration control left no room for.
	Dropped int `json:"dropped,omitempty"`
	// Malformed are sentences about signals that did not count.
	Malformed []string `json:"malformed,omitempty"`
	// Tried has one line for each earlier failed iteration, oldest first, at most 5.
	Tried []string `json:"tried,omitempty"`
	// Strategy and Instruction say how this iteration is to differ.
	Strategy    string `json:"strategy,omitempty"`
	Instruction string `json:"instruction,omitempty"`
	// Answer is a person's, to the question in Question.
	Question string `json:"question,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// Asker is the step that asked; "" where it was none.
	Asker string `json:"asker,omitempty"`
	// Answers are those to the questions of steps, where each has its own.
	Answers []StepAnswer `json:"answers,omitempty"`
	// Notes are pawl's own, e.g. that the iteration before was interrupted.
	Notes []string `json:"notes,omitempty"`
}

// StepAnswer is a person's answer to a step that asks.
type StepAnswer struct {
	Step     string `json:"step"`
	Question string `json:"question"`
	Text     string `json:"text"`
}

// AnswerTo is a person's answer to a step; ok is false without one.
func (f *Feedback) AnswerTo(step string) (a StepAnswer, ok bool) {
	if f == nil {
		return a, false
	}
	for _, a := range f.Answers {
		if a.Step == step && a.Text != "" {
			return a, true
		}
	}
	return StepAnswer{f.Asker, f.Question, f.Answer}, f.Asker == step && f.Answer != ""
}

const hintStuck = "What often helps: the work may be done, or the goal unclear. Say what is missing."

// hints say what a person may look at first, by the guard that stopped the loop.
var hints = map[string]string{
	GuardBreaker: "What often helps: run the red gate yourself. If the task is too large, split it; if the gate " +
		"expects something else than the task says, tell which is right.",
	GuardRegression: "What often helps: each attempt made it worse, so go back to the best one and name another " +
		"approach.",
	GuardThrashing: "What often helps: the same file is changed again and again, so its design may stand in the way. " +
		"Say where the code belongs, or have it split first.",
	GuardOscillation: "What often helps: two approaches undo each other. Choose one of them.",
	GuardRepeated: "What often helps: nothing that was tried reaches the cause. It may be outside of the code: the " +
		"environment, a fixture, a protected file, or what the test expects.",
	GuardStuck:      hintStuck,
	GuardStandstill: hintStuck,
}

// hintForGuard names a first thing to look at. Where no check judges, no advice is about one.
func (s *State) hintForGuard(guard string) string {
	checked := slices.ContainsFunc(s.Recent, func(p *Past) bool { return p.Step != "" || p.Score >= 0 })
	if hint := unchecked[guard]; hint != "" && !checked {
		return hint
	}
	return hints[guard]
}

// unchecked are the hints for work that no check has judged.
var unchecked = map[string]string{
	GuardBreaker: "What often helps: read what the agent printed last. If the task is too large, split " +
		"it; if something that it needs is missing, say so.",
	GuardRepeated: "What often helps: nothing that was tried reaches the cause. It may be outside of the code: the " +
		"environment, a program, a login.",
}

// offerAfter lists the choices that help now; guard is the one that stopped the loop, "" none.
func (s *State) offerAfter(guard string) control.Offer {
	o := control.Offer{Task: s.Policy.Kind == Task}
	if n := len(s.Recent); n > 0 && s.Policy.Kind != Workflow {
		last := s.Recent[n-1]
		if s.Best.Snapshot != "" && s.Best.Number < last.Number && s.Best.Score > last.Score {
			o.Best = s.Best.Number
		}
		o.Kept = s.Green
	}
	if at := s.thresholdOf(guard); at != nil {
		o.Limit = fmt.Sprintf("%s from %d to %d", guard, *at, 2**at)
	}
	return o
}

// savingsText estimates, by the iterations before, the time and cost of those that are left; "" for
// none.
func (s *State) savingsText() string {
	left := s.Limit - s.Iteration
	if left <= 0 || s.Iteration == 0 {
		return ""
	}
	took := s.Spent.Active / time.Duration(s.Iteration) * time.Duration(left)
	if took < time.Minute && s.Spent.Cost == 0 {
		return "" // it saves nothing that is felt
	}
	text := fmt.Sprintf("\n\n%d of %d iterations were not needed; by the average of the others that saves %s",
		left, s.Limit, Duration(took))
	if s.Spent.Cost > 0 {
		text += " and " + (s.Spent.Cost / MicroUSD(s.Iteration) * MicroUSD(left)).String()
	}
	return text + "."
}

// thresholdOf a guard; nil for one that has none.
func (s *State) thresholdOf(guard string) *int {
	switch guard {
	case GuardBreaker:
		return &s.Policy.FailureThreshold
	case GuardThrashing:
		return &s.Policy.Thrashing
	case GuardRepeated:
		return &s.Policy.Repeated
	case GuardStuck:
		return &s.Policy.Stuck
	case GuardStandstill:
		return &s.Policy.StuckLimit
	}
	return nil
}

// raiseGuard lets the guard that stopped the run count to twice as many, also when
// the run is resumed later.
func (s *State) raiseGuard(guard string) {
	if at := s.thresholdOf(guard); at != nil {
		*at *= 2
		s.Raised = maps.Clone(s.Raised)
		if s.Raised == nil {
			s.Raised = map[string]int{}
		}
		s.Raised[guard] = *at
	}
}

// keepRaised applies the thresholds that a person raised to the present configuration, but
// for a guard that is off there.
func (s *State) keepRaised() {
	for guard, to := range s.Raised { // order does not show: each has a threshold of its own
		if at := s.thresholdOf(guard); at != nil && *at > 0 {
			*at = max(*at, to)
		}
	}
}

// Said is what a person said to the agents of a run: an answer with its question, or
// a message, whose question is empty.
type Said struct {
	// Iteration is the one before it; 0 before the first, and in an earlier run of the task.
	Iteration int    `json:"iteration,omitempty"`
	Step      string `json:"step,omitempty"` // of a workflow, that asked
	Question  string `json:"question,omitempty"`
	Text      string `json:"text"`
}

// The bounds of what a run keeps of a person's words.
const (
	maxSaid      = 40   // newest kept
	maxWhole     = 5    // newest kept whole
	maxSaidText  = 4000 // bytes of a whole one
	maxSaidAsked = 1000 // bytes of its question
	maxSaidLine  = 200  // bytes of an older one, and of its question
)

// addMemory adds what a person said. It stays in every later prompt: the newest as it
// was said, older ones as one line.
func (s *State) addMemory(said ...Said) {
	list := append([]Said(nil), s.Memory...) // states share what they have
	for _, one := range said {
		one.Text = cutToBytes(strings.TrimSpace(one.Text), maxSaidText)
		one.Question = cutToBytes(strings.TrimSpace(one.Question), maxSaidAsked)
		if one.Text != "" {
			list = append(list, one)
		}
	}
	list = list[max(0, len(list)-maxSaid):]
	for i := range max(0, len(list)-maxWhole) {
		list[i].Question, list[i].Text = cutToLine(list[i].Question), cutToLine(list[i].Text)
	}
	s.Memory = list
}

// inheritMemory takes over what was said in the earlier runs of the task.
func (s *State) inheritMemory(said []Said) {
	for _, one := range said {
		one.Iteration = 0
		s.addMemory(one)
	}
}

func cutToLine(text string) string {
	return cutToBytes(strings.Join(strings.Fields(text), " "), maxSaidLine)
}

// asMemory lists the answers to add to the memory.
func (f *Feedback) asMemory() []Said {
	list := lists.Each(f.Answers, func(a StepAnswer) Said { return Said{f.Iteration, a.Step, a.Question, a.Text} })
	if f.Answer != "" {
		list = append(list, Said{f.Iteration, f.Asker, f.Question, f.Answer})
	}
	return list
}

// Earlier is the memory without the answers that the feedback has itself.
func (f *Feedback) Earlier(memory []Said) []Said {
	if f == nil {
		return memory
	}
	return memory[:max(0, len(memory)-len(f.asMemory()))]
}
