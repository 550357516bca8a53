// Package amp runs Amp headless (`amp -x --stream-json`), whose stream is
// Claude Code's by its documentation. It starts nothing itself; no run of the
// program was recorded, since it needs an account.
//
//   - The prompt comes on stdin, and again in a `user` line.
//   - A line of the model has all of one call's usage, whose input counts the
//     cached tokens too; the `result` has none.
//   - Without a key or a login it starts a login and waits: only a time limit
//     ends that.
package amp

import (
	_ "embed" // of the program's file

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

//go:embed program.json
var file string

// Program is Amp.
func Program() program.Program { return program.Read(file, program.Lines(NewParser)) }

// NewParser returns a parser for one run.
func NewParser() agent.Parser {
	return claude.NewDialect(claude.Dialect{PerCall: true, CachedInInput: true})
}
