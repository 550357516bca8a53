package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// dialect has the differences between the protocols.
type dialect struct {
	// calls and others are the endpoints of a route: what asks a model, and what
	// only counts or lists.
	calls, others []endpoint
	// headers of a request that pass, beside those of every protocol.
	headers []string
	// refusal is an error in the protocol's own form, with verbs for the status,
	// where it has one, and for the message as JSON.
	refusal string
}

type endpoint struct {
	method string
	path   *regexp.Regexp // of what follows the route's name
	reader func() reader  // nil for what is no model call
}

func postEndpoint(path string, r func() reader) endpoint {
	return endpoint{http.MethodPost, regexp.MustCompile("^" + path + "$"), r}
}

func getEndpoint(path string) endpoint {
	return endpoint{http.MethodGet, regexp.MustCompile("^" + path + "$"), nil}
}

// name is one element of a path: a model's name, with its vendor at most.
const name = `[A-Za-z0-9][\w.:@-]*(/[A-Za-z0-9][\w.:@-]*)?`

// dialects are built at the first use: most commands need none.
var dialects = sync.OnceValue(func() map[agent.Protocol]dialect {
	return map[agent.Protocol]dialect{
		agent.Anthropic: {
			calls: []endpoint{postEndpoint(`/v1/messages`, newMessages)},
			others: []endpoint{postEndpoint(`/v1/messages/count_tokens`, nil), getEndpoint(`/v1/models`),
				getEndpoint(`/v1/models/` + name)},
			headers: []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access"},
			refusal: `{"type":"error","error":{"type":"invalid_request_error","message":%[2]s}}`,
		},
		agent.OpenAI: {
			calls: []endpoint{
				postEndpoint(`(/v1)?/responses`, newResponses), postEndpoint(`(/v1)?/responses/compact`, newResponses),
				postEndpoint(`(/v1)?/chat/completions`, newChatReader),
			},
			others: []endpoint{getEndpoint(`(/v1)?/models`), getEndpoint(`(/v1)?/models/` + name)},
			headers: []string{
				"Openai-Beta", "Session_id", "Session-Id", "Conversation_id", "Thread-Id", "Originator",
				"Http-Referer", "X-Title",
			},
			refusal: `{"error":{"type":"invalid_request_error","code":"%[1]d","param":null,"message":%[2]s}}`,
		},
		agent.Gemini: {
			calls: []endpoint{postEndpoint(`/v1(alpha|beta)?/models/`+name+`:(generateContent|streamGenerateContent)`,
				newGenerate)},
			others: []endpoint{
				postEndpoint(`/v1(alpha|beta)?/models/`+name+`:countTokens`, nil),
				getEndpoint(`/v1(alpha|beta)?/models`), getEndpoint(`/v1(alpha|beta)?/models/` + name),
			},
			headers: []string{"X-Goog-Api-Client"},
			refusal: `{"error":{"code":%[1]d,"status":"INVALID_ARGUMENT","message":%[2]s}}`,
		},
	}
})

// refusalText is an error of pawl's own in the protocol's form.
func (d dialect) refusalText(status int, message string) string {
	quoted, err := json.Marshal(message)
	if err != nil {
		quoted = []byte(`""`)
	}
	return fmt.Sprintf(d.refusal, status, quoted)
}

// findEndpoint is the endpoint that a request means; false for any other.
func (d dialect) findEndpoint(method, path string) (endpoint, bool) {
	for _, list := range [][]endpoint{d.calls, d.others} {
		for _, e := range list {
			if e.method == method && e.path.MatchString(path) {
				return e, true
			}
		}
	}
	return endpoint{}, false
}

// commonHeaders of a request pass in every protocol. What a client says about
// its own program (X-Stainless-…) is let through: servers choose by it.
var commonHeaders = []string{"Content-Type", "Accept", "Accept-Language", "User-Agent", "Idempotency-Key", "X-App"}

// answerHeaders of an answer pass; "-" at an end stands for any rest.
var answerHeaders = []string{
	"Content-Type", "Date", "Retry-After", "Retry-After-Ms", "Request-Id", "X-Request-Id", "X-Should-Retry",
	"Openai-Processing-Ms", "Openai-Model", "Anthropic-Ratelimit-", "X-Ratelimit-",
}

// parameters of a query that pass. A key in it is the token, and is taken off.
var parameters = []string{"alt", "beta", "limit", "after_id", "before_id", "pageSize", "pageToken"}

func (d dialect) requestHeaders(from http.Header) http.Header {
	to := http.Header{}
	for key, values := range from {
		if isListed(key, commonHeaders) || isListed(key, d.headers) || strings.HasPrefix(key, "X-Stainless-") {
			to[key] = values
		}
	}
	return to
}

func isListed(key string, list []string) bool {
	return slices.ContainsFunc(list, func(l string) bool {
		inFamily := strings.HasSuffix(l, "-") && strings.HasPrefix(key, l)
		return inFamily || key == l
	})
}

// tokenOfRequest a request: sent in place of a key, in the field that its protocol has for it.
func tokenOfRequest(r *http.Request) string {
	for _, header := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if v := r.Header.Get(header); v != "" {
			return v
		}
	}
	if v, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return v
	}
	return r.URL.Query().Get("key")
}

// question has the fields of a request that the gateway reads.
type question struct {
	model  string
	stream bool
	limit  int64 // of an answer's tokens; 0 is not said
	many   int64 // answers to one request; 0 is not said
	tools  json.RawMessage
	// How fast the answer shall be: OpenAI's service_tier, and Anthropic's speed.
	service, speed string
	// background: the answer is made after the call, where it is not counted.
	background bool
}

