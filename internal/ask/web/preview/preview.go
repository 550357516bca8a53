// Package preview shows what a task serves on one of its own ports: a reverse proxy, on an
// origin of its own for each port of each task.
//
//	browser ── http://p20001-task-007.localhost:7295 ── Server ── 127.0.0.1:20001 of the task's box
//
// The name is of the same server and port as the pages, and of another site: cookies,
// storage and service workers of a preview are no other one's, and a page there is to the
// API what any page of the web is. Browsers take each name below localhost to be this
// machine.
//
// A browser is let in by a one-time ticket, which gives it a cookie for this one name. Only
// reserved ports of the workspace that the task has now are reached, on the loopback of
// its boxes, or where these have none on that of the machine, and nowhere else. What is
// served is an agent's: it is never trusted, and never ours.
package preview

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/ticket"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/do/boxnet"
)

// Bounds of previews.
const (
	// maxAsked is how many requests are under way at once, so that no page takes all
	// connections of the server.
	maxAsked = 64
	// dialTime is how long a port may take to answer.
	dialTime = 2 * time.Second
	// headTime is how long a server may take to begin an answer: some build first.
	headTime = 5 * time.Minute
)

const (
	domain    = ".localhost"
	enterPath = "/.pawl-preview"
	cookie    = "pawl_preview"
)

// Server has the previews.
type Server struct {
	// Port is the server's own.
	Port string
	// Secret is what a browser that was let in at a name shows, the same at each call.
	Secret func(name string) string
	// Reserved are the ports of the workspace that a task has now: the first, and how
	// many; none where it has no workspace.
	Reserved func(ctx context.Context, task string) (first, many int, err error)
	// Inward is the folder by which ports in boxes are reached.
	Inward string
	// Allows says whether who has a ticket or shows what it should may be answered.
	Allows func(ctx context.Context) bool
	// Log gets what goes wrong.
	Log *slog.Logger

	tickets ticket.Desk
	asked   chan struct{}
	proxy   *httputil.ReverseProxy
	ctx     context.Context
	end     context.CancelFunc
	left    sync.WaitGroup
}

// Start makes the server ready; [Server.Close] must be called.
func (s *Server) Start() {
	s.asked = make(chan struct{}, maxAsked)
	s.ctx, s.end = context.WithCancel(context.Background())
	s.proxy = &httputil.ReverseProxy{
		Rewrite: s.rewriteRequest, ModifyResponse: s.modifyResponse, ErrorHandler: answerFailed, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		Transport: &http.Transport{
			DialContext: s.dialPort, DisableCompression: true, ResponseHeaderTimeout: headTime,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
		},
	}
}

// Close ends all that is under way.
func (s *Server) Close() {
	s.end()
	s.left.Wait()
}

// target is a port of a task.
type target struct {
	task string
	port int
}

func (t target) hostName() string { return fmt.Sprintf("p%d-%s%s", t.port, t.task, domain) }

// parseHost reads a Host header.
func (s *Server) parseHost(host string) (t target, ok bool) {
	name, port, err := net.SplitHostPort(strings.ToLower(host))
	if err != nil || port != s.Port {
		return t, false
	}
	number, task, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, "p"), domain), "-")
	kind, _, isCase := board.ParseID(task)
	if t.port, err = strconv.Atoi(number); err != nil || !isCase || kind != board.Task || task != board.Normal(task) {
		return t, false
	}
	t.task = task
	return t, name == t.hostName()
}

// IsPreviewHost reports whether a request for that host is for a preview.
func (s *Server) IsPreviewHost(host string) bool {
	_, ok := s.parseHost(host)
	return ok
}

// Link lets its bearer in at a port of a task, once and soon.
func (s *Server) Link(task string, port int) string {
	name := target{task, port}.hostName()
	return "http://" + net.JoinHostPort(name, s.Port) + enterPath + "?ticket=" + s.tickets.Issue(name)
}

// Listening are the ports of so many from first on that answer now.
func (s *Server) Listening(ctx context.Context, first, many int) []int {
	found := []int{}
	for port := first; port < first+many; port++ {
		if c, err := s.dialPort(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port))); err == nil {
			_ = c.Close() // nothing was said
			found = append(found, port)
		}
	}
	return found
}

// dialPort connects to a port of a workspace, whatever host the address names.
func (s *Server) dialPort(ctx context.Context, _, address string) (net.Conn, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	return boxnet.Dial(ctx, s.Inward, port)
}

