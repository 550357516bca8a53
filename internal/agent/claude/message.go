package claude

import (
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/jsonline"
	"github.com/pawl-dev/pawl/internal/failure"
)

// assistant takes one block of a message of the model. A message comes as one
// line per block, each with the same id and the usage of its start.
func (p *Parser) assistant(l line) {
	var id, model, use, content []byte
	jsonline.Object(l.message, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			id = v
		case "model":
			model = v
		case "usage":
			use = v
		case "content":
			content = v
		}
		return true
	})
	if word := jsonline.String(l.errWord); word != "" {
		p.apology(l, word, content)
		return
	}
	if err := p.excuse(content); err != nil {
		p.pending = err
		return
	}
	p.ended = false
	sub := !jsonline.Null(l.parent)
	if jsonline.String(model) != "<synthetic>" {
		p.started(jsonline.String(id), use, sub)
	}
	said := 0
	jsonline.Array(content, func(block []byte) bool {
		said += p.block(block, sub)
		return true
	})
	if guess := int64(said+bytesPerToken-1) / bytesPerToken; guess > 0 && !p.live && !p.dialect.PerCall {
		p.emit(agent.Event{Kind: agent.UsageSeen, Estimate: true, Sub: sub, Usage: agent.Usage{Output: guess}})
	}
}

// apology is a message that the program wrote itself, because a model call failed.
func (p *Parser) apology(l line, word string, content []byte) {
	err := &failure.APIError{Type: clip(word, 200), Status: status(l.status)}
	jsonline.Array(content, func(block []byte) bool {
		err.Message = clip(jsonline.String(jsonline.Get(block, "text")), maxError)
		return err.Message == ""
	})
	if err.Status == 429 || err.Type == "rate_limit" {
		err.ResetAt = p.resetAt
	}
	p.pending = err
}

// excuse is the error that a message of one text tells, if the dialect has such.
func (p *Parser) excuse(content []byte) *failure.APIError {
	if p.dialect.Apology == nil {
		return nil
	}
	text, blocks := "", 0
	jsonline.Array(content, func(block []byte) bool {
		text = jsonline.String(jsonline.Get(block, "text"))
		blocks++
		return blocks == 1
	})
	if text == "" || blocks != 1 {
		return nil
	}
	return p.dialect.Apology(text)
}

// started counts a model call once per message, with what is known of its
// usage at its start. The output count there is no count yet.
func (p *Parser) started(id string, use []byte, sub bool) {
	u := p.usage(use)
	if p.dialect.PerCall && u == (agent.Usage{}) {
		return
	}
	if id != "" && !p.messages.Add(id, "") {
		return
	}
	if !p.dialect.PerCall {
		u.Output = 0
	}
	e := agent.Event{Kind: agent.UsageSeen, Usage: u, Calls: 1, Sub: sub}
	if !sub {
		e.Turns = 1
		p.turns++
	}
	p.emit(e)
}

// block emits one block and returns how many bytes the model wrote for it.
func (p *Parser) block(b []byte, sub bool) int {
	var kind, text, thinking, name, id, input []byte
	jsonline.Object(b, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			kind = v
		case "text":
			text = v
		case "thinking":
			thinking = v
		case "name":
			name = v
		case "id":
			id = v
		case "input":
			input = v
		}
		return true
	})
	switch k := jsonline.String(kind); k {
	case "text":
		p.emit(agent.Event{Kind: agent.Text, Sub: sub, Text: jsonline.String(text)})
		return len(text)
	case "thinking":
		p.emit(agent.Event{Kind: agent.Thinking, Sub: sub, Text: jsonline.String(thinking)})
		return len(thinking)
	case "tool_use", "server_tool_use":
		tool := clip(jsonline.String(name), 200)
		p.tools.Add(jsonline.String(id), tool)
		e := agent.Event{Kind: agent.ToolStart, Sub: sub, Tool: tool, Digest: agent.Digest(input), Call: jsonline.Short(id, agent.CallCap)}
		describe(&e, input)
		p.emit(e)
		return len(input)
	case "redacted_thinking", "web_search_tool_result":
	default:
		p.unknown("assistant/"+k, "")
	}
	return 0
}

// describe adds what a tool runs and which files it touches.
func describe(e *agent.Event, input []byte) {
	jsonline.Object(input, func(key, v []byte) bool {
		switch string(key) {
		case "command":
			e.Command = clip(jsonline.String(v), agent.CommandCap)
		case "file_path", "notebook_path":
			if path := jsonline.String(v); path != "" && len(path) <= 4096 {
				e.Files = append(e.Files, path)
			}
		}
		return true
	})
}

// user lines are the results of tools, and what the program tells the model.
// Nothing in them is the agent's own word.
func (p *Parser) user(l line) {
	sub := !jsonline.Null(l.parent)
	jsonline.Array(jsonline.Get(l.message, "content"), func(block []byte) bool {
		var kind, id, failed, content []byte
		jsonline.Object(block, func(key, v []byte) bool {
			switch string(key) {
			case "type":
				kind = v
			case "tool_use_id":
				id = v
			case "is_error":
				failed = v
			case "content":
				content = v
			}
			return true
		})
		if jsonline.String(kind) == "tool_result" {
			p.emit(agent.Event{Kind: agent.ToolEnd, Sub: sub, Failed: jsonline.True(failed), Digest: agent.Digest(content),
				Tool: p.tools.Value(jsonline.String(id)), Call: jsonline.Short(id, agent.CallCap), Result: jsonline.Result(content, agent.ResultCap)})
		}
		return true
	})
}

// stream takes events of the API itself (--include-partial-messages). Text in
// them comes again in whole messages; usage is exact here.
func (p *Parser) stream(l line) {
	sub := !jsonline.Null(l.parent)
	switch jsonline.String(jsonline.Get(l.event, "type")) {
	case "message_start":
		p.live = true
		message := jsonline.Get(l.event, "message")
		p.ended = false
		p.started(jsonline.String(jsonline.Get(message, "id")), jsonline.Get(message, "usage"), sub)
	case "message_delta":
		if n := count(jsonline.Get(l.event, "usage", "output_tokens")); n > 0 {
			p.emit(agent.Event{Kind: agent.UsageSeen, Sub: sub, Usage: agent.Usage{Output: n}})
		}
	}
}

// clip returns at most n bytes of s, without half a rune at its end.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
