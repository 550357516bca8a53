package agents

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// noise is what programs print beside, with words that would mean something.
const noise = "Ripgrep not available: spawn rg EACCES: permission denied. Falling back to built-in grep.\n" +
	"Error: cannot find module 'node:sea'\n    at Object.<anonymous> (/opt/cli/bundle.js:1:2)\n"

// A model that gave no answer is the failure, whatever the program's exit status.
func TestNoAnswerBeatsTheRest(t *testing.T) {
	t.Parallel()
	for _, class := range failure.Unanswered() {
		a := failure.Analyse(failure.Evidence{Source: "agent", Name: "qwen", Output: noise, Errors: []failure.APIError{{Type: string(class), Message: "it said nothing"}}})
		if a.Class != class {
			t.Errorf("%s is read as %s: %s", class, a.Class, a.Summary)
		}
	}
}

// What a program types of its failure is used, whatever else it prints: no recorded run that
// failed so has no cause, and none has its cause from the noise.
func TestTypedErrorsBeatTheRest(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"claude", "codex", "opencode", "gemini", "qwen", "copilot", "droid", "cline"} {
		adapter, _ := Lookup(program)
		for _, file := range streamsOf(t, program) {
			exit, err := os.ReadFile(strings.TrimSuffix(file, ".stdout") + ".exit")
			if err != nil {
				continue
			}
			code, err := strconv.Atoi(strings.TrimSpace(string(exit)))
			if err != nil {
				t.Fatal(err)
			}
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := collect(t, program, stream)
			errs := agent.WithExit(adapter, code, got.Errors)
			if len(errs) == 0 || got.Terminal == ok {
				continue
			}
			e := failure.Evidence{Source: "agent", Name: program, ExitCode: code, CutOff: got.Terminal == missing, Errors: errs, Now: recordedAt}
			e.Output = got.Message
			quiet := failure.Analyse(e)
			e.Output = got.Message + "\n" + noise
			if loud := failure.Analyse(e); loud.Class != quiet.Class || loud.Summary != quiet.Summary || strings.Contains(quiet.Summary, " cause in the output") {
				t.Errorf("%s/%s: %s %q, with noise %s %q", program, filepath.Base(file), quiet.Class, quiet.Summary, loud.Class, loud.Summary)
			}
		}
	}
}
