package config

// workflowFile is what a workflow file may hold, as written: pawl's own keys
// and those of two other dialects. The tags describe the keys once, for the
// reader, the schema and the reference page.
type workflowFile struct {
	Name          string            `yaml:"name" loose:"1" doc:"Name of the workflow; without it, the file's."`
	Description   string            `yaml:"description" loose:"1" doc:"What it is for, in a line."`
	Env           map[string]string `yaml:"env" doc:"Variables of all steps."`
	Config        workflowConfig    `yaml:"config" doc:"What holds for all steps."`
	Steps         []workflowStep    `yaml:"steps" doc:"The steps; they may stand in any order."`
	Version       Ignored           `yaml:"version" doc:"Dialect; not read."`
	Tags          Ignored           `yaml:"tags" doc:"Dialect; not read."`
	Author        Ignored           `yaml:"author" doc:"Dialect; not read."`
	Metadata      Ignored           `yaml:"metadata" doc:"Dialect; not read."`
	ErrorHandling workflowErrors    `yaml:"errorHandling" doc:"Dialect."`
	Monitoring    Ignored           `yaml:"monitoring" doc:"Dialect; not read: pawl records every run."`
	Rollback      Ignored           `yaml:"rollback" doc:"Dialect; not read: use 'pawl rollback'."`
}

type workflowConfig struct {
	Parallelism        int               `yaml:"parallelism" min:"1" doc:"Steps at once; without the key 5."`
	Timeout            Duration          `yaml:"timeout" bare:"milliseconds" doc:"For the whole workflow. 0 is no limit."`
	StepTimeout        Duration          `yaml:"step_timeout" bare:"milliseconds" doc:"For steps that have none. 0 is no limit."`
	Retry              *workflowRetry    `yaml:"retry" doc:"For steps that have none. A number is max."`
	ContinueOnError    bool              `yaml:"continue_on_error" doc:"A failed step stops only the steps that need it."`
	Agents             []string          `yaml:"agents" single:"1" doc:"The agent of steps that name none, and those that stand in for it, in turn."`
	DefaultTimeout     Duration          `yaml:"defaultTimeout" bare:"milliseconds" doc:"Dialect: step_timeout."`
	MaxRetries         *int              `yaml:"maxRetries" min:"0" doc:"Dialect: retry.max."`
	ContinueOnErrorOld bool              `yaml:"continueOnError" doc:"Dialect: continue_on_error."`
	Providers          workflowProviders `yaml:"providers" doc:"Dialect: agents."`
	CheckpointInterval Ignored           `yaml:"checkpointInterval" doc:"Dialect; not read: every step's result is kept at once."`
}

type workflowProviders struct {
	Primary  string   `yaml:"primary" doc:"Dialect: the first of agents."`
	Fallback []string `yaml:"fallback" single:"1" doc:"Dialect: the others."`
}

type workflowErrors struct {
	ContinueOnError        bool    `yaml:"continueOnError" doc:"Dialect: config.continue_on_error."`
	CapturePartialResults  Ignored `yaml:"capturePartialResults" doc:"Dialect; not read: results are always kept."`
	SaveCheckpoints        Ignored `yaml:"saveCheckpoints" doc:"Dialect; not read: results are always kept."`
	CheckpointInterval     Ignored `yaml:"checkpointInterval" doc:"Dialect; not read."`
	MaxFailuresPerBatch    Ignored `yaml:"maxFailuresPerBatch" doc:"Dialect; not read."`
	AlertOnFailure         Ignored `yaml:"alertOnFailure" doc:"Dialect; not read."`
	RetryFailedSteps       Ignored `yaml:"retryFailedSteps" doc:"Dialect; not read."`
	NotificationOnFailure  Ignored `yaml:"notificationOnFailure" doc:"Dialect; not read."`
	RollbackOnFailure      Ignored `yaml:"rollbackOnFailure" doc:"Dialect; not read."`
	CapturePartialProgress Ignored `yaml:"capturePartialProgress" doc:"Dialect; not read."`
}

