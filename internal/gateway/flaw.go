package gateway

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/failure"
)

// The types of errors for answers that came whole, or nearly, and are none that
// an agent can work with.
const (
	RefusedByModel = "refused_by_model"
	OutputLimit    = "output_limit"
	EmptyAnswer    = "empty_answer"
	Malformed      = "malformed_answer"
	BrokenStream   = "stream_broken"
)

// flaw is what is wrong with an answer that has ended; nil is nothing. Only a
// step of the agent's work has to say something.
func (r *reading) flaw(works bool) *failure.APIError {
	flaw := func(kind, message string) *failure.APIError {
		return &failure.APIError{Type: kind, Message: message}
	}
	switch {
	case r.err != nil:
		return r.err
	case r.odd && r.said == 0 && r.calls == 0:
		return flaw(Malformed, "the provider's answer is nothing of its protocol")
	case !r.done:
		return flaw(BrokenStream, "the provider's answer broke off in the middle")
	}
	switch strings.ToLower(r.stop) {
	case refusal, "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii":
		return flaw(RefusedByModel, "the model refused to answer ("+r.stop+")")
	case "max_tokens", "length", "max_output_tokens", "model_context_window_exceeded":
		return flaw(OutputLimit, "the model's answer was cut off at the limit of its length ("+r.stop+")")
	case "malformed_function_call", "malformed_response":
		return flaw(Malformed, "the model's call of a tool is malformed ("+r.stop+")")
	}
	if works && r.said == 0 && r.calls == 0 {
		return flaw(EmptyAnswer, "the model's answer is empty")
	}
	return nil
}
