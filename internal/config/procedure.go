package config

import "slices"

// Procedure is a named loop. A nil pointer or an empty text means that the
// general setting holds.
type Procedure struct {
	Summary          string            `yaml:"summary"`
	Observe          []Fragment        `yaml:"observe"`
	Orient           []Fragment        `yaml:"orient"`
	Decide           []Fragment        `yaml:"decide"`
	Act              []Fragment        `yaml:"act"`
	Policy           string            `yaml:"policy" default:"procedure" enum:"procedure|task|controlled"`
	Agent            string            `yaml:"agent"`
	MaxIterations    *int              `yaml:"max_iterations" min:"0"`
	FailureThreshold *int              `yaml:"failure_threshold" min:"0"`
	Timeout          *Duration         `yaml:"timeout"`
	IterationTimeout *Duration         `yaml:"iteration_timeout"`
	IdleTimeout      *Duration         `yaml:"idle_timeout"`
	Safety           string            `yaml:"safety" enum:"permissive|normal|paranoid"`
	Strategy         string            `yaml:"strategy"`
	Allow            []string          `yaml:"allow" names:"true"`
	IterationControl *IterationControl `yaml:"iteration_control"`
}

// Fragment is one piece of a prompt. A plain text is its path.
type Fragment struct {
	Path    string `yaml:"path"`
	Content string `yaml:"content"`

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
	DefaultTimeout Duration `yaml:"default_timeout" default:"300s" min:"1ms" bare:"seconds"`
	Protect        []string `yaml:"protect"`
	ProtectNew     bool     `yaml:"protect_new" default:"false"`
	Retries        int      `yaml:"retries" default:"2" min:"0"`
	OnBase         bool     `yaml:"on_base" default:"true"`
	Commands       []Gate   `yaml:"commands"`
}

// Gates are the commands that run here.
func (v Verification) Gates() []Gate {
	return slices.DeleteFunc(slices.Clone(v.Commands), func(g Gate) bool { return g.Forge != "" })
}

// Checks is the gate that asks the forge's CI before work lands; Forge is empty where
// there is none.
func (v Verification) Checks() Gate {
	for _, g := range v.Commands {
		if g.Forge != "" {
			return g
		}
	}
	return Gate{}
}

// Gate is one verification command, or the forge's checks. A plain text is its command.
type Gate struct {
	// Name is the command where the key is absent.
	Name    string `yaml:"name"`
	Command string `yaml:"command"`
	// Forge is "checks" for the gate that asks the forge, and Checks are the names of
	// its statuses and jobs that have to be green.
	Forge string `yaml:"forge" enum:"checks"`
	// Timeout is verification.default_timeout where the key is absent, and an hour for
	// the forge's checks.
	Timeout    Duration `yaml:"timeout" min:"1ms" bare:"seconds"`
	Required   bool     `yaml:"required" default:"true"`
	Checks     []string `yaml:"required" names:"true"`
	Kind       string   `yaml:"kind" enum:"test|build|lint|typecheck|other"`
	AllowEmpty bool     `yaml:"allow_empty" default:"false"`
}

// Review says who reviews.
type Review struct {
	Mode   string    `yaml:"mode" default:"skip" enum:"skip|agent|person|batch"`
	Agent  string    `yaml:"agent"`
	Prompt *Fragment `yaml:"prompt" whole:"true"`
}

// Sprint is a run of the autopilot up to a target.
type Sprint struct {
	Target  SprintTarget  `yaml:"target" whole:"true"`
	Filters SprintFilters `yaml:"filters"`
	Options SprintOptions `yaml:"options"`
}

// SprintFilters choose tasks; an empty list chooses all, or excludes none.
type SprintFilters struct {
	IncludeOperations []string `yaml:"include_operations" names:"true"`
	IncludeTags       []string `yaml:"include_tags" names:"true"`
	ExcludeTags       []string `yaml:"exclude_tags" names:"true"`
}

// SprintOptions are the sprint's switches.
type SprintOptions struct {
	CheckpointBefore bool `yaml:"checkpoint_before" default:"true"`
	PauseOnError     bool `yaml:"pause_on_error" default:"false"`
	BatchReview      bool `yaml:"batch_review" default:"false"`
}
