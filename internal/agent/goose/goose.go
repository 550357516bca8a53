// Package goose runs goose headless (`goose run -i - --output-format
// stream-json`) and reads its stream. It starts nothing itself; it is made
// from the program's source, no run of it was recorded.
//
//   - The prompt comes on stdin, which -i - asks for.
//   - A message of the model comes in pieces, lines with the same id; the
//     results of tools are messages of the user.
//   - `complete` ends the stream, with the run's tokens, whose input counts
//     the cached ones too, and its cost. It comes after an `error` as well.
//   - Keys may be in the system's keyring, so that stays on.
package goose

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is goose.
func Program() program.Program {
	folders, moves := program.XDG("goose")
	return program.Program{
		Name: "goose", Binary: "goose",
		Args:  []string{"run", "-i", "-", "--no-session", "--output-format", "stream-json"},
		Model: "--model",
		Env:   []string{"GOOSE_MODE=auto"},
		State: program.State{Env: []string{"GOOSE_PATH_ROOT={state}"}},
		Doors: []program.Door{
			program.ToAnthropic.With("ANTHROPIC_API_KEY").By("ANTHROPIC_HOST={url}"),
			program.ToOpenAI.By("OPENAI_HOST={url}", "OPENAI_BASE_PATH=chat/completions"),
		},
		Closed: []string{"ANTHROPIC_HOST", "OPENAI_HOST", "OPENAI_BASE_PATH"}, // addresses in another form
		Grace:  8 * time.Second,
		Parser: "goose", Structured: true,
		Own:     program.Lines(NewParser),
		Folders: folders, Moves: moves,
		Variables: []string{"GOOSE_*"},
		Services:  program.Keyed(),
		Install:   "install goose from github.com/aaif-goose/goose, then run goose configure",
		Facts: agent.Facts{
			Package: "github.com/aaif-goose/goose", Versions: "not run; source of 2026-08",
			Tokens: "at the end", Cost: "reported",
			Problems: []string{"In a folder of its own (isolate) it needs GOOSE_PROVIDER, GOOSE_MODEL and a key in the " +
				"environment."},
		},
	}
}
