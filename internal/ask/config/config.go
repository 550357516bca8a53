package config

import (
	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/trust"
)

// Config is everything that can be set, with the defaults filled in.
//
// The tags are read by the whole package: yaml is the key (",inline" takes
// the keys that no other field has; what each key is stands in keys.yaml),
// default is YAML, enum and min limit the value, bare is the unit that a
// number without one has, flagms marks a duration whose flag takes bare
// milliseconds, names a list that a variable may separate with commas, loose
// a text that may be written as a number.
type Config struct {
	Agent            string               `yaml:"agent" default:"claude"`
	Agents           Agents               `yaml:"agents"`
	Prompt           Prompt               `yaml:"prompt"`
	Procedures       map[string]Procedure `yaml:"procedures"`
	Loop             Loop                 `yaml:"loop"`
	Run              Run                  `yaml:"run"`
	Verification     Verification         `yaml:"verification"`
	RedFirst         string               `yaml:"red_first" default:"warn" enum:"off|warn|require"`
	Review           Review               `yaml:"review"`
	IterationControl IterationControl     `yaml:"iteration_control"`
	Safety           Safety               `yaml:"safety"`
	Gateway          Gateway              `yaml:"gateway"`
	Limits           OwnLimits            `yaml:"limits"`
	Strategies       []Strategy           `yaml:"strategies"`
	Workspace        Workspace            `yaml:"workspace"`
	Snapshot         Snapshot             `yaml:"snapshot"`
	Retention        Retention            `yaml:"retention"`
	Merge            Merge                `yaml:"merge"`
	Forge            Forge                `yaml:"forge"`
	Autopilot        Autopilot            `yaml:"autopilot"`
	Sprint           Sprint               `yaml:"sprint"`
	Hooks            Hooks                `yaml:"hooks"`
	Notify           []Notification       `yaml:"notify"`
	Prices           map[string]Price     `yaml:"prices"`
	Server           Server               `yaml:"server"`
	Cluster          Cluster              `yaml:"cluster"`

	// Root is the root folder, absolute, symbolic links resolved.
	Root string `yaml:"-"`
	// File is the absolute path of the project's file; "" if there is none.
	File string `yaml:"-"`
	// Files are those that it was made of, and pawl.yaml where another file was named.
	Files []trust.File `yaml:"-"`
	// Warnings are remarks for the person that stop nothing.
	Warnings []string `yaml:"-"`

	from map[string]position
}

// Agents is the agents section. Fallback and Stronger are reserved names.
type Agents struct {
	Fallback []string         `yaml:"fallback" names:"true"`
	Stronger string           `yaml:"stronger"`
	Named    map[string]Agent `yaml:",inline"`
}

// Agent is an own agent, or what is changed of a built-in one.
type Agent struct {
	Command quantity.Argv `yaml:"command"`
	Output  string        `yaml:"output"`
	Model   string        `yaml:"model"`
	// Mode is for output: acp; "" is the widest that the program offers.
	Mode string            `yaml:"mode"`
	Env  map[string]string `yaml:"env"`
	// IdleTimeout is nil where loop.idle_timeout holds.
	IdleTimeout *quantity.Duration `yaml:"idle_timeout"`
	// Endpoints are in the words of egress.ParseEndpoint.
	Endpoints []string `yaml:"endpoints"`
	Isolate   bool     `yaml:"isolate"`
	MCP       bool     `yaml:"mcp"`
}

// Gateway is what stands between agents and their models.
type Gateway struct {
	Enabled string `yaml:"enabled" default:"auto" enum:"auto|always|never"`
	// CA is a file of certificates to trust beside the system's.
	CA quantity.Path `yaml:"ca"`
	// Keys are commands that print keys.
	Keys GatewayKeys `yaml:"keys"`
	// Fallback is where calls go when the provider does not answer.
	Fallback GatewayFallback `yaml:"fallback"`
}

