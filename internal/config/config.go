package config

import "github.com/pawl-dev/pawl/internal/loop"

// Config is everything that can be set, with the defaults filled in.
//
// The tags are read by the whole package: yaml is the key (",inline" takes
// the keys that no other field has), default is YAML, doc becomes the schema
// and the reference, enum and min limit the value, bare is the unit that a
// number without one has, flagms marks a duration whose flag takes bare
// milliseconds, names a list that a variable may separate with commas, loose
// a text that may be written as a number.
type Config struct {
	Agent            string               `yaml:"agent" default:"claude" doc:"Name of the default agent: one of 'agents', or a built-in one."`
	Agents           Agents               `yaml:"agents" doc:"Own agents by name, and the reserved names 'fallback' and 'stronger'. An entry with the name of a built-in agent changes that one."`
	Prompt           Prompt               `yaml:"prompt" doc:"How the prompt is assembled."`
	Procedures       map[string]Procedure `yaml:"procedures" doc:"Named loops: a prompt in four phases and a policy."`
	Loop             Loop                 `yaml:"loop" doc:"Limits and guards of every loop."`
	Verification     Verification         `yaml:"verification" doc:"The gates that judge an iteration. A plain list is a list of gates."`
	Review           Review               `yaml:"review" doc:"Who reviews a task whose gates are green."`
	IterationControl IterationControl     `yaml:"iteration_control" doc:"Retry or escalate: for 'pawl check' and loops with 'policy: controlled'."`
	Safety           Safety               `yaml:"safety" doc:"Changes to the safety levels."`
	Strategies       []Strategy           `yaml:"strategies" doc:"Own strategies, tried like the built-in ones."`
	Workspace        Workspace            `yaml:"workspace" doc:"The private clones in which tasks are worked on."`
	Snapshot         Snapshot             `yaml:"snapshot" doc:"The commits under refs/pawl/ that make every iteration undoable."`
	Merge            Merge                `yaml:"merge" doc:"How verified work lands on the target branch."`
	Autopilot        Autopilot            `yaml:"autopilot" doc:"Working the board with several agents."`
	Sprint           Sprint               `yaml:"sprint" doc:"A run of the autopilot up to a target."`
	Hooks            Hooks                `yaml:"hooks" doc:"Commands that pawl runs when something happens. A failing hook is logged and blocks nothing."`
	Notify           []Notification       `yaml:"notify" doc:"Who is told about what: each entry has one of 'command', 'webhook' and 'desktop'."`
	Prices           map[string]Price     `yaml:"prices" doc:"Prices by model in US dollars per million tokens, for agents that do not report their cost."`
	Server           Server               `yaml:"server" doc:"The web UI and API."`

	// Root is the root folder, absolute, symbolic links resolved.
	Root string `yaml:"-"`
	// File is the absolute path of the project's file; "" if there is none.
	File string `yaml:"-"`
	// Warnings are remarks for the person that stop nothing.
	Warnings []string `yaml:"-"`

	from map[string]position
}

// Agents is the agents section. Fallback and Stronger are reserved names.
type Agents struct {
	Fallback []string         `yaml:"fallback" names:"true" doc:"Agents that the fallback-providers strategy tries, in this order."`
	Stronger string           `yaml:"stronger" doc:"The agent that the stronger-agent strategy uses."`
	Named    map[string]Agent `yaml:",inline" doc:"An agent: your own program, or changes to a built-in agent."`
}

// Agent is an own agent, or what is changed of a built-in one.
type Agent struct {
	Command Argv              `yaml:"command" doc:"The command line: a list, or a text that is split like a shell would. The prompt comes on stdin unless an argument holds {prompt} or {prompt_file}."`
	Output  string            `yaml:"output" doc:"The parser of its output: 'text', the name of a built-in agent, or 'acp' for a program that speaks the Agent Client Protocol."`
	Model   string            `yaml:"model" doc:"The model to ask for; without it the program's own default."`
	Env     map[string]string `yaml:"env" doc:"Variables added to its environment."`
	// IdleTimeout is nil where loop.idle_timeout holds.
	IdleTimeout *Duration `yaml:"idle_timeout" doc:"Overrides loop.idle_timeout for this agent. 0 is no limit."`
	// Endpoints are in the words of egress.ParseEndpoint.
	Endpoints []string `yaml:"endpoints" doc:"What the agent may reach at the level paranoid, instead of what pawl knows of it: 'host', 'host:port', '*.suffix' or a base URL. '=ADDRESS' after it allows an address that is not public."`
	Isolate   bool     `yaml:"isolate" doc:"Give the agent a state folder of its own for each repository instead of the user's."`
}

