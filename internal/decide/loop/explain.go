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

// feedback is what the next prompt says about this iteration.
func (s *State) feedback(r *Record) *Feedback {
	f := &Feedback{Iteration: r.Number, Malformed: r.Malformed, Tried: s.tried(r.Number)}
	told := r.Outcome == Failed || r.Outcome == Asked
	if a := r.Failure; a != nil && told {
		f.Summary, f.Step, f.Items = a.Summary, a.Step, a.Items
		f.ExitCode = max(0, r.exitOf(a.Step))
		if advice := a.Advice(); advice != "" {
			f.Notes = append(f.Notes, advice)
		}
	}
	s.bounded(f, r)
	if again := s.sameAgain(); again != "" && r.Failure != nil && r.Failure.Kind == failure.Work {
		f.Notes = append(f.Notes, again)
	}
	if r.cut() {
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

// exitOf is the exit status of a gate; 0 where it has none.
func (r *Record) exitOf(gate string) int {
	for _, g := range r.Gates {
		if g.Name == gate {
			return g.ExitCode
		}
	}
	return 0
}

// sameAgain says that the last iterations failed alike, so that the next agent is not
// told word for word what the one before was told; "" when they did not.
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
	return fmt.Sprintf("The same failure for the %s time in a row: what was done against it did not help.", ordinal(n))
}

func ordinal(n int) string {
	switch n {
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

// thrown says of a feedback what is true after its iteration's files were put back to
// those of the best one: its items are about files that are not there any more.
func (s *State) thrown(f *Feedback) {
	was := cmp.Or(f.Summary, "it failed")
	f.Summary, f.Step, f.ExitCode, f.Items, f.Dropped = "", "", 0, nil, 0
	note := fmt.Sprintf("The files are as iteration %d left them, the best so far", s.Best.Number)
	for _, p := range s.Recent {
		if p.Number == s.Best.Number && p.Summary != "" {
			note += "; what was wrong then: " + p.Summary
		}
	}
	f.Notes = append(f.Notes, note+".", fmt.Sprintf("What iteration %d did was thrown away: %s", f.Iteration, was))
}

// instructed adds what the strategy of the next iteration asks for. A fixed own
// strategy speaks in the first prompt too; the built-in ones speak of a failure.
func (s *State) instructed(f *Feedback) *Feedback {
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

// lastFeedback is what a resumed run still knows.
func (s *State) lastFeedback() *Feedback {
	f := &Feedback{}
	if n := len(s.Recent); n > 0 {
		last := s.Recent[n-1]
		f.Iteration, f.Summary, f.Tried = last.Number, last.Summary, s.tried(last.Number)
		if last.Cut {
			f.Notes = append(f.Notes, noteCut)
		}
	}
	if c := s.Command.Feedback; c != nil && c.Iteration == f.Iteration {
		f.Items, f.Step = c.Items, c.Step
	}
	return f
}

const maxTried = 5

// tried has a line for each failed iteration before number, oldest first.
func (s *State) tried(number int) []string {
	var lines []string
	for _, p := range s.Recent {
		if p.Outcome == Failed && p.Number < number {
			lines = append(lines, p.line())
		}
	}
	return lines[max(0, len(lines)-maxTried):]
}

func (p *Past) line() string {
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

// ask is a question after anything that stopped the loop; guard is the one that did.
func (s *State) ask(text, guard string) *Question {
	if hint := hints[guard]; hint != "" {
		text += s.saved() + "\n\n" + hint
	}
	return s.question(text+"\n\nHow should it go on?", control.Choices(s.offer(guard)))
}

// question makes an escalation from what was tried. Without choices any
// answer is for the agent.
func (s *State) question(text string, choices []control.Choice) *Question {
	q := &Question{Text: text, Choices: choices, NoDiff: s.controlled() && !s.control().IncludeDiff}
	for _, c := range choices {
		q.Options = append(q.Options, c.Text)
	}
	var history []control.Past
	for _, p := range s.Recent {
		q.Attempts = append(q.Attempts, p.line())
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

// CanResume says why a Resumed event with that policy would change nothing;
// nil means that the run goes on.
func (s State) CanResume(p *Policy) error {
	switch s.Status {
	case Completed, "":
		return ErrFinal
	case Running, Waiting:
		return ErrActive
	case Pending:
		return ErrNeedsAnswer
	}
	s.renew(p) // on a copy
	if c := s.limits(nil); c != nil {
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

// short shows a limit: whole dollars without cents.
func (m MicroUSD) short() string {
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

// AnswerTo is what a person answered to a step; ok is false where nothing was.
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

// hints say what a person may look at first, by the guard that stopped the loop.
var hints = map[string]string{
	GuardBreaker: "What often helps: run the red gate yourself. If the task is too large, split it; if the gate expects " +
		"something else than the task says, tell which is right.",
	GuardRegression: "What often helps: each attempt made it worse, so go back to the best one and name another approach.",
	GuardThrashing: "What often helps: the same file is changed again and again, so its design may stand in the way. Say " +
		"where the code belongs, or have it split first.",
	GuardOscillation: "What often helps: two approaches undo each other. Decide for one of them.",
	GuardRepeated: "What often helps: nothing that was tried reaches the cause. It may be outside of the code: the " +
		"environment, a fixture, a protected file, or what the test expects.",
	GuardStuck: "What often helps: the work may be done, or the goal unclear. Say what is missing.",
}

// offer is what helps where the loop stands; guard is the one that stopped it, "" none.
func (s *State) offer(guard string) control.Offer {
	o := control.Offer{}
	if n := len(s.Recent); n > 0 && s.Policy.Kind != Workflow {
		last := s.Recent[n-1]
		if s.Best.Snapshot != "" && s.Best.Number < last.Number && s.Best.Score > last.Score {
			o.Best = s.Best.Number
		}
		o.Kept = s.Green
	}
	if at := s.threshold(guard); at != nil {
		o.Limit = fmt.Sprintf("%s from %d to %d", guard, *at, 2**at)
	}
	return o
}

// saved says what the iterations that are left would have taken, by those before; "" for
// none.
func (s *State) saved() string {
	left := s.Limit - s.Iteration
	if left <= 0 || s.Iteration == 0 {
		return ""
	}
	took := s.Spent.Active / time.Duration(s.Iteration) * time.Duration(left)
	text := fmt.Sprintf("\n\nEnded with %d of %d iterations left: as the ones before went, that saves %s", left, s.Limit,
		Duration(took))
	if s.Spent.Cost > 0 {
		text += " and " + (s.Spent.Cost / MicroUSD(s.Iteration) * MicroUSD(left)).String()
	}
	return text + "."
}

// threshold is that of a guard; nil for one that has none.
func (s *State) threshold(guard string) *int {
	switch guard {
	case GuardBreaker:
		return &s.Policy.FailureThreshold
	case GuardThrashing:
		return &s.Policy.Thrashing
	case GuardRepeated:
		return &s.Policy.Repeated
	case GuardStuck:
		return &s.Policy.Stuck
	}
	return nil
}

// raiseGuard lets the guard that stopped the run count to twice as many, also when
// the run is resumed later.
func (s *State) raiseGuard(guard string) {
	if at := s.threshold(guard); at != nil {
		*at *= 2
		s.Raised = maps.Clone(s.Raised)
		if s.Raised == nil {
			s.Raised = map[string]int{}
		}
		s.Raised[guard] = *at
	}
}

// keepRaised holds what a person raised against the configuration as it is now, but
// for a guard that is off there.
func (s *State) keepRaised() {
	for guard, to := range s.Raised { // order does not show: each has a threshold of its own
		if at := s.threshold(guard); *at > 0 {
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

// remembers adds what a person said. It stays in every later prompt: the newest as it
// was said, older ones as one line.
func (s *State) remembers(said ...Said) {
	list := append([]Said(nil), s.Memory...) // states share what they have
	for _, one := range said {
		one.Text = cut(strings.TrimSpace(one.Text), maxSaidText)
		one.Question = cut(strings.TrimSpace(one.Question), maxSaidAsked)
		if one.Text != "" {
			list = append(list, one)
		}
	}
	list = list[max(0, len(list)-maxSaid):]
	for i := range max(0, len(list)-maxWhole) {
		list[i].Question, list[i].Text = line(list[i].Question), line(list[i].Text)
	}
	s.Memory = list
}

// told takes in the messages that an iteration's prompt had.
func (s *State) told(messages []string) {
	for _, text := range messages {
		s.remembers(Said{Iteration: s.Iteration, Text: text})
	}
}

// inherits takes over what was said in the earlier runs of the task.
func (s *State) inherits(said []Said) {
	for _, one := range said {
		one.Iteration = 0
		s.remembers(one)
	}
}

func line(text string) string { return cut(strings.Join(strings.Fields(text), " "), maxSaidLine) }

// answers are what an answered question adds to the memory.
func (f *Feedback) answers() []Said {
	list := lists.Each(f.Answers, func(a StepAnswer) Said { return Said{f.Iteration, a.Step, a.Question, a.Text} })
	if f.Answer != "" {
		list = append(list, Said{f.Iteration, f.Asker, f.Question, f.Answer})
	}
	return list
}

// Earlier is what was said before the answers that the feedback has itself.
func (f *Feedback) Earlier(memory []Said) []Said {
	if f == nil {
		return memory
	}
	return memory[:max(0, len(memory)-len(f.answers()))]
}
