package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
)

// unifyDialects makes one workflow of the dialects.
func (r *workflowReader) unifyDialects(fileName string) {
	raw := &r.raw
	f := &r.file
	f.Name, f.Description = cmp.Or(raw.Name, fileName), raw.Description
	f.Env = r.pairsInFileOrder(raw.Env, "env")
	c := raw.Config
	f.Config = workflow.Config{
		Parallelism: c.Parallelism, Timeout: c.Timeout.Std(), Agents: c.Agents,
		StepTimeout:     cmp.Or(c.StepTimeout, c.DefaultTimeout).Std(),
		ContinueOnError: c.ContinueOnError || c.ContinueOnErrorOld || raw.ErrorHandling.ContinueOnError,
	}
	r.failIfBoth("config", "step_timeout", "defaultTimeout")
	r.failIfBoth("config", "agents", "providers.primary")
	r.failIfBoth("config", "retry", "maxRetries")
	if len(c.Agents) == 0 && c.Providers.Primary != "" {
		f.Config.Agents = append([]string{c.Providers.Primary}, c.Providers.Fallback...)
	}
	if c.Retry != nil {
		f.Config.Retry = c.Retry.toWorkflowRetry()
	} else if c.MaxRetries != nil {
		f.Config.Retry = workflowRetry{Max: *c.MaxRetries, Backoff: "exponential", Delay: 1e9}.toWorkflowRetry()
	}
	for i := range raw.Steps {
		f.Steps = append(f.Steps, r.readStep(&raw.Steps[i], fmt.Sprintf("steps[%d]", i)))
	}
}

// failIfBoth reports two names of one thing.
func (r *workflowReader) failIfBoth(path, name, dialect string) {
	if at, ok := r.from[path+"."+dialect]; ok && at.line > 0 {
		if _, both := r.from[path+"."+name]; both {
			r.addError(at, "", "%s and %s mean the same: keep one", name, dialect)
		}
		r.as[path+"."+name] = path + "." + dialect
	}
}

func (w workflowRetry) toWorkflowRetry() workflow.Retry {
	return workflow.Retry{Max: w.Max, Backoff: w.Backoff, Delay: w.Delay.Std()}
}

// pairsInFileOrder are a table's entries in the order of the file.
func (r *workflowReader) pairsInFileOrder(table map[string]string, path string) []workflow.Pair {
	out := lists.Each(sortedKeys(table), func(name string) workflow.Pair {
		return workflow.Pair{Name: name, Value: table[name]}
	})
	slices.SortStableFunc(out, func(a, b workflow.Pair) int {
		return r.comparePlaces(joinPath(path, a.Name), joinPath(path, b.Name))
	})
	return out
}

func (r *workflowReader) comparePlaces(a, b string) int {
	x, y := r.from[a], r.from[b]
	return cmp.Or(x.line-y.line, x.column-y.column)
}

func (r *workflowReader) readStep(s *workflowStep, at string) workflow.Step {
	for _, alias := range [][2]string{
		{"id", "key"}, {"agent", "provider"}, {"needs", "dependencies"}, {"needs", "dependsOn"},
		{"timeout", "timeoutMs"}, {"retry", "retryPolicy"}, {"retry", "retryable"}, {"optional", "required"},
	} {
		r.failIfBoth(at, alias[0], alias[1])
	}
	out := workflow.Step{
		Where: at, ID: cmp.Or(s.ID, s.Key, s.Name), Title: cmp.Or(s.Name, s.Description), If: s.If,
		Needs: slices.Concat(s.Needs, s.Dependencies, s.DependsOn), Env: r.pairsInFileOrder(s.Env, at+".env"),
		Matrix: r.readMatrix(s.Matrix, at+".matrix"), Outputs: r.pairsInFileOrder(s.Outputs, at+".outputs"),
		Timeout: cmp.Or(s.Timeout, s.TimeoutMS).Std(), Verify: s.Verify, WorkingDirectory: s.WorkingDirectory,
		Optional: isSetTo(s.Optional, true) || isSetTo(s.Required, false),
	}
	if s.ID == "" && s.Key == "" {
		r.as[at+".id"] = at + ".name"
		out.Title = s.Description
	}
	switch {
	case s.Retry != nil:
		out.Retry = new(s.Retry.toWorkflowRetry())
	case s.RetryPolicy != nil:
		out.Retry = r.readPolicy(s.RetryPolicy, at+".retryPolicy")
	case s.Retryable != nil && !*s.Retryable:
		out.Retry = &workflow.Retry{Backoff: "none"}
	}
	out.Work = r.readWork(at, []said{
		{workflow.Run, "run", s.Run}, {workflow.Agent, "prompt", s.Prompt},
		{workflow.Procedure, "procedure", s.Procedure}, {workflow.Ask, "ask", s.Ask},
		{workflow.Nested, "workflow", s.Workflow},
	}, cmp.Or(s.Agent, s.Provider), "")
	for i, a := range s.Alternatives {
		inherited := ""
		if out.Kind == workflow.Agent {
			inherited = out.Content
		}
		out.Alternatives = append(out.Alternatives, r.readWork(fmt.Sprintf("%s.alternatives[%d]", at, i), []said{
			{workflow.Run, "run", a.Run}, {workflow.Agent, "prompt", a.Prompt},
			{workflow.Procedure, "procedure", a.Procedure},
		}, cmp.Or(a.Agent, a.Provider), inherited))
	}
	return out
}

