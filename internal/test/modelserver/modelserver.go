// Package modelserver is a scripted server of model APIs, for tests and the
// end-to-end rig: a real agent program talks to it as to the model, and it
// answers what the script says, errors and broken streams included. It speaks
// Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini's
// generateContent, told apart by the path of a call. It listens on loopback
// only, knows no model, checks no key, and is never part of the pawl
// program's work.
package modelserver

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

const (
	maxBody = 32 << 20 // of a request, in bytes; the rest is not read
	maxKept = 1000     // requests; later ones are answered and not kept
)

// Reply is the answer to one model call. The zero value is an empty message.
type Reply struct {
	// Text is the message's text, and Tools the calls after it.
	Text  string
	Tools []Tool
	Usage Usage
	// StopReason is the reason in the API's own word; "" is that of a message
	// that is complete, or of one that calls tools.
	StopReason string

	// Status other than 0 or 200 is an error of Type with Message. Code is
	// OpenAI's second word for it and Gemini's reason, and Details are more
	// fields of the error.
	Status  int
	Type    string
	Code    string
	Message string
	Details map[string]any
	Header  map[string]string // for any reply, e.g. "retry-after"

	// Body is sent as it is, as BodyType, in place of a message.
	Body     string
	BodyType string

	// Hang answers nothing until the client goes away or the server closes.
	Hang bool
	// Cut closes the connection after that many events of the stream.
	Cut int
	// Pause is before every event of a stream.
	Pause time.Duration
}

// Tool is one tool call of a message.
type Tool struct {
	Name  string
	Input map[string]any
}

// Usage is what the reply says it used, in tokens. Input excludes cached
// tokens, also where the API adds them up. The zero value is 100 in, 10 out.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int
}

// Request is one request that came in.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte // at most 32 MiB
	// Call is the number of the model call, from 1; 0 for any other request.
	Call int
	// Aside is a model call that only names the session or the like.
	Aside bool
}

// Scenario says what the server answers.
type Scenario struct {
	// Replies are for the model calls in their order; after the last one, the
	// last is given again.
	Replies []Reply
	// Decide, if set, is asked instead: it gets the call and its number from
	// 1. It may be called by several requests at once.
	Decide func(Request) Reply
	// Asides: model calls that offer no tools are asides, such as a title for
	// the session. They get a few words, and no number.
	Asides bool
}

// Server is a running server.
type Server struct {
	scenario Scenario
	http     *httptest.Server
	gone     chan struct{}

	mu       sync.Mutex
	requests []Request
	seen     int
	calls    int
}

// New starts a server on a free port of 127.0.0.1. Close ends it.
func New(s Scenario) *Server {
	srv := &Server{scenario: s, gone: make(chan struct{})}
	srv.http = httptest.NewServer(srv)
	return srv
}

// URL is the base for the client, e.g. as ANTHROPIC_BASE_URL.
func (s *Server) URL() string { return s.http.URL }

// Close ends the server, requests that hang included.
func (s *Server) Close() {
	close(s.gone)
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests are all that came in so far, the first 1000, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Calls are the model calls among the requests.
func (s *Server) Calls() []Request {
	var calls []Request
	for _, r := range s.Requests() {
		if r.Call > 0 {
			calls = append(calls, r)
		}
	}
	return calls
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client is gone
	}
	p := spoken(r)
	in := s.note(r, body, p != nil)
	switch {
	case in.Call > 0:
		s.answer(w, r, p, s.reply(in), body)
	case in.Aside:
		s.answer(w, r, p, Reply{Text: "A scripted session"}, body)
	default:
		other(w, r, body)
	}
}

// other answers what is no model call.
func other(w http.ResponseWriter, r *http.Request, body []byte) {
	switch path := r.URL.Path; {
	case path == "/v1/messages/count_tokens":
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": len(body) / 4})
	case strings.HasSuffix(path, ":countTokens"):
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": len(body) / 4})
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/models"):
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}, "models": []any{}, "has_more": false})
	case path == "/":
		// Programs try whether the address answers at all.
		w.WriteHeader(http.StatusOK)
	default:
		writeJSON(w, http.StatusNotFound, map[string]any{"type": "error", "error": map[string]any{
			"type": "not_found_error", "message": "no such path: " + path}})
	}
}

// note keeps a request, and numbers it when it is a model call.
func (s *Server) note(r *http.Request, body []byte, call bool) Request {
	in := Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	in.Aside = call && s.scenario.Asides && len(in.Tools()) == 0
	s.mu.Lock()
	defer s.mu.Unlock()
	if call && !in.Aside {
		s.calls++
		in.Call = s.calls
	}
	s.seen++
	if len(s.requests) < maxKept {
		s.requests = append(s.requests, in)
	}
	return in
}

func (s *Server) reply(in Request) Reply {
	if s.scenario.Decide != nil {
		return s.scenario.Decide(in)
	}
	if len(s.scenario.Replies) == 0 {
		return Reply{}
	}
	return s.scenario.Replies[min(in.Call, len(s.scenario.Replies))-1]
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone: then there is nobody to tell.
	_, _ = w.Write(b)
}