// Prompt is how the prompt is assembled.
type Prompt struct {
	TokenBudget int `yaml:"token_budget" default:"100000" min:"0" doc:"Estimated tokens over which pawl warns and shortens the feedback. 0 is no budget."`
}

// Loop holds limits and guards. A duration or count of 0 is off where the key says so.
type Loop struct {
	MaxIterations      int      `yaml:"max_iterations" default:"0" min:"0" doc:"Iterations of a procedure. 0 is unlimited."`
	FailureThreshold   int      `yaml:"failure_threshold" default:"3" min:"0" doc:"Failed iterations in a row that trip the breaker. 0 is off. Without the key tasks have 5 and workflows none."`
	IterationTimeout   Duration `yaml:"iteration_timeout" default:"30m" doc:"Wall-clock time of one iteration. 0 is no limit."`
	IdleTimeout        Duration `yaml:"idle_timeout" default:"10m" doc:"Time without output and without a changed file after which an iteration is ended. 0 is no limit."`
	Timeout            Duration `yaml:"timeout" default:"0" flagms:"true" doc:"Wall-clock time of the whole run. 0 is no limit."`
	StuckThreshold     int      `yaml:"stuck_threshold" default:"5" min:"0" doc:"Iterations without progress that count as stuck. 0 is off."`
	PauseOnStuck       bool     `yaml:"pause_on_stuck" default:"false" doc:"Pause a stuck loop instead of warning."`
	ThrashingThreshold int      `yaml:"thrashing_threshold" default:"5" min:"0" doc:"Failed iterations that touch the same file before the loop is stopped. 0 is off."`
	RepeatThreshold    int      `yaml:"repeat_threshold" default:"30" min:"0" doc:"How often in a row an agent may take the same turns, with the same tool calls, results and words and without a changed file, before the iteration is ended. 0 is off."`
	MaxEmptyCalls      int      `yaml:"max_empty_calls" default:"30" min:"0" doc:"Model calls in a row that bring nothing new before an iteration is ended. 0 is off."`
	MaxRetries         int      `yaml:"max_retries" default:"20" min:"0" doc:"How often in a row an agent program may try failed model calls again by itself. 0 is no limit."`
	RetryTimeout       Duration `yaml:"retry_timeout" default:"4m" doc:"How long an agent program may try failed model calls again by itself; then pawl waits for the provider. 0 is no limit."`
	MaxTurns           int      `yaml:"max_turns" default:"1000" min:"0" doc:"Turns of an agent in one iteration. 0 is no limit."`
	MaxOutput          Bytes    `yaml:"max_output" default:"2 GB" doc:"Output of an agent in one iteration, and four times what one message may have. 0 is no limit."`
	MaxWaits           int      `yaml:"max_waits" default:"20" min:"0" doc:"Waits for a provider in a row before a person is asked."`
	MaxWait            Duration `yaml:"max_wait" default:"6h" doc:"A longer wait that the provider names uses the fallback agent at once, or asks a person."`
	Lease              Duration `yaml:"lease" default:"30s" min:"1s" doc:"How long an agent goes on when pawl is gone."`
	Safety             string   `yaml:"safety" default:"normal" enum:"permissive|normal|paranoid" doc:"What agents, steps and gates may do."`
	Strategy           string   `yaml:"strategy" default:"auto" doc:"How strategies are chosen: auto, conservative or aggressive; the name of a strategy fixes that one."`
	CheckpointInterval int      `yaml:"checkpoint_interval" default:"1" min:"1" doc:"Iterations between full checkpoints of a workflow."`
	// MaxCost is nil where only the safety level limits the cost.
	MaxCost *loop.MicroUSD `yaml:"max_cost" doc:"US dollars that a run may cost, besides the limit of the safety level."`
}

