// Package plain is the table of the programs that print plain text and need
// nothing but data. It is made from documentation; none of them was recorded.
// It starts nothing and reads nothing.
package plain

import (
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

// Crush is Charm's crush, whose run mode asks for no permissions. Its data
// folder would be .crush in the repository.
func Crush() program.Program {
	return program.Program{
		Name: "crush", Binary: "crush",
		Flags: program.Flags{
			Args:  []string{"run", "-q"},
			Model: "-m",
		},
		Env: []string{"CRUSH_DISABLE_METRICS=1", "CRUSH_DISABLE_PROVIDER_AUTO_UPDATE=1"},
		State: program.State{
			Always: []string{"--data-dir", "{state}"},
			Env:    []string{"CRUSH_GLOBAL_CONFIG={state}", "CRUSH_GLOBAL_DATA={state}"},
		},
		Grace: 8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "text",
		Account: program.Account{
			Folders: []string{".config/crush", ".local/share/crush", ".cache/crush"},
			Moves: []program.Move{
				{Variable: "CRUSH_GLOBAL_CONFIG", Instead: []string{".config/crush"}},
				{Variable: "CRUSH_GLOBAL_DATA", Instead: []string{".local/share/crush"}},
			},
			Variables: []string{"CRUSH_*"},
			Services:  program.Keyed(),
		},
		Install: "npm install -g @charmland/crush",
	}
}

// Kiro is the Kiro CLI.
func Kiro() program.Program {
	return program.Program{
		Name: "kiro", Binary: "kiro-cli",
		Flags: program.Flags{
			Args:  []string{"chat", "--no-interactive"},
			Allow: []string{"--trust-all-tools"},
			Model: "--model",
		},
		Grace: 8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "text",
		Account: program.Account{
			Folders:   []string{".kiro", ".local/share/kiro-cli"},
			Variables: []string{"KIRO_*"}, Single: true,
			Services: []program.Service{{Hosts: []string{
				"q.us-east-1.amazonaws.com", "oidc.us-east-1.amazonaws.com", "prod.us-east-1.auth.desktop.kiro.dev",
			}}},
		},
		Install: "install the Kiro CLI from kiro.dev, then run kiro-cli login or set KIRO_API_KEY",
	}
}

// Aider is aider with one message, in a file. By itself it commits, the user's own changes too, and
// writes its history and a line of .gitignore into the repository; all of that is off here. It
// breaks lines at the width of a terminal, 80 where there is none, which would break a signal's
// line: a variable sets a wide one.
func Aider() program.Program {
	return program.Program{
		Name: "aider", Binary: "aider",
		Flags: program.Flags{
			Args: []string{
				"--no-stream", "--no-pretty", "--no-fancy-input", "--no-auto-commits", "--no-dirty-commits",
				"--no-gitignore",
				"--no-suggest-shell-commands", "--no-check-update", "--no-show-release-notes", "--no-analytics",
			},
			Allow: []string{"--yes-always"},
			Model: "--model",
		},
		Prompt: program.File, PromptAt: "--message-file",
		Env: []string{"COLUMNS=1000"},
		State: program.State{Always: []string{
			"--chat-history-file", "{state}/chat.history.md", "--input-history-file", "{state}/input.history",
		}},
		Gateway: program.Gateway{
			Doors: []program.Door{
				program.ToAnthropic.With("ANTHROPIC_API_KEY").
					By("ANTHROPIC_API_BASE={url}", "ANTHROPIC_BASE_URL={url}"),
				openAI(),
			},
		},
		Grace: 8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "text",
		Account: program.Account{
			Folders:   []string{".aider", ".aider.conf.yml"},
			Variables: []string{"AIDER_*"},
			Services:  program.Keyed(),
		},
		Install: "python -m pip install aider-install && aider-install",
	}
}

// openAI is OpenAI as the program's library looks for it.
func openAI() program.Door {
	d := program.ToOpenAI.By("OPENAI_API_BASE={url}", "OPENAI_BASE_URL={url}")
	d.Base = []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}
	return d
}
