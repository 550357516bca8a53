package gemini

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/agent/jsonline"
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
	e := &failure.APIError{Type: kind, Message: clip(text)}
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
	case strings.Contains(low, "terminated"), strings.Contains(low, "fetch failed"), strings.Contains(low, "incomplete json"):
		e.Type = disconnected
	}
	return e
}

// answer reads the API's own error.
func answer(e *failure.APIError, b []byte) {
	jsonline.Object(jsonline.Get(b, "error"), func(key, v []byte) bool {
		switch string(key) {
		case "code":
			e.Status = jsonline.Status(v)
		case "message":
			e.Message = jsonline.Short(v, maxText)
		case "status":
			if e.Type == "" {
				e.Type = strings.ToLower(jsonline.Short(v, maxName))
			}
		case "details":
			jsonline.Array(v, func(d []byte) bool {
				detail(e, d)
				return true
			})
		}
		return true
	})
}

// detail reads one detail: a reason says more than a status, and a delay is
// what to wait.
func detail(e *failure.APIError, b []byte) {
	if reason := jsonline.Short(jsonline.Get(b, "reason"), maxName); reason != "" {
		e.Type = strings.ToLower(reason)
	}
	delay := jsonline.Short(jsonline.Get(b, "retryDelay"), maxName)
	if s, err := strconv.ParseFloat(strings.TrimSuffix(delay, "s"), 64); err == nil && s > 0 && s < 366*24*3600 {
		e.RetryAfter = time.Duration(s * float64(time.Second))
	}
}

// clip bounds a message without half a rune at its end.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
