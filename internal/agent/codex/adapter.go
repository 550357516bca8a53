// Package codex runs OpenAI's Codex headless and reads its stream of JSON
// lines (`codex exec --json`).
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin, at most 1,048,576 characters; more is exit 1
//     and no request.
//   - `turn.completed` and `turn.failed` end the stream. Only they and a
//     top-level `error` tell of failures; an item of type `error` is a notice.
//   - `turn.completed` has the usage of the whole thread, cached tokens within
//     the input. Nothing is known before it, and a cost never.
//   - Errors are prose: the HTTP status and the time of a reset are in the words.
//   - A failed call is tried again five times, a bad key too, in 8 to 26 s. A
//     connection that is refused is waited for without end.
//   - TERM ends it and the shells of its tools.
//
// The program's own sandbox and its questions are off at every safety level:
// what it may touch is enforced by pawl's sandbox, in which another one does
// not work. The package starts nothing itself.
package codex

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// maxPrompt is the longest prompt that the program takes, in characters.
const maxPrompt = 1 << 20

// Adapter starts Codex.
type Adapter struct {
	// Getenv looks up pawl's own environment, which the program inherits.
	Getenv func(string) string
	// Native returns the native binary for what the program's name finds, if
	// that is the npm package's wrapper, which stays between as a Node process;
	// nil is none.
	Native func(name string) string
}

// Binaries are where the native binary is, from the folder of the npm
// package's wrapper: in the platform's package beside or inside of it, or in
// the package itself.
func Binaries() []string {
	arch, machine := runtime.GOARCH, map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if arch == "amd64" {
		arch = "x64"
	}
	target := machine + "-unknown-linux-musl"
	if runtime.GOOS == "darwin" {
		target = machine + "-apple-darwin"
	}
	platform := "codex-" + runtime.GOOS + "-" + arch
	return []string{
		"../../" + platform + "/vendor/" + target + "/bin/codex",
		"../node_modules/@openai/" + platform + "/vendor/" + target + "/bin/codex",
		"../vendor/" + target + "/bin/codex",
		"../vendor/" + target + "/codex/codex",
	}
}

// Name is "codex".
func (Adapter) Name() string { return "codex" }

// Install says how to get the program.
func (Adapter) Install() string { return "npm install -g @openai/codex" }

// LiveUsage is false: usage comes with the end, and never a cost.
func (Adapter) LiveUsage() bool { return false }

// Structured is true: `turn.completed` or `turn.failed` ends the stream.
func (Adapter) Structured() bool { return true }

// Start makes the command line. A command of the user's replaces the program's
// name, and may have arguments of its own before pawl's.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	if err := fits(in); err != nil {
		return agent.Start{}, err
	}
	args := in.Program("codex")
	if len(in.Command) == 0 && a.Native != nil {
		args[0] = a.Native(args[0])
	}
	freedom := []string{"--dangerously-bypass-approvals-and-sandbox"}
	if in.ReadOnly {
		freedom = []string{"--sandbox", "read-only"}
	}
	args = append(append(append(args, "exec", "--json"), freedom...), "--skip-git-repo-check",
		// Both ask servers outside at every start.
		"--disable", "plugins", "--disable", "apps",
		"-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false")
	if in.Model != "" {
		args = append(args, "--model", in.Model)
	}
	var env []string
	// A login and the providers are in the user's own folder; the one key that
	// the program takes from the environment needs nothing of it.
	if in.StateDir != "" && (in.Isolate || in.Sees(a.Getenv, "CODEX_API_KEY")) {
		env = append(env, "CODEX_HOME="+in.StateDir)
	}
	return agent.Start{
		Args:   append(args, "-"),
		Env:    append(env, in.Env...),
		Stdin:  in.PromptFile,
		Parser: "codex",
		Grace:  5 * time.Second,
	}, nil
}

// fits refuses a prompt that the program would refuse. The limit is in
// characters, so only a prompt of more bytes than that is counted.
func fits(in agent.Invocation) error {
	if in.PromptSize <= maxPrompt {
		return nil
	}
	n := in.PromptSize
	if n <= 4*maxPrompt {
		var err error
		if n, err = characters(in.PromptFile); err != nil {
			return fmt.Errorf("cannot read the prompt for codex: %v", err)
		}
	}
	if n <= maxPrompt {
		return nil
	}
	return fmt.Errorf("cannot start codex: the prompt has %d characters and the program takes at most %d;"+
		" shorten the prompt, or name files in it instead of their content", n, maxPrompt)
}

func characters(path string) (n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for r := bufio.NewReader(f); ; n++ {
		if _, _, err = r.ReadRune(); errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// Facts are what was measured.
func (Adapter) Facts() agent.Facts {
	return agent.Facts{
		Program:     "codex",
		Package:     "npm @openai/codex",
		Versions:    "0.169.0",
		Format:      "codex",
		Tokens:      "reported at the end, none when it is ended before",
		Cost:        "estimated from tokens, when the model is set and has a price",
		PromptLimit: maxPrompt,
		Problems: []string{
			"A connection that is refused is waited for without end: the iteration's time limit ends it.",
			"The time of a reset is a clock time in words, without a date and a zone: the exact one is read from the session's file in its own folder, where there is one.",
			"A failed call is tried five times more, with a bad key too; only a provider of the user's own can set it (`request_max_retries`, `stream_max_retries`).",
			"The npm package's command keeps a Node process as parent with Node before 22.15: pawl starts the native binary in the package.",
			"Its own sandbox is off under pawl: it does not work inside of another one.",
		},
	}
}

// IdleTimeout is nothing special: the start and end of each tool are told, so
// that the silence between is known for what it is.
func (Adapter) IdleTimeout() time.Duration { return 0 }