func isSetTo(b *bool, want bool) bool { return b != nil && *b == want }

// said is a kind of work, its key, and what stands there.
type said struct {
	kind    workflow.Kind
	key     string
	content string
}

// readWork finds the one thing that a step does. An agent without a prompt gets
// inherited.
func (r *workflowReader) readWork(at string, all []said, agent, inherited string) workflow.Work {
	var found *said
	keys := ""
	for i := range all {
		s := &all[i]
		if i > 0 {
			keys += ", "
		}
		keys += s.key
		place, ok := r.from[at+"."+s.key]
		switch {
		case !ok:
		case s.content == "":
			r.addError(place, "", "%s.%s is empty", at, s.key)
			return workflow.Work{Kind: s.kind}
		case found != nil:
			r.addError(place, "", "a step does one thing: %s or %s, not both", found.key, s.key)
		default:
			found = s
		}
	}
	switch {
	case found == nil && agent != "" && inherited != "":
		return workflow.Work{Kind: workflow.Agent, Agent: agent, Content: inherited}
	case found == nil && agent != "":
		r.addError(r.positionOfPath(at+".agent"), "", "an agent needs a prompt")
	case found == nil:
		r.addError(r.positionOfPath(at), "", "a step needs one of %s", keys)
	case found.kind != workflow.Agent && agent != "":
		r.addError(r.positionOfPath(at+".agent"), "", "agent belongs to prompt, not to %s", found.key)
	default:
		return workflow.Work{Kind: found.kind, Agent: agent, Content: found.content}
	}
	return workflow.Work{}
}

func (r *workflowReader) readPolicy(p *workflowPolicy, at string) *workflow.Retry {
	factor, err := strconv.ParseFloat(p.Multiplier, 64)
	inRange := factor >= 1 && factor <= 100 // not for NaN
	if err != nil || !inRange {
		r.addError(r.positionOfPath(at+".retryBackoffMultiplier"), "",
			"%s.retryBackoffMultiplier must be a number from 1 to 100, not %q", at, p.Multiplier)
		return nil
	}
	return &workflow.Retry{Max: p.MaxRetries, Backoff: "exponential", Delay: p.RetryDelayMS.Std(),
		Factor: int(math.Round(factor * 1000))}
}

func (r *workflowReader) readMatrix(m *workflowMatrix, at string) *workflow.Matrix {
	if m == nil {
		return nil
	}
	out := &workflow.Matrix{}
	for _, name := range sortedKeys(m.Axes) {
		if len(m.Axes[name]) == 0 {
			r.addError(r.positionOfPath(joinPath(at, name)), "", "%s has no values", joinPath(at, name))
		}
		out.Axes = append(out.Axes, workflow.Axis{Name: name, Values: m.Axes[name]})
	}
	slices.SortStableFunc(out.Axes, func(a, b workflow.Axis) int {
		return r.comparePlaces(joinPath(at, a.Name), joinPath(at, b.Name))
	})
	for i, entry := range m.Include {
		out.Include = append(out.Include, r.pairsInFileOrder(entry, fmt.Sprintf("%s.include[%d]", at, i)))
	}
	for i, entry := range m.Exclude {
		out.Exclude = append(out.Exclude, r.pairsInFileOrder(entry, fmt.Sprintf("%s.exclude[%d]", at, i)))
	}
	return out
}

// workflowFile is what a workflow file may hold, as written: pawl's own keys
// and those of two other dialects. The tags describe the keys once, for the
// reader, the schema and the reference page.
type workflowFile struct {
	Name        string            `yaml:"name" loose:"1"`
	Description string            `yaml:"description" loose:"1"`
	Env         map[string]string `yaml:"env"`
	Config      workflowConfig    `yaml:"config"`
	Steps       []workflowStep    `yaml:"steps"`
	Policy      string            `yaml:"policy" default:"workflow" enum:"workflow|controlled"`

	IterationControl *IterationControl `yaml:"iteration_control"`

	Ignored       `yaml:"version|tags|author|metadata|monitoring|rollback"`
	ErrorHandling workflowErrors `yaml:"errorHandling"`
}

