package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/engine"
)

// Name is the kind of an event. It is part of the configuration and of what
// receivers read, so names do not change.
type Name string

// The events.
const (
	Start       Name = "start"        // a run starts or resumes
	Complete    Name = "complete"     // a run is complete
	PreMerge    Name = "pre_merge"    // a landing is about to begin
	PostMerge   Name = "post_merge"   // work landed
	Conflict    Name = "conflict"     // a landing conflicts
	Pause       Name = "pause"        // a run or the autopilot pauses
	Error       Name = "error"        // a run failed, was aborted, or reached a limit
	Escalation  Name = "escalation"   // a person is asked
	Budget      Name = "budget"       // the cost nears or reaches what is allowed
	SprintStart Name = "sprint_start" // a sprint has started
	SprintEnd   Name = "sprint_end"   // a sprint is over
)

// Names are all events, in the order in which a task can meet them.
func Names() []Name {
	return []Name{Start, Complete, PreMerge, PostMerge, Conflict, Pause, Error, Escalation, Budget, SprintStart, SprintEnd}
}

// Event is what happened. Receivers get it as JSON: fields can be added, but
// names must not change. What does not apply is empty.
type Event struct {
	Name Name      `json:"event"`
	At   time.Time `json:"at"`
	// Text says it to a person in a few lines; made of the rest when empty.
	Text string `json:"text"`

	Case      string `json:"case,omitempty"`  // of the board, e.g. task-042
	Title     string `json:"title,omitempty"` // of the case
	Run       string `json:"run,omitempty"`
	Subject   string `json:"name,omitempty"`      // the procedure or workflow, or what else this is about
	Workspace string `json:"workspace,omitempty"` // the folder that is worked in
	Branch    string `json:"branch,omitempty"`    // that is worked on
	Target    string `json:"target,omitempty"`    // the branch of a landing
	Commit    string `json:"commit,omitempty"`    // that landed or is to land
	Agent     string `json:"agent,omitempty"`

	Status     string        `json:"status,omitempty"` // of the run or case after it
	Why        string        `json:"why,omitempty"`
	Iterations int           `json:"iterations,omitempty"` // used up so far
	Duration   time.Duration `json:"-"`                    // so far; duration_ms in JSON
	CostUSD    *float64      `json:"cost_usd,omitempty"`   // nil when not known

	Question *Question `json:"question,omitempty"`
	Conflict *Clash    `json:"conflict,omitempty"`
	Error    *Trouble  `json:"error,omitempty"`

	asks bool // an escalation of the same end follows
}

// Question is a question to a person.
type Question struct {
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"` // numbered from 1
	Answer  string   `json:"answer,omitempty"`  // the command that answers it
}

// Clash is a conflict of a landing.
type Clash struct {
	Level string   `json:"level"` // simple, medium, complex
	Files []string `json:"files"`
}

// Trouble describes a problem of a run.
type Trouble struct {
	Code     string `json:"code"` // the class of the failure, or the guard
	Message  string `json:"message"`
	Severity string `json:"severity,omitempty"` // low, medium, high, critical
}

// MarshalJSON writes the duration in milliseconds.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return json.Marshal(struct {
		plain
		Duration int64 `json:"duration_ms,omitempty"`
	}{plain(e), e.Duration.Milliseconds()})
}

// completeEvent fills in what the sender may leave out.
func (e Event) completeEvent(now time.Time) Event {
	if e.At.IsZero() {
		e.At = now
	}
	e.At = e.At.UTC()
	e.Text = makePrintable(cmp.Or(e.Text, e.describeEvent()), maxText)
	return e
}

// maxText bounds the text of a notification, in bytes.
const maxText = 2000

// subjectText names what the event is about.
func (e Event) subjectText() string {
	name := e.Subject
	switch {
	case e.Case != "" && e.Title != "":
		name = e.Case + ": " + e.Title
	case e.Case != "":
		name = e.Case
	}
	switch {
	case name == "" && e.Run != "":
		return "run " + e.Run
	case name == "":
		return "pawl"
	case e.Run != "":
		return name + " (run " + e.Run + ")"
	}
	return name
}

func (e Event) describeEvent() string {
	who := e.subjectText()
	because := ""
	if e.Why != "" {
		because = ": " + e.Why
	}
	switch e.Name {
	case Start:
		return who + " starts" + because
	case Complete:
		return who + " is complete" + e.effortText() + because
	case PreMerge:
		return who + " is about to land" + e.targetText()
	case PostMerge:
		return who + " landed" + e.targetText() + because
	case Conflict:
		return who + " conflicts" + e.conflictText() + because
	case Pause:
		return who + " is paused" + because
	case Error:
		return who + " " + e.endingText() + e.effortText() + because
	case Escalation:
		return who + " needs you" + e.questionText(because)
	case Budget, SprintStart, SprintEnd:
		return who + because
	}
	return who + " " + string(e.Name) + because
}

