package codex

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
)

// maxError is how much of an error is read, in bytes.
const maxError = 2000

// missingKey is the type of the one failure that is no model call.
const missingKey = "authentication_missing"

// understand reads the prose of an error.
func understand(message string) *failure.APIError {
	e := &failure.APIError{
		Message: agent.Clip(message, maxError), Status: agent.StatusIn(message), Type: agent.TypeIn(message),
	}
	low := strings.ToLower(e.Message)
	gone := strings.Contains(low, "not found") || strings.Contains(low, "does not exist")
	late := strings.Contains(low, "timed out") || strings.Contains(low, "timeout")
	switch {
	case strings.Contains(low, "missing environment variable"):
		e.Type = missingKey
	case e.Type == "" && gone && strings.Contains(low, "model"):
		e.Type = "model_not_found"
	case e.Type == "" && e.Status == 0 && late:
		e.Type = "timeout"
	}
	return e
}
