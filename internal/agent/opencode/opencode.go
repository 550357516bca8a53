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
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is OpenCode.
func Program() program.Program {
	p := variant("opencode", "opencode-ai", "1.18.33", "OPENCODE_")
	p.Own = program.Lines(NewParser)
	p.Variables = []string{"OPENCODE_*"}
	p.Services = program.Keyed(program.Service{Hosts: []string{"opencode.ai"}, When: []string{"OPENCODE_API_KEY"}})
	return p
}

// Kilo is Kilo Code, its fork.
func Kilo() program.Program {
	p := variant("kilo", "@kilocode/cli", "7.7.7", "KILO_",
		"The npm package's command is a Node wrapper around the native binary.",
		"7.8.1 did not start: the package of the platform was missing.")
	const policies = ".local/state/kilo-sandbox-policy" // without it no session begins
	p.Folders = append(p.Folders, policies)
	p.Moves = append(p.Moves, program.Move{
		Variable: "XDG_STATE_HOME", Below: "kilo-sandbox-policy", Instead: []string{policies},
	})
	p.Variables = []string{"KILO_*", "OPENCODE_*"}
	p.Services = program.Keyed(program.Service{Hosts: []string{"api.kilo.ai"}})
	return p
}

// variant is one of the programs; prefix is of its variables. Its state stays in
// the user's folders unless isolation is asked for, with a key too: which
// provider a key is for is in the user's configuration. Isolation sets the
// XDG folders for the agent's tools too.
func variant(name, npm, versions, prefix string, problems ...string) program.Program {
	folders, moves := program.XDG(name)
	return program.Program{
		Name: name, Binary: name,
		Args:     []string{"run", "--format", "json", "--auto"},
		ReadOnly: []string{"--agent", "plan"},
		Model:    "--model",
		Warm:     []string{"session", "list"}, // makes the database
		Env: []string{prefix + "DISABLE_AUTOUPDATE=1", prefix + "DISABLE_MODELS_FETCH=1",
			prefix + "DISABLE_LSP_DOWNLOAD=1"},
		State: program.State{Env: []string{
			"XDG_CONFIG_HOME={state}/config", "XDG_DATA_HOME={state}/data", "XDG_STATE_HOME={state}/state",
			"XDG_CACHE_HOME={state}/cache",
		}},
		Doors:   doors(),
		Pointer: prefix + `CONFIG_CONTENT={"provider":{{parts}}}`,
		Closed:  []string{prefix + "CONFIG_CONTENT", prefix + "CONFIG"},
		Grace:   5 * time.Second, Quiet: 30 * time.Minute,
		Parser: "opencode", Structured: true, Live: true,
		Folders: folders, Moves: moves,
		Install: "npm install -g " + npm,
		Facts: agent.Facts{
			Package: "npm " + npm, Versions: versions,
			Tokens: "reported with every step",
			Cost:   "reported with every step, from the program's prices; estimated when it has none",
			Problems: append([]string{
				"It says nothing while a tool runs, nor while it waits for a rate or plan limit, for hours if the provider says " +
					"so: only the idle limit and the iteration's time limit end that.",
				"Its retries are invisible, and it asks for a title for each session: the provider counts more calls than pawl.",
				"When a server answers 200 with something else than a model's answer, it asks again without end.",
				"Over ACP it tells the tokens of its last call only; pawl reads the others from its session (`export`) when it is done.",
				"Two first starts at once in one data folder break one of them: pawl warms it once per repository, alone.",
				"A cold start asks the npm registry, which costs seconds where it cannot be reached.",
				"A model that is newer than the program is not known, as its catalogue is not fetched: set " +
					prefix + "DISABLE_MODELS_FETCH= in the agent's env.",
			}, problems...),
		},
	}
}

// doors are the providers of the program's catalogue that it takes a key for
// from a variable. The address of each is a setting.
func doors() []program.Door {
	part := func(d program.Door, provider, path string) program.Door {
		d.Part = `"` + provider + `":{"options":{"baseURL":"{url}` + path + `"}}`
		return d
	}
	google := program.ToGoogle.With("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY")
	return []program.Door{
		part(program.ToAnthropic.With("ANTHROPIC_API_KEY"), "anthropic", "/v1"), part(program.ToOpenAI, "openai", ""),
		part(google, "google", "/v1beta"),
	}
}