// readQuestion reads a request. A body that is no JSON of this kind asks for nothing that
// is known: the provider says what is wrong with it. A field that is there twice,
// in whatever spelling, is an error: provider and gateway could each read another one.
func readQuestion(r *http.Request, path string, body []byte) (question, error) {
	var q question
	fields, twice := readObject(body)
	settings := fields["generationConfig"]
	if settings == nil { // Google takes a field's name in both spellings
		settings = fields["generation_config"]
	}
	config, again := readObject(settings)
	if twice = cmp.Or(twice, again); twice != "" {
		return q, fmt.Errorf("pawl's gateway passes no request that says %.60q twice", twice)
	}
	for name, to := range map[string]any{
		"model": &q.model, "stream": &q.stream, "n": &q.many, "tools": &q.tools,
		"service_tier": &q.service, "speed": &q.speed, "background": &q.background,
	} {
		_ = json.Unmarshal(fields[name], to) // of another type: not said
	}
	_ = json.Unmarshal(config["candidateCount"], &q.many)
	_ = json.Unmarshal(config["candidate_count"], &q.many)
	for _, raw := range []json.RawMessage{
		fields["max_tokens"], fields["max_completion_tokens"], fields["max_output_tokens"], config["maxOutputTokens"],
		config["max_output_tokens"],
	} {
		var limit int64
		_ = json.Unmarshal(raw, &limit)
		q.limit = max(q.limit, limit)
	}
	if _, rest, ok := strings.Cut(path, "/models/"); ok {
		model, method, _ := strings.Cut(rest, ":")
		// Without alt=sse Gemini's stream is one list, which cannot be cut.
		q.model, q.stream = model, method == "streamGenerateContent" && r.URL.Query().Get("alt") == "sse"
	}
	q.model = strings.TrimPrefix(q.model, "models/")
	return q, nil
}

// readObject takes an object apart; twice is a field that it has again. What is no object,
// or is cut off, has the fields until there.
func readObject(object []byte) (fields map[string]json.RawMessage, twice string) {
	in := json.NewDecoder(bytes.NewReader(object))
	fields, names := map[string]json.RawMessage{}, map[string]bool{}
	for t, _ := in.Token(); t == json.Delim('{') && in.More(); {
		var raw json.RawMessage
		name, _ := in.Token()
		field, is := name.(string)
		if !is || in.Decode(&raw) != nil {
			break
		}
		folded := strings.ToLower(strings.ReplaceAll(field, "_", ""))
		if names[folded] {
			twice = field
		}
		names[folded], fields[field] = true, raw
	}
	return fields, twice
}

// isAgentStep reports whether the call is a step of the agent's work, as it offers tools. The others
// name the session, or ask whether all is done.
func (q question) isAgentStep() bool { return len(q.tools) > len("[]") }

// serviceTier is how fast the answer shall be; "" is not said. Anthropic's service_tier
// asks for nothing that costs more.
func (q question) serviceTier() string {
	if q.service == "standard_only" || q.service == "auto" {
		return q.speed
	}
	return cmp.Or(q.speed, q.service)
}

// mostTokens is how many tokens the answers may have; 0 when the request does not say.
func (q question) mostTokens() int64 { return q.limit * max(1, q.many) }

// longestLine is how much of one line of an answer is read; a longer one passes
// unread.
const longestLine = 8 << 20

// lines splits an answer that comes in pieces.
type lines struct {
	rest []byte
	long bool // the line at hand is too long to be read
}

// feedLines calls line for each line that p ends.
func (l *lines) feedLines(p []byte, line func([]byte)) {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		whole := p[:i]
		if len(l.rest) > 0 {
			whole = append(l.rest, whole...)
		}
		if !l.long {
			line(bytes.TrimSuffix(whole, []byte("\r")))
		}
		l.rest, l.long, p = l.rest[:0], false, p[i+1:]
	}
	if len(l.rest)+len(p) > longestLine {
		l.rest, l.long = nil, true
	}
	if !l.long {
		l.rest = append(l.rest, p...)
	}
}

// eventData of a line of a stream of server-sent events; nil for the other lines.
func eventData(line []byte) []byte {
	text, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return nil
	}
	return bytes.TrimSpace(text)
}

// BrokenStream is the type of the error for an answer that broke off, or is not of the protocol.
// Those for other answers that are none have the names of their classes.
const BrokenStream = "stream_broken"

// flawInAnswer an answer that has ended; nil is none. Only a
// step of the agent's work has to say something.
func (r *reading) flawInAnswer(works bool) *failure.APIError {
	flaw := func(kind failure.Class, message string) *failure.APIError {
		return &failure.APIError{Type: string(kind), Message: message}
	}
	switch {
	case r.err != nil:
		return r.err
	case r.odd && r.said == 0 && r.calls == 0:
		return flaw(BrokenStream, "the provider's answer does not fit its protocol: something in between may have "+
			"answered")
	case !r.done:
		return flaw(BrokenStream, "the provider's answer broke off in the middle")
	}
	switch strings.ToLower(r.stop) {
	case refusal, "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii":
		return flaw(failure.RefusedByModel, "the model refused to answer ("+r.stop+")")
	case "max_tokens", "length", "max_output_tokens", "model_context_window_exceeded":
		return flaw(failure.OutputLimit, "the model's answer was cut off at the limit of its length ("+r.stop+")")
	case "malformed_function_call", "malformed_response":
		return flaw(failure.MalformedAnswer, "the model's call of a tool is malformed ("+r.stop+")")
	}
	if works && r.said == 0 && r.calls == 0 {
		return flaw(failure.EmptyAnswer, "the model's answer is empty")
	}
	return nil
}
