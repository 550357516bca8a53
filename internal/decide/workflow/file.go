package workflow

import "time"

// Limits of one workflow. What is over them is a mistake.
const (
	MaxSteps     = 1000 // steps in a file
	MaxMatrix    = 256  // instances of one step
	MaxInstances = 5000 // instances of all steps
)

// File is a workflow as it was written, with one name where the dialects have several.
type File struct {
	Name        string
	Description string
	Env         []Pair
	Steps       []Step
	Config      Config
}

// Config holds for all steps.
type Config struct {
	// Parallelism is how many steps run at once; 0 is the default of 5.
	Parallelism int
	// Timeout is for the whole workflow, StepTimeout for steps without one; 0 is none.
	Timeout, StepTimeout time.Duration
	Retry                Retry // of steps without one
	ContinueOnError      bool  // a failed step stops what needs it, not the others
	Agents               []string
}

// Pair is a name and a text, in the order of the file.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Run       Kind = "run"       // a command line, for the shell
	Agent     Kind = "agent"     // an agent and its prompt
	Procedure Kind = "procedure" // a procedure of pawl.yaml
	Ask       Kind = "ask"       // a question to a person
	Nested    Kind = "workflow"  // another workflow file
)

// Step is one step.
type Step struct {
	// Where is the step's path in the file, as "steps[3]".
	Where string
	ID    string
	Title string // "" for none
	Work
	Needs            []string
	If               string
	Env              []Pair
	Matrix           *Matrix
	Outputs          []Pair
	Timeout          time.Duration // 0 is the workflow's
	Retry            *Retry        // nil is the workflow's
	Optional         bool
	Alternatives     []Work
	Verify           []string
	WorkingDirectory string
}

// Work is what a step or an alternative of it does. Content is the command, the
// prompt, the question, or the name of the procedure or file.
type Work struct {
	Kind    Kind   `json:"kind"`
	Agent   string `json:"agent,omitempty"` // of [Agent]; "" is the default agent
	Content string `json:"content"`
	// Digest stands for what Content names: of a nested workflow, its plan.
	Digest string `json:"digest,omitempty"`
}

// Retry says how often a step is tried again by itself, and after what wait.
type Retry struct {
	Max     int           `json:"max"`
	Backoff string        `json:"backoff"` // none, linear or exponential
	Delay   time.Duration `json:"-"`       // the first wait
	// Factor multiplies the wait each time, per mille; 0 is 2000.
	Factor int `json:"-"`
}

// Matrix makes a step of each combination of values.
type Matrix struct {
	Axes    []Axis // in the order of the file
	Include [][]Pair
	Exclude [][]Pair
}

// Axis is a name and its values.
type Axis struct {
	Name   string
	Values []string
}

// Fault is one mistake in a file.
type Fault struct {
	// Path is the key, as "steps[3].needs[0]"; config knows its place.
	Path string
	// Find is the text in the value that is wrong, and Offset how many
	// characters after its beginning. "" is the whole value.
	Find    string
	Offset  int
	Message string
	// First is the path of what stands in the way; config adds its line.
	First string
	// Word was probably meant to be one of Among; "" if there is nothing to suggest.
	Word  string
	Among []string
}

// maxFaults bounds a report.
const maxFaults = 20

type faults []Fault

func (f *faults) addFault(fault Fault) {
	if len(*f) < maxFaults {
		*f = append(*f, fault)
	}
}
