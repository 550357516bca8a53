// Package opencode runs OpenCode and its fork Kilo Code headless and reads
// their stream of JSON lines (`opencode run --format json`).
//
// What the programs do, as pawl relies on it:
//   - The prompt comes on stdin.
//   - There is no terminal event: the stream just ends. It ended well when the
//     last step finished by itself, failed when an error was the last word.
//   - A step's events come together when it ends, a tool call once it is done:
//     a test run of 20 minutes is 20 minutes of silence.
//   - Usage and cost are told per step; the input excludes cached tokens, the
//     output those of reasoning. The cost is 0 for a model without a price.
//   - Failed calls are tried again without a word, and a retry-after is obeyed
//     for hours. Only what is given up is told, with status and headers.
//   - TERM ends the program, but not the shells of its tools, which are
//     sessions of their own: the supervisor's sweep ends those.
//   - Two first starts at once in one data folder break one of them, so it is
//     warmed once.
//
// With --auto the programs do what is not denied, at every safety level: what
// they may touch is enforced by pawl's sandbox. The package starts nothing itself.
package opencode

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// variant is one of the programs.
type variant struct {
	name, npm, versions string
	prefix              string // of its variables
	problems            []string
}

var (
	original = variant{name: "opencode", npm: "opencode-ai", versions: "1.18.33", prefix: "OPENCODE_"}
	kilo     = variant{
		name: "kilo", npm: "@kilocode/cli", versions: "7.7.7", prefix: "KILO_",
		problems: []string{"The npm package's command is a Node wrapper around the native binary.", "7.8.1 did not start: the package of the platform was missing."},
	}
)

// quiet is the silence that is still work.
const quiet = 30 * time.Minute

// Adapter starts OpenCode or a fork of it. [New] and [NewKilo] make one.
type Adapter struct{ variant variant }

// New returns the adapter "opencode".
func New() Adapter { return Adapter{original} }

// NewKilo returns the adapter "kilo".
func NewKilo() Adapter { return Adapter{kilo} }

// Name is "opencode" or "kilo".
func (a Adapter) Name() string { return a.variant.name }

// Install says how to get the program.
func (a Adapter) Install() string { return "npm install -g " + a.variant.npm }

// LiveUsage is true: every step tells its tokens and cost.
func (Adapter) LiveUsage() bool { return true }

// Structured is true: how the last step ended tells how the run did.
func (Adapter) Structured() bool { return true }

// IdleTimeout is the silence of a long test run.
func (Adapter) IdleTimeout() time.Duration { return quiet }

// Start makes the command line. A command of the user's replaces the program's
// name, and may have arguments of its own before pawl's.
//
// The state stays in the user's folders unless in.Isolate is set, with a key
// too: which provider a key is for is in the user's configuration. With
// Isolate, XDG_CONFIG_HOME and its like are set, for the agent's tools too.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	args := append(in.Program(a.variant.name), "run", "--format", "json", "--auto")
	if in.ReadOnly {
		args = append(args, "--agent", "plan")
	}
	if in.Model != "" {
		args = append(args, "--model", in.Model)
	}
	return agent.Start{
		Args:   args,
		Env:    append(a.env(in), in.Env...),
		Stdin:  in.PromptFile,
		Parser: "opencode",
		Grace:  5 * time.Second,
		Warm:   append(in.Program(a.variant.name), "session", "list"), // makes the database
	}, nil
}

func (a Adapter) env(in agent.Invocation) []string {
	var env []string
	for _, name := range []string{"DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD"} {
		env = append(env, a.variant.prefix+name+"=1")
	}
	if in.StateDir == "" || !in.Isolate {
		return env
	}
	for _, name := range []string{"config", "data", "state", "cache"} {
		env = append(env, "XDG_"+strings.ToUpper(name)+"_HOME="+filepath.Join(in.StateDir, name))
	}
	return env
}

// Facts are what was measured.
func (a Adapter) Facts() agent.Facts {
	return agent.Facts{
		Program:  a.variant.name,
		Package:  "npm " + a.variant.npm,
		Versions: a.variant.versions,
		Format:   "opencode",
		Tokens:   "reported with every step",
		Cost:     "reported with every step, from the program's prices; estimated when it has none",
		Problems: append([]string{
			"It says nothing while a tool runs, nor while it waits for a rate or plan limit, for hours if the provider says so: only the idle limit and the iteration's time limit end that.",
			"Its retries are invisible, and it asks for a title for each session: the provider counts more calls than pawl.",
			"When a server answers 200 with something else than a model's answer, it asks again without end.",
			"Two first starts at once in one data folder break one of them: pawl warms it once per repository, alone.",
			"A cold start asks the npm registry, which costs seconds where it cannot be reached.",
			"A model that is newer than the program is not known, as its catalogue is not fetched: set " + a.variant.prefix + "DISABLE_MODELS_FETCH= in the agent's env.",
		}, a.variant.problems...),
	}
}