// GatewayFallback is another endpoint by provider; nil is none.
type GatewayFallback struct {
	Anthropic *GatewayEndpoint `yaml:"anthropic"`
	OpenAI    *GatewayEndpoint `yaml:"openai"`
	Gemini    *GatewayEndpoint `yaml:"gemini"`
}

// GatewayEndpoint is an address and a command that prints the key for it.
type GatewayEndpoint struct {
	URL string `yaml:"url"`
	Key string `yaml:"key"`
}

// Of is the endpoint of a provider; nil is none.
func (f GatewayFallback) Of(provider string) *GatewayEndpoint {
	return map[string]*GatewayEndpoint{"anthropic": f.Anthropic, "openai": f.OpenAI, "gemini": f.Gemini}[provider]
}

// GatewayKeys are commands by provider; "" is none.
type GatewayKeys struct {
	Anthropic string `yaml:"anthropic"`
	OpenAI    string `yaml:"openai"`
	Gemini    string `yaml:"gemini"`
}

// Of is the command of a provider.
func (k GatewayKeys) Of(provider string) string {
	return map[string]string{"anthropic": k.Anthropic, "openai": k.OpenAI, "gemini": k.Gemini}[provider]
}

// OwnLimits are those besides the safety level's.
type OwnLimits struct {
	// PerDay is nil where there is no limit.
	PerDay *loop.MicroUSD `yaml:"per_day"`
	// PerTask is nil where only each run is limited.
	PerTask *loop.MicroUSD   `yaml:"per_task"`
	Tokens  Counts           `yaml:"tokens"`
	Calls   Counts           `yaml:"calls"`
	Plan    quantity.Percent `yaml:"plan" default:"100"`
}

// Counts limits tokens, or model calls; nil is no limit, and 0 allows nothing.
type Counts struct {
	PerIteration *int `yaml:"per_iteration" min:"0"`
	PerRun       *int `yaml:"per_run" min:"0"`
	PerTask      *int `yaml:"per_task" min:"0"`
	PerDay       *int `yaml:"per_day" min:"0"`
}

// Prompt is how the prompt is assembled.
type Prompt struct {
	TokenBudget int `yaml:"token_budget" default:"100000" min:"0"`
}

// Loop holds limits and guards. A duration or count of 0 is off where the key says so.
type Loop struct {
	MaxIterations      int               `yaml:"max_iterations" default:"0" min:"0"`
	FailureThreshold   int               `yaml:"failure_threshold" default:"3" min:"0"`
	IterationTimeout   quantity.Duration `yaml:"iteration_timeout" default:"30m"`
	IdleTimeout        quantity.Duration `yaml:"idle_timeout" default:"10m"`
	Timeout            quantity.Duration `yaml:"timeout" default:"0" flagms:"true"`
	StuckThreshold     int               `yaml:"stuck_threshold" default:"5" min:"0"`
	StuckLimit         int               `yaml:"stuck_limit" default:"10" min:"0"`
	PauseOnStuck       bool              `yaml:"pause_on_stuck" default:"false"`
	ThrashingThreshold int               `yaml:"thrashing_threshold" default:"5" min:"0"`
	AdaptiveThresholds bool              `yaml:"adaptive_thresholds" default:"false"`
	RepeatThreshold    int               `yaml:"repeat_threshold" default:"30" min:"0"`
	MaxEmptyCalls      int               `yaml:"max_empty_calls" default:"30" min:"0"`
	MaxRetries         int               `yaml:"max_retries" default:"20" min:"0"`
	RetryTimeout       quantity.Duration `yaml:"retry_timeout" default:"4m"`
	MaxTurns           int               `yaml:"max_turns" default:"1000" min:"0"`
	MaxOutput          quantity.Bytes    `yaml:"max_output" default:"2 GB"`
	MaxWaits           int               `yaml:"max_waits" default:"20" min:"0"`
	MaxWait            quantity.Duration `yaml:"max_wait" default:"6h"`
	Lease              quantity.Duration `yaml:"lease" default:"30s" min:"1s"`
	Safety             string            `yaml:"safety" default:"normal" enum:"permissive|normal|paranoid"`
	Strategy           string            `yaml:"strategy" default:"auto"`
	CheckpointInterval int               `yaml:"checkpoint_interval" default:"1" min:"1"`
	// MaxCost is nil where only the safety level limits the cost.
	MaxCost *loop.MicroUSD `yaml:"max_cost"`
}

