package failure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// byTypedErrors reads the errors that the provider typed, the newest that says
// something. An agent that exits 0 has got over them; then they only decide
// when nothing else is known.
func byTypedErrors(e Evidence) verdict {
	v := verdict{class: Unknown, line: -1}
	for i := len(e.Errors) - 1; i >= 0; i-- {
		c := classOf(e.Errors[i])
		if c == Unknown {
			continue
		}
		v = verdict{class: c, weight: 100, line: -1, typed: &e.Errors[i]}
		if c == QuotaExhausted || c == RateLimit || c == ServiceUnavailable {
			v.flags |= provider
		}
		if setupError(e.Errors[i]) {
			v.flags |= setup
		}
		over := e.ExitCode == 0 && e.Signal == "" && !e.TimedOut && !e.CutOff
		if over && !slices.Contains(Unanswered(), c) {
			v.weight = 50
		}
		return v
	}
	return v
}

// untyped is the message of the newest typed error, where no type says what any of them
// is about; "" for none.
func untyped(e Evidence) string {
	if e.Source != "agent" || byTypedErrors(e).typed != nil {
		return ""
	}
	for _, err := range slices.Backward(e.Errors) {
		if said := cmp.Or(err.Message, err.Type); said != "" {
			return said
		}
	}
	return ""
}

// setupError: asking for a model that does not exist, or at an address that is
// not the provider's, stays wrong until a person changes the configuration.
func setupError(a APIError) bool {
	return a.Status == 404 || words.Has(a.Type, "not_found", "certificate_error", "redirect")
}

// classOf reads one typed error: first what it is about, then the provider's
// word for it, then the status.
func classOf(a APIError) Class {
	typ := strings.ToLower(a.Type)
	if c := byStop(typ); c != Unknown {
		return c
	}
	if c := byMessage(a); c != Unknown {
		return c
	}
	switch {
	case words.Has(typ, "usagelimit", "usage_limit", "quota", "billing", "credit", "payment"):
		return QuotaExhausted
	case words.Has(typ, "context_length", "too_long", "too_large", "max_tokens"):
		return ContextLength
	case words.Has(typ, "rate_limit", "ratelimit", "throttl", "too_many", "resource_exhausted"):
		return RateLimit
	case words.Has(typ, "auth", "permission", "forbidden", "api_key"):
		return Auth
	case words.Has(typ, "overloaded", "server_error", "api_error", "unavailable", "internal"):
		return ServiceUnavailable
	case words.Has(typ, "timeout", "timed_out"):
		return Timeout
	case words.Has(typ, "certificate_error", "redirect"):
		return Validation
	case words.Has(typ, "connection", "network"):
		return Network
	case words.Has(typ, "invalid", "not_found", "bad_request"):
		return Validation
	case words.Has(typ, "max_turns", "turnlimit"):
		return NoProgress
	}
	return byStatus(a.Status)
}

// byStop reads the word for an answer that ended without being one: pawl's own,
// or a provider's reason to stop.
func byStop(typ string) Class {
	switch typ {
	case string(RefusedByModel), "refusal", "content_filter", "content_policy_violation", "prohibited_content":
		return RefusedByModel
	case string(OutputLimit), "max_output_tokens":
		return OutputLimit
	case string(EmptyAnswer):
		return EmptyAnswer
	case string(MalformedAnswer), "malformed_function_call", "malformed_response":
		return MalformedAnswer
	}
	return Unknown
}

// byMessage tells apart what providers put under one status: a plan that is
// used up from a rate (429), a prompt that is too long from a bad request (400).
func byMessage(a APIError) Class {
	h := findHits(split(a.Type + " " + words.Cut(a.Message, 2000)))
	best := byWords(h, func(c Class) bool { return c == QuotaExhausted || c == ContextLength || c == RateLimit })
	if best.class == ContextLength && a.Status >= 500 {
		return Unknown
	}
	return best.class
}

func byStatus(status int) Class {
	switch {
	case status == 401 || status == 403 || status == 407:
		return Auth
	case status == 402:
		return QuotaExhausted
	case status == 408:
		return Timeout
	case status == 413:
		return ContextLength
	case status == 429:
		return RateLimit
	case status >= 500 && status <= 599:
		return ServiceUnavailable
	case status >= 400 && status <= 499:
		return Validation
	}
	return Unknown
}
