package agent

import (
	"regexp"
	"strconv"
	"sync"
)

// statusWords find the HTTP status in an error's text: at its start, after one
// word of the program's own ("[API Error: 429 …"), or named as one.
var statusWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^\W*(?:(?:api )?error:? )?([45]\d\d)\b|\b(?:http|status(?: code)?)[ :=]{1,3}([45]\d\d)\b`)
})

// StatusIn is the HTTP status that an error's text begins with, or names as
// such ("HTTP 401", "status code: 503"); 0 when it has none. Other numbers in
// it mean something else. Only its first 300 bytes are looked at.
func StatusIn(text string) int {
	if len(text) > 300 {
		text = text[:300]
	}
	m := statusWords().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1] + m[2])
	return n
}
