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
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

// Program is Amp.
func Program() program.Program {
	return program.Program{
		Name: "amp", Binary: "amp",
		Flags: program.Flags{
			Args:  []string{"-x", "--stream-json"},
			Allow: []string{"--dangerously-allow-all"},
		},
		Env:   []string{"AMP_SKIP_UPDATE_CHECK=1"},
		Grace: 8 * time.Second, Quiet: 20 * time.Minute,
		Parser: "amp", Structured: true, Live: true,
		Own: program.Lines(NewParser),
		Account: program.Account{
			Folders:   []string{".config/amp", ".local/share/amp", ".cache/amp"},
			Variables: []string{"AMP_*"}, Single: true,
			Services: []program.Service{{Hosts: []string{"ampcode.com"}, Base: []string{"AMP_URL"}}},
		},
		Install: "npm install -g @sourcegraph/amp, then set AMP_API_KEY or run amp login",
	}
}

// NewParser returns a parser for one run.
func NewParser() agent.Parser {
	return claude.NewDialect(claude.Dialect{PerCall: true, CachedInInput: true})
}
