package config

// Procedure is a named loop. A nil pointer or an empty text means that the
// general setting holds.
type Procedure struct {
	Summary          string            `yaml:"summary" doc:"What it does, in a line."`
	Observe          []Fragment        `yaml:"observe" doc:"What the agent looks at first."`
	Orient           []Fragment        `yaml:"orient" doc:"How it makes sense of that."`
	Decide           []Fragment        `yaml:"decide" doc:"What it chooses to do."`
	Act              []Fragment        `yaml:"act" doc:"How it does it."`
	Policy           string            `yaml:"policy" default:"procedure" enum:"procedure|task|controlled" doc:"When the loop ends."`
	Agent            string            `yaml:"agent" doc:"Overrides the default agent."`
	MaxIterations    *int              `yaml:"max_iterations" min:"0" doc:"Overrides the policy's maximum. 0 is unlimited."`
	FailureThreshold *int              `yaml:"failure_threshold" min:"0" doc:"Overrides loop.failure_threshold. 0 is off."`
	Timeout          *Duration         `yaml:"timeout" doc:"Overrides loop.timeout. 0 is no limit."`
	IterationTimeout *Duration         `yaml:"iteration_timeout" doc:"Overrides loop.iteration_timeout. 0 is no limit."`
	IdleTimeout      *Duration         `yaml:"idle_timeout" doc:"Overrides loop.idle_timeout. 0 is no limit."`
	Safety           string            `yaml:"safety" enum:"permissive|normal|paranoid" doc:"Overrides loop.safety."`
	Strategy         string            `yaml:"strategy" doc:"Overrides loop.strategy."`
	Allow            []string          `yaml:"allow" names:"true" doc:"Protected paths that this procedure may change; globs relative to the root."`
	IterationControl *IterationControl `yaml:"iteration_control" doc:"Overrides the keys of iteration_control that it names."`
}

// Phases are the names of a procedure's phases in their order.
var phases = []string{"observe", "orient", "decide", "act"}

// Phase returns the fragments of observe, orient, decide or act; nil for
// another name.
func (p *Procedure) Phase(name string) []Fragment {
	switch name {
	case "observe":
		return p.Observe
	case "orient":
		return p.Orient
	case "decide":
		return p.Decide
	case "act":
		return p.Act
	}
	return nil
}

// Fragment is one piece of a prompt. A plain text is its path.
type Fragment struct {
	Path    string `yaml:"path" doc:"A file, relative to the file that names it, or a 'builtin:' name."`
	Content string `yaml:"content" doc:"The text itself."`

	// Name is the path as written, or "content" for a text of its own.
	Name string `yaml:"-"`
	// Source is the file's absolute path, "builtin", or the place of the
	// content, e.g. "pawl.yaml:12".
	Source string `yaml:"-"`
	// Text is what goes into the prompt.
	Text string `yaml:"-"`

	at position
}

// Verification is the gates and what they protect.
type Verification struct {
	DefaultTimeout Duration `yaml:"default_timeout" default:"300s" min:"1ms" bare:"seconds" doc:"Timeout of gates without one of their own."`
	Protect        []string `yaml:"protect" doc:"Globs relative to the root; changing, renaming or deleting such a file fails verification."`
	ProtectNew     bool     `yaml:"protect_new" default:"false" doc:"New files that match 'protect' fail verification too."`
	Commands       []Gate   `yaml:"commands" doc:"The gates, in the order in which they run."`
}

// Gate is one verification command. A plain text is its command.
type Gate struct {
	// Name is the command where the key is absent.
	Name    string `yaml:"name" doc:"What it is called; without it the command."`
	Command string `yaml:"command" doc:"Run with sh -c in the workspace; required."`
	// Timeout is verification.default_timeout where the key is absent.
	Timeout    Duration `yaml:"timeout" min:"1ms" bare:"seconds" doc:"Time after which it fails; without it verification.default_timeout."`
	Required   bool     `yaml:"required" default:"true" doc:"false: a failure is only a warning."`
	Kind       string   `yaml:"kind" enum:"test|build|lint|typecheck|other" doc:"A gate of the kind test is red when it runs no tests."`
	AllowEmpty bool     `yaml:"allow_empty" default:"false" doc:"A test gate that runs no tests passes."`
}

// Review says who reviews.
type Review struct {
	Mode   string    `yaml:"mode" default:"skip" enum:"skip|agent|person|batch" doc:"Nobody, a second agent, a person for each task, or a person at the end of the sprint."`
	Agent  string    `yaml:"agent" doc:"The agent that reviews; without it the program of the author, started afresh."`
	Prompt *Fragment `yaml:"prompt" whole:"true" doc:"The reviewer's prompt; without it a built-in one. A plain text is a path."`
}

// Sprint is a run of the autopilot up to a target.
type Sprint struct {
	Target  SprintTarget  `yaml:"target" whole:"true" doc:"When nothing new is started any more."`
	Filters SprintFilters `yaml:"filters" doc:"Which tasks take part."`
	Options SprintOptions `yaml:"options" doc:"What happens around it."`
}

// SprintFilters choose tasks; an empty list chooses all, or excludes none.
type SprintFilters struct {
	IncludeOperations []string `yaml:"include_operations" names:"true" doc:"Only tasks of these operations."`
	IncludeTags       []string `yaml:"include_tags" names:"true" doc:"Only tasks with one of these tags."`
	ExcludeTags       []string `yaml:"exclude_tags" names:"true" doc:"No tasks with one of these tags."`
}

// SprintOptions are the sprint's switches.
type SprintOptions struct {
	CheckpointBefore bool `yaml:"checkpoint_before" default:"true" doc:"Keep the state of the repository under a ref first."`
	PauseOnError     bool `yaml:"pause_on_error" default:"false" doc:"Pause on any failed task."`
	BatchReview      bool `yaml:"batch_review" default:"false" doc:"Collect reviews until the end."`
}
