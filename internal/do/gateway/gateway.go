package gateway

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/peer"
	"github.com/pawl-dev/pawl/internal/do/process"
)

const (
	maxRequest     = 64 << 20  // of one request, in bytes
	maxBodies      = 256 << 20 // of the requests at a time
	maxAnswer      = 256 << 20 // of one answer
	maxHeader      = 64 << 10
	maxConnections = 512
	maxError       = 64 << 10 // of an error's text that is read
	headerTime     = 15 * time.Second
	endTime        = 5 * time.Second  // for calls in flight to be counted
	silence        = 20 * time.Minute // a model that thinks says nothing
)

// Config has the settings of a gateway, and its clients.
type Config struct {
	Token  string // what the agent has in place of a key
	Routes []agent.Route
	// From says whether a process may use the token; nil is that any may.
	From   func(pid int) bool
	Limits Limits
	Prices agent.Prices
	// Closed: the agent reaches its models only, so no request may make the provider reach another
	// address for it.
	Closed bool
	// Spend adds to what all runs of the user used today, and returns all of it;
	// nil counts nothing.
	Spend func(loop.Use) (loop.Use, error)
	// Transport reaches the providers; it must follow no redirect, as a
	// [http.RoundTripper] does not.
	Transport http.RoundTripper
	// Emit gets one event at a time.
	Emit func(agent.Event)
	// Alive is called whenever the agent asks, and whenever a piece of an answer comes; nil does nothing.
	Alive func()
	// End is called when the attempt has to end.
	End func(loop.Ended, string)
	// Sleep waits between tries; nil is the clock. It returns false when ctx ended.
	Sleep func(ctx context.Context, d time.Duration) bool
}

// Gateway serves the model calls of one attempt. [New] makes one.
type Gateway struct {
	config  Config
	routes  map[string]*way
	account *account
	from    *peer.Check

	mu     sync.Mutex
	bodies int64
	tools  int // the most that a call offered, in bytes
	flaw   *failure.APIError
}

// way is a route with what its protocol is like.
type way struct {
	agent.Route
	dialect
	// left: the route's next endpoint is used, since its own did not answer.
	left atomic.Bool
}

// endpointNow is the endpoint that calls go to now.
func (w *way) endpointNow() *agent.Route {
	if w.left.Load() {
		return w.Next
	}
	return &w.Route
}

// leaveEndpoint changes to the next endpoint for good; false when there is none, or
// from is that already.
func (w *way) leaveEndpoint(from *agent.Route) bool {
	if w.Next == nil || from == w.Next {
		return false
	}
	w.left.Store(true)
	return true
}

// hideKeys takes the keys out of an error of a provider: some say back what they were given.
func (w *way) hideKeys(text []byte) []byte {
	for _, r := range []*agent.Route{&w.Route, w.Next} {
		if r != nil && r.Key != "" {
			text = bytes.ReplaceAll(text, []byte(r.Key), []byte("[the key]"))
		}
	}
	return text
}

// New makes a gateway.
func New(c Config) (*Gateway, error) {
	if len(c.Token) < 16 {
		return nil, errors.New("cannot start the gateway: its token is too short")
	}
	if c.Alive == nil {
		c.Alive = func() {}
	}
	if c.Sleep == nil {
		c.Sleep = process.Sleep
	}
	g := &Gateway{config: c, routes: map[string]*way{}, from: &peer.Check{Accepts: c.From}}
	g.account = &account{limits: c.Limits, prices: c.Prices, spend: c.Spend,
		flying: map[*flight]bool{}, landed: make(chan struct{}), counted: map[string]counted{},
		models: map[string]agent.ModelUse{}}
	for _, r := range c.Routes {
		for _, one := range []*agent.Route{&r, r.Next} {
			if one == nil {
				continue
			}
			one.Base = strings.TrimSuffix(one.Base, "/")
			base, err := url.Parse(one.Base)
			if err != nil || base.Host == "" {
				return nil, fmt.Errorf("cannot start the gateway: the address of %s is not a URL", r.Name)
			}
		}
		d, known := dialects()[r.Protocol]
		if !known {
			return nil, fmt.Errorf("cannot start the gateway: %s uses %q, a protocol that it does not know",
				r.Name, r.Protocol)
		}
		g.routes[r.Name] = &way{Route: r, dialect: d}
	}
	return g, nil
}

