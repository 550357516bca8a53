package config

import "testing"

// The defaults that the autopilot was specified with, each with its name there.
// Where it says "decided", a later decision wins.
func TestDefaultsOfTheAutopilot(t *testing.T) {
	t.Parallel()
	c, err := Load(testOptions(tempDir(t)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range c.Entries() {
		got[e.Path] = e.Value
	}
	for _, row := range []struct{ name, path, want string }{
		// Iteration control, and the settings of a sprint.
		{"completion.maxIterations", "autopilot.max_iterations", "50"},
		{"completion.stuckThreshold", "loop.stuck_threshold", "5"},
		{"agents.timeoutMinutes", "autopilot.task_timeout", "30m"},
		{"consecutive errors", "autopilot.error_threshold", "3"},
		{"settings.pauseOnStuck", "loop.pause_on_stuck", "false"},
		{"agents.maxParallel", "autopilot.max_parallel", "3"},
		// Timeout configuration.
		{"verification.defaultTimeout", "verification.default_timeout", "5m"},
		// Sprint configuration. Reviews are not collected unless that is asked for.
		{"sprint.target", "sprint.target.type", "no_ready"},
		{"options.checkpointBefore", "sprint.options.checkpoint_before", "true"},
		{"options.pauseOnError", "sprint.options.pause_on_error", "false"},
		{"options.batchReview, decided", "sprint.options.batch_review", "false"},
		// Its siblings' facts.
		{"merge.autoMerge", "merge.auto", "true"},
		{"merge.conflictRetries", "merge.conflict_retries", "3"},
		{"merge.escalationTimeout", "merge.escalation_timeout", "1h"},
		{"merge.escalationAction", "merge.escalation_action", "defer"},
		{"workspace.retentionDays", "workspace.retention", "168h"},
		{"workspace.cleanupOnSuccess", "workspace.keep_on_success", "false"},
		{"review.defaultMode, decided", "review.mode", "skip"},
		{"mode, decided", "autopilot.mode", "auto"},
	} {
		if got[row.path] != row.want {
			t.Errorf("%s: %s is %q, want %q", row.name, row.path, got[row.path], row.want)
		}
	}
}

// A command of the verification has the default timeout and is required unless
// it says otherwise.
func TestVerificationWithDefaults(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	write(t, dir, map[string]string{"pawl.yaml": `verification:
  default_timeout: 300
  commands:
    - {command: npm test, timeout: 600}
    - {command: npm run lint, timeout: 60, required: false}
    - {command: npm run build}
`})
	c, err := Load(testOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		timeout  string
		required bool
	}{{"10m0s", true}, {"1m0s", false}, {"5m0s", true}}
	for i, g := range c.Verification.Commands {
		if g.Timeout.Std().String() != want[i].timeout || g.Required != want[i].required {
			t.Errorf("%s: %s, required %t; want %v", g.Command, g.Timeout.Std(), g.Required, want[i])
		}
	}
}
