package config

// workflowFile is what a workflow file may hold, as written: pawl's own keys
// and those of two other dialects. The tags describe the keys once, for the
// reader, the schema and the reference page.
type workflowFile struct {
	Name          string            `yaml:"name" loose:"1"`
	Description   string            `yaml:"description" loose:"1"`
	Env           map[string]string `yaml:"env"`
	Config        workflowConfig    `yaml:"config"`
	Steps         []workflowStep    `yaml:"steps"`
	Version       Ignored           `yaml:"version"`
	Tags          Ignored           `yaml:"tags"`
	Author        Ignored           `yaml:"author"`
	Metadata      Ignored           `yaml:"metadata"`
	ErrorHandling workflowErrors    `yaml:"errorHandling"`
	Monitoring    Ignored           `yaml:"monitoring"`
	Rollback      Ignored           `yaml:"rollback"`
}

type workflowConfig struct {
	Parallelism        int               `yaml:"parallelism" min:"1"`
	Timeout            Duration          `yaml:"timeout" bare:"milliseconds"`
	StepTimeout        Duration          `yaml:"step_timeout" bare:"milliseconds"`
	Retry              *workflowRetry    `yaml:"retry"`
	ContinueOnError    bool              `yaml:"continue_on_error"`
	Agents             []string          `yaml:"agents" single:"1"`
	DefaultTimeout     Duration          `yaml:"defaultTimeout" bare:"milliseconds"`
	MaxRetries         *int              `yaml:"maxRetries" min:"0"`
	ContinueOnErrorOld bool              `yaml:"continueOnError"`
	Providers          workflowProviders `yaml:"providers"`
	CheckpointInterval Ignored           `yaml:"checkpointInterval"`
}

type workflowProviders struct {
	Primary  string   `yaml:"primary"`
	Fallback []string `yaml:"fallback" single:"1"`
}

type workflowErrors struct {
	ContinueOnError        bool    `yaml:"continueOnError"`
	CapturePartialResults  Ignored `yaml:"capturePartialResults"`
	SaveCheckpoints        Ignored `yaml:"saveCheckpoints"`
	CheckpointInterval     Ignored `yaml:"checkpointInterval"`
	MaxFailuresPerBatch    Ignored `yaml:"maxFailuresPerBatch"`
	AlertOnFailure         Ignored `yaml:"alertOnFailure"`
	RetryFailedSteps       Ignored `yaml:"retryFailedSteps"`
	NotificationOnFailure  Ignored `yaml:"notificationOnFailure"`
	RollbackOnFailure      Ignored `yaml:"rollbackOnFailure"`
	CapturePartialProgress Ignored `yaml:"capturePartialProgress"`
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
	Timeout          Duration          `yaml:"timeout" bare:"milliseconds"`
	Retry            *workflowRetry    `yaml:"retry"`
	Optional         *bool             `yaml:"optional"`
	Alternatives     []workflowWork    `yaml:"alternatives"`
	Verify           []string          `yaml:"verify" single:"1"`
	WorkingDirectory string            `yaml:"working_directory"`
	Key              string            `yaml:"key" loose:"1"`
	Provider         string            `yaml:"provider"`
	Dependencies     []string          `yaml:"dependencies" single:"1"`
	DependsOn        []string          `yaml:"dependsOn" single:"1"`
	TimeoutMS        Duration          `yaml:"timeoutMs" bare:"ms"`
	RetryPolicy      *workflowPolicy   `yaml:"retryPolicy"`
	Retryable        *bool             `yaml:"retryable"`
	Required         *bool             `yaml:"required"`
	Parallel         Ignored           `yaml:"parallel"`
	OutputSchema     Ignored           `yaml:"outputSchema"`
	Metadata         Ignored           `yaml:"metadata"`
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
	Max     int      `yaml:"max" min:"0"`
	Backoff string   `yaml:"backoff" default:"exponential" enum:"none|linear|exponential"`
	Delay   Duration `yaml:"delay" default:"1s"`
}

type workflowPolicy struct {
	MaxRetries      int      `yaml:"maxRetries" default:"3" min:"0"`
	RetryDelayMS    Duration `yaml:"retryDelayMs" default:"1s" bare:"ms"`
	Multiplier      string   `yaml:"retryBackoffMultiplier" default:"2" loose:"1"`
	RetryableErrors Ignored  `yaml:"retryableErrors"`
}

// workflowMatrix has a key of the user's own for each axis.
type workflowMatrix struct {
	Axes    map[string][]string `yaml:",inline" loose:"1"`
	Include []map[string]string `yaml:"include"`
	Exclude []map[string]string `yaml:"exclude"`
}
