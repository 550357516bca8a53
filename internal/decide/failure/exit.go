package failure

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// ExitStatus reads from the end of a CI system's or a build tool's log which
// exit status it reports for the command that failed; false when it does not.
func ExitStatus(output string) (int, bool) {
	t := printed.Make(output)
	for i, seen := t.LineCount()-1, 0; i >= 0 && seen < 12; i-- {
		l := strings.TrimSpace(t.LineAt(i))
		if l == "" {
			continue
		}
		seen++
		if n, ok := exitStatusIn(l); ok {
			return n, true
		}
	}
	return 0, false
}

func exitStatusIn(l string) (int, bool) {
	small := words.Small(l)
	for _, w := range []string{
		"process completed with exit code ", "job failed: exit code ",
		"did not complete successfully: exit code: ", "exited with code ", "exited with status ",

		"exit status ", "exit code: ", "exit code ", "exited with ", "returned exit code ", "non-zero exit status ",
		"] error ",
	} {
		i := strings.Index(small, w)
		if i < 0 {
			continue
		}
		if n, end := words.Number(l, i+len(w)); end > i+len(w) && n > 0 && n < 256 {
			return n, true
		}
	}
	return 0, false
}

// byTypedErrors reads the errors that the provider typed, the newest that says
// something. An agent that exits 0 has got over them; then they only decide
// when nothing else is known.
func byTypedErrors(e Evidence) verdict {
	v := verdict{class: Unknown, line: -1}
	for i := len(e.Errors) - 1; i >= 0; i-- {
		c := classOfAPIError(e.Errors[i])
		if c == Unknown {
			continue
		}
		v = verdict{class: c, weight: 100, line: -1, typed: withResetTime(e, i)}
		if isProviderFault(c) {
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

// isProviderFault reports whether errors of that class come from the model provider or the network,
// so that no work of an agent cures them.
func isProviderFault(c Class) bool {
	return slices.Contains([]Class{QuotaExhausted, RateLimit, ServiceUnavailable, Network, Timeout}, c)
}

// withResetTime returns the n-th error with the time that an earlier one of its class named, where
// it has none of its own: programs repeat at their end what the provider said, without when it
// works again.
func withResetTime(e Evidence, n int) *APIError {
	err := e.Errors[n]
	class := classOfAPIError(err)
	for i := n - 1; i >= 0 && err.RetryAfter == 0 && err.ResetAt.IsZero(); i-- {
		if past := e.Errors[i]; classOfAPIError(past) == class && past.ResetAt.After(e.Now) {
			err.ResetAt = past.ResetAt
		}
	}
	return &err
}

// untypedMessage returns the message of the newest typed error, if the types do not give the class
// of any of them; "" for none.
func untypedMessage(e Evidence) string {
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
// not the provider's, stays wrong until a person changes the configuration. Some programs have no type
// for that, and only say it.
func setupError(a APIError) bool {
	hits := findHits(printed.Split(words.Cut(a.Message, 2000)))
	isSaid := verdictByWords(hits, func(c Class) bool { return c == Validation }).flags&setup != 0
	return isSaid || a.Status == 404 || words.Has(a.Type, "not_found", "certificate_error", "redirect")
}

// classOfAPIError reads one typed error: first what it is about, then the provider's
// word for it, then the status.
func classOfAPIError(a APIError) Class {
	typ := strings.ToLower(a.Type)
	if c := classByStopReason(typ); c != Unknown {
		return c
	}
	if typ == "stream_broken" || words.Has(a.Message, "empty or malformed response") {
		return Network // something between may have answered
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
	return classByStatus(a.Status)
}

// classByStopReason reads the word for an answer that ended without being one: pawl's own,
// or a provider's reason to stop.
func classByStopReason(typ string) Class {
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

// byMessage separates causes that providers report under one status: a plan that is used up and a
// rate (429), a prompt that is too long and a bad request (400).
func byMessage(a APIError) Class {
	h := findHits(printed.Split(a.Type + " " + words.Cut(a.Message, 2000)))
	best := verdictByWords(h, func(c Class) bool { return c == QuotaExhausted || c == ContextLength || c == RateLimit })
	if best.class == ContextLength && a.Status >= 500 {
		return Unknown
	}
	return best.class
}

func classByStatus(status int) Class {
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

// This file distinguishes HTTP statuses from other numbers: "401" may be a line, a duration, a
// count or a part of an id.

// isHTTPStatus is a condition: the phrase is a number, and it is a status in a context that only
// HTTP has.
func isHTTPStatus(p spot) bool {
	if p.at+3 > len(p.l) || !words.IsDigit(p.l[p.at]) {
		return false
	}
	rest := p.l[p.at+3:]
	if rest != "" && (words.IsDigit(rest[0]) || strings.HasPrefix(rest, ".") && len(rest) > 1 &&
		words.IsDigit(rest[1])) {
		return false
	}
	return surroundsStatus(p.l[:p.at], rest)
}

// surroundsStatus reports whether the text before and after a number makes it a status.
func surroundsStatus(before, rest string) bool {
	b := strings.TrimRight(before, " \"':=#({[")
	b = b[max(0, len(b)-40):]
	if endsWithWord(b, "status code", "status_code", "statuscode", "http status", "last status", "unexpected status",
		"got status", "status", "http/1.1", "http/1.0",
		"http/2", "http/3", "http", "http error", "returned error", "response code", "tunnel failed, response",
		"api error", "responded with", "error code", "npm err!", "npm error", "http_code") {
		return true
	}
	if !endsWithWord(b, "error", "code", "response", "received", "returned", "got", "failed with", "answered") {
		return endsWithWord(before, " e", "\te") &&
			endsWithWord(strings.TrimRight(before[:len(before)-1], " "), "code") // npm: code E403
	}
	rest = strings.TrimLeft(rest, "\"'")
	return rest == "" || strings.IndexByte(",.:;)}]", rest[0]) >= 0
}

// endsWithWord reports whether s ends with one of the list as a whole word. Case is ignored.
func endsWithWord(s string, list ...string) bool {
	for _, w := range list {
		if n := len(s) - len(w); n >= 0 && strings.EqualFold(s[n:], w) &&
			(n == 0 || !words.IsWord(s[n-1]) || !words.IsWord(w[0])) {
			return true
		}
	}
	return false
}

// isStatusName is a condition: the phrase is the name of a status, as it is reported: behind its
// number, at the end of an error, or alone.
func isStatusName(p spot) bool {
	b := strings.TrimRight(p.textBefore(), " :-\"'([{,")
	if b == "" {
		return true
	}
	if n := len(b); n >= 3 && words.IsDigit(b[n-1]) && words.IsDigit(b[n-2]) && words.IsDigit(b[n-3]) &&
		(n == 3 || !words.IsWord(b[n-4])) {
		return true
	}
	return words.HasAny(p.small, []string{"error", "fail", "fatal", "denied", "http", "status", "exception", "code ="})
}

// bareStatus makes a condition: the phrase is a number that may be a status of HTTP: "503 from upstream",
// "got 429".
func bareStatus(p spot) bool {
	rest := p.textAfter()[min(3, len(p.textAfter())):]
	if rest != "" && strings.ContainsAny(rest[:1], "0123456789.%-/_") {
		return false
	}
	before := strings.TrimRight(words.Small(p.textBefore()), " :(")
	return before == "" || endsWithWord(before, "error", "code", "status", "http", "got", "returned", "returns",
		"response", "with", "received", "answered",
		"server", "failed", "by")
}
