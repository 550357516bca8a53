// Package copilot runs GitHub's Copilot CLI headless (`copilot --output-format
// json`) and reads its stream. It starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, and is told again twice in `user.message`.
//   - `result` ends the stream; its exitCode is 0 after a TERM too, but an
//     `abort` came before it then.
//   - Every failed model call is told with its status and the provider's own
//     words, among them when a limit ends; `session.error` is the one that
//     the run fails with.
//   - No tokens and no money are in the stream. The tokens are in a file that it
//     writes at its end, if it is told to; there, the input has the cached part.
//   - The npm package's `copilot` is a wrapper that leaves the program running
//     when it is signalled; the binary beside it is started instead.
package copilot

import (
	"fmt"
	"runtime"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is the Copilot CLI.
func Program() program.Program {
	return program.Program{
		Name: "copilot", Binary: "copilot", Wrapped: binaries(),
		Args:    []string{"--output-format", "json", "--no-auto-update", "--no-ask-user", "--disable-client-telemetry"},
		Allow:   []string{"--allow-all"},
		Careful: []string{"--allow-all-tools"},
		Model:   "--model",
		State: program.State{Env: []string{"COPILOT_HOME={state}"},
			Keys: []string{"COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY"}},
		Doors:  []program.Door{door()},
		Closed: []string{"COPILOT_PROVIDER_TYPE"}, // Azure, or Anthropic
		Grace:  5 * time.Second,
		Parser: "copilot", Structured: true,
		UsageFlag: "--usage-output-file", Installed: []string{"/@github/copilot", "/Caskroom/copilot-cli"},
		Own:       program.Lines(NewParser),
		Folders:   []string{".copilot", ".config/github-copilot", ".cache/copilot"},
		Variables: []string{"COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"}, Single: true,
		Services: []program.Service{{
			Hosts: []string{"api.githubcopilot.com", "*.githubcopilot.com", "api.github.com"},
			Base:  []string{"COPILOT_PROVIDER_BASE_URL"},
		}},
		Install: "npm install -g @github/copilot, then run copilot login or set COPILOT_GITHUB_TOKEN",
		Facts: agent.Facts{
			Package: "npm @github/copilot", Versions: "1.0.102",
			Tokens: "at the end, from a file; none when it is ended before", Cost: "none",
			Problems: []string{
				"Neither tokens nor money are in its stream. Pawl reads the tokens from a file that it writes at its end, if it " +
					"is installed by npm or Homebrew.",
				"It unpacks 240 MB into the cache of each new home folder.",
			},
		},
	}
}

// binaries are where the real binary is, from the folder of the npm package's
// wrapper: inside of the package, or beside it.
func binaries() []string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	name := fmt.Sprintf("copilot-%s-%s", runtime.GOOS, arch)
	return []string{"node_modules/@github/" + name + "/copilot", "../" + name + "/copilot"}
}

// door is a provider of the user's own; GitHub's serves its logins only.
func door() program.Door {
	d := program.ToOpenAI.With("COPILOT_PROVIDER_API_KEY").By("COPILOT_PROVIDER_BASE_URL={url}")
	d.Name, d.Base, d.Extra = "copilot", []string{"COPILOT_PROVIDER_BASE_URL"}, nil
	return d
}
