package gateway

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// reader reads the answers of one kind of endpoint: whole ones, and streams.
type reader interface {
	// event takes one event of a stream.
	readEvent(data []byte, to *reading)
	// whole takes an answer that is no stream.
	readWhole(body []byte, to *reading)
}

// reading is the state of an answer that is still coming.
type reading struct {
	model string
	usage usage
	// final: usage is the provider's last word, and not only a beginning.
	final bool
	// said is how many bytes the model wrote so far; calls, how many tools it called.
	said, calls int
	// items is how much of it stands in whole items, which a server says after their
	// pieces, or in place of them.
	items int
	// stop is the provider's word for why the answer ended; "" is not said.
	stop string
	// tier is the provider's word for how fast the call was served; "" is not said.
	tier string
	// tools is what the provider's own tools cost; unpriced: one ran without a known
	// price.
	tools    loop.MicroUSD
	unpriced bool
	err      *failure.APIError // in the middle of a stream
	done     bool              // the stream had its last event
	odd      bool              // it is nothing of this protocol
	page     bool              // it is a page for people: no model made it
}

// usage is tokens, with those written to a cache that lasts for an hour, which
// cost more, counted apart.
type usage struct {
	agent.Usage
	writtenHour int64
}

// search is what one search of the web by the provider costs, at Anthropic and
// at OpenAI.
const search = loop.MicroUSD(10_000)

// maxTools is more than one call can use.
const maxTools = 10_000

func (r *reading) decodeInto(body []byte, into any) bool {
	if json.Unmarshal(body, into) != nil {
		r.odd = true
		return false
	}
	return true
}