// IterationControl says when a controlled task is tried again.
type IterationControl struct {
	MaxIterations           int  `yaml:"max_iterations" default:"3" min:"1" doc:"Attempts before a person is asked."`
	AutoRetryOnTestFail     bool `yaml:"auto_retry_on_test_fail" default:"true" doc:"Try again when tests fail; otherwise ask at once."`
	AutoRetryOnReviewReject bool `yaml:"auto_retry_on_review_reject" default:"true" doc:"Try again when the review rejects; otherwise ask at once."`
	EscalationIncludesDiff  bool `yaml:"escalation_includes_diff" default:"true" doc:"Add the diff to an escalation."`
	FeedbackMaxLength       int  `yaml:"feedback_max_length" default:"500" min:"1" doc:"Characters of summary and items together."`
}

// Safety changes the safety levels.
type Safety struct {
	Limits Limits    `yaml:"limits" doc:"Limits of each level. A limit of 0 allows nothing."`
	Write  []Path    `yaml:"write" doc:"Folders that agents may write besides those of the level."`
	Env    SafetyEnv `yaml:"env" doc:"Which variables reach agents, steps and gates."`
}

// Limits are the limits of the three levels.
type Limits struct {
	Permissive Limit `yaml:"permissive" default:"level permissive" doc:"Limits of the level permissive."`
	Normal     Limit `yaml:"normal" default:"level normal" doc:"Limits of the level normal."`
	Paranoid   Limit `yaml:"paranoid" default:"level paranoid" doc:"Limits of the level paranoid."`
}

// Limit is what one level allows. Equal to the limit is allowed.
type Limit struct {
	MaxCostPerIteration     loop.MicroUSD `yaml:"max_cost_per_iteration" doc:"US dollars of one iteration."`
	MaxTotalCost            loop.MicroUSD `yaml:"max_total_cost" doc:"US dollars of the run."`
	MaxDurationPerIteration Duration      `yaml:"max_duration_per_iteration" doc:"Time of one iteration; for procedures and tasks only when the level is named on the command line."`
	MaxTotalDuration        Duration      `yaml:"max_total_duration" doc:"Time of the run; for procedures and tasks only when the level is named on the command line."`
	MaxAPICallsPerIteration int           `yaml:"max_api_calls_per_iteration" min:"0" doc:"Calls to the model in one iteration."`
}

// SafetyEnv adds to the levels' own lists. Entries are names; * stands for any characters.
type SafetyEnv struct {
	Hide  []string `yaml:"hide" names:"true" doc:"Names that the levels normal and paranoid hide as well; * stands for any characters."`
	Allow []string `yaml:"allow" names:"true" doc:"Names that every level lets through; * stands for any characters."`
}

// Strategy is an own strategy.
type Strategy struct {
	Name              string   `yaml:"name" doc:"Its name; required."`
	Description       string   `yaml:"description" doc:"What it does, in a line."`
	Priority          int      `yaml:"priority" default:"0" doc:"Higher is tried first; the built-in ones have 3 to 10."`
	ApplicableErrors  []string `yaml:"applicable_errors" names:"true" doc:"Classes of failure that it is made for, as 'pawl explain' names them."`
	Instruction       string   `yaml:"instruction" doc:"Text added to the next prompt."`
	Timeout           Duration `yaml:"timeout" default:"0" doc:"What iteration_timeout is raised to, and for workflow steps without a timeout of their own; it never shortens."`
	RetryBackoff      string   `yaml:"retry_backoff" default:"none" enum:"none|linear|exponential" doc:"Waiting after transient failures."`
	Parallelism       int      `yaml:"parallelism" default:"0" min:"0" doc:"Workflow steps at once."`
	Agent             string   `yaml:"agent" doc:"The agent that it uses."`
	FallbackProviders bool     `yaml:"fallback_providers" default:"false" doc:"Use the next agent of agents.fallback."`
	StrongerAgent     bool     `yaml:"stronger_agent" default:"false" doc:"Use agents.stronger."`
	SkipOptionalSteps bool     `yaml:"skip_optional_steps" default:"false" doc:"Skip optional steps and gates."`
	UseCache          bool     `yaml:"use_cache" default:"true" doc:"false gives the failed step and what depends on it a fresh attempt."`
	Rewind            bool     `yaml:"rewind" default:"false" doc:"Put the tree back to the best snapshot first."`
}

