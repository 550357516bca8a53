package web

import (
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// This file says who may ask. Its rules, in the order in which they are held:
//
//  1. The Host header names this server, so a name of somebody else's that was
//     made to point at 127.0.0.1 is no way in (DNS rebinding).
//  2. An Origin header is that of our own pages. Fetches from other sites are
//     refused also where a browser sends no Origin.
//  3. Only GET, HEAD, POST, PATCH and DELETE; what is no GET or HEAD sends JSON,
//     which no form of another site can.
//  4. The token of this session in the Authorization header, as scripts send it.
//     A browser shows two things that the entry gave it, which is the only
//     address that takes the token: a cookie and, to the API, a key that our
//     pages keep. The cookie alone is not enough: a browser sends the cookies of
//     a host to all of its ports, and on one of them an agent may serve a page.
//  5. Who asks is no program in a box of pawl's: an agent or a check that got hold of
//     the token is still not the person. Nothing is looked up for who has no token.
//  6. Bodies and headers have limits, here and in the server.
//
// Every answer, errors too, forbids scripts from elsewhere, frames, referrers
// and guessing of types.

// maxBody is the most bytes of a request's body; an imported list of tasks has
// a limit of its own.
const (
	maxBody   = 1 << 20
	maxImport = 16 << 20
)

const policy = "default-src 'none'; script-src 'self'; " +
	"style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// terminalPolicy is that of the page of a terminal, which has nothing else on it: the
// program that draws the terminal writes styles into the page.
var terminalPolicy = strings.Replace(policy, "style-src 'self'", "style-src 'self' 'unsafe-inline'", 1)

// guardRequests passes on only the requests that are allowed.
func (s *Server) guardRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.previews != nil && s.previews.IsPreviewHost(r.Host) {
			s.previews.ServeHTTP(w, r) // another origin, with rules of its own
			return
		}
		s.setHeaders(w.Header(), r)
		if p := s.checkOrigin(r); p != nil {
			p.WriteTo(w)
			return
		}
		if s.o.Webhook != nil && r.Method == http.MethodPost && r.URL.Path == webhookPath {
			s.handleWebhook(w, r) // a signature stands for the token
			return
		}
		if s.redirectLogin(w, r) {
			return
		}
		moveKeyToHeader(r)
		if !s.isAuthenticated(r) {
			s.answerUnauthorized(w, r)
			return
		}
		if !s.refuseBoxed(w, r) {
			return
		}
		way := action.Browser
		if r.Header.Get("Authorization") != "" {
			way = action.API
		}
		r = r.WithContext(action.Over(r.Context(), way))
		limit := int64(maxBody)
		if r.URL.Path == rest.Base+"/cases/import" {
			limit = maxImport
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		next.ServeHTTP(w, r)
	})
}

func (s *Server) setHeaders(h http.Header, r *http.Request) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	if isAPIRequest(r) {
		h.Set("Cache-Control", "no-store")
	}
	if s.listener.Scheme == "https" {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

func isAPIRequest(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == toolsPath
}

// mayWrite reports whether the method of the request may change something.
func mayWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// ownPages is the advice for a person whose browser another site sent here.
const ownPages = "Open the page that 'pawl serve --url' prints, and do it there"

// checkOrigin returns a problem if the request is for another host, or comes from the
// page of another site; nil if it may be handled.
func (s *Server) checkOrigin(r *http.Request) *rest.ProblemError {
	if !s.listener.AcceptsHost(r.Host) {
		return rest.Problem(http.StatusMisdirectedRequest, "HOST_REFUSED", "This server does not answer to the name %q",
			fault.Cut(r.Host, 100)).
			Suggest("Open the address that 'pawl serve --url' prints",
				"To reach it by another name, start it with --host NAME")
	}
	origin := r.Header.Get("Origin")
	elsewhere := origin != "" && !s.listener.SameOrigin(origin, r.Host)
	if elsewhere || len(r.Header.Values("Origin")) > 1 {
		return rest.Problem(http.StatusForbidden, "ORIGIN_REFUSED", "The request comes from another site: %s",
			fault.Cut(origin, 100)).Suggest(ownPages)
	}
	if s.isCrossSite(r) {
		return rest.Problem(http.StatusForbidden, "ORIGIN_REFUSED", "The request comes from another site").
			Suggest(ownPages)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return nil
	case http.MethodPost, http.MethodPatch, http.MethodDelete:
	default:
		return rest.Problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "The method %s is not used here",
			fault.Cut(r.Method, 20)).Suggest("See what there is: GET " + rest.Base + "/openapi.json")
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return rest.Problem(http.StatusUnsupportedMediaType, "JSON_REQUIRED", "A change is asked for in JSON").
			Suggest("Send the header Content-Type: application/json")
	}
	return nil
}

