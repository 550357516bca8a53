package aider

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/loop"
)

// reader finds errors, tokens and cost in what the program prints. A model
// may print the same; it is believed only where the program has the last word:
// an error counts when no answer follows it, tokens and cost can only rise.
type reader struct {
	err *failure.APIError // of the last model call
}

// exceptions are the words for a failed call in the library that the program
// calls models with, with the status that each stands for.
var exceptions = map[string]failure.APIError{
	"APIConnectionError":         {Type: "connection_error"},
	"AuthenticationError":        {Status: 401, Type: "authentication_error"},
	"BadRequestError":            {Status: 400, Type: "bad_request"},
	"BudgetExceededError":        {Type: "quota_exceeded"},
	"ContextWindowExceededError": {Status: 400, Type: "context_length_exceeded"},
	"InternalServerError":        {Status: 500, Type: "server_error"},
	"NotFoundError":              {Status: 404, Type: "not_found"},
	"PermissionDeniedError":      {Status: 403, Type: "permission_denied"},
	"RateLimitError":             {Status: 429, Type: "rate_limit"},
	"ServiceUnavailableError":    {Status: 503, Type: "unavailable"},
	"Timeout":                    {Status: 408, Type: "timeout"},
}

// Line takes one line.
func (r *reader) Line(line string, emit func(agent.Event)) {
	switch {
	case strings.HasPrefix(line, "litellm."):
		r.exception(line[len("litellm."):], line)
	case strings.HasPrefix(line, "Model ") && strings.HasSuffix(strings.TrimSpace(line), "has hit a token limit!"):
		r.err = &failure.APIError{Status: 400, Type: "context_length_exceeded", Message: line}
	case strings.HasPrefix(line, "Retrying in "):
		r.retry(line, emit)
	case strings.HasPrefix(line, "Tokens: "):
		r.answered(line, emit)
	}
}

// Close tells the error of a call that was given up.
func (r *reader) Close(emit func(agent.Event)) loop.Terminal {
	if r.err == nil {
		return loop.TerminalNone
	}
	calls := 0
	if r.err.Status != 0 {
		calls = 1
	}
	emit(agent.Event{Kind: agent.Error, Error: r.err, Calls: calls})
	return loop.TerminalFailed
}

func (r *reader) exception(rest, line string) {
	name, _, found := strings.Cut(rest, ":")
	if !found || len(name) > 50 || strings.ContainsAny(name, " ()") {
		return
	}
	err, known := exceptions[name]
	if !known {
		err.Type = name
	}
	err.Message = line
	r.err = &err
}

func (r *reader) retry(line string, emit func(agent.Event)) {
	seconds, _, found := strings.Cut(strings.TrimPrefix(line, "Retrying in "), " seconds")
	if !found || r.err == nil {
		return
	}
	err := *r.err
	if s, parseErr := strconv.ParseFloat(seconds, 64); parseErr == nil && s > 0 && s < 1e6 {
		err.RetryAfter = time.Duration(s * float64(time.Second))
	}
	emit(agent.Event{Kind: agent.Retry, Calls: 1, Error: &err})
}

var (
	counts  = lazy.Regexp(`\s([0-9.,]+)([kM]?) (sent|cache write|cache hit|received)`)
	session = lazy.Regexp(`\$([0-9.,]+) session`)
)

// answered takes the report after an answer, such as "Tokens: 2.5k sent, 300
// cache hit, 60 received. Cost: $0.01 message, $0.02 session." Sent tokens
// count the cached ones too; a cost of the session is the run's so far.
func (r *reader) answered(line string, emit func(agent.Event)) {
	var u agent.Usage
	for _, m := range counts().FindAllStringSubmatch(line, 4) {
		n := int64(math.Round(number(m[1]) * map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]))
		switch m[3] {
		case "sent":
			u.Input = n
		case "cache write":
			u.CacheWrite = n
		case "cache hit":
			u.CacheRead = n
		case "received":
			u.Output = n
		}
	}
	if u == (agent.Usage{}) {
		return
	}
	u.Input = max(0, u.Input-u.CacheRead-u.CacheWrite)
	r.err = nil
	emit(agent.Event{Kind: agent.UsageSeen, Usage: u, Calls: 1, Turns: 1})
	if m := session().FindStringSubmatch(line); m != nil {
		if usd := number(m[1]); usd > 0 {
			emit(agent.Event{Kind: agent.CostSeen, Cost: agent.Dollars(usd)})
		}
	}
}

// number reads a number as people write it, "12,345.6"; 0 for what is none.
func number(s string) float64 {
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if err != nil || f > 1e12 {
		return 0
	}
	return f
}
