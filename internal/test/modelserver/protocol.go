package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// protocol is how one API is spoken.
type protocol interface {
	// asked reads a call.
	asked(r *http.Request, body []byte) (asked, error)
	// failure is the body of an error.
	failure(status int, reply Reply) any
	// whole is a message in one piece, events are it as a stream.
	whole(message) any
	events(message) []event
}

// asked is what the form of an answer depends on.
type asked struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
}

// spoken is the protocol of a model call; nil for any other request.
func spoken(r *http.Request) protocol {
	path := r.URL.Path
	switch {
	case r.Method != http.MethodPost:
		return nil
	case path == "/v1/messages":
		return anthropic{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{}
	}
	return nil
}

// inBody reads a call whose body tells its form.
func inBody(body []byte) (asked, error) {
	var a asked
	err := json.Unmarshal(body, &a)
	return a, err
}

// answer answers a model call.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, p protocol, reply Reply, body []byte) {
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	switch {
	case reply.Hang:
		select {
		case <-r.Context().Done():
		case <-s.gone:
		}
	case reply.Body != "":
		w.Header().Set("Content-Type", reply.BodyType)
		w.WriteHeader(orOK(reply.Status))
		_, _ = w.Write([]byte(reply.Body))
	case orOK(reply.Status) != http.StatusOK:
		writeJSON(w, reply.Status, p.failure(reply.Status, reply))
	default:
		s.say(w, r, p, reply, body)
	}
}

func orOK(status int) int {
	if status == 0 {
		return http.StatusOK
	}
	return status
}

// say sends a message, streamed if the call asks for it.
func (s *Server) say(w http.ResponseWriter, r *http.Request, p protocol, reply Reply, body []byte) {
	call, err := p.asked(r, body)
	if err != nil {
		wrong := Reply{Type: "invalid_request_error", Message: "the request is no JSON: " + err.Error()}
		writeJSON(w, http.StatusBadRequest, p.failure(http.StatusBadRequest, wrong))
		return
	}
	m := newMessage(reply, call.Model, s.number())
	if !call.Stream {
		writeJSON(w, http.StatusOK, p.whole(m))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for i, e := range p.events(m) {
		if reply.Cut > 0 && i == reply.Cut {
			panic(http.ErrAbortHandler) // how net/http is told to drop a connection
		}
		if !s.pause(r, reply.Pause) || !send(w, e) {
			return
		}
	}
}

// number is for ids that differ.
func (s *Server) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// pause waits; false when the client or the server is gone.
func (s *Server) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.gone:
	}
	return false
}

// event is one server-sent event: its name, "" for none, and its JSON.
type event struct {
	name string
	data any
}

// word is the data of an event that is no JSON.
type word string

func send(w http.ResponseWriter, e event) bool {
	data, ok := e.data.(word)
	if !ok {
		b, err := json.Marshal(e.data)
		if err != nil {
			return false
		}
		data = word(b)
	}
	name := ""
	if e.name != "" {
		name = "event: " + e.name + "\n"
	}
	if _, err := fmt.Fprintf(w, "%sdata: %s\n\n", name, data); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// message is one reply, on its way to an API's form.
type message struct {
	n      int // differs from message to message
	model  string
	stop   string // "" for the usual one
	blocks []block
	usage  Usage
}

// block is a text, or a tool call when it has a name.
type block struct {
	n          int // of the call, for its id
	text, name string
	input      map[string]any
}

func newMessage(r Reply, model string, n int) message {
	m := message{n: n, model: model, stop: r.StopReason, usage: r.Usage}
	if m.usage == (Usage{}) {
		m.usage = Usage{Input: 100, Output: 10}
	}
	if r.Text != "" {
		m.blocks = append(m.blocks, block{text: r.Text})
	}
	for i, t := range r.Tools {
		input := t.Input
		if input == nil {
			input = map[string]any{}
		}
		m.blocks = append(m.blocks, block{n: n*1000 + i, name: t.Name, input: input})
	}
	return m
}

// ended is why the message ends: as the script says, else in the API's words
// for a message that is complete, or that calls tools.
func (m message) ended(complete, calls string) string {
	if m.stop != "" {
		return m.stop
	}
	for _, b := range m.blocks {
		if b.name != "" {
			return calls
		}
	}
	return complete
}

// prompted are all tokens that went in, and total all there were.
func (u Usage) prompted() int { return u.Input + u.CacheRead + u.CacheWrite }
func (u Usage) total() int    { return u.prompted() + u.Output }

// arguments are the input of a tool call as JSON.
func (b block) arguments() string {
	raw, err := json.Marshal(b.input)
	if err != nil {
		return "{}"
	}
	return string(raw)
}

// halves splits a text in two, between runes.
func halves(s string) [2]string {
	runes := []rune(s)
	return [2]string{string(runes[:len(runes)/2]), string(runes[len(runes)/2:])}
}
