// Package qwen runs Qwen Code headless (`qwen --output-format stream-json`)
// and reads its stream, which is Claude Code's in a dialect of its own. It
// starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt comes on stdin. Beyond 8 MiB it is cut off with no more than
//     a line on stderr, so pawl refuses such a prompt.
//   - Each line of a message has an id of its own; the last one of a model
//     call has the call's usage, whose input counts the cached tokens too.
//   - A failed call is a text "[API Error: 429 …]" in the model's name, and a
//     `result` with is_error and the same text; exit 1. 53 and 55 are its own
//     limits of turns and time, without a `result`.
//   - A rate limit is waited for in silence, 60 s, 120 s and so on.
//   - It loses the end of its output when a pipe is full at its exit: exit 0
//     without a `result` is no success.
package qwen

import (
	_ "embed" // of the program's file
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Qwen Code.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// NewParser returns a parser for one run.
func NewParser() agent.Parser {
	return claude.NewDialect(claude.Dialect{PerCall: true, CachedInInput: true, Apology: readApology})
}

// readApology takes a text for the program's own when it is nothing but its error.
func readApology(text string) *failure.APIError {
	inner, ok := strings.CutPrefix(text, "[API Error: ")
	if !ok || !strings.HasSuffix(inner, "]") || len(inner) > 8000 {
		return nil
	}
	return &failure.APIError{Status: agent.StatusIn(inner), Type: agent.TypeIn(inner), Message: text}
}