// IterationControl says when a controlled task is tried again.
type IterationControl struct {
	MaxIterations           int  `yaml:"max_iterations" default:"3" min:"1"`
	AutoRetryOnTestFail     bool `yaml:"auto_retry_on_test_fail" default:"true"`
	AutoRetryOnReviewReject bool `yaml:"auto_retry_on_review_reject" default:"true"`
	EscalationIncludesDiff  bool `yaml:"escalation_includes_diff" default:"true"`
	FeedbackMaxLength       int  `yaml:"feedback_max_length" default:"500" min:"1"`
}

// Safety changes the safety levels.
type Safety struct {
	Limits Limits          `yaml:"limits"`
	Show   []quantity.Path `yaml:"show"`
	Write  []quantity.Path `yaml:"write"`
	Hide   []quantity.Path `yaml:"hide"`
	Env    SafetyEnv       `yaml:"env"`

	Confirm       []string `yaml:"confirm" default:"what runs by itself"`
	AllowUnpriced bool     `yaml:"allow_unpriced"`

	ShareTmp    bool `yaml:"share_tmp"`
	UnixSockets bool `yaml:"unix_sockets"`

	LocalPorts []int `yaml:"local_ports"`
}

// Limits are the limits of the three levels.
type Limits struct {
	Permissive Limit `yaml:"permissive" default:"level permissive"`
	Normal     Limit `yaml:"normal" default:"level normal"`
	Paranoid   Limit `yaml:"paranoid" default:"level paranoid"`
}

// Limit is what one level allows. Equal to the limit is allowed.
type Limit struct {
	MaxCostPerIteration     loop.MicroUSD     `yaml:"max_cost_per_iteration"`
	MaxTotalCost            loop.MicroUSD     `yaml:"max_total_cost"`
	MaxDurationPerIteration quantity.Duration `yaml:"max_duration_per_iteration"`
	MaxTotalDuration        quantity.Duration `yaml:"max_total_duration"`
	MaxAPICallsPerIteration int               `yaml:"max_api_calls_per_iteration" min:"0"`
	MaxTotalAPICalls        int               `yaml:"max_total_api_calls" min:"0"`
	MaxTokensPerIteration   int               `yaml:"max_tokens_per_iteration" min:"0"`
	MaxTotalTokens          int               `yaml:"max_total_tokens" min:"0"`
}

// SafetyEnv adds to the levels' own lists. Entries are names; * stands for any characters.
type SafetyEnv struct {
	Hide  []string `yaml:"hide" names:"true"`
	Allow []string `yaml:"allow" names:"true"`
}

// Strategy is an own strategy.
type Strategy struct {
	Name              string            `yaml:"name"`
	Description       string            `yaml:"description"`
	Priority          int               `yaml:"priority" default:"0"`
	ApplicableErrors  []string          `yaml:"applicable_errors" names:"true"`
	Instruction       string            `yaml:"instruction"`
	Timeout           quantity.Duration `yaml:"timeout" default:"0"`
	RetryBackoff      string            `yaml:"retry_backoff" default:"none" enum:"none|linear|exponential"`
	Parallelism       int               `yaml:"parallelism" default:"0" min:"0"`
	Agent             string            `yaml:"agent"`
	FallbackProviders bool              `yaml:"fallback_providers" default:"false"`
	StrongerAgent     bool              `yaml:"stronger_agent" default:"false"`
	SkipOptionalSteps bool              `yaml:"skip_optional_steps" default:"false"`
	UseCache          bool              `yaml:"use_cache" default:"true"`
	Rewind            bool              `yaml:"rewind" default:"false"`
}

