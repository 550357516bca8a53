package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/report"
)

// LaterError is that the forge does not answer now, or wants to be left alone.
type LaterError struct {
	Until time.Time // when it may be asked again; zero is not known
	Why   string
}

func (e *LaterError) Error() string { return e.Why }

// Error is an answer that says no.
type Error struct {
	Status int
	Why    string
}

func (e *Error) Error() string { return e.Why }

// Statuses that callers tell apart.
const (
	NotFound = http.StatusNotFound     // what is asked for is not there, or may not be seen
	NoToken  = http.StatusUnauthorized // the token is wrong or has expired
)

// Is is true for an answer with one of these statuses of HTTP.
func Is(err error, statuses ...int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(statuses, e.Status)
}

const (
	restLimit = time.Hour   // the longest that a forge can make pawl wait
	restOf    = time.Minute // where it does not say how long: what GitHub's rules ask for
)

const whyLimit = 600 // characters of what is said of an answer

// later is a [LaterError] in the forge's name.
func (c *Client) later(format string, args ...any) error {
	return &LaterError{Why: report.Line(c.URL+": "+fmt.Sprintf(format, args...), whyLimit)}
}

// failed reads an answer that is not what was asked for. A forge that wants to
// be left alone is, by all calls of this client.
func (c *Client) failed(res *http.Response, a answer) error {
	status := res.StatusCode
	said := saidBy(a)
	if wait, limited := c.limited(status, a, said); limited {
		e := &LaterError{Until: c.now().Add(wait)}
		at := e.Until.Local().Format("15:04:05")
		e.Why = fmt.Sprintf("%s: its limit of calls is reached; it may be asked again at %s", c.URL, at)
		c.mu.Lock()
		c.rest = e
		c.mu.Unlock()
		return e
	}
	why := fmt.Sprintf("%s answers %d %s", c.URL, status, http.StatusText(status))
	if said != "" {
		why += ": " + said
	}
	switch {
	case status >= 500:
		return &LaterError{Why: why}
	case status == http.StatusUnauthorized:
		why += "; the token is wrong or has expired"
	case status == http.StatusNotFound:
		why += "; it is not there, or the token may not see it"
	case status >= 300 && status < 400:
		why += "; " + led(res)
	}
	return &Error{Status: status, Why: report.Line(why, whyLimit)}
}

// led says where a redirect leads that is not followed; see [Client.redirect].
func led(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "it leads nowhere"
	}
	here := res.Request.URL
	where := (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String() // the rest may be secret
	if to.Host != here.Host || to.Scheme != here.Scheme {
		return "it leads to " + where + ", which is not followed: check forge.url"
	}
	return "it leads to " + where + ", which is not followed: if the repository was renamed, set forge.repository to its new name"
}

// limited says whether an answer is about too many calls, and for how long.
// GitHub says so in several ways, with 403 too.
func (c *Client) limited(status int, a answer, said string) (time.Duration, bool) {
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return 0, false
	}
	wait := time.Duration(-1)
	if n, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
		wait = time.Duration(min(n, 1<<20)) * time.Second
	} else if a.header.Get("X-RateLimit-Remaining") == "0" {
		wait = restOf
		if n, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			wait = time.Unix(n, 0).Sub(c.now())
		}
	} else if status == http.StatusTooManyRequests || strings.Contains(strings.ToLower(said), "rate limit") {
		wait = restOf
	}
	if wait == -1 {
		return 0, false
	}
	return min(max(wait, time.Second), restLimit), true
}

// saidBy is the message in an answer, in one line.
func saidBy(a answer) string {
	var m struct {
		Message string `json:"message"`
		Errors  []any  `json:"errors"`
	}
	if json.Unmarshal(a.body, &m) != nil {
		return ""
	}
	for _, e := range m.Errors {
		if fields, ok := e.(map[string]any); ok {
			e = fields["message"]
		}
		if text, ok := e.(string); ok {
			m.Message += ": " + text
		}
	}
	return report.Line(m.Message, 300)
}
