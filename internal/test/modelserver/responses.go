package modelserver

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) asked(_ *http.Request, body []byte) (asked, error) { return inBody(body) }

func (responses) failure(_ int, r Reply) any { return openAIFailure(r) }

// openAIFailure is the error of both of OpenAI's APIs.
func openAIFailure(r Reply) any {
	problem := map[string]any{"type": r.Type, "code": nil, "message": r.Message, "param": nil}
	if r.Code != "" {
		problem["code"] = r.Code
	}
	maps.Copy(problem, r.Details)
	return map[string]any{"error": problem}
}

func (p responses) whole(m message) any {
	output := []any{}
	for i, b := range m.blocks {
		output = append(output, p.item(m, i, b))
	}
	return p.response(m, output, p.status(m))
}

// status is "completed", or "incomplete" with a reason of the script.
func (responses) status(m message) string {
	if m.stop != "" {
		return "incomplete"
	}
	return "completed"
}

func (responses) response(m message, output []any, status string) map[string]any {
	r := map[string]any{
		"id": fmt.Sprintf("resp_%06d", m.n), "object": "response", "model": m.model,
		"status": status, "output": output, "error": nil, "incomplete_details": nil, "usage": nil,
	}
	if status == "in_progress" {
		return r
	}
	if m.stop != "" {
		r["incomplete_details"] = map[string]any{"reason": m.stop}
	}
	r["usage"] = map[string]any{
		"input_tokens":          m.usage.prompted(),
		"input_tokens_details":  map[string]any{"cached_tokens": m.usage.CacheRead},
		"output_tokens":         m.usage.Output,
		"output_tokens_details": map[string]any{"reasoning_tokens": 0},
		"total_tokens":          m.usage.total(),
	}
	return r
}

// item is one item of the output, complete.
func (responses) item(m message, i int, b block) map[string]any {
	if b.name == "" {
		return map[string]any{
			"id": fmt.Sprintf("msg_%06d_%d", m.n, i), "type": "message", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": b.text, "annotations": []any{}}},
		}
	}
	call := map[string]any{
		"id": fmt.Sprintf("fc_%09d", b.n), "type": "function_call", "status": "completed",
		"call_id": fmt.Sprintf("call_%09d", b.n), "name": b.name, "arguments": b.arguments(),
	}
	if space, name, ok := strings.Cut(b.name, "/"); ok { // the tools of a server of the Model Context Protocol
		call["namespace"], call["name"] = space, name
	}
	return call
}

func (p responses) events(m message) []event {
	var all []event
	add := func(kind string, data map[string]any) {
		data["type"], data["sequence_number"] = kind, len(all)
		all = append(all, event{kind, data})
	}
	add("response.created", map[string]any{"response": p.response(m, []any{}, "in_progress")})
	for i, b := range m.blocks {
		done := p.item(m, i, b)
		begun := maps.Clone(done)
		begun["status"] = "in_progress"
		if b.name == "" {
			begun["content"] = []any{}
		} else {
			begun["arguments"] = ""
		}
		add("response.output_item.added", map[string]any{"output_index": i, "item": begun})
		p.grow(add, i, b, done["id"])
		add("response.output_item.done", map[string]any{"output_index": i, "item": done})
	}
	whole := p.whole(m)
	add("response."+p.status(m), map[string]any{"response": whole})
	return all
}

// grow are the pieces of one item.
func (responses) grow(add func(string, map[string]any), i int, b block, id any) {
	if b.name != "" {
		for _, part := range halves(b.arguments()) {
			add("response.function_call_arguments.delta", map[string]any{"item_id": id, "output_index": i, "delta": part})
		}
		add("response.function_call_arguments.done", map[string]any{"item_id": id, "output_index": i, "name": b.name,
			"arguments": b.arguments()})
		return
	}
	at := func(more map[string]any) map[string]any {
		maps.Copy(more, map[string]any{"item_id": id, "output_index": i, "content_index": 0})
		return more
	}
	part := func(text string) map[string]any {
		return map[string]any{"type": "output_text", "text": text, "annotations": []any{}}
	}
	add("response.content_part.added", at(map[string]any{"part": part("")}))
	for _, half := range halves(b.text) {
		add("response.output_text.delta", at(map[string]any{"delta": half}))
	}
	add("response.output_text.done", at(map[string]any{"text": b.text}))
	add("response.content_part.done", at(map[string]any{"part": part(b.text)}))
}
