// Package kimi runs Kimi Code headless (`kimi --output-format stream-json -p`)
// and reads its stream of JSON lines.
//
// What the program does, as pawl relies on it:
//   - Each message is a line with its role: "assistant" with its tool calls,
//     "tool" with a result, "meta" for what the program says itself.
//   - A run that went well ends with the meta line session.resume_hint; one that
//     did not has its reason on stderr only. The stream has no tokens and no cost.
//   - It tries a failed call again nine times, and says so each time.
//   - With -p nothing is asked: there is no flag for permissions.
//   - KIMI_MODEL_NAME, KIMI_MODEL_API_KEY and KIMI_MODEL_BASE_URL take the place of
//     all that its configuration says of models.
//
// The package starts nothing itself.
package kimi

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

const key = "KIMI_MODEL_API_KEY"

// Program is Kimi Code.
func Program() program.Program {
	return program.Program{
		Name: "kimi", Binary: "kimi",
		Args:   []string{"--output-format", "stream-json"},
		Model:  "--model",
		Prompt: program.Argument, PromptAt: "-p",
		Env: []string{"KIMI_DISABLE_TELEMETRY=1", "KIMI_CODE_NO_AUTO_UPDATE=1"},
		State: program.State{
			Env: []string{"KIMI_CODE_HOME={state}"}, Keys: []string{key},
		},
		Doors:  []program.Door{door()},
		Closed: []string{"KIMI_MODEL_PROVIDER_TYPE"}, // Anthropic, Gemini or another one
		Grace:  5 * time.Second,
		Parser: "kimi", Structured: true, Live: false,
		Own:       program.Lines(NewParser),
		Folders:   []string{".kimi-code", ".kimi"},
		Moves:     []program.Move{{Variable: "KIMI_CODE_HOME", Instead: []string{".kimi-code"}}},
		Variables: []string{"KIMI_*", "MOONSHOT_*"}, Single: true,
		Services: []program.Service{{
			Hosts: []string{"api.kimi.com", "auth.kimi.com", "api.moonshot.ai"}, Base: []string{"KIMI_MODEL_BASE_URL"},
		}},
		Install: "npm install -g @moonshot-ai/kimi-code, then run kimi login or set KIMI_MODEL_NAME and " + key,
		Facts: agent.Facts{
			Package: "npm @moonshot-ai/kimi-code", Versions: "2.1.0",
			Tokens: agent.NotKnown, Cost: "none",
			Problems: []string{
				"The prompt shows in the list of processes.",
				"Neither tokens nor money are in its stream: without the gateway limits on them cannot hold.",
				"It says on stderr only why it failed.",
				"An answer that was cut off at its length limit is reported as success: with the gateway it is seen.",
			},
		},
	}
}

// door is the provider of the program's own variables.
func door() program.Door {
	d := program.ToOpenAI.With(key).By("KIMI_MODEL_BASE_URL={url}")
	d.Name, d.Base, d.Extra, d.Home = "kimi", []string{"KIMI_MODEL_BASE_URL"}, nil, "https://api.moonshot.ai/v1"
	return d
}
