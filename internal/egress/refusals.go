package egress

import (
	"strings"
	"sync"
	"time"
)

// Refusal is something that was not let through.
type Refusal struct {
	When time.Time `json:"when"`
	// Host is host:port as the client asked for it, at most 300 bytes that can
	// be printed; "" when it did not come to that.
	Host string `json:"host,omitempty"`
	Why  string `json:"why"`
}

// MaxRefusals is how many refusals one proxy tells.
const MaxRefusals = 1000

const maxHostText = 300

// refusals tells them one at a time. It is safe for concurrent use.
type refusals struct {
	tell func(Refusal) // nil tells nobody

	mu   sync.Mutex
	told int
}

func (r *refusals) add(host, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tell != nil && r.told < MaxRefusals {
		r.told++
		r.tell(Refusal{When: time.Now(), Host: printable(host), Why: why})
	}
}

// printable is what a client sent, fit for a terminal: ASCII, without spaces.
// What looks like a user and a password before an @ is left out.
func printable(s string) string {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	s = s[:min(len(s), maxHostText)]
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
}