// problem is an error as all protocols write it, more or less.
type problem struct {
	Type    string `json:"type"`
	Code    any    `json:"code"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Details []struct {
		Type       string `json:"@type"`
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
		Violations []struct {
			Quota string `json:"quotaId"`
		} `json:"violations"`
	} `json:"details"`
	ResetsAt int64 `json:"resets_at"` // OpenAI's plans: seconds since 1970
	ResetsIn int64 `json:"resets_in_seconds"`
}

// isDailyQuota reports whether a quota of Gemini's is used up for the day. The wait that it names is
// of the limit for a minute then.
func (p *problem) isDailyQuota() bool {
	for _, d := range p.Details {
		for _, v := range d.Violations {
			if strings.Contains(v.Quota, "PerDay") {
				return true
			}
		}
	}
	return false
}

// mostTellingName is the most telling name of the error.
func (p *problem) mostTellingName() string {
	for _, d := range p.Details {
		if d.Reason != "" {
			return d.Reason
		}
	}
	if code, ok := p.Code.(string); ok && code != "" {
		return code
	}
	if p.Type != "" && p.Type != "error" {
		return p.Type
	}
	return p.Status
}

func (r *reading) setError(p *problem) {
	if p == nil {
		return
	}
	if p.mostTellingName() == "" && p.Message == "" {
		return
	}
	r.err = &failure.APIError{Type: p.mostTellingName(), Message: agent.Clip(p.Message, maxMessage)}
	if status, ok := p.Code.(float64); ok && status >= 400 && status < 600 {
		r.err.Status = int(status)
	}
}

// refusal is a stop for which the model had no word of its own, or this one.
const refusal = "refusal"

// maxMessage is how much of a provider's text is kept, in bytes.
const maxMessage = 2000

// messages reads Anthropic's Messages.
type messages struct{}

func newMessages() reader { return messages{} }

type messagesUsage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Written    struct {
		Hour int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Tier  string `json:"service_tier"`
	Speed string `json:"speed"`
	Tools struct {
		Searches int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// addUsageTo adds what is said: later numbers replace earlier ones.
func (u messagesUsage) addUsageTo(r *reading) {
	to := &r.usage
	switch {
	case u.Speed == "fast":
		r.tier = u.Speed
	case u.Tier == "priority": // bought in advance, at a price of one's own
		r.tier = "committed"
	case u.Tier != "" && r.tier == "":
		r.tier = u.Tier
	}
	if n := u.Tools.Searches; n > 0 && n < maxTools {
		r.tools = loop.MicroUSD(n) * search
	}
	for _, n := range []struct {
		said *int64
		to   *int64
	}{{u.Input, &to.Input}, {u.Output, &to.Output}, {u.CacheRead, &to.CacheRead}, {u.CacheWrite, &to.CacheWrite}} {
		if n.said != nil {
			*n.to = *n.said
		}
	}
	if u.Written.Hour > 0 {
		to.writtenHour = u.Written.Hour
	}
}

type messagesAnswer struct {
	Type    string
	Message struct {
		Model string
		Usage messagesUsage
	}
	Model   string
	Content []struct{ Type, Text string }
	Stop    string `json:"stop_reason"`
	Usage   messagesUsage
	Block   struct{ Type string } `json:"content_block"`
	Delta   struct {
		Text, Thinking string
		Partial        string `json:"partial_json"`
		Stop           string `json:"stop_reason"`
	}
	Error *problem
}

func (messages) readEvent(b []byte, to *reading) {
	var a messagesAnswer
	if !to.decodeInto(b, &a) {
		return
	}
	switch a.Type {
	case "message_start":
		to.model = a.Message.Model
		a.Message.Usage.addUsageTo(to)
	case "content_block_start":
		if isToolBlock(a.Block.Type) {
			to.calls++
		}
	case "content_block_delta":
		to.said += len(a.Delta.Text) + len(a.Delta.Thinking) + len(a.Delta.Partial)
	case "message_delta":
		to.stop, to.final = a.Delta.Stop, a.Usage.Output != nil
		a.Usage.addUsageTo(to)
	case "message_stop":
		to.done = true
	case "error":
		to.setError(a.Error)
	}
}

func (messages) readWhole(b []byte, to *reading) {
	var a messagesAnswer
	if !to.decodeInto(b, &a) {
		return
	}
	to.odd = a.Type != "message"
	to.model, to.stop, to.final, to.done = a.Model, a.Stop, a.Usage.Output != nil, true
	a.Usage.addUsageTo(to)
	for _, c := range a.Content {
		to.said += len(c.Text)
		if isToolBlock(c.Type) {
			to.calls++
		}
	}
}

func isToolBlock(kind string) bool {
	return kind == "tool_use" || kind == "server_tool_use" || kind == "mcp_tool_use"
}

// chat reads OpenAI's Chat Completions, which many providers speak.
type chat struct{}

func newChatReader() reader { return chat{} }

// chatMessage is a message, or what a stream adds to it.
type chatMessage struct {
	Content, Reasoning, Refusal string
	Thought                     string `json:"reasoning_content"`
	Calls                       []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

type chatAnswer struct {
	Model   string
	Choices []struct {
		Delta, Message chatMessage
		Finish         string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		Hit int64 `json:"prompt_cache_hit_tokens"` // DeepSeek's name
	}
	Tier  string `json:"service_tier"`
	Error *problem
}

func (chat) readEvent(b []byte, to *reading) {
	if bytes.Equal(b, []byte("[DONE]")) {
		to.done = true
		return
	}
	var a chatAnswer
	if to.decodeInto(b, &a) {
		a.addAnswerTo(to)
	}
}

func (chat) readWhole(b []byte, to *reading) {
	var a chatAnswer
	if to.decodeInto(b, &a) {
		a.addAnswerTo(to)
		to.odd = len(a.Choices) == 0 && a.Usage == nil
		to.final, to.done = a.Usage != nil, true
	}
}

func (a *chatAnswer) addAnswerTo(to *reading) {
	if a.Model != "" {
		to.model = a.Model
	}
	if a.Tier != "" {
		to.tier = a.Tier
	}
	for _, c := range a.Choices {
		c.Delta.addMessageTo(to)
		c.Message.addMessageTo(to)
		if c.Finish != "" && to.stop != refusal {
			to.stop = c.Finish
		}
	}
	if u := a.Usage; u != nil && u.Prompt+u.Completion > 0 {
		cached := max(u.Details.Cached, u.Hit)
		to.usage.Usage = agent.Usage{
			Input: max(0, u.Prompt-cached-u.Details.Written), Output: u.Completion,
			CacheRead: cached, CacheWrite: u.Details.Written,
		}
		to.final = to.stop != "" // some say it again and again while it grows
	}
	to.setError(a.Error)
}

func (m *chatMessage) addMessageTo(to *reading) {
	to.said += len(m.Content) + len(m.Reasoning) + len(m.Thought) + len(m.Refusal)
	if m.Refusal != "" {
		to.stop = refusal
	}
	for _, call := range m.Calls {
		to.said += len(call.Function.Arguments)
		if call.Function.Name != "" {
			to.calls++
		}
	}
}

// responses reads OpenAI's Responses.
type responses struct{}

func newResponses() reader { return responses{} }

type responsesAnswer struct {
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Model      string
	Tier       string `json:"service_tier"`
	Output     []responsesItem
	Usage      *struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Details struct {
			Cached  int64 `json:"cached_tokens"`
			Written int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	}
	Error *problem
}

type responsesItem struct {
	Type             string
	Content          []struct{ Type, Text, Refusal string }
	Arguments, Input json.RawMessage
}

func (responses) readEvent(b []byte, to *reading) {
	var e struct {
		Type     string
		Delta    string
		Item     responsesItem
		Response *responsesAnswer
		// Of an error in the middle, which some servers wrap.
		Code    any
		Message string
		Error   *problem
	}
	if !to.decodeInto(b, &e) {
		return
	}
	switch e.Type {
	case "response.output_item.done":
		e.Item.addItemTo(to)
	case "error":
		to.setError(&problem{Code: e.Code, Message: e.Message})
		to.setError(e.Error)
	case "response.completed", "response.incomplete", "response.failed":
		to.done = true
		if e.Response != nil {
			e.Response.recordAnswerEnd(to)
		}
	default:
		to.said += len(e.Delta)
		if e.Response != nil && e.Response.Model != "" {
			to.model = e.Response.Model
		}
	}
}

func (responses) readWhole(b []byte, to *reading) {
	var a responsesAnswer
	if !to.decodeInto(b, &a) {
		return
	}
	to.odd = a.Usage == nil && a.Output == nil
	to.done = true
	for _, item := range a.Output {
		item.addItemTo(to)
	}
	a.recordAnswerEnd(to)
}

func (i responsesItem) addItemTo(to *reading) {
	switch i.Type {
	case "message", "reasoning", "":
	case "web_search_call":
		to.calls++
		to.tools = min(to.tools+search, maxTools*search)
	case "code_interpreter_call", "image_generation_call", "file_search_call":
		to.calls++
		to.unpriced = true
	default: // function_call, custom_tool_call, local_shell_call, …
		to.calls++
	}
	to.items += len(i.Arguments) + len(i.Input)
	for _, c := range i.Content {
		to.items += len(c.Text) + len(c.Refusal)
		if c.Type == refusal {
			to.stop = refusal
		}
	}
	to.said = max(to.said, to.items)
}

func (a *responsesAnswer) recordAnswerEnd(to *reading) {
	if a.Model != "" {
		to.model = a.Model
	}
	if a.Tier != "" {
		to.tier = a.Tier
	}
	if a.Incomplete.Reason != "" {
		to.stop = a.Incomplete.Reason
	}
	if u := a.Usage; u != nil {
		to.usage.Usage = agent.Usage{
			Input:  max(0, u.Input-u.Details.Cached-u.Details.Written),
			Output: u.Output, CacheRead: u.Details.Cached, CacheWrite: u.Details.Written,
		}
		to.final = true
	}
	to.setError(a.Error)
}
