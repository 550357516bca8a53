package agent

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

// Facts are what a user should know about a program before choosing it. They
// were measured with the versions that they name; docs/agents.md and the
// doctor show them.
type Facts struct {
	Program  string // what is looked up in PATH
	Package  string // where it comes from, e.g. "npm @openai/codex"
	Versions string // that the adapter was checked against
	Format   string // of the stream, as `output:` names it
	Tokens   string // when tokens are known
	Cost     string // whose figure the cost is
	// PromptLimit is the longest prompt in bytes that pawl lets through; 0 is none.
	PromptLimit int64
	Problems    []string // known ones that pawl cannot take away, a sentence each
}

// Described is an adapter that knows facts about its program.
type Described interface {
	Facts() Facts
}

// Patient is an adapter of a program that is silent for long while it works,
// e.g. during a whole test run.
type Patient interface {
	// IdleTimeout is the shortest silence that means something. A limit that
	// the user did not set himself should not be shorter.
	IdleTimeout() time.Duration
}

// ExitReader is an adapter whose program says in its exit status what went
// wrong.
type ExitReader interface {
	// ExitError is the error that a status stands for, nil when it stands for none.
	ExitError(code int) *failure.APIError
}

// WithExit completes the errors of a run by what its exit status says, if the
// adapter can read it: a last error without a status gets one, and a run
// without errors gets an error. errs is not changed.
func WithExit(a Adapter, code int, errs []failure.APIError) []failure.APIError {
	reader, ok := a.(ExitReader)
	if !ok {
		return errs
	}
	said := reader.ExitError(code)
	if said == nil {
		return errs
	}
	if len(errs) == 0 {
		return []failure.APIError{*said}
	}
	last := errs[len(errs)-1]
	if last.Status != 0 || said.Status == 0 {
		return errs
	}
	last.Status = said.Status
	if last.Type == "" {
		last.Type = said.Type
	}
	return append(errs[:len(errs)-1:len(errs)-1], last)
}
