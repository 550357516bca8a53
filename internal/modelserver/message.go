package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// message answers a model call.
func (s *Server) message(w http.ResponseWriter, r *http.Request, reply Reply, body []byte) {
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
		writeError(w, reply.Status, reply.Type, reply.Message)
	default:
		s.say(w, r, reply, body)
	}
}

func orOK(status int) int {
	if status == 0 {
		return http.StatusOK
	}
	return status
}

// say sends a message, streamed if the call asks for it.
func (s *Server) say(w http.ResponseWriter, r *http.Request, reply Reply, body []byte) {
	var call struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		writeError(w, http.StatusBadRequest, "invalid_request_error", "the request is no JSON: "+err.Error())
		return
	}
	m := newMessage(reply, call.Model, s.number())
	if !call.Stream {
		writeJSON(w, http.StatusOK, m.whole())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	for i, e := range m.events() {
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
	return len(s.requests)
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

// event is one server-sent event; its type is in the data too.
type event map[string]any

func send(w http.ResponseWriter, e event) bool {
	b, err := json.Marshal(e)
	if err != nil {
		return false
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], b); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// message is one reply as the API writes it.
type message struct {
	id, model, stop string
	blocks          []block
	usage           Usage
}

// block is a text, or a tool call when it has a name.
type block struct {
	text, id, name string
	input          map[string]any
}

func newMessage(r Reply, model string, n int) message {
	m := message{id: fmt.Sprintf("msg_%06d", n), model: model, stop: r.StopReason, usage: r.Usage}
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
		m.blocks = append(m.blocks, block{id: fmt.Sprintf("toolu_%06d_%d", n, i), name: t.Name, input: input})
	}
	if m.stop == "" {
		m.stop = "end_turn"
		if len(r.Tools) > 0 {
			m.stop = "tool_use"
		}
	}
	return m
}

func (b block) json() map[string]any {
	if b.name == "" {
		return map[string]any{"type": "text", "text": b.text}
	}
	return map[string]any{"type": "tool_use", "id": b.id, "name": b.name, "input": b.input}
}

func (m message) json(content []any, stop any, output int) map[string]any {
	return map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.model,
		"content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": m.used(output),
	}
}

func (m message) used(output int) map[string]any {
	return map[string]any{
		"input_tokens": m.usage.Input, "output_tokens": output,
		"cache_read_input_tokens": m.usage.CacheRead, "cache_creation_input_tokens": m.usage.CacheWrite,
	}
}

func (m message) whole() map[string]any {
	content := []any{}
	for _, b := range m.blocks {
		content = append(content, b.json())
	}
	return m.json(content, m.stop, m.usage.Output)
}

// events are the message as a stream: every block starts empty and grows.
func (m message) events() []event {
	all := []event{{"type": "message_start", "message": m.json([]any{}, nil, 1)}}
	for i, b := range m.blocks {
		all = append(all, b.events(i)...)
	}
	return append(all,
		event{"type": "message_delta", "delta": map[string]any{"stop_reason": m.stop, "stop_sequence": nil}, "usage": m.used(m.usage.Output)},
		event{"type": "message_stop"})
}

func (b block) events(index int) []event {
	start := map[string]any{"type": "text", "text": ""}
	deltas := []map[string]any{}
	if b.name == "" {
		first, second := half(b.text)
		for _, part := range []string{first, second} {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": part})
		}
	} else {
		start = map[string]any{"type": "tool_use", "id": b.id, "name": b.name, "input": map[string]any{}}
		raw, err := json.Marshal(b.input)
		if err != nil {
			raw = []byte("{}")
		}
		first, second := half(string(raw))
		for _, part := range []string{first, second} {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": part})
		}
	}
	all := []event{{"type": "content_block_start", "index": index, "content_block": start}}
	for _, d := range deltas {
		all = append(all, event{"type": "content_block_delta", "index": index, "delta": d})
	}
	return append(all, event{"type": "content_block_stop", "index": index})
}

// half splits a text in two, between runes.
func half(s string) (first, second string) {
	runes := []rune(s)
	return string(runes[:len(runes)/2]), string(runes[len(runes)/2:])
}
