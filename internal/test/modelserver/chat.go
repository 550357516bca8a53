package modelserver

import (
	"fmt"
	"net/http"
)

// chat is OpenAI's Chat Completions API, which many others speak too.
type chat struct{}

func (chat) asked(_ *http.Request, body []byte) (asked, error) { return inBody(body) }

func (chat) failure(_ int, r Reply) any { return openAIFailure(r) }

func (p chat) whole(m message) any {
	said := map[string]any{"role": "assistant", "content": nil}
	var calls []any
	for _, b := range m.blocks {
		if b.name == "" {
			said["content"] = b.text
			continue
		}
		calls = append(calls, p.call(b, b.arguments()))
	}
	if len(calls) > 0 {
		said["tool_calls"] = calls
	}
	whole := p.object(m, "chat.completion", []any{
		map[string]any{"index": 0, "message": said, "logprobs": nil, "finish_reason": m.ended("stop", "tool_calls")},
	})
	whole["usage"] = p.used(m.usage)
	return whole
}

func (chat) object(m message, kind string, choices []any) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-%06d", m.n), "object": kind, "created": 1_700_000_000 + m.n, "model": m.model,
		"choices": choices,
	}
}

func (chat) call(b block, arguments string) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("call_%09d", b.n), "type": "function",
		"function": map[string]any{"name": b.name, "arguments": arguments},
	}
}

func (chat) used(u Usage) map[string]any {
	return map[string]any{
		"prompt_tokens": u.prompted(), "completion_tokens": u.Output, "total_tokens": u.total(),
		"prompt_tokens_details": map[string]any{"cached_tokens": u.CacheRead},
	}
}

// events are the chunks of a message. The usage comes in one of its own at
// the end, as for a client that asks for it.
func (p chat) events(m message) []event {
	var all []event
	add := func(delta map[string]any, reason any) {
		choice := map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": reason}
		all = append(all, event{data: p.object(m, "chat.completion.chunk", []any{choice})})
	}
	add(map[string]any{"role": "assistant", "content": ""}, nil)
	calls := 0
	for _, b := range m.blocks {
		if b.name == "" {
			for _, part := range halves(b.text) {
				add(map[string]any{"content": part}, nil)
			}
			continue
		}
		start := p.call(b, "")
		start["index"] = calls
		add(map[string]any{"tool_calls": []any{start}}, nil)
		for _, part := range halves(b.arguments()) {
			add(map[string]any{"tool_calls": []any{map[string]any{"index": calls,
				"function": map[string]any{"arguments": part}}}}, nil)
		}
		calls++
	}
	add(map[string]any{}, m.ended("stop", "tool_calls"))
	last := p.object(m, "chat.completion.chunk", []any{})
	last["usage"] = p.used(m.usage)
	return append(all, event{data: last}, event{data: word("[DONE]")})
}