// Flaw of the answer to the last step of the agent's work:
// an error, a refusal, an answer that broke off, was cut at its limit or is empty. nil
// is nothing. A program may call that a success, or report it without the time that the
// provider named.
func (g *Gateway) Flaw() *failure.APIError {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flaw
}

// Totals of the attempt: use by model, and cost; known is false when the price of one
// of the models is not known.
func (g *Gateway) Totals() (models map[string]agent.ModelUse, cost loop.MicroUSD, known bool) {
	a := g.account
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.models), a.cost, !a.unpriced
}

// Serve answers requests to l until ctx is done, ends what is open then, counts
// it, and closes l. Its error is that of a listener that broke.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{
		Handler: g, ReadHeaderTimeout: headerTime, IdleTimeout: silence, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: g.from.WithConn,
	}
	ended := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(ended)
		// Their contexts have ended, so calls end at once: each is counted.
		bounded, stop := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer stop()
		_ = s.Shutdown(bounded)
		_ = s.Close()
	})()
	err := s.Serve(netutil.LimitListener(l, maxConnections))
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the gateway cannot accept connections any more: %v", err)
	}
	<-ended
	return nil
}

// ServeHTTP answers one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	rest = "/" + rest
	via := g.routes[first]
	if via == nil {
		writeRefusal(w, dialects()[agent.OpenAI], http.StatusNotFound, "pawl's gateway has no provider of this name")
		return
	}
	if subtle.ConstantTimeCompare([]byte(tokenOfRequest(r)), []byte(g.config.Token)) != 1 {
		const why = "pawl's gateway does not know this key: it serves the run's own agent only"
		writeRefusal(w, via.dialect, http.StatusUnauthorized, why)
		return
	}
	if g.config.From != nil && !g.from.Allows(r.Context()) {
		const why = "pawl's gateway takes this key from the sandbox of its own run only"
		writeRefusal(w, via.dialect, http.StatusForbidden, why)
		return
	}
	e, known := via.findEndpoint(r.Method, rest)
	if !known {
		why := fmt.Sprintf("pawl's gateway passes model calls only, not %s %s", r.Method, rest)
		writeRefusal(w, via.dialect, http.StatusForbidden, why)
		return
	}
	body, release, err := g.readBody(w, r)
	defer release()
	if err != nil {
		writeRefusal(w, via.dialect, http.StatusRequestEntityTooLarge, err.Error())
		return
	}
	c := &call{g: g, via: via, path: rest, request: r, body: body, release: release}
	if c.question, err = readQuestion(r, rest, body); err == nil && c.question.background {
		err = errors.New("pawl's gateway passes no background calls: no limit would hold")
	}
	if err == nil && g.config.Closed && r.Method == http.MethodPost {
		err = c.refuseFetch()
	}
	switch {
	case err != nil:
		writeRefusal(w, via.dialect, http.StatusBadRequest, err.Error())
	case e.reader == nil:
		c.passOther(w)
	default:
		c.reader = e.reader()
		c.serveCall(w)
	}
}

// readBody reads a request whole: a call that fails is asked again.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	if v := r.Header.Get("Content-Encoding"); v != "" && v != "identity" {
		return nil, func() {}, fmt.Errorf("pawl's gateway does not read requests that are compressed (%s)", v)
	}
	taken := int64(0)
	release = sync.OnceFunc(func() {
		g.mu.Lock()
		g.bodies -= taken
		g.mu.Unlock()
	})
	var b bytes.Buffer
	in := http.MaxBytesReader(w, r.Body, maxRequest)
	for {
		n, err := io.CopyN(&b, in, 1<<20)
		g.mu.Lock()
		g.bodies += n
		taken += n
		full := g.bodies > maxBodies
		g.mu.Unlock()
		switch {
		case errors.Is(err, io.EOF):
			return b.Bytes(), release, nil
		case err != nil:
			return nil, release, fmt.Errorf("pawl's gateway cannot read the request: %v", err)
		case full:
			return nil, release, errors.New("pawl's gateway holds too many requests at once")
		}
	}
}

func writeRefusal(w http.ResponseWriter, d dialect, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, d.refusalText(status, message)+"\n")
}