// ServeHTTP answers at the names of previews.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := s.parseHost(r.Host)
	if !ok {
		reply(w, http.StatusMisdirectedRequest, "There is no preview of this name", "Open it from the task's page.")
		return
	}
	if r.URL.Path == enterPath {
		s.redeemTicket(w, r, t)
		return
	}
	c, err := r.Cookie(cookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(c.Value), []byte(s.Secret(t.hostName()))) != 1 {
		reply(w, http.StatusUnauthorized, "This browser has no access here", "Open the preview from the task's page.")
		return
	}
	if !s.allowsRequest(w, r) {
		return
	}
	if isCrossSite(r) {
		reply(w, http.StatusForbidden, "The request comes from another site", "A preview answers its own pages only.")
		return
	}
	first, many, err := s.Reserved(r.Context(), t.task)
	if err != nil || t.port < first || t.port >= first+many {
		reply(w, http.StatusNotFound, fmt.Sprintf("%s does not have the port %d", t.task, t.port),
			"Its workspace may have been removed. Open the preview from the task's page.")
		return
	}
	select {
	case s.asked <- struct{}{}:
		defer func() { <-s.asked }()
	default:
		reply(w, http.StatusServiceUnavailable, "Too many requests are under way",
			"Close previews that you do not need.")
		return
	}
	s.proxyRequest(w, r)
}

// proxyRequest hands a request on. The limits of time that hold for the pages are lifted: a
// preview may be a stream. It ends with the server.
func (s *Server) proxyRequest(w http.ResponseWriter, r *http.Request) {
	s.left.Add(1)
	defer s.left.Done()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // a recorder in a test has none
	_ = c.SetWriteDeadline(time.Time{})
	s.proxy.ServeHTTP(w, r.WithContext(ctx))
}

// redeemTicket takes a ticket. The cookie goes to this one name, and the address has no ticket
// afterwards.
func (s *Server) redeemTicket(w http.ResponseWriter, r *http.Request, t target) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if name, ok := s.tickets.Use(r.URL.Query().Get("ticket")); !ok || name != t.hostName() ||
		r.Method != http.MethodGet {
		reply(w, http.StatusForbidden, "This link is used, or too old", "Open the preview again from the task's page.")
		return
	}
	if !s.allowsRequest(w, r) {
		return
	}
	// Lax: the person comes from the pages, which are another site.
	http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.Secret(t.hostName()), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteLaxMode})
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}

func (s *Server) allowsRequest(w http.ResponseWriter, r *http.Request) bool {
	may := s.Allows(r.Context())
	if !may {
		reply(w, http.StatusForbidden, "A preview opens only in a browser", "Programs in pawl's sandbox cannot see it.")
	}
	return may
}

// isCrossSite reports whether another site's page made the request. A user may follow a link.
func isCrossSite(r *http.Request) bool {
	if o := r.Header.Values("Origin"); len(o) > 1 || len(o) == 1 && !strings.EqualFold(o[0], "http://"+r.Host) {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	link := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return r.Method != http.MethodGet || !link
}

// upstreamAddress returns the server that a target is, as its own pages name it.
func (t target) upstreamAddress() string { return net.JoinHostPort("localhost", strconv.Itoa(t.port)) }

// rewriteRequest makes the request that the task's server gets: as if a browser had asked it at
// localhost, and without our cookie.
func (s *Server) rewriteRequest(p *httputil.ProxyRequest) {
	t, _ := s.parseHost(p.In.Host) // it was read before
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", t.upstreamAddress(), t.upstreamAddress()
	if p.Out.Header.Get("Origin") != "" {
		p.Out.Header.Set("Origin", "http://"+t.upstreamAddress())
	}
	var kept []string
	for _, line := range p.In.Header.Values("Cookie") {
		for one := range strings.SplitSeq(line, ";") {
			if name, _, _ := strings.Cut(strings.TrimSpace(one), "="); name != cookie {
				kept = append(kept, strings.TrimSpace(one))
			}
		}
	}
	p.Out.Header.Del("Cookie")
	if len(kept) > 0 {
		p.Out.Header.Set("Cookie", strings.Join(kept, "; "))
	}
}

// modifyResponse makes what the task's server answers that of this name: its cookies are no other
// name's and none is ours, it leads to itself by this name, and it is in no frame of others.
func (s *Server) modifyResponse(res *http.Response) error {
	set := res.Header.Values("Set-Cookie")
	res.Header.Del("Set-Cookie")
	for _, line := range set {
		c, err := http.ParseSetCookie(line)
		if err != nil || c.Name == cookie {
			continue
		}
		c.Domain = ""
		res.Header.Add("Set-Cookie", c.String())
	}
	asked := res.Request.URL // at the task's server
	if to, err := url.Parse(res.Header.Get("Location")); err == nil && to.Port() == asked.Port() && to.Port() != "" &&
		slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, to.Hostname()) {
		to.Scheme, to.Host, to.User = "", "", nil
		to.Path = "/" + strings.TrimLeft(to.Path, "/\\")
		res.Header.Set("Location", to.String())
	}
	res.Header.Add("Content-Security-Policy", "frame-ancestors 'self'")
	return nil
}

// answerFailed answers where the task's server does not.
func answerFailed(w http.ResponseWriter, _ *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // who asked has gone
	}
	reply(w, http.StatusBadGateway, "Nothing answers on this port now",
		"Start the task's server, for example in its terminal, and load this page again.")
}

// reply answers with a page of our own.
func reply(w http.ResponseWriter, status int, what, next string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>pawl preview</title>
<main><h1>%s</h1><p>%s</p></main></html>
`, html.EscapeString(what), html.EscapeString(next)) // who asked is gone
}
