package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/report"
)

const (
	callLimit = 30 * time.Second // for one call
	bodyLimit = 16 << 20         // bytes of one answer
	pageLimit = 20               // pages of one list
	pageSize  = "50"             // Gitea gives no more
	keepLimit = 200              // answers that are kept with their ETag
	keepSize  = 256 << 10        // bytes of one that is kept
)

// Client speaks to one repository at a forge. It is safe for concurrent use.
type Client struct {
	Where
	token string
	web   http.Client
	now   func() time.Time

	mu   sync.Mutex
	kept map[string]answer // by address
	rest *LaterError       // nothing is asked before its Until
}

// errLarge is an answer over [bodyLimit].
var errLarge = &Error{Status: http.StatusOK, Why: "its answer is too large"}

// answer is one answer of the forge.
type answer struct {
	body   []byte
	header http.Header
}

// New is a client for one repository. It asks nothing yet.
func New(w Where, token string) *Client {
	c := &Client{Where: w, token: token, now: time.Now, kept: map[string]answer{}}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	c.web = http.Client{Timeout: callLimit, Transport: transport, CheckRedirect: c.followRedirect}
	return c
}

// Close ends the connections that are idle.
func (c *Client) Close() { c.web.CloseIdleConnections() }

func (c *Client) speaksGitea() bool { return c.Kind == Gitea }

// followRedirect follows a renamed repository, but never to another host, which would
// get the token, and never with what was to be written.
func (c *Client) followRedirect(r *http.Request, via []*http.Request) error {
	first := via[0]
	same := r.URL.Host == first.URL.Host && r.URL.Scheme == first.URL.Scheme
	if len(via) > 3 || first.Method != http.MethodGet || !same {
		return http.ErrUseLastResponse
	}
	return nil
}

// repoPath is the path of something in the repository.
func (c *Client) repoPath(format string, args ...any) string {
	return "/repos/" + c.Repository + fmt.Sprintf(format, args...)
}

// getDecoded reads one thing. The same answer as before costs the forge nothing, where
// it knows ETags.
func (c *Client) getDecoded(ctx context.Context, path string, into any) error {
	a, err := c.callOnce(ctx, http.MethodGet, c.apiAddress()+path, nil)
	if err == nil {
		err = c.decodeAnswer(a, into)
	}
	return err
}

// listAllPages reads the pages of a list, [pageLimit] at most. Where a page has more than pawl
// reads, since issues are large, it asks for smaller ones.
func listAllPages[T any](ctx context.Context, c *Client, path string, query url.Values) (all []T, err error) {
	for _, size := range []string{pageSize, "10", "2"} {
		all, err = listPages[T](ctx, c, path, query, size)
		if !errors.Is(err, errLarge) {
			break
		}
	}
	return all, err
}

// sizeWord is the parameter of a page's size. What a forge does not know it may know tomorrow,
// as something else.
func (c *Client) sizeWord() string {
	if c.speaksGitea() {
		return "limit"
	}
	return "per_page"
}

func listPages[T any](ctx context.Context, c *Client, path string, query url.Values, size string) ([]T, error) {
	query.Set(c.sizeWord(), size)
	var all []T
	address := c.apiAddress() + path + "?" + query.Encode()
	for range pageLimit {
		a, err := c.callOnce(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		var page []T
		if err := c.decodeAnswer(a, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if address = c.nextPage(a.header.Get("Link")); address == "" {
			break
		}
	}
	return all, nil
}

// nextPage is the page that a Link header names, if it is at the same forge.
func (c *Client) nextPage(link string) string {
	for part := range strings.SplitSeq(link, ",") {
		address, rel, _ := strings.Cut(part, ";")
		if !strings.Contains(rel, `rel="next"`) {
			continue
		}
		here, _ := url.Parse(c.apiAddress())
		u, err := url.Parse(strings.Trim(strings.TrimSpace(address), "<>"))
		if err == nil && u.Host == here.Host && u.Scheme == here.Scheme {
			return u.String()
		}
	}
	return ""
}

// sendJSON writes something. Into may be nil.
func (c *Client) sendJSON(ctx context.Context, method, path string, what, into any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	a, err := c.callOnce(ctx, method, c.apiAddress()+path, body)
	if err == nil && into != nil {
		err = c.decodeAnswer(a, into)
	}
	return err
}

func (c *Client) decodeAnswer(a answer, into any) error {
	err := json.Unmarshal(a.body, into)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	other, isOther := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case isOther:
		return c.laterError("it answers with unexpected JSON: %s is of type %s",
			cmp.Or(other.Field, "its value"), other.Value)
	case err != nil && strings.HasSuffix(kind, "json"):
		return c.laterError("it answers with JSON that cannot be read: %v", err)
	case err != nil:
		return c.laterError("it answers with %s where JSON is expected", cmp.Or(kind, "text of unknown type"))
	}
	cleanTexts(reflect.ValueOf(into), false)
	return nil
}

// callOnce makes one call. The error is a [*LaterError] or an [*Error].
func (c *Client) callOnce(ctx context.Context, method, address string, body []byte) (answer, error) {
	c.mu.Lock()
	rest, known := c.rest, c.kept[address]
	c.mu.Unlock()
	if rest != nil && c.now().Before(rest.Until) {
		return answer{}, rest
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	c.setHeaders(r, method, known.header.Get("ETag"), body != nil)
	res, err := c.web.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
		u, ok := errors.AsType[*url.Error](err)
		switch {
		case ok && u.Timeout():
			return answer{}, c.laterError("it does not answer within %s", callLimit)
		case ok:
			err = u.Err // without the address
		}
		return answer{}, c.laterError("it does not answer: %v", err)
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{header: res.Header}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, bodyLimit+1)); err != nil {
		late, ok := errors.AsType[net.Error](err)
		switch {
		case ctx.Err() != nil:
			return a, ctx.Err()
		case ok && late.Timeout():
			return a, c.laterError("its answer is not complete within %s", callLimit)
		}
		return a, c.laterError("its answer breaks off: %v", err)
	}
	switch {
	case len(a.body) > bodyLimit:
		return a, errLarge
	case res.StatusCode == http.StatusNotModified && known.body != nil:
		return known, nil
	case res.StatusCode < 300:
		c.keepAnswer(method, address, a)
		return a, nil
	}
	return a, c.errorOfAnswer(res, a)
}

