package modelserver

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// gemini is Google's generateContent, whose streams are server-sent events.
type gemini struct{}

// asked reads the path, which ends in "models/NAME:method".
func (gemini) asked(r *http.Request, body []byte) (asked, error) {
	if _, err := inBody(body); err != nil {
		return asked{}, err
	}
	path, method, _ := strings.Cut(r.URL.Path, ":")
	return asked{Model: path[strings.LastIndexByte(path, '/')+1:], Stream: method == "streamGenerateContent"}, nil
}

// statuses are Google's names of HTTP statuses.
var statuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// failure has the reason and the time to wait among its details.
func (gemini) failure(status int, r Reply) any {
	name := statuses[status]
	if name == "" {
		name = "UNKNOWN"
	}
	problem := map[string]any{"code": status, "message": r.Message, "status": name}
	var details []any
	if r.Code != "" {
		details = append(details, map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": r.Code, "domain": "googleapis.com",
			"metadata": map[string]any{"service": "generativelanguage.googleapis.com"},
		})
	}
	if wait := r.Header["retry-after"]; wait != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": wait + "s"})
	}
	if details != nil {
		problem["details"] = details
	}
	maps.Copy(problem, r.Details)
	return map[string]any{"error": problem}
}

func (p gemini) whole(m message) any {
	parts := []any{}
	for _, b := range m.blocks {
		parts = append(parts, p.part(b, b.text))
	}
	return p.chunk(m, parts, true)
}

func (gemini) part(b block, text string) map[string]any {
	if b.name == "" {
		return map[string]any{"text": text}
	}
	return map[string]any{"functionCall": map[string]any{"name": b.name, "args": b.input}}
}

// chunk is one response, with the input's tokens; the last one has the reason, and all tokens.
func (gemini) chunk(m message, parts []any, last bool) map[string]any {
	candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": parts}}
	used := map[string]any{"promptTokenCount": m.usage.prompted(), "cachedContentTokenCount": m.usage.CacheRead}
	if last {
		candidate["finishReason"] = m.ended("STOP", "STOP")
		used["candidatesTokenCount"], used["totalTokenCount"] = m.usage.Output, m.usage.total()
	}
	return map[string]any{
		"candidates": []any{candidate}, "modelVersion": m.model, "responseId": fmt.Sprintf("gen-%06d", m.n),
		"usageMetadata": used,
	}
}

func (p gemini) events(m message) []event {
	var all []event
	add := func(parts []any, last bool) { all = append(all, event{data: p.chunk(m, parts, last)}) }
	for _, b := range m.blocks {
		if b.name != "" {
			add([]any{p.part(b, "")}, false)
			continue
		}
		for _, half := range halves(b.text) {
			add([]any{p.part(b, half)}, false)
		}
	}
	add([]any{map[string]any{"text": ""}}, true)
	return all
}
