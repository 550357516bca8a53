package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// This file tells the statuses of HTTP from other numbers: "401" may be a line,
// a duration, a count or a part of an id.

// answered makes a condition: the phrase is a number, and it is a status of
// HTTP in a context that only HTTP has.
func answered(p spot) bool {
	if p.at+3 > len(p.l) || !words.IsDigit(p.l[p.at]) {
		return false
	}
	rest := p.l[p.at+3:]
	if rest != "" && (words.IsDigit(rest[0]) || strings.HasPrefix(rest, ".") && len(rest) > 1 && words.IsDigit(rest[1])) {
		return false
	}
	return statusWord(p.l[:p.at], rest)
}

// statusWord tells whether what stands in front of a number, and what follows
// it, make it a status.
func statusWord(before, rest string) bool {
	b := strings.TrimRight(before, " \"':=#({[")
	b = b[max(0, len(b)-40):]
	if endsWith(b, "status code", "status_code", "statuscode", "http status", "last status", "unexpected status",
		"got status", "status", "http/1.1", "http/1.0",
		"http/2", "http/3", "http", "http error", "returned error", "response code", "tunnel failed, response",
		"api error", "responded with", "error code", "npm err!", "npm error", "http_code") {
		return true
	}
	if !endsWith(b, "error", "code", "response", "received", "returned", "got", "failed with", "answered") {
		return endsWith(before, " e", "\te") &&
			endsWith(strings.TrimRight(before[:len(before)-1], " "), "code") // npm: code E403
	}
	rest = strings.TrimLeft(rest, "\"'")
	return rest == "" || strings.IndexByte(",.:;)}]", rest[0]) >= 0
}

// endsWith tells whether s ends with one of the list, without regard to case, as
// a whole word.
func endsWith(s string, list ...string) bool {
	for _, w := range list {
		if n := len(s) - len(w); n >= 0 && strings.EqualFold(s[n:], w) &&
			(n == 0 || !words.IsWord(s[n-1]) || !words.IsWord(w[0])) {
			return true
		}
	}
	return false
}

// reason makes a condition: the phrase is the name of a status, as it is
// reported: behind its number, at the end of an error, or alone.
func reason(p spot) bool {
	b := strings.TrimRight(p.before(), " :-\"'([{,")
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
	rest := p.after()[min(3, len(p.after())):]
	if rest != "" && strings.ContainsAny(rest[:1], "0123456789.%-/_") {
		return false
	}
	before := strings.TrimRight(words.Small(p.before()), " :(")
	return before == "" || endsWith(before, "error", "code", "status", "http", "got", "returned", "returns",
		"response", "with", "received", "answered",
		"server", "failed", "by")
}
