// Package droid runs Factory's droid headless (`droid exec --output-format
// stream-json`) and reads its stream. It starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, and is told again as a message of the user.
//   - `completion` ends a success, with the final text and the run's tokens,
//     whose input excludes the cached ones. Its credits are no money.
//   - An API failure is an `error` of the agent loop whose text starts with the
//     HTTP status, then one of the command line; exit 1. Its own retries, up to
//     90 s and for an overloaded server much longer, do not show.
//   - After a signal it takes 6.5 s to end, with exit 0: the tool that was
//     killed is told to the model, which may go on and "complete".
//   - Its state is in HOME, which is everyone's: only a user who asks for
//     isolation gets another one.
package droid

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is droid.
func Program() program.Program {
	return program.Program{
		Name: "droid", Binary: "droid",
		Args:    []string{"exec", "--output-format", "stream-json"},
		Allow:   []string{"--skip-permissions-unsafe"},
		Careful: []string{"--auto", "medium"},
		// Without either flag it reads only.
		ReadOnly: []string{},
		Model:    "-m",
		Env:      []string{"FACTORY_DROID_AUTO_UPDATE_ENABLED=false"},
		State:    program.State{Env: []string{"HOME={state}"}},
		Doors: []program.Door{
			door(program.ToAnthropic.With("ANTHROPIC_API_KEY"), "anthropic"), door(program.ToOpenAI, "openai"),
		},
		Pointing: agent.File{Path: "pawl-models.json", Content: `{"customModels":[{parts}]}`}, Prefix: "custom:",
		Closed: []string{"FACTORY_API_KEY"}, // the models are Factory's then
		Grace:  8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "droid", Structured: true,
		Own:       program.Lines(NewParser),
		Folders:   []string{".factory"},
		Variables: []string{"FACTORY_*", "DROID_*"}, Single: true,
		Services: []program.Service{{Hosts: []string{"api.factory.ai"}}},
		Install:  "npm install -g droid, then set FACTORY_API_KEY or log in once",
		Facts: agent.Facts{
			Package: "npm droid", Versions: "0.215.0",
			Tokens: "at the end", Cost: "none; estimated from tokens",
			Problems: []string{
				"A model that stops at its length limit is asked again without end; the limits on calls and time end it.",
				"Its retries are invisible and can take minutes.",
				"It waits for its telemetry at the end, some seconds where that cannot be reached.",
				"Isolation gives it, and the tools it runs, another HOME.",
				"With a login of Factory it is not metered. With isolate, a key of Anthropic or OpenAI and a model such as " +
					"custom:claude-sonnet-4-5 it goes through the gateway.",
			},
		},
	}
}

// door is a model of the user's own with a provider, whom the program calls itself.
func door(d program.Door, provider string) program.Door {
	d.Env = []string{"FACTORY_RUNTIME_SETTINGS_PATH={state}/pawl-models.json"}
	d.Part = `{"model":"{model}","displayName":"{model}","baseUrl":"{url}","apiKey":"` + agent.GatewayToken +
		`","provider":"` + provider + `"}`
	return d
}
