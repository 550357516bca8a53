package agent

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

// Facts are what pawl knows of an agent program beside its command line, for
// people: the table in the documentation, `pawl doctor`. A field that is empty
// is not known.
type Facts struct {
	Program     string   // as it is called on the command line
	Package     string   // what to install, e.g. "npm @qwen-code/qwen-code"
	Versions    string   // the versions that pawl was tried with
	Format      string   // the stream format, as `output:` names it
	Tokens      string   // where token counts come from, and when, or [NotKnown]
	Cost        string   // where the cost comes from
	PromptLimit int64    // bytes; 0 is none known
	Problems    []string // what is wrong with the program, one sentence each
}

// NotKnown is what [Facts.Tokens] says of a program that never tells them.
const NotKnown = "not known"

// Factual is optionally implemented by an [Adapter] that knows its program's facts.
type Factual interface {
	Facts() Facts
}

// Patient is optionally implemented by an [Adapter] whose program is silent
// for long while it works, e.g. during a whole test run.
type Patient interface {
	// IdleTimeout is the shortest silence that means something; 0 when nothing
	// special is known. A limit that a user set wins.
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
