package codex

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
)

// maxError is how much of an error is read, in bytes.
const maxError = 2000

// missingKey is the type of the one failure that is no model call.
const missingKey = "authentication_missing"

// wording is what the program says of a failure, in lower case.
type wording struct {
	words, kind string
	status      int // where the words stand for one and name none
}

// causes say more than a status does; the first that fits counts.
var causes = []wording{
	{"usage limit", "usage_limit_reached", 429},
	{"out of credits", "usage_limit_reached", 429},
	{"quota exceeded", "insufficient_quota", 429},
	{"to use codex with your chatgpt plan", "usage_not_included", 0},
	{"context window", "context_length_exceeded", 0},
	{"context_length_exceeded", "context_length_exceeded", 0},
	{"max_output_tokens", "max_output_tokens", 0},
	{"content_filter", "content_filter", 0},
	{"missing environment variable", missingKey, 0},
	{"high demand", "overloaded", 0},
	{"overloaded", "overloaded", 0},
	{"at capacity", "overloaded", 0},
	{"rate limit reached", "rate_limit", 429},
}

// symptoms say less.
var symptoms = []wording{
	{"connection failed", "connection_failed", 0},
	{"stream disconnected", "connection_failed", 0},
	{"timed out", "timeout", 0},
	{"timeout", "timeout", 0},
}

// understand reads the prose of an error.
func understand(message string) *failure.APIError {
	e := &failure.APIError{Message: agent.Clip(message, maxError), Status: status(message)}
	low := strings.ToLower(e.Message)
	switch {
	case match(e, low, causes):
	case strings.Contains(low, "model") && (strings.Contains(low, "not found") || strings.Contains(low, "does not exist")):
		e.Type = "model_not_found"
	case e.Status == 401 || e.Status == 403:
		e.Type = "authentication_failed"
	case e.Status == 429:
		e.Type = "rate_limit"
	case e.Status >= 500:
		e.Type = "server_error"
	case e.Status >= 400:
		e.Type = "invalid_request"
	default:
		match(e, low, symptoms)
	}
	return e
}

func match(e *failure.APIError, low string, wordings []wording) bool {
	for _, w := range wordings {
		if strings.Contains(low, w.words) {
			e.Type = w.kind
			if e.Status == 0 {
				e.Status = w.status
			}
			return true
		}
	}
	return false
}

// statusWords find "unexpected status 401 Unauthorized" and "last status: 429".
var statusWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`status[: ]*([45]\d\d)(?:\D|$)`) })

func status(message string) int {
	found := statusWords().FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n
}
