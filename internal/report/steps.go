package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/loop"
)

// Execution is one execution of a workflow's step, as it is stored.
type Execution struct {
	Step, Title string
	Kind        string // run, agent, procedure or ask
	Agent       string
	Status      string // running, success, failure, cancelled, interrupted, asking or refused
	Iteration   int
	Try         int // 1-based
	Alternative int // 1-based; 0 is the step's own work
	Optional    bool
	StartedAt   time.Time
	Elapsed     time.Duration
	Failure     string // its summary; "" for none
	Output      string // what it printed or said; its last line is shown
}

// Step is a step of a workflow over the whole run.
type Step struct {
	ID, Title, Kind string
	Status, Mark    string // of its last execution
	Tone            Tone
	Runs            int
	Iterations      string // in which it ran: "1, 3"
	Took            time.Duration
	Alternative     int // that the last execution was; 0 is its own work
	Optional        bool
	Note            string // why it failed, or its last line of output
}

const (
	maxWork  = 300
	idLength = 80
)

// steps sums up the executions of each step, in the order in which they began.
func (r *Report) steps(in Input) {
	number := map[string]int{}
	seen := map[[2]any]bool{}
	for _, e := range in.Executions {
		n, ok := number[e.Step]
		if !ok {
			n = len(r.Work)
			number[e.Step] = n
			r.Work = append(r.Work, Step{ID: Line(e.Step, idLength)})
		}
		s := &r.Work[n]
		s.Title, s.Kind, s.Optional, s.Alternative = Line(e.Title, 200), Line(e.Kind, 40), e.Optional, e.Alternative
		if e.Agent != "" {
			s.Kind += " " + Line(e.Agent, 60)
		}
		s.Status, s.Tone, s.Mark = stepStatus(e, in.Status.Active())
		s.Runs++
		s.Took += e.Elapsed
		if key := [2]any{e.Step, e.Iteration}; !seen[key] {
			seen[key] = true
			s.Iterations += after(between(s.Iterations), fmt.Sprint(e.Iteration))
		}
		s.Note = Line(cmp.Or(e.Failure, lastLine(e.Output)), 300)
	}
	r.MoreWork = max(0, len(r.Work)-maxWork)
	r.Work = r.Work[:min(len(r.Work), maxWork)]
	for i := range in.Records {
		if t := in.Records[i].Steps; t != nil {
			r.StepCount = t.String()
		}
	}
}

func between(before string) string {
	if before == "" {
		return ""
	}
	return ", "
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
		return "cut off", Wait, "–"
	}
	return Line(e.Status, 40), Wait, "–"
}

// lastLine is the last line of an output that says something: not an empty one,
// and an agent's signal only where there is nothing else.
func lastLine(output string) string {
	signal := ""
	for rest := strings.TrimRight(output, " \t\r\n"); rest != ""; rest = strings.TrimRight(rest, " \t\r\n") {
		at := strings.LastIndexByte(rest, '\n') + 1
		line := strings.TrimSpace(rest[at:])
		if !IsSignal(line) {
			return line
		}
		signal, rest = cmp.Or(signal, line), rest[:at]
	}
	return signal
}

// IsSignal is true for a line that is nothing but a signal of an agent.
func IsSignal(line string) bool {
	return strings.HasPrefix(line, "<promise>") && strings.HasSuffix(line, "</promise>")
}

// stepRows are the executions of one iteration on the timeline, below it.
func stepRows(in Input, driving []session, iteration int) []row {
	var rows []row
	for _, e := range in.Executions {
		if e.Iteration != iteration {
			continue
		}
		at := driven(driving, e.StartedAt)
		took := e.Elapsed
		if e.Status == "running" && in.Status.Active() {
			took = driven(driving, in.Now) - at
		}
		what := "gates"
		switch e.Kind {
		case "agent", "procedure":
			what = "agent"
		case "ask":
			what = "wait"
		}
		_, tone, _ := stepStatus(e, in.Status.Active())
		r := row{Row: Row{Label: Line(e.Step, idLength), Tone: tone, Took: took, Step: true}, at: at, stretches: []stretch{{what, at, took}}}
		if e.Alternative > 0 {
			r.Why = fmt.Sprintf("alternative %d", e.Alternative)
		}
		rows = append(rows, r)
	}
	return rows
}

// ofSteps is true when the run is a workflow's.
func (in *Input) ofSteps() bool { return len(in.Executions) > 0 || in.Kind == string(loop.Workflow) }