type workflowStep struct {
	ID               string            `yaml:"id" loose:"1" doc:"Names the step in needs and placeholders; unique."`
	Name             string            `yaml:"name" loose:"1" doc:"What is shown. Without id and key it is the id."`
	Description      string            `yaml:"description" loose:"1" doc:"What the step is for; shown where there is no name."`
	Run              string            `yaml:"run" loose:"1" doc:"A command line, for the shell."`
	Agent            string            `yaml:"agent" doc:"An agent; it does what prompt says."`
	Prompt           string            `yaml:"prompt" doc:"What the agent is told. Without agent, the default one."`
	Procedure        string            `yaml:"procedure" doc:"A procedure of pawl.yaml."`
	Ask              string            `yaml:"ask" doc:"A question to a person; the answer is the output."`
	Workflow         string            `yaml:"workflow" doc:"Another workflow file, relative to this one."`
	Needs            []string          `yaml:"needs" single:"1" doc:"Ids of the steps that must be done before."`
	If               string            `yaml:"if" loose:"1" doc:"An expression; the step runs where it holds. Without a status function it also asks success()."`
	Env              map[string]string `yaml:"env" doc:"Variables of the step."`
	Matrix           *workflowMatrix   `yaml:"matrix" doc:"One instance for each combination of values."`
	Outputs          map[string]string `yaml:"outputs" doc:"Names and texts for later steps; output in them is what the step printed."`
	Timeout          Duration          `yaml:"timeout" bare:"milliseconds" doc:"For one attempt. 0 is the workflow's."`
	Retry            *workflowRetry    `yaml:"retry" doc:"Attempts after a failure. A number is max."`
	Optional         *bool             `yaml:"optional" doc:"The workflow succeeds without it."`
	Alternatives     []workflowWork    `yaml:"alternatives" doc:"What is tried in turn where the step itself fails. A text is a command."`
	Verify           []string          `yaml:"verify" single:"1" doc:"Commands that must succeed after the step."`
	WorkingDirectory string            `yaml:"working_directory" doc:"Folder that the step runs in, relative to the root."`
	Key              string            `yaml:"key" loose:"1" doc:"Dialect: id."`
	Provider         string            `yaml:"provider" doc:"Dialect: agent."`
	Dependencies     []string          `yaml:"dependencies" single:"1" doc:"Dialect: needs."`
	DependsOn        []string          `yaml:"dependsOn" single:"1" doc:"Dialect: needs."`
	TimeoutMS        Duration          `yaml:"timeoutMs" bare:"ms" doc:"Dialect: timeout."`
	RetryPolicy      *workflowPolicy   `yaml:"retryPolicy" doc:"Dialect: retry."`
	Retryable        *bool             `yaml:"retryable" doc:"Dialect: false is retry 0."`
	Required         *bool             `yaml:"required" doc:"Dialect: the opposite of optional."`
	Parallel         Ignored           `yaml:"parallel" doc:"Dialect; not read: steps that do not need each other run side by side."`
	OutputSchema     Ignored           `yaml:"outputSchema" doc:"Dialect; not read: use verify."`
	Metadata         Ignored           `yaml:"metadata" doc:"Dialect; not read."`
}

// workflowWork is an alternative. A plain text is its command.
type workflowWork struct {
	Run       string `yaml:"run" loose:"1" doc:"A command line, for the shell."`
	Agent     string `yaml:"agent" doc:"An agent; without prompt it is told what the step's was."`
	Provider  string `yaml:"provider" doc:"Dialect: agent."`
	Prompt    string `yaml:"prompt" doc:"What the agent is told."`
	Procedure string `yaml:"procedure" doc:"A procedure of pawl.yaml."`
}

type workflowRetry struct {
	Max     int      `yaml:"max" min:"0" doc:"Attempts after the first."`
	Backoff string   `yaml:"backoff" default:"exponential" enum:"none|linear|exponential" doc:"How the wait grows."`
	Delay   Duration `yaml:"delay" default:"1s" doc:"The first wait."`
}

type workflowPolicy struct {
	MaxRetries      int      `yaml:"maxRetries" default:"3" min:"0" doc:"Dialect: retry.max."`
	RetryDelayMS    Duration `yaml:"retryDelayMs" default:"1s" bare:"ms" doc:"Dialect: retry.delay."`
	Multiplier      string   `yaml:"retryBackoffMultiplier" default:"2" loose:"1" doc:"Dialect: what the wait is multiplied with; 1 to 100."`
	RetryableErrors Ignored  `yaml:"retryableErrors" doc:"Dialect; not read: pawl classifies failures itself."`
}

// workflowMatrix has a key of the user's own for each axis.
type workflowMatrix struct {
	Axes    map[string][]string `yaml:",inline" loose:"1" doc:"A name and its values."`
	Include []map[string]string `yaml:"include" doc:"Further combinations, or more names for those that agree."`
	Exclude []map[string]string `yaml:"exclude" doc:"Combinations that are left out."`
}
