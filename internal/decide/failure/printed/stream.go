package printed

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file turns the JSON lines of programs into the text that they stand
// for, so that the same rules read both: the streams of coding agents, and
// `go test -json`.

// Reading is an output as people would read it.
type Reading struct {
	Text string
	// prose is true when all that is left is the final message of an agent
	// that reported no error of its own.
	Prose bool
}

// event has the fields that the streams of agents have in common. Fields that have
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

// Read makes the text of an output. Lines that are no JSON stay as they are.
func Read(output string) Reading {
	s := joinCutLines(cleanOutput(output))
	if !strings.Contains(s, `{"`) {
		return Reading{Text: s}
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
		if e, ok := decodeEvent(l); ok {
			b.WriteString(s[copied:at])
			copied = next
			said, last := e.readText()
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
		return Reading{Text: s}
	}
	b.WriteString(s[copied:])
	return Reading{Text: cleanOutput(b.String()), Prose: final >= 0 && !other}
}

// decodeEvent reads a line as an event of a known stream.
func decodeEvent(l string) (event, bool) {
	l = strings.TrimSpace(l)
	if len(l) < 12 || len(l) > eventMax || l[:2] != `{"` || !words.Has(l, `"type":`, `"Action":`, `"level":`) {
		return event{}, false
	}
	var e event
	if json.Unmarshal([]byte(l), &e) != nil {
		return event{}, false
	}
	e.line = l
	known := e.Type != "" && e.isAgentEvent()
	return e, known || e.Action != "" || e.logLineOf() != ""
}

// isAgentEvent distinguishes events of agents from other JSON with a "type", such as the body of an
// HTTP error.
func (e *event) isAgentEvent() bool {
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

// readText returns the text of an event that matters for a failure; final is true for the last
// message of an agent that did not fail.
func (e *event) readText() (text string, final bool) {
	switch {
	case e.Action != "":
		return e.Output, false
	case !e.isAgentEvent():
		return e.logLineOf(), false
	case e.Type == "result":
		return e.resultSays()
	case e.Type == "error", e.Type == "turn.failed", e.Type == "session.error":
		if m := textOfJSON(e.Error); m != "" {
			return "ERROR: " + m, false
		}
		return "ERROR: " + textOfJSON(e.Message), false
	}
	return "", false
}

// logLineOf returns the line of a log that the event is, with its level in front; "" when it is none.
func (e *event) logLineOf() string {
	text := strings.TrimSpace(textOfJSON(e.Msg) + textOfJSON(e.Message) + " " + textOfJSON(e.Err) + textOfJSON(e.Error))
	if len(e.Level) == 0 || text == "" {
		return ""
	}
	level := textOfJSON(e.Level)
	switch string(e.Level) { // pino's
	case "50":
		level = "error"
	case "60":
		level = "fatal"
	}
	return strings.ToUpper(level) + ": " + text + e.logFields()
}

// logFields returns the fields that identify the subject of a log line, without those that every
// line has or that differ from run to run.
func (e *event) logFields() string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(e.line), &fields) != nil {
		return ""
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		small := strings.ToLower(name)
		value := textOfJSON(fields[name])
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
	text := textOfJSON(e.Result)
	if m := textOfJSON(e.Error); m != "" {
		text += "\nERROR: " + m
	}
	failed := e.IsError != nil && *e.IsError || textOfJSON(e.Status) == "error"
	if strings.HasPrefix(e.Subtype, "error_max") {
		return text + "\nERROR: reached the limit: " + e.Subtype, false
	}
	if e.APIError != 0 && !strings.Contains(text, "API Error") {
		text = "API Error: " + strconv.Itoa(e.APIError) + " " + text
	}
	return strings.TrimSpace(text), !failed
}

// textOfJSON returns the string in raw: itself, or the message of an object.
func textOfJSON(raw json.RawMessage) string {
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

// A CI system's time stamp, "2026-01-01T00:00:00.0000000Z ", in Jenkins in brackets; GitLab puts "00O "
// behind it.
const stampForm = `(?:2\d..-.{5}T..:[0-9:.]+Z |\[2\d..-.{5}T..:[0-9:.]+Z\] )(?:\d\d[OE][ +])?`

// clockForms begin each line of logs with a time: Jenkins, TeamCity, and many more. A single line with one is a line
// of a program's log.
const clockForms = `\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?` +
	`(?:[WEFi]? ?:\t? *(?:\[Step \d+/\d+\] ?)?| \| ?|[ \t](?:\d\d[OE][ +])?|$)`

var clock = lazy.Regexp(`^` + clockForms)

// countTimestamps reports whether nearly all lines of s begin with a time, and how many blanks more
// than one stand behind each of these times.
func countTimestamps(s string) (timed bool, blanks int) {
	with, all, near := 0, 0, 0
	for l := range strings.SplitSeq(words.Cut(s, 64<<10), "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		all++
		if at := clock().FindStringIndex(l[:min(len(l), 80)]); at != nil {
			with++
			if rest := l[at[1]:]; rest != "" && rest[0] != ' ' {
				near++
			}
		}
	}
	if near == 0 {
		blanks = 1
	}
	return with > 2 && with*10 >= all*8, blanks
}

// prefix matches the text that systems put before each line of a program's output.
var prefix = lazy.Regexp(`^(?:` + strings.Join([]string{
	stampForm,
	`[A-Za-z][^\t]*\t[^\t]*\t\x{feff}?` + stampForm,      // `gh run view --log`: job, step, time
	`##\[(?:error|warning|group|command|debug|notice)\]`, // Azure Pipelines
	`::(?:error|warning)::`,                              // GitHub Actions
	`#[1-9]\d* (?:\d[\d.]*\.[\d.]* )?`,                   // BuildKit's step, with the time before what it prints
	` {0,8}[A-Za-z][\w.-]* +\| `,                         // docker compose: "web-1  | "
	`│ `,                                                 // Terraform's box
	` {7,8}> ?`,                                          // the log of nix's builder
	`\[[a-z][a-z0-9_.:/-]* *\] `,                         // runners of several programs: "[web] "
	`\[[a-z][a-z0-9_-]*:\d+\] `,                          // Drone and Woodpecker: "[test:12] "
}, "|") + `)`)

// level is the level of a log, which looks like the name of a program.
var level = lazy.Regexp(`^\[(?:error|err|warn|warning|info|debug|trace|fatal|notice|fail|failed|ok|pass|e|w) *\]`)

// PrefixOf returns the length of what stands before the line that a program
// printed: a time stamp, then a name, then a command, and so on. A row of a table has none.
func PrefixOf(l string) int {
	n := 0
	if strings.HasSuffix(l, " |") {
		return n
	}
	for range 4 {
		rest := l[n:min(len(l), n+400)]
		at := prefix().FindStringIndex(rest)
		if at == nil || level().MatchString(rest) {
			break
		}
		n += at[1]
	}
	return n
}

// owners are what a runner of several packages puts before the lines of each:
// "web:test: " of Turborepo, "packages/web test: " of pnpm.
type owners []string

// ownerForm begins a line by which such a runner shows itself.
var ownerForm = lazy.Regexp(`(?m)^(?:(@?[\w./@-]+[:#][A-Za-z][\w:-]*): (?:cache (?:miss|hit|bypass)|> |$)` +
	`|([\w./@-]+ [A-Za-z][\w:-]*)\$ \S)`)

const maxOwners = 50

// builderForm begins each line of what a builder of nix prints, with the name of what is built.
var builderForm = lazy.Regexp(`(?m)^[a-z][\w.+-]*> `)

func ownersIn(s string) owners {
	if names := builderForm().FindAllString(s, 3); len(names) == 3 && names[0] == names[1] && names[1] == names[2] {
		return owners{names[0], strings.TrimSpace(names[0])}
	}
	if !strings.Contains(s, ": cache ") && !strings.Contains(s, ": > ") && !strings.Contains(s, ": \n") &&
		!strings.Contains(s, "$ ") {
		return nil
	}
	var all owners
	for _, m := range ownerForm().FindAllStringSubmatch(s, 20*maxOwners) {
		one := m[1] + m[2] + ": "
		if len(all) < maxOwners && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// prefixLength returns the length of the owner in front of a line; 0 when there is none.
func (all owners) prefixLength(l string) int {
	for _, one := range all {
		if strings.HasPrefix(l, one) {
			return len(one)
		}
	}
	return 0
}
