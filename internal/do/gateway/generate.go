package gateway

import (
	"bytes"
	"encoding/json"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// generate reads Gemini's generateContent, and streams of it.
type generate struct{}

func newGenerate() reader { return generate{} }

type generateAnswer struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text string
				Call json.RawMessage `json:"functionCall"`
			}
		}
		Finish string `json:"finishReason"`
		// Grounding: Google searched, at a price that depends on the month's use.
		Grounding struct {
			Queries []string `json:"webSearchQueries"`
		} `json:"groundingMetadata"`
	}
	Prompt struct {
		Block string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int64 `json:"promptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
		Tools      int64 `json:"toolUsePromptTokenCount"`
	} `json:"usageMetadata"`
	Model string `json:"modelVersion"`
	Error *problem
}

func (generate) readEvent(b []byte, to *reading) {
	var a generateAnswer
	if !to.decodeInto(b, &a) {
		return
	}
	if a.Model != "" {
		to.model = a.Model
	}
	if a.Prompt.Block != "" {
		to.stop, to.done = refusal, true
	}
	for _, c := range a.Candidates {
		for _, p := range c.Content.Parts {
			to.said += len(p.Text) + len(p.Call)
			if p.Call != nil {
				to.calls++
			}
		}
		if c.Finish != "" {
			to.stop, to.done, to.final = c.Finish, true, true
		}
		to.unpriced = to.unpriced || len(c.Grounding.Queries) > 0
	}
	if u := a.Usage; u != nil {
		to.usage.Usage = agent.Usage{
			Input: max(0, u.Prompt-u.Cached) + u.Tools, Output: u.Candidates + u.Thoughts, CacheRead: u.Cached,
		}
	}
	to.setError(a.Error)
}

// readWhole also reads a stream that was asked for without alt=sse: one JSON list.
func (g generate) readWhole(b []byte, to *reading) {
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) {
		g.readEvent(b, to)
		if to.stop == "" && !to.final && to.err == nil {
			to.odd = true
		}
		return
	}
	var list []json.RawMessage
	if to.decodeInto(b, &list) {
		for _, e := range list {
			g.readEvent(e, to)
		}
	}
}
