package gateway

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// HoldTime is how long a call that fails is held and tried again before the
// agent hears of it. A longer wait is the loop's: it gives the slot back.
const HoldTime = time.Minute

// trouble is an answer that is none, or a provider that cannot be reached.
type trouble struct {
	err failure.APIError
	// named is how long the provider says to wait; 0 is not said.
	named time.Duration
	// passes: it may work a moment later.
	passes bool
	// lasts: no other call of this attempt can work before somebody acts, or
	// before the time that the provider named.
	lasts bool
}

// Error is the trouble for a person.
func (t *trouble) Error() string {
	said := cmp.Or(t.err.Message, t.err.Type)
	if t.err.Status != 0 {
		said = strings.TrimSpace(fmt.Sprintf("%d %s", t.err.Status, said))
	}
	return said
}

// refusedBy reads an answer whose status is an error. body is its beginning.
func refusedBy(resp *http.Response, body []byte, now time.Time) *trouble {
	t := &trouble{err: failure.APIError{Status: resp.StatusCode}}
	var p problem
	var wrapped struct{ Error json.RawMessage }
	var list []struct{ Error json.RawMessage } // Gemini's, when it was asked for a stream
	switch {
	case json.Unmarshal(body, &wrapped) == nil && wrapped.Error != nil:
		if json.Unmarshal(wrapped.Error, &p) != nil {
			_ = json.Unmarshal(wrapped.Error, &p.Message)
		}
	case json.Unmarshal(body, &list) == nil && len(list) > 0:
		_ = json.Unmarshal(list[0].Error, &p)
	default:
		_ = json.Unmarshal(body, &p)
	}
	t.err.Type, t.err.Message = p.mostTellingName(), agent.Clip(p.Message, maxMessage)
	t.named = namedWait(resp.Header, &p, theirTime(resp, now))
	if t.named > 0 {
		t.err.RetryAfter, t.err.ResetAt = t.named, now.Add(t.named)
	}
	switch {
	case isHopeless(resp.StatusCode, t.err.Type), p.isDailyQuota():
		t.lasts = true
	case maySoonAnswer(resp.StatusCode):
		t.passes = t.named <= HoldTime
		t.lasts = true
	}
	return t
}

// maySoonAnswer are the statuses of a provider that may answer soon. 529 is Anthropic's
// "overloaded"; 520 to 524 come from the network before it.
func maySoonAnswer(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return status >= 500 && status != http.StatusNotImplemented
}

// isHopeless are the errors that trying again within a minute does not cure: a key
// that is wrong, an account without money, a plan that is used up.
func isHopeless(status int, kind string) bool {
	switch kind {
	case "insufficient_quota", "billing_error", "billing_not_active", "credits_exhausted", "usage_limit_reached",
		"API_KEY_INVALID", "authentication_error":
		return true
	}
	return status == http.StatusUnauthorized || status == http.StatusPaymentRequired
}

// theirTime is now by the provider's clock, by which it names times.
func theirTime(resp *http.Response, now time.Time) time.Time {
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		return at
	}
	return now
}

// namedWait is how long the provider says to wait.
func namedWait(h http.Header, p *problem, now time.Time) time.Duration {
	if ms, err := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64); err == nil && ms > 0 {
		return boundWait(time.Duration(min(ms, maxWait.Milliseconds())) * time.Millisecond)
	}
	if text := h.Get("Retry-After"); text != "" {
		if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 {
			return boundWait(time.Duration(min(s, maxWait.Seconds()) * float64(time.Second)))
		}
		if at, err := http.ParseTime(text); err == nil {
			return boundWait(at.Sub(now))
		}
	}
	for _, d := range p.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil {
			return boundWait(wait)
		}
	}
	switch {
	case p.ResetsIn > 0:
		return boundWait(time.Duration(min(p.ResetsIn, int64(maxWait.Seconds()))) * time.Second)
	case p.ResetsAt > 0:
		return boundWait(time.Unix(p.ResetsAt, 0).Sub(now))
	}
	return 0
}

// maxWait is the longest wait that a provider can name.
const maxWait = 31 * 24 * time.Hour

func boundWait(d time.Duration) time.Duration { return max(0, min(d, maxWait)) }

// unreachedTrouble is a provider that gave no answer at all.
func unreachedTrouble(why error) *trouble {
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(why, &bad) { // trying again does not cure it
		const hint = "; if a company's proxy is in between, name its certificates in gateway.ca"
		message := agent.Clip(why.Error(), maxMessage) + hint
		return &trouble{lasts: true, err: failure.APIError{Type: "certificate_error", Message: message}}
	}
	err := failure.APIError{Type: "connection_error", Message: agent.Clip(why.Error(), maxMessage)}
	return &trouble{passes: true, lasts: true, err: err}
}

// waitBeforeRetry is how long to wait before the try after the try-th, of a call that is
// held since held; 0 is no further try.
func (t *trouble) waitBeforeRetry(try int, held time.Duration) time.Duration {
	if !t.passes {
		return 0
	}
	wait := time.Second << min(try-1, 4) // 1, 2, 4, 8, 16, 16, …
	if t.named > 0 {
		wait = t.named
	}
	if held+wait > HoldTime {
		return 0
	}
	return wait
}
