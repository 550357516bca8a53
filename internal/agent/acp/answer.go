package acp

import (
	"cmp"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
)

// Reasons to stop: the protocol's that matter here, and ours.
const (
	stopDone      = "end_turn"
	stopCancelled = "cancelled"
	stopError     = "error" // told before
)

// kindLogin is the type of an error that a login cures.
const kindLogin = "authentication_error"

// codeLogin is the protocol's code for it.
const codeLogin = -32000

// kinds are words of programs for what others call otherwise.
var kinds = map[string]string{
	"usageLimitExceeded": "usage_limit_reached", "ContextOverflowError": "context_length_exceeded",
	"authentication_failed": kindLogin, "unauthorized": kindLogin,
}

// errorData is where programs put what their provider said, each somewhere else.
type errorData struct {
	Details, Message               string
	Status, StatusCode, HTTPStatus int
	Error                          struct{ Message string }
	Data                           struct {
		Message    string
		StatusCode int
	}
	ErrorKind, CodexErrorInfo, ErrorName, Type string
}

// typed reads an error of the program.
func typed(e *rpcError) *problem {
	var d errorData
	var text string
	jsonline.Read(e.Data, &d)
	jsonline.Read(e.Data, &text)
	p := failed("", "%s", e.Message)
	details := cmp.Or(d.Details, d.Message, d.Error.Message, d.Data.Message, text)
	switch {
	case details == "" || strings.Contains(e.Message, details):
	case e.Message == "" || strings.EqualFold(e.Message, "internal error"):
		p.err.Message = details
	default:
		p.err.Message += ": " + details
	}
	p.err.Message = cmp.Or(p.err.Message, "the program reports an error without a word")
	p.err.Status = cmp.Or(d.Status, d.StatusCode, d.HTTPStatus, d.Data.StatusCode, agent.StatusIn(p.err.Message))
	if e.Code >= 400 && e.Code <= 599 {
		p.err.Status = e.Code // some pass the provider's on
	}
	p.err.Type = d.kind(e.Code, p.err.Message)
	return p
}

func (d *errorData) kind(code int, text string) string {
	for _, word := range []string{d.ErrorKind, d.CodexErrorInfo, d.ErrorName, d.Type} {
		if known := kinds[word]; known != "" {
			return known
		}
		if word != "" && !strings.HasSuffix(word, "Error") {
			return word
		}
	}
	if code == codeLogin {
		return kindLogin
	}
	return agent.TypeIn(text)
}

// promptResult is the answer to a prompt. Its tokens come in two shapes, both
// from before the protocol has settled on one.
type promptResult struct {
	StopReason string
	Usage      *struct {
		InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens, ThoughtTokens, TotalTokens int64
	}
	Meta struct {
		Quota struct {
			Count struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		}
	} `json:"_meta"`
}

// usage is the tokens of a prompt.
func (r *promptResult) usage() agent.Usage {
	u := r.Usage
	if u == nil {
		return agent.Usage{Input: r.Meta.Quota.Count.Input, Output: r.Meta.Quota.Count.Output}
	}
	sum := agent.Usage{Input: u.InputTokens, Output: u.OutputTokens,
		CacheRead: u.CachedReadTokens, CacheWrite: u.CachedWriteTokens}
	cached := sum.CacheRead + sum.CacheWrite
	// Whether cached and thought tokens are within the others is not settled
	// either, and the total tells.
	switch u.TotalTokens - sum.Input - sum.Output {
	case 0:
		sum.Input = max(0, sum.Input-cached)
	case u.ThoughtTokens:
		sum.Input, sum.Output = max(0, sum.Input-cached), sum.Output+u.ThoughtTokens
	case u.ThoughtTokens + cached:
		sum.Output += u.ThoughtTokens
	}
	return sum
}