// effortText is " after 3 iterations, 4m12s".
func (e Event) effortText() string {
	if e.Iterations == 0 {
		return ""
	}
	return fmt.Sprintf(" after %s, %s", fault.Numbered(e.Iterations, "iteration"), e.Duration.Round(time.Second))
}

func (e Event) targetText() string {
	text := ""
	if e.Target != "" {
		text = " on " + e.Target
	}
	if e.Commit != "" {
		text += " as " + e.Commit[:min(len(e.Commit), 12)]
	}
	return text
}

func (e Event) conflictText() string {
	if e.Conflict == nil {
		return ""
	}
	return fmt.Sprintf(" (%s) in %s", e.Conflict.Level, strings.Join(e.Conflict.Files, ", "))
}

func (e Event) endingText() string {
	if e.Status == "" {
		return "failed"
	}
	return "ended: " + e.Status
}

func (e Event) questionText(because string) string {
	if e.Question == nil {
		return because
	}
	var b strings.Builder
	b.WriteString(": " + e.Question.Text)
	for i, o := range e.Question.Options {
		fmt.Fprintf(&b, "\n%d. %s", i+1, o)
	}
	if e.Question.Answer != "" {
		b.WriteString("\nAnswer with: " + e.Question.Answer)
	}
	return b.String()
}

// maxVariable bounds the value of one variable, in bytes.
const maxVariable = 8 << 10

// eventVariables are the event for a command's environment; what does not apply has
// no value.
func (e Event) eventVariables() []variable {
	iterations, elapsed, cost := "", "", ""
	if e.Agent != "" || e.Iterations > 0 { // a run's
		iterations, elapsed = strconv.Itoa(e.Iterations), strconv.FormatInt(e.Duration.Milliseconds(), 10)
	}
	if e.CostUSD != nil {
		cost = strconv.FormatFloat(*e.CostUSD, 'f', -1, 64)
	}
	question, conflict, trouble := valueOrZero(e.Question), valueOrZero(e.Conflict), valueOrZero(e.Error)
	return []variable{
		{"PAWL_EVENT", string(e.Name)}, {"PAWL_TEXT", e.Text}, {"PAWL_CASE", e.Case}, {"PAWL_TITLE", e.Title},
		{"PAWL_RUN", e.Run}, {"PAWL_NAME", e.Subject}, {"PAWL_WORKSPACE", e.Workspace}, {"PAWL_BRANCH", e.Branch},
		{"PAWL_TARGET", e.Target},
		{"PAWL_COMMIT", e.Commit}, {"PAWL_AGENT", e.Agent}, {"PAWL_STATUS", e.Status}, {"PAWL_WHY", e.Why},
		{"PAWL_ITERATIONS", iterations}, {"PAWL_DURATION_MS", elapsed}, {"PAWL_COST_USD", cost},
		{"PAWL_QUESTION", question.Text},
		{"PAWL_CONFLICT_LEVEL", conflict.Level}, {"PAWL_CONFLICT_FILES", strings.Join(conflict.Files, "\n")},
		{"PAWL_ERROR_CODE", trouble.Code}, {"PAWL_ERROR_MESSAGE", trouble.Message},
		{"PAWL_ERROR_SEVERITY", trouble.Severity},
	}
}

type variable struct{ name, value string }

func valueOrZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// makePrintable drops control characters, line breaks and tabs aside, and what turns the direction
// of writing, and cuts after most bytes.
func makePrintable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		control := r != '\n' && r != '\t' && unicode.IsControl(r)
		if control || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}

// About is what its notices do not say of a run. A field that does not apply is empty.
type About struct {
	Name        string // of the procedure or workflow
	Case, Title string
	Workspace   string
	Branch      string
}

// Watch makes events of the notices of one run, and fires them: the start, 80 %
// and all of its cost, its pause, its questions, and how it ended. The notices
// are those of one engine.Driver, one at a time. A stop by a person is no
// event.
func (r *Runner) Watch(ctx context.Context, a About) func(engine.Notice) {
	if r == nil {
		return func(engine.Notice) {}
	}
	w := watcher{about: a}
	return func(n engine.Notice) {
		for _, e := range w.eventsOf(n) {
			r.Fire(ctx, e)
		}
	}
}

type watcher struct {
	about  About
	warned bool         // of the cost
	late   bool         // of the time
	last   *loop.Record // the iteration that ended last
}

func (w *watcher) eventsOf(n engine.Notice) []Event {
	var out []Event
	switch n.Kind {
	case engine.RunStarted, engine.RunResumed:
		w.warned, w.late = n.State.Warned, n.State.Late
		e := w.newEvent(Start, n)
		e.Why = ""
		if n.Kind == engine.RunResumed {
			e.Why = "it continues"
		}
		return append(out, e)
	case engine.Warning:
		late, near := n.NearTime && !w.late, n.NearCost && !w.warned
		if late || near {
			w.late, w.warned = w.late || n.NearTime, w.warned || n.NearCost
			e := w.newEvent(Budget, n)
			e.Why = n.Text
			return append(out, e)
		}
	case engine.IterationEnded:
		w.last = n.Record
	case engine.RunEnded:
		return append(w.budgetEvents(n), w.endEvents(n)...)
	}
	return w.budgetEvents(n)
}