type workflowConfig struct {
	Parallelism        int               `yaml:"parallelism" min:"1"`
	Timeout            quantity.Duration `yaml:"timeout" bare:"milliseconds"`
	StepTimeout        quantity.Duration `yaml:"step_timeout" bare:"milliseconds"`
	Retry              *workflowRetry    `yaml:"retry"`
	ContinueOnError    bool              `yaml:"continue_on_error"`
	Agents             []string          `yaml:"agents" single:"1"`
	DefaultTimeout     quantity.Duration `yaml:"defaultTimeout" bare:"milliseconds"`
	MaxRetries         *int              `yaml:"maxRetries" min:"0"`
	ContinueOnErrorOld bool              `yaml:"continueOnError"`
	Providers          workflowProviders `yaml:"providers"`
	Ignored            `yaml:"checkpointInterval"`
}

type workflowProviders struct {
	Primary  string   `yaml:"primary"`
	Fallback []string `yaml:"fallback" single:"1"`
}

type workflowErrors struct {
	ContinueOnError bool `yaml:"continueOnError"`
	Ignored         `yaml:"capturePartialResults|saveCheckpoints|checkpointInterval|maxFailuresPerBatch|alertOnFailure"`
	Others          Ignored `yaml:"retryFailedSteps|notificationOnFailure|rollbackOnFailure|capturePartialProgress"`
}

type workflowStep struct {
	ID               string            `yaml:"id" loose:"1"`
	Name             string            `yaml:"name" loose:"1"`
	Description      string            `yaml:"description" loose:"1"`
	Run              string            `yaml:"run" loose:"1"`
	Agent            string            `yaml:"agent"`
	Prompt           string            `yaml:"prompt"`
	Procedure        string            `yaml:"procedure"`
	Ask              string            `yaml:"ask"`
	Workflow         string            `yaml:"workflow"`
	Needs            []string          `yaml:"needs" single:"1"`
	If               string            `yaml:"if" loose:"1"`
	Env              map[string]string `yaml:"env"`
	Matrix           *workflowMatrix   `yaml:"matrix"`
	Outputs          map[string]string `yaml:"outputs"`
	Timeout          quantity.Duration `yaml:"timeout" bare:"milliseconds"`
	Retry            *workflowRetry    `yaml:"retry"`
	Optional         *bool             `yaml:"optional"`
	Alternatives     []workflowWork    `yaml:"alternatives"`
	Verify           []string          `yaml:"verify" single:"1"`
	WorkingDirectory string            `yaml:"working_directory"`
	Key              string            `yaml:"key" loose:"1"`
	Provider         string            `yaml:"provider"`
	Dependencies     []string          `yaml:"dependencies" single:"1"`
	DependsOn        []string          `yaml:"dependsOn" single:"1"`
	TimeoutMS        quantity.Duration `yaml:"timeoutMs" bare:"ms"`
	RetryPolicy      *workflowPolicy   `yaml:"retryPolicy"`
	Retryable        *bool             `yaml:"retryable"`
	Required         *bool             `yaml:"required"`
	Ignored          `yaml:"parallel|outputSchema|metadata"`
}

// workflowWork is an alternative. A plain text is its command.
type workflowWork struct {
	Run       string `yaml:"run" loose:"1"`
	Agent     string `yaml:"agent"`
	Provider  string `yaml:"provider"`
	Prompt    string `yaml:"prompt"`
	Procedure string `yaml:"procedure"`
}

type workflowRetry struct {
	Max     int               `yaml:"max" min:"0"`
	Backoff string            `yaml:"backoff" default:"exponential" enum:"none|linear|exponential"`
	Delay   quantity.Duration `yaml:"delay" default:"1s"`
}

type workflowPolicy struct {
	MaxRetries   int               `yaml:"maxRetries" default:"3" min:"0"`
	RetryDelayMS quantity.Duration `yaml:"retryDelayMs" default:"1s" bare:"ms"`
	Multiplier   string            `yaml:"retryBackoffMultiplier" default:"2" loose:"1"`
	Ignored      `yaml:"retryableErrors"`
}

// workflowMatrix has a key of the user's own for each axis.
type workflowMatrix struct {
	Axes    map[string][]string `yaml:",inline" loose:"1"`
	Include []map[string]string `yaml:"include"`
	Exclude []map[string]string `yaml:"exclude"`
}