// isCrossSite checks Sec-Fetch-Site. A link on another site may lead to a page of ours;
// all other requests must come from our own pages.
func (s *Server) isCrossSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return mayWrite(r) || isAPIRequest(r) || r.Header.Get("Sec-Fetch-Mode") != "navigate"
}

// cookieName has the port, since cookies are shared by all ports of a host.
func (s *Server) cookieName() string { return cookieName(s.listener.Port) }

func cookieName(port string) string { return "pawl_" + port }

// entryCookie returns the cookie that proves that a browser has the token; it is valid
// for the server of that port only.
func entryCookie(port, token string, secure bool) http.Cookie {
	return http.Cookie{Name: cookieName(port), Value: makeKey("cookie", token), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: secure}
}

// Where our pages send their key to the API: in a header, or in the address
// where a browser sends no header of ours, for events and downloads.
const (
	pageKeyHeader = "X-Pawl-Key"
	pageKeyQuery  = "key"
)

// isAuthenticated reports whether the request has the session's token, or the cookie that
// login gave to the browser for it.
func (s *Server) isAuthenticated(r *http.Request) bool {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return equalSecrets(bearer, s.o.Token)
	}
	c, err := r.Cookie(s.cookieName())
	if err != nil || !equalSecrets(c.Value, makeKey("cookie", s.o.Token)) {
		return false
	}
	return !isAPIRequest(r) || equalSecrets(r.Header.Get(pageKeyHeader), makeKey("page", s.o.Token))
}

// moveKeyToHeader moves the key of a page from the address to the header, where
// everything else looks for it.
func moveKeyToHeader(r *http.Request) {
	query := r.URL.Query()
	if mayWrite(r) || !isAPIRequest(r) || !query.Has(pageKeyQuery) {
		return
	}
	r.Header.Set(pageKeyHeader, query.Get(pageKeyQuery))
	query.Del(pageKeyQuery)
	r.URL.RawQuery = query.Encode()
}

// redirectLogin handles a page's address with a token, once: the browser gets a cookie
// and is redirected to the address without the token, so that it is in no history, no
// bookmark and no log. The pages' key is in the part of the address that is sent to no
// server; they remove it themselves (web/src/lib/session.ts).
func (s *Server) redirectLogin(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || isAPIRequest(r) || !r.URL.Query().Has("token") {
		return false
	}
	if !equalSecrets(r.URL.Query().Get("token"), s.o.Token) {
		s.answerUnauthorized(w, r)
		return true
	}
	if !s.refuseBoxed(w, r) {
		return true
	}
	cookie := entryCookie(s.listener.Port, s.o.Token, s.listener.Scheme == "https")
	http.SetCookie(w, &cookie)
	query := r.URL.Query()
	query.Del("token")
	to := url.URL{Path: localPath(r.URL.Path), RawQuery: query.Encode(), Fragment: "key=" + makeKey("page", s.o.Token)}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusSeeOther)
	return true
}

// refuseBoxed refuses requests from inside a box of pawl's.
func (s *Server) refuseBoxed(w http.ResponseWriter, r *http.Request) bool {
	if s.peers.Allows(r.Context()) {
		return true
	}
	rest.Problem(http.StatusForbidden, "SANDBOX_REFUSED",
		"This server answers no programs in pawl's sandbox, and none that it cannot identify: they would act as you").
		Suggest("An agent has tools for its own task with agents.NAME.mcp: true",
			"If an agent found the token, create a new one: pawl serve --new-token").WriteTo(w)
	return false
}

// localPath keeps a path from being read as another host's address.
func localPath(path string) string { return "/" + strings.TrimLeft(path, "/\\") }

// answerUnauthorized answers a request without a token.
func (s *Server) answerUnauthorized(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if isAPIRequest(r) || mayWrite(r) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pawl"`)
		rest.Problem(http.StatusUnauthorized, "TOKEN_REQUIRED", "This needs the session's token").
			Suggest("Open the address that 'pawl serve --url' prints",
				"A script sends it as: Authorization: Bearer TOKEN").WriteTo(w)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write(unauthorizedPage) // who asked is gone
}
