package failure

import "strings"

// This file tells the statuses of HTTP from other numbers: "401" may be a line,
// a duration, a count or a part of an id.

// answered makes a condition: the phrase is a number, and it is a status of
// HTTP in a context that only HTTP has.
func answered(p spot) bool {
	if p.at+3 > len(p.l) || !isDigit(p.l[p.at]) {
		return false
	}
	rest := p.l[p.at+3:]
	if rest != "" && (isDigit(rest[0]) || strings.HasPrefix(rest, ".") && len(rest) > 1 && isDigit(rest[1])) {
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

// endsWith tells whether s ends with one of words, without regard to case, as
// a whole word.
func endsWith(s string, words ...string) bool {
	for _, w := range words {
		if n := len(s) - len(w); n >= 0 && strings.EqualFold(s[n:], w) && (n == 0 || !wordByte(s[n-1]) || !wordByte(w[0])) {
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
	if n := len(b); n >= 3 && isDigit(b[n-1]) && isDigit(b[n-2]) && isDigit(b[n-3]) && (n == 3 || !wordByte(b[n-4])) {
		return true
	}
	return holdsAny(p.small, []string{"error", "fail", "fatal", "denied", "http", "status", "exception", "code ="})
}
