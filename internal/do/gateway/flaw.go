package gateway

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
)

// BrokenStream is the type of the error for an answer that broke off, or is not of the protocol.
// Those for other answers that are none have the names of their classes.
const BrokenStream = "stream_broken"

// flawOf an answer that has ended; nil is none. Only a
// step of the agent's work has to say something.
func (r *reading) flawOf(works bool) *failure.APIError {
	flaw := func(kind failure.Class, message string) *failure.APIError {
		return &failure.APIError{Type: string(kind), Message: message}
	}
	switch {
	case r.err != nil:
		return r.err
	case r.odd && r.said == 0 && r.calls == 0:
		return flaw(BrokenStream, "the provider's answer is nothing of its protocol: something between may have "+
			"answered")
	case !r.done:
		return flaw(BrokenStream, "the provider's answer broke off in the middle")
	}
	switch strings.ToLower(r.stop) {
	case refusal, "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii":
		return flaw(failure.RefusedByModel, "the model refused to answer ("+r.stop+")")
	case "max_tokens", "length", "max_output_tokens", "model_context_window_exceeded":
		return flaw(failure.OutputLimit, "the model's answer was cut off at the limit of its length ("+r.stop+")")
	case "malformed_function_call", "malformed_response":
		return flaw(failure.MalformedAnswer, "the model's call of a tool is malformed ("+r.stop+")")
	}
	if works && r.said == 0 && r.calls == 0 {
		return flaw(failure.EmptyAnswer, "the model's answer is empty")
	}
	return nil
}