// Workspace is the private clone of a task.
type Workspace struct {
	Root          quantity.Path     `yaml:"root"`
	Setup         []string          `yaml:"setup"`
	Copy          []string          `yaml:"copy"`
	Retention     quantity.Duration `yaml:"retention" default:"168h"`
	KeepOnSuccess bool              `yaml:"keep_on_success" default:"false"`
}

// Run is what becomes of the work of procedures and workflows.
type Run struct {
	Deliver string `yaml:"deliver" default:"each" enum:"each|end|ask"`
}

// Snapshot is what snapshots hold and how long they are kept.
type Snapshot struct {
	MaxFile quantity.Bytes    `yaml:"max_file" default:"50 MB"`
	Keep    quantity.Duration `yaml:"keep" default:"720h"`
}

// Merge is how work lands.
type Merge struct {
	Mode              string            `yaml:"mode" default:"local" enum:"local|pull-request"`
	Target            string            `yaml:"target"`
	Auto              bool              `yaml:"auto" default:"true"`
	AutoMerge         bool              `yaml:"auto_merge" default:"false"`
	Push              bool              `yaml:"push" default:"false"`
	Signoff           bool              `yaml:"signoff" default:"false"`
	ConflictRetries   int               `yaml:"conflict_retries" default:"3" min:"0"`
	Batch             int               `yaml:"batch" default:"8" min:"1"`
	EscalationTimeout quantity.Duration `yaml:"escalation_timeout" default:"1h" min:"1s"`
	EscalationAction  string            `yaml:"escalation_action" default:"defer" enum:"defer|skip|retry|notify"`
	OnLateRed         string            `yaml:"on_late_red" default:"ask" enum:"ask|revert"`

	Regenerate []Regeneration `yaml:"regenerate"`
}

// Forge is where issues and pull requests are. What is empty is read from the
// address of the remote.
type Forge struct {
	Kind         string      `yaml:"kind" default:"auto" enum:"auto|github|gitea"`
	URL          string      `yaml:"url"`
	Repository   string      `yaml:"repository"`
	TokenCommand string      `yaml:"token_command"`
	Issues       ForgeIssues `yaml:"issues"`
}

// ForgeIssues are the issues that become tasks; those with the label.
type ForgeIssues struct {
	Label  string `yaml:"label"`
	Safety string `yaml:"safety" default:"paranoid" enum:"permissive|normal|paranoid"`
}

// Cluster is what several people or machines share.
type Cluster struct {
	Store  string `yaml:"store"`
	Engine string `yaml:"engine"`
	Remote string `yaml:"remote" default:"origin"`
	Files  string `yaml:"files"`

	TLS    ClusterTLS `yaml:"tls"`
	APIKey string     `yaml:"api_key"`
}

// ClusterTLS are the files by which the engine is spoken to.
type ClusterTLS struct {
	CA   quantity.Path `yaml:"ca"`
	Cert quantity.Path `yaml:"cert"`
	Key  quantity.Path `yaml:"key"`
}

// Retention is how long what is over is kept; 0 is for ever.
type Retention struct {
	Runs    quantity.Duration `yaml:"runs" default:"720h"`
	MaxRuns int               `yaml:"max_runs" default:"200" min:"0"`
	Output  quantity.Duration `yaml:"output" default:"168h"`
	Events  quantity.Duration `yaml:"events" default:"720h"`
}

// Regeneration is how some files are made anew.
type Regeneration struct {
	Files   []string          `yaml:"files"`
	Command string            `yaml:"command"`
	Timeout quantity.Duration `yaml:"timeout" default:"5m" min:"1s"`
}