// setHeaders gives a call its headers.
func (c *Client) setHeaders(r *http.Request, method, etag string, body bool) {
	h := r.Header
	h.Set("User-Agent", "pawl")
	h.Set("Accept", "application/json")
	scheme := "token "
	if !c.speaksGitea() {
		scheme = "Bearer "
		h.Set("Accept", "application/vnd.github+json")
		h.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	if c.token != "" {
		h.Set("Authorization", scheme+c.token)
	}
	if body {
		h.Set("Content-Type", "application/json")
	}
	if method == http.MethodGet && etag != "" {
		h.Set("If-None-Match", etag)
	}
}

func (c *Client) keepAnswer(method, address string, a answer) {
	if method != http.MethodGet || a.header.Get("ETag") == "" || len(a.body) > keepSize {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= keepLimit {
		clear(c.kept)
	}
	c.kept[address] = a
}

// LaterError is returned when the forge does not answer now, or limits the rate of calls.
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

// Statuses that callers distinguish.
const (
	NotFound = http.StatusNotFound     // what is asked for is not there, or may not be seen
	NoToken  = http.StatusUnauthorized // the token is wrong or has expired
)

// Is reports whether the error is an answer with one of these statuses of HTTP.
func Is(err error, statuses ...int) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(statuses, e.Status)
}

const (
	restLimit = time.Hour   // the longest that a forge can make pawl wait
	restOf    = time.Minute // where it does not say how long: what GitHub's rules ask for
)

const whyLimit = 600 // characters of what is said of an answer

// laterError is a [LaterError] in the forge's name.
func (c *Client) laterError(format string, args ...any) error {
	return &LaterError{Why: report.Line(c.URL+": "+fmt.Sprintf(format, args...), whyLimit)}
}

// errorOfAnswer reads an answer that is not what was asked for. A forge that wants to
// be left alone is, by all calls of this client.
func (c *Client) errorOfAnswer(res *http.Response, a answer) error {
	status := res.StatusCode
	said := messageOfAnswer(a)
	if wait, limited := c.limitedFor(status, a, said); limited {
		e := &LaterError{Until: c.now().Add(wait)}
		at := e.Until.Local().Format("15:04:05")
		e.Why = fmt.Sprintf("%s: its rate limit is reached; try again at %s", c.URL, at)
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
		why += "; it does not exist, or the token may not see it"
	case status >= 300 && status < 400:
		why += "; " + redirectTarget(res)
	}
	return &Error{Status: status, Why: report.Line(why, whyLimit)}
}

// redirectTarget names the target of a redirect that is not followed; see [Client.followRedirect].
func redirectTarget(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return "it leads nowhere"
	}
	here := res.Request.URL
	where := (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String() // the rest may be secret
	if to.Host != here.Host || to.Scheme != here.Scheme {
		return "it leads to " + where + ", which is not followed: check forge.url"
	}
	return "it leads to " + where + ", which is not followed: if the repository was renamed, set forge.repository to " +
		"its new name"
}

// limitedFor finds out whether an answer is about too many calls, and for how long.
// GitHub says so in several ways, with 403 too.
func (c *Client) limitedFor(status int, a answer, said string) (time.Duration, bool) {
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

// messageOfAnswer is the message in an answer, in one line.
func messageOfAnswer(a answer) string {
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
