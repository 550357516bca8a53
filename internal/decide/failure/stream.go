package failure

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// This file turns the JSON lines of programs into the text that they stand
// for, so that the same rules read both: the streams of coding agents, and
// `go test -json`.

// reading is an output as people would read it.
type reading struct {
	text string
	// prose is true when all that is left is the final message of an agent
	// that reported no error of its own.
	prose bool
}

// event is what the streams of agents have in common. Fields that have
// different types in different streams are kept raw.
type event struct {
	Type     string          `json:"type"`
	Subtype  string          `json:"subtype"`
	Status   json.RawMessage `json:"status"`
	IsError  *bool           `json:"is_error"`
	Result   json.RawMessage `json:"result"`
	Message  json.RawMessage `json:"message"`
	Error    json.RawMessage `json:"error"`
	Item     json.RawMessage `json:"item"`
	APIError int             `json:"api_error_status"`

	// go test -json
	Action, Package, Test, Output string

	// a line of a log
	Level json.RawMessage `json:"level"`
	Msg   json.RawMessage `json:"msg"`
	Err   json.RawMessage `json:"err"`

	line string // itself
}

const eventMax = 256 << 10 // a longer line is not decoded

// readable makes the text of an output. Lines that are no JSON stay as they are.
func readable(output string) reading {
	s := clean(output)
	if !strings.Contains(s, `{"`) {
		return reading{text: s}
	}
	var (
		b      strings.Builder
		final  = -1 // where the final message begins in b
		other  bool // something else than the final message is left
		copied int
	)
	for at := 0; at < len(s); {
		end := strings.IndexByte(s[at:], '\n')
		if end < 0 {
			end = len(s) - at
		}
		l := s[at : at+end]
		next := min(len(s), at+end+1)
		if e, ok := decode(l); ok {
			b.WriteString(s[copied:at])
			copied = next
			said, last := e.says()
			if last {
				final = b.Len()
			} else if said != "" {
				other = true
			}
			b.WriteString(said)
			if said != "" && e.Action == "" {
				b.WriteByte('\n')
			}
		} else if strings.TrimSpace(l) != "" {
			other = true
		}
		at = next
	}
	if copied == 0 {
		return reading{text: s}
	}
	b.WriteString(s[copied:])
	return reading{text: clean(b.String()), prose: final >= 0 && !other}
}

// decode reads a line as an event of a known stream.
func decode(l string) (event, bool) {
	l = strings.TrimSpace(l)
	if len(l) < 12 || len(l) > eventMax || l[0] != '{' || l[1] != '"' {
		return event{}, false
	}
	if !words.Has(l, `"type":`, `"Action":`, `"level":`) {
		return event{}, false
	}
	var e event
	if json.Unmarshal([]byte(l), &e) != nil {
		return event{}, false
	}
	e.line = l
	known := e.Type != "" && e.known()
	return e, known || e.Action != "" || e.logged() != ""
}

// known tells the events of agents from other JSON with a "type", such as the
// body of an HTTP error.
func (e *event) known() bool {
	switch e.Type {
	case "error":
		return e.Message != nil || e.Error != nil && e.Error[0] == '{' && !strings.Contains(string(e.Error), `"type":"`)
	case "system", "assistant", "user", "result", "rate_limit_event", "stream_event", "init", "message",
		"tool_use", "tool_result", "step_start", "step_finish", "text", "reasoning":
		return true
	}
	return strings.HasPrefix(e.Type, "thread.") || strings.HasPrefix(e.Type, "turn.") ||
		strings.HasPrefix(e.Type, "item.") || strings.HasPrefix(e.Type, "session.")
}

// says returns what an event means for a failure, and whether it is the final
// message of an agent that did not fail.
func (e *event) says() (text string, final bool) {
	switch {
	case e.Action != "":
		return e.Output, false
	case !e.known():
		return e.logged(), false
	case e.Type == "result":
		return e.resultSays()
	case e.Type == "error", e.Type == "turn.failed", e.Type == "session.error":
		if m := told(e.Error); m != "" {
			return "ERROR: " + m, false
		}
		return "ERROR: " + told(e.Message), false
	}
	return "", false
}

// logged is the line of a log that the event is, with its level in front; ""
// when it is none.
func (e *event) logged() string {
	text := strings.TrimSpace(told(e.Msg) + told(e.Message) + " " + told(e.Err) + told(e.Error))
	if len(e.Level) == 0 || text == "" {
		return ""
	}
	level := told(e.Level)
	switch string(e.Level) { // pino's
	case "50":
		level = "error"
	case "60":
		level = "fatal"
	}
	return strings.ToUpper(level) + ": " + text + e.about()
}

// about are the fields of a line of a log that say what it is about: its words, and neither
// what every line has nor what another run has another one of.
func (e *event) about() string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(e.line), &fields) != nil {
		return ""
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		small := strings.ToLower(name)
		value := told(fields[name])
		if value != "" && len(value) <= 80 && !everyLine()[small] && !strings.HasSuffix(small, "id") {
			said = append(said, name+"="+value)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// everyLine are the fields that a line of a log has whatever it says.
var everyLine = words.Set(`time ts t timestamp date datetime @timestamp level lvl severity msg message err error stack host hostname
	pid v version service name logger caller source thread trace span duration elapsed took`)

func (e *event) resultSays() (string, bool) {
	text := told(e.Result)
	if m := told(e.Error); m != "" {
		text += "\nERROR: " + m
	}
	failed := e.IsError != nil && *e.IsError || told(e.Status) == "error"
	if strings.HasPrefix(e.Subtype, "error_max") {
		return text + "\nERROR: reached the limit: " + e.Subtype, false
	}
	if e.APIError != 0 && !strings.Contains(text, "API Error") {
		text = "API Error: " + strconv.Itoa(e.APIError) + " " + text
	}
	return strings.TrimSpace(text), !failed
}

// told returns the string in raw: itself, or the message of an object.
func told(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Type, Name, Message string
		Data                struct{ Message string }
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return strings.TrimSpace(strings.Join([]string{o.Name, o.Type, o.Message, o.Data.Message}, " "))
}
