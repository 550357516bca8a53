package modelserver

import (
	"fmt"
	"maps"
	"net/http"
)

// anthropic is the Messages API.
type anthropic struct{}

func (anthropic) asked(_ *http.Request, body []byte) (asked, error) { return inBody(body) }

func (anthropic) failure(_ int, r Reply) any {
	problem := map[string]any{"type": r.Type, "message": r.Message}
	maps.Copy(problem, r.Details)
	return map[string]any{"type": "error", "error": problem}
}

func (a anthropic) whole(m message) any {
	content := []any{}
	for _, b := range m.blocks {
		if b.name == "" {
			content = append(content, map[string]any{"type": "text", "text": b.text})
			continue
		}
		content = append(content, a.call(b, b.input))
	}
	return a.message(m, content, m.ended("end_turn", "tool_use"), m.usage.Output)
}

func (anthropic) call(b block, input map[string]any) map[string]any {
	return map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%09d", b.n), "name": b.name, "input": input}
}

func (a anthropic) message(m message, content []any, stop any, output int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("msg_%06d", m.n), "type": "message", "role": "assistant", "model": m.model,
		"content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": a.used(m.usage, output),
	}
}

func (anthropic) used(u Usage, output int) map[string]any {
	return map[string]any{
		"input_tokens": u.Input, "output_tokens": output,
		"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
	}
}

// events begin every block empty and let it grow.
func (a anthropic) events(m message) []event {
	var all []event
	add := func(kind string, data map[string]any) {
		data["type"] = kind
		all = append(all, event{kind, data})
	}
	add("message_start", map[string]any{"message": a.message(m, []any{}, nil, 1)})
	for i, b := range m.blocks {
		start, text := map[string]any{"type": "text", "text": ""}, b.text
		kind, field := "text_delta", "text"
		if b.name != "" {
			start, text = a.call(b, map[string]any{}), b.arguments()
			kind, field = "input_json_delta", "partial_json"
		}
		add("content_block_start", map[string]any{"index": i, "content_block": start})
		for _, part := range halves(text) {
			add("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, field: part}})
		}
		add("content_block_stop", map[string]any{"index": i})
	}
	stop := map[string]any{"stop_reason": m.ended("end_turn", "tool_use"), "stop_sequence": nil}
	add("message_delta", map[string]any{"delta": stop, "usage": a.used(m.usage, m.usage.Output)})
	add("message_stop", map[string]any{})
	return all
}
