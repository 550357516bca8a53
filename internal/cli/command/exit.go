package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pawl-dev/pawl/internal/fault"
)

// The exit statuses.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitLimit       = 3
	ExitPerson      = 4
	ExitHangup      = 129
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// Usage is an error of the command line or the configuration.
func Usage(format string, args ...any) *fault.Error { return fault.Refuse(format, args...) }

// exitStatus is that of an error of a kind.
func exitStatus(k fault.Kind) int {
	switch k {
	case fault.Refused:
		return ExitUsage
	case fault.Waiting:
		return ExitPerson
	}
	return ExitFailed
}

// StatusError ends with a code and says nothing more.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ExitWith ends with a status; nothing has to be said.
func ExitWith(code int) error {
	if code == ExitOK {
		return nil
	}
	return StatusError(code)
}

// Exit prints an error for the person who must act and says the exit status.
func (a *App) Exit(err error) int {
	if err == nil {
		return ExitOK
	}
	var s StatusError
	if errors.As(err, &s) {
		return int(s)
	}
	code, hints := ExitFailed, []string(nil)
	if e, ok := errors.AsType[*fault.Error](err); ok {
		code, hints = exitStatus(e.Kind), e.Hints
	}
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return code
	}
	_, _ = fmt.Fprintf(a.Stderr, "pawl: %s\n", strings.TrimSuffix(err.Error(), "\n"))
	for _, h := range hints {
		_, _ = fmt.Fprintf(a.Stderr, "  %s\n", h)
	}
	return code
}
