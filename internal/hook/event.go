package hook

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Name is the kind of an event. It is part of the configuration and of what
// receivers read, so names do not change.
type Name string

// The events.
const (
	Start      Name = "start"      // a run starts or goes on
	Complete   Name = "complete"   // a run is complete
	PreMerge   Name = "pre_merge"  // a landing is about to begin
	PostMerge  Name = "post_merge" // work landed
	Conflict   Name = "conflict"   // a landing conflicts
	Pause      Name = "pause"      // a run or the autopilot pauses
	Error      Name = "error"      // a run failed, was aborted, or reached a limit
	Escalation Name = "escalation" // a person is asked
	Budget     Name = "budget"     // the cost nears or reaches what is allowed
	SprintEnd  Name = "sprint_end" // a sprint is over
)

// Names are all events, in the order in which a task can meet them.
func Names() []Name {
	return []Name{Start, Complete, PreMerge, PostMerge, Conflict, Pause, Error, Escalation, Budget, SprintEnd}
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

// Question is what a person is asked.
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

// Trouble is what went wrong.
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

// complete fills in what the sender may leave out.
func (e Event) complete(now time.Time) Event {
	if e.At.IsZero() {
		e.At = now
	}
	e.At = e.At.UTC()
	if e.Text == "" {
		e.Text = e.words()
	}
	e.Text = printable(e.Text, maxText)
	return e
}

// maxText bounds what a person is told, in bytes.
const maxText = 2000

// about names what the event is about.
func (e Event) about() string {
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

func (e Event) words() string {
	who := e.about()
	because := ""
	if e.Why != "" {
		because = ": " + e.Why
	}
	switch e.Name {
	case Start:
		return who + " starts" + because
	case Complete:
		return who + " is complete" + e.effort() + because
	case PreMerge:
		return who + " is about to land" + e.onto()
	case PostMerge:
		return who + " landed" + e.onto() + because
	case Conflict:
		return who + " conflicts" + e.clash() + because
	case Pause:
		return who + " is paused" + because
	case Error:
		return who + " " + e.ending() + e.effort() + because
	case Escalation:
		return who + " needs you" + e.asked(because)
	case Budget, SprintEnd:
		return who + because
	}
	return who + " " + string(e.Name) + because
}

// effort is " after 3 iterations, 4m12s".
func (e Event) effort() string {
	if e.Iterations == 0 {
		return ""
	}
	plural := "s"
	if e.Iterations == 1 {
		plural = ""
	}
	return fmt.Sprintf(" after %d iteration%s, %s", e.Iterations, plural, e.Duration.Round(time.Second))
}

func (e Event) onto() string {
	text := ""
	if e.Target != "" {
		text = " on " + e.Target
	}
	if e.Commit != "" {
		text += " as " + e.Commit[:min(len(e.Commit), 12)]
	}
	return text
}

func (e Event) clash() string {
	if e.Conflict == nil {
		return ""
	}
	return fmt.Sprintf(" (%s) in %s", e.Conflict.Level, strings.Join(e.Conflict.Files, ", "))
}

func (e Event) ending() string {
	if e.Status == "" {
		return "failed"
	}
	return "ended: " + e.Status
}

func (e Event) asked(because string) string {
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

// variables are the event for a command's environment; what does not apply has
// no value.
func (e Event) variables() []variable {
	iterations, elapsed, cost := "", "", ""
	if e.Agent != "" || e.Iterations > 0 { // a run's
		iterations, elapsed = strconv.Itoa(e.Iterations), strconv.FormatInt(e.Duration.Milliseconds(), 10)
	}
	if e.CostUSD != nil {
		cost = strconv.FormatFloat(*e.CostUSD, 'f', -1, 64)
	}
	question, conflict, trouble := orZero(e.Question), orZero(e.Conflict), orZero(e.Error)
	return []variable{
		{"PAWL_EVENT", string(e.Name)}, {"PAWL_TEXT", e.Text}, {"PAWL_CASE", e.Case}, {"PAWL_TITLE", e.Title},
		{"PAWL_RUN", e.Run}, {"PAWL_NAME", e.Subject}, {"PAWL_WORKSPACE", e.Workspace}, {"PAWL_BRANCH", e.Branch},
		{"PAWL_TARGET", e.Target},
		{"PAWL_COMMIT", e.Commit}, {"PAWL_AGENT", e.Agent}, {"PAWL_STATUS", e.Status}, {"PAWL_WHY", e.Why},
		{"PAWL_ITERATIONS", iterations}, {"PAWL_DURATION_MS", elapsed}, {"PAWL_COST_USD", cost},
		{"PAWL_QUESTION", question.Text},
		{"PAWL_CONFLICT_LEVEL", conflict.Level}, {"PAWL_CONFLICT_FILES", strings.Join(conflict.Files, "\n")},
		{"PAWL_ERROR_CODE", trouble.Code}, {"PAWL_ERROR_MESSAGE", trouble.Message}, {"PAWL_ERROR_SEVERITY", trouble.Severity},
	}
}

type variable struct{ name, value string }

func orZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// printable drops control characters, line breaks and tabs aside, and what turns
// the direction of writing, and cuts after most bytes.
func printable(s string, most int) string {
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