// budgetEvents: 80 % of the cost or of the time is spent, or all of the cost, each
// once. A limit on time that ended the run is an error, which names it.
func (w *watcher) budgetEvents(n engine.Notice) []Event {
	limit := n.State.Policy.MaxCost
	if n.State.Late && !w.late && n.Kind != engine.RunEnded {
		w.late = true
		e := w.newEvent(Budget, n)
		e.Why = n.State.NearTime()
		return []Event{e}
	}
	spent := n.Kind == engine.RunEnded && n.State.Status == loop.TimedOut && limit >= 0 && n.State.Spent.Cost >= limit
	near := n.State.Warned && !w.warned
	if !spent && !near {
		return nil
	}
	w.warned = true
	e := w.newEvent(Budget, n)
	e.Why = fmt.Sprintf("cost %s is over 80 %% of the limit %s", n.State.Spent.Cost, limit)
	if spent {
		e.Why = fmt.Sprintf("cost %s has reached the limit %s", n.State.Spent.Cost, limit)
	}
	return []Event{e}
}

// endEvents of a run that rests. A guard that ends a run asks a person, too.
func (w *watcher) endEvents(n engine.Notice) []Event {
	var out []Event
	switch n.State.Status {
	case loop.Completed:
		out = append(out, w.newEvent(Complete, n))
	case loop.Paused:
		out = append(out, w.newEvent(Pause, n))
	case loop.Aborted, loop.FailedRun, loop.TimedOut, loop.Exhausted:
		e := w.newEvent(Error, n)
		e.Error, e.asks = w.troubleOf(n), n.State.Question != nil
		out = append(out, e)
	}
	if q := n.State.Question; q != nil {
		e := w.newEvent(Escalation, n)
		e.Question = &Question{Text: q.Text, Options: q.Options, Answer: "pawl answer " + n.Run + ` "…"`}
		out = append(out, e)
	}
	return out
}

// troubleOf a run that ended: its guard, else the last failure, else a limit.
func (w *watcher) troubleOf(n engine.Notice) *Trouble {
	c := n.Command
	t := &Trouble{Code: string(n.State.Status), Message: n.State.Why, Severity: "high"}
	if w.last != nil && w.last.Failure != nil && n.State.Status != loop.TimedOut {
		f := w.last.Failure
		t.Code, t.Message, t.Severity = string(f.Class), f.Summary, string(f.Severity)
	}
	if c.Guard != "" {
		t.Code = c.Guard
		if c.Message != "" {
			t.Message = c.Message
		}
	}
	return t
}

func (w *watcher) newEvent(name Name, n engine.Notice) Event {
	s, a := n.State, w.about
	e := Event{
		Name: name, At: n.At, Case: a.Case, Title: a.Title, Run: n.Run, Subject: a.Name,
		Workspace: a.Workspace, Branch: a.Branch,
		Agent: s.Policy.Agent, Status: string(s.Status), Why: s.Why, Iterations: s.Iteration, Duration: s.Spent.Wall,
	}
	if w.last != nil {
		e.Agent = w.last.Agent
	}
	e.CostUSD = s.Spent.Cost.Dollars(s.Spent.CostKnown)
	return e
}

// OfNote makes an event of a note of the merge queue; ok is false for a note that
// is no event.
func OfNote(n queue.Note, target string) (e Event, ok bool) {
	e = Event{Case: n.ID, Target: target, Why: n.Text}
	if n.ID == "" {
		e.Subject = "the merge queue of " + target
	}
	switch n.Kind {
	case queue.NoteLanded:
		e.Name, e.Status, e.Commit, e.Why = PostMerge, "done", n.Commit, ""
	case queue.NoteConflict:
		e.Name, e.Conflict = Conflict, &Clash{Level: string(n.Class), Files: n.Paths}
	case queue.NoteEscalated:
		e.Name, e.Status = Escalation, "blocked"
		e.Question = &Question{Text: n.Text, Answer: "pawl queue retry " + n.ID +
			" (with all attempts of an agent anew), or pawl queue drop " + n.ID}
	case queue.NoteStopped:
		e.Name, e.Status = Escalation, "paused"
		e.Question = &Question{Text: n.Text, Answer: "pawl queue resume"}
	default:
		return e, false
	}
	return e, true
}

// BeforeLanding is the event of an entry that is about to land.
func BeforeLanding(e queue.Entry, target, commit string) Event {
	return Event{Name: PreMerge, Case: e.ID, Title: e.Title, Run: e.Run, Target: target, Commit: commit}
}
