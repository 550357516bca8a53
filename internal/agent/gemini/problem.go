package gemini

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

// disconnected is the type of a call that broke on the way.
const disconnected = "connection_failed"

// understand reads an error: the program's word for it, and its text, which
// may hold the API's answer as JSON ("[API Error: {…}]").
func understand(kind, text string) *failure.APIError {
	switch kind {
	case "unknown":
		kind = ""
	case "FatalTurnLimitedError":
		kind = "max_turns"
	}
	e := &failure.APIError{Type: kind, Message: text}
	inner, isAPI := strings.CutPrefix(text, "[API Error: ")
	if !isAPI {
		return e
	}
	if strings.HasPrefix(inner, "{") {
		answer(e, []byte(inner))
		return e
	}
	low := strings.ToLower(inner)
	switch {
	case strings.Contains(low, "daily quota"):
		e.Status, e.Type = 429, "quota_exhausted"
	case strings.Contains(low, "quota"):
		e.Status, e.Type = 429, "rate_limit"
	case strings.Contains(low, "terminated"), strings.Contains(low, "fetch failed"),
		strings.Contains(low, "incomplete json"):
		e.Type = disconnected
	}
	return e
}

// answer reads the API's own error. Of its details a reason says more than a
// status, and a delay is what to wait.
func answer(e *failure.APIError, b []byte) {
	var said struct {
		Error struct {
			Code            int
			Message, Status string
			Details         []struct{ Reason, RetryDelay string }
		}
	}
	// What stands behind the object is the program's closing bracket.
	if json.NewDecoder(bytes.NewReader(b)).Decode(&said) != nil {
		return
	}
	e.Status, e.Message = said.Error.Code, said.Error.Message
	if e.Type == "" {
		e.Type = strings.ToLower(said.Error.Status)
	}
	for _, d := range said.Error.Details {
		if d.Reason != "" {
			e.Type = strings.ToLower(d.Reason)
		}
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			e.RetryAfter = wait
		}
	}
}
