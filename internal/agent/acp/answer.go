package acp

import (
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

// typed reads an error of the program. Each puts what its provider said
// somewhere else.
func typed(e *rpcError) *problem {
	p := failed("", "%s", e.Message)
	details := ""
	for _, path := range [][]string{{"details"}, {"message"}, {"error", "message"}, {"data", "message"}} {
		if details = jsonline.Short(jsonline.Get(e.Data, path...), maxText); details != "" {
			break
		}
	}
	if details == "" {
		details = jsonline.Short(e.Data, maxText)
	}
	switch {
	case details == "" || strings.Contains(e.Message, details):
	case e.Message == "" || strings.EqualFold(e.Message, "internal error"):
		p.line.Text = details
	default:
		p.line.Text += ": " + details
	}
	if p.line.Text == "" {
		p.line.Text = "the program reports an error without a word"
	}
	p.line.Status = status(e, p.line.Text)
	p.line.Kind = kindOf(e, p.line.Text)
	return p
}

func status(e *rpcError, text string) int {
	if e.Code >= 400 && e.Code <= 599 {
		return int(e.Code) // some pass the provider's on
	}
	for _, path := range [][]string{{"status"}, {"statusCode"}, {"httpStatus"}, {"data", "statusCode"}} {
		if n := jsonline.Status(jsonline.Get(e.Data, path...)); n > 0 {
			return n
		}
	}
	return agent.StatusIn(text)
}

func kindOf(e *rpcError, text string) string {
	for _, key := range []string{"errorKind", "codexErrorInfo", "errorName", "type"} {
		word := jsonline.Short(jsonline.Get(e.Data, key), maxName)
		if known := kinds[word]; known != "" {
			return known
		}
		if word != "" && !strings.HasSuffix(word, "Error") {
			return word
		}
	}
	if e.Code == codeLogin {
		return kindLogin
	}
	return agent.TypeIn(text)
}

// usage is the tokens of a prompt, in the two shapes that programs send, both
// before the protocol has settled on one.
func usage(result []byte) (line, bool) {
	if u := jsonline.Get(result, "usage"); !jsonline.Null(u) {
		n := func(key string) int64 { return jsonline.Count(jsonline.Get(u, key)) }
		l := line{
			Type: lineUsage, Input: n("inputTokens"), Output: n("outputTokens"), CacheRead: n("cachedReadTokens"), CacheWrite: n("cachedWriteTokens"),
		}
		thought := n("thoughtTokens")
		// Whether cached and thought tokens are within the others is not settled
		// either, and the total tells.
		switch rest := n("totalTokens") - l.Input - l.Output; rest {
		case 0:
			l.Input = max(0, l.Input-l.CacheRead-l.CacheWrite)
		case thought:
			l.Input, l.Output = max(0, l.Input-l.CacheRead-l.CacheWrite), l.Output+thought
		case thought + l.CacheRead + l.CacheWrite:
			l.Output += thought
		}
		return l, l.Input+l.Output+l.CacheRead+l.CacheWrite > 0
	}
	u := jsonline.Get(result, "_meta", "quota", "token_count")
	l := line{Type: lineUsage, Input: jsonline.Count(jsonline.Get(u, "input_tokens")), Output: jsonline.Count(jsonline.Get(u, "output_tokens"))}
	return l, l.Input+l.Output > 0
}
