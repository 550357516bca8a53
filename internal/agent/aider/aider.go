// Package aider runs aider with one message and reads its text. It starts
// nothing itself; it is made from the program's source, no run was recorded.
//
//   - The prompt is a file, --message-file.
//   - It exits 0 although the model call failed: the error is text, told as
//     "litellm.RateLimitError: …", and only a "Tokens: …" line after it means
//     that a later call went well.
//   - By itself it commits, the user's own changes too, and writes its history
//     and a line of .gitignore into the repository; all of that is off here.
//   - It breaks lines at the width of a terminal, 80 where there is none, which
//     would break a signal's line: it is told a wide one.
package aider

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
	"github.com/pawl-dev/pawl/internal/agent/text"
)

// Program is aider.
func Program() program.Program {
	return program.Program{
		Name: "aider", Binary: "aider",
		Args: []string{
			"--no-stream", "--no-pretty", "--no-fancy-input", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore",
			"--no-suggest-shell-commands", "--no-check-update", "--no-show-release-notes", "--no-analytics",
		},
		Allow:  []string{"--yes-always"},
		Model:  "--model",
		Prompt: program.File, PromptAt: "--message-file",
		Env: []string{"COLUMNS=1000"},
		State: program.State{Always: []string{
			"--chat-history-file", "{state}/chat.history.md", "--input-history-file", "{state}/input.history",
		}},
		Doors: []program.Door{
			program.ToAnthropic.With("ANTHROPIC_API_KEY").By("ANTHROPIC_API_BASE={url}", "ANTHROPIC_BASE_URL={url}"),
			openAI(),
		},
		Grace: 8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "aider", Live: true,
		Own:       &program.Format{New: NewParser, EchoCut: true},
		Folders:   []string{".aider", ".aider.conf.yml"},
		Variables: []string{"AIDER_*"},
		Services:  program.Keyed(),
		Install:   "python -m pip install aider-install && aider-install",
		Facts: agent.Facts{
			Package: "PyPI aider-chat", Versions: "not run; source of 0.86",
			Tokens: "after each answer, rounded to two figures", Cost: "reported where the program has a price",
			Problems: []string{
				"It exits 0 although the model call failed; pawl reads the error from its text.",
				"It keeps a cache folder, .aider.tags.cache, in the repository.",
			},
		},
	}
}

// openAI is OpenAI as the program's library looks for it.
func openAI() program.Door {
	d := program.ToOpenAI.By("OPENAI_API_BASE={url}", "OPENAI_BASE_URL={url}")
	d.Base = []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}
	return d
}

// NewParser returns a parser for one run, which cuts echoes of prompt off.
func NewParser(prompt []byte) agent.Parser { return text.NewReading(prompt, &reader{}) }