// Workspace is the private clone of a task.
type Workspace struct {
	Root          Path     `yaml:"root" doc:"Folder of the workspaces; without it below pawl's state folder."`
	Setup         []string `yaml:"setup" doc:"Commands run in a new workspace, e.g. 'npm ci'."`
	Copy          []string `yaml:"copy" doc:"Files that git does not hold, copied from the checkout, e.g. .env; relative to the root."`
	Retention     Duration `yaml:"retention" default:"168h" doc:"How long the workspace of a failed or timed-out task is kept."`
	KeepOnSuccess bool     `yaml:"keep_on_success" default:"false" doc:"Keep the workspace of a task that landed."`
}

// Snapshot is what snapshots hold and how long they are kept.
type Snapshot struct {
	MaxFile Bytes    `yaml:"max_file" default:"50 MB" doc:"Larger files are left alone and listed."`
	Keep    Duration `yaml:"keep" default:"720h" doc:"How long after its end the snapshots of a run are kept; 0 is for ever."`
}

// Merge is how work lands.
type Merge struct {
	Mode              string   `yaml:"mode" default:"local" enum:"local|pull-request" doc:"Land on the branch here, or by a pull request."`
	Target            string   `yaml:"target" doc:"The branch to land on; without it the one that is checked out."`
	Auto              bool     `yaml:"auto" default:"true" doc:"Land verified work without asking."`
	Push              bool     `yaml:"push" default:"false" doc:"Push the target to its remote after a landing, never with force."`
	ConflictRetries   int      `yaml:"conflict_retries" default:"3" min:"0" doc:"Attempts of an agent at a conflict of medium size."`
	Batch             int      `yaml:"batch" default:"8" min:"1" doc:"Most entries verified as one."`
	EscalationTimeout Duration `yaml:"escalation_timeout" default:"1h" min:"1s" doc:"How long a person has to answer about a conflict."`
	EscalationAction  string   `yaml:"escalation_action" default:"defer" enum:"defer|skip|retry|notify" doc:"What happens when nobody answered."`

	Regenerate []Regeneration `yaml:"regenerate" doc:"Lock files and other generated files that a command makes anew where they conflict, instead of being merged by lines. The first entry that has a file counts."`
}

// Regeneration is how some files are made anew.
type Regeneration struct {
	Files   []string `yaml:"files" doc:"Paths or globs relative to the repository, e.g. package-lock.json; required."`
	Command string   `yaml:"command" doc:"Run with sh -c on the merged files, e.g. 'npm install --package-lock-only'; required."`
	Timeout Duration `yaml:"timeout" default:"5m" min:"1s" doc:"Time after which it is ended, and the conflict goes on as one."`
}

// Autopilot is how the board is worked.
type Autopilot struct {
	MaxParallel    int      `yaml:"max_parallel" default:"3" min:"1" doc:"Tasks worked on at once."`
	WIPLimit       int      `yaml:"wip_limit" default:"0" min:"0" doc:"Tasks waiting for review at which no new one is started. 0 is no limit."`
	MaxIterations  int      `yaml:"max_iterations" default:"50" min:"1" doc:"Iterations of a task before it times out."`
	TaskTimeout    Duration `yaml:"task_timeout" default:"30m" doc:"Wall-clock time of a task, waits aside. 0 is no limit."`
	ErrorThreshold int      `yaml:"error_threshold" default:"3" min:"0" doc:"Failed tasks in a row that pause the autopilot. 0 is off."`
	PauseLimit     Duration `yaml:"pause_limit" default:"30m" doc:"How long such a pause lasts while nobody looks on (no terminal, no 'pawl top', no page): then the autopilot ends. 0 is without end."`
	Mode           string   `yaml:"mode" default:"auto" enum:"auto|semi-auto" doc:"semi-auto starts nothing by itself."`
	Procedure      string   `yaml:"procedure" doc:"The procedure whose prompt, agent and limits tasks have; without it pawl's own prompt for a task."`
}