// Autopilot is how the board is worked.
type Autopilot struct {
	MaxParallel    int               `yaml:"max_parallel" default:"3" min:"1"`
	WIPLimit       int               `yaml:"wip_limit" default:"0" min:"0"`
	MaxIterations  int               `yaml:"max_iterations" default:"50" min:"1"`
	TaskTimeout    quantity.Duration `yaml:"task_timeout" default:"30m"`
	ErrorThreshold int               `yaml:"error_threshold" default:"3" min:"0"`
	PauseLimit     quantity.Duration `yaml:"pause_limit" default:"30m"`
	Mode           string            `yaml:"mode" default:"auto" enum:"auto|semi-auto"`
	OnRedTarget    string            `yaml:"on_red_target" default:"wait" enum:"wait|work"`
	WaitForTarget  quantity.Duration `yaml:"wait_for_target" default:"12h"`
	Procedure      string            `yaml:"procedure"`
	Racers         int               `yaml:"race" default:"0" min:"0"`
	Race           []string          `yaml:"race" names:"true"`
	Pick           string            `yaml:"pick" default:"first" enum:"first|best"`
}

// RacingAgents are the agents that race for each task; "" is the task's own.
func (a Autopilot) RacingAgents() []string {
	if len(a.Race) > 0 {
		return a.Race
	}
	return make([]string, a.Racers)
}

// Hooks are commands by event.
type Hooks struct {
	OnStart       *Hook `yaml:"on_start"`
	OnComplete    *Hook `yaml:"on_complete"`
	PreMerge      *Hook `yaml:"pre_merge"`
	PostMerge     *Hook `yaml:"post_merge"`
	OnConflict    *Hook `yaml:"on_conflict"`
	OnPause       *Hook `yaml:"on_pause"`
	OnError       *Hook `yaml:"on_error"`
	OnEscalation  *Hook `yaml:"on_escalation"`
	OnBudget      *Hook `yaml:"on_budget"`
	OnSprintStart *Hook `yaml:"on_sprint_start"`
	OnSprintEnd   *Hook `yaml:"on_sprint_end"`
	OnEvent       *Hook `yaml:"on_event"`
}

// Hook is one command. A plain text is its command.
type Hook struct {
	Command string            `yaml:"command"`
	Timeout quantity.Duration `yaml:"timeout" default:"30s" min:"1ms"`
	Sandbox bool              `yaml:"sandbox" default:"true"`
}

// Notification is one receiver: exactly one of Command, Webhook and Desktop is set.
type Notification struct {
	Events  []string          `yaml:"events" default:"[escalation, error, pause, sprint_start, sprint_end, budget]" enum:"start|complete|pre_merge|post_merge|conflict|pause|error|escalation|budget|sprint_start|sprint_end" names:"true"`
	Command string            `yaml:"command"`
	Sandbox bool              `yaml:"sandbox" default:"true"`
	Webhook string            `yaml:"webhook"`
	Format  string            `yaml:"format" default:"json" enum:"json|text"`
	Headers map[string]string `yaml:"headers"`
	Desktop bool              `yaml:"desktop" default:"false"`
	Timeout quantity.Duration `yaml:"timeout" default:"10s" min:"1ms"`
}

// Price is in millionths of a dollar per million tokens. What goes through a
// cache costs as input does where it is nil.
type Price struct {
	Input      loop.MicroUSD  `yaml:"input" default:"0"`
	Output     loop.MicroUSD  `yaml:"output" default:"0"`
	CacheRead  *loop.MicroUSD `yaml:"cache_read"`
	CacheWrite *loop.MicroUSD `yaml:"cache_write"`
}

// Server is the web UI and API.
type Server struct {
	Address string        `yaml:"address" default:"127.0.0.1:7295"`
	TLSCert quantity.Path `yaml:"tls_cert"`
	TLSKey  quantity.Path `yaml:"tls_key"`
}