// Hooks are commands by event.
type Hooks struct {
	OnStart      *Hook `yaml:"on_start" doc:"When a run starts or goes on."`
	OnComplete   *Hook `yaml:"on_complete" doc:"When a run is complete."`
	PreMerge     *Hook `yaml:"pre_merge" doc:"Before a landing, which waits for it."`
	PostMerge    *Hook `yaml:"post_merge" doc:"After a landing."`
	OnConflict   *Hook `yaml:"on_conflict" doc:"When a landing conflicts."`
	OnPause      *Hook `yaml:"on_pause" doc:"When a run or the autopilot pauses."`
	OnError      *Hook `yaml:"on_error" doc:"When a run fails, is aborted or reaches a limit."`
	OnEscalation *Hook `yaml:"on_escalation" doc:"When a person is asked."`
	OnBudget     *Hook `yaml:"on_budget" doc:"When 80 % of the cost that a run may have is spent, and when all of it is."`
	OnSprintEnd  *Hook `yaml:"on_sprint_end" doc:"When a sprint is over."`
	OnEvent      *Hook `yaml:"on_event" doc:"At every one of these, after the event's own hook."`
}

// Hook is one command. A plain text is its command.
type Hook struct {
	Command string   `yaml:"command" doc:"Run with sh -c in the root; required."`
	Timeout Duration `yaml:"timeout" default:"30s" min:"1ms" doc:"Time after which it is ended."`
	Sandbox bool     `yaml:"sandbox" default:"true" doc:"Run it like a gate: in the run's sandbox, with the variables that its level lets through. false gives it your own rights and variables."`
}

// Notification is one receiver: exactly one of Command, Webhook and Desktop is set.
type Notification struct {
	Events  []string          `yaml:"events" default:"[escalation, pause, sprint_end, budget]" enum:"start|complete|pre_merge|post_merge|conflict|pause|error|escalation|budget|sprint_end" names:"true" doc:"What is sent."`
	Command string            `yaml:"command" doc:"Run with sh -c in the root; the event comes on stdin as JSON."`
	Sandbox bool              `yaml:"sandbox" default:"true" doc:"As of a hook, for 'command'."`
	Webhook string            `yaml:"webhook" doc:"An http or https address that gets the event by POST. ${NAME} stands for a variable of the environment."`
	Format  string            `yaml:"format" default:"json" enum:"json|text" doc:"What the webhook gets: JSON with 'text' for people and 'event' for programs, or the text alone."`
	Headers map[string]string `yaml:"headers" doc:"Headers of the webhook's request by name. ${NAME} stands for a variable of the environment."`
	Desktop bool              `yaml:"desktop" default:"false" doc:"Show it on the desktop."`
	Timeout Duration          `yaml:"timeout" default:"10s" min:"1ms" doc:"Time after which one try is given up."`
}

// Price is in millionths of a dollar per million tokens.
type Price struct {
	Input      loop.MicroUSD `yaml:"input" default:"0" doc:"Input that was not cached."`
	Output     loop.MicroUSD `yaml:"output" default:"0" doc:"Output."`
	CacheRead  loop.MicroUSD `yaml:"cache_read" default:"0" doc:"Input read from the cache."`
	CacheWrite loop.MicroUSD `yaml:"cache_write" default:"0" doc:"Input written to the cache."`
}

// Server is the web UI and API.
type Server struct {
	Address string `yaml:"address" default:"127.0.0.1:7295" doc:"Host and port to listen on. Another host than loopback opens pawl to the network."`
	TLSCert Path   `yaml:"tls_cert" doc:"File of the certificate chain, PEM; with tls_key."`
	TLSKey  Path   `yaml:"tls_key" doc:"File of the private key, PEM; with tls_cert."`
}
