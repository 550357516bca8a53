package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
)

// dialect is what differs between the protocols.
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

func post(path string, r func() reader) endpoint {
	return endpoint{http.MethodPost, regexp.MustCompile("^" + path + "$"), r}
}

func get(path string) endpoint {
	return endpoint{http.MethodGet, regexp.MustCompile("^" + path + "$"), nil}
}

// name is one element of a path: a model's name, with its vendor at most.
const name = `[A-Za-z0-9][\w.:@-]*(/[A-Za-z0-9][\w.:@-]*)?`

// dialects are built at the first use: most commands need none.
var dialects = sync.OnceValue(func() map[agent.Protocol]dialect {
	return map[agent.Protocol]dialect{
		agent.Anthropic: {
			calls:   []endpoint{post(`/v1/messages`, newMessages)},
			others:  []endpoint{post(`/v1/messages/count_tokens`, nil), get(`/v1/models`), get(`/v1/models/` + name)},
			headers: []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access"},
			refusal: `{"type":"error","error":{"type":"invalid_request_error","message":%[2]s}}`,
		},
		agent.OpenAI: {
			calls: []endpoint{
				post(`(/v1)?/responses`, newResponses), post(`(/v1)?/responses/compact`, newResponses),
				post(`(/v1)?/chat/completions`, newChat),
			},
			others: []endpoint{get(`(/v1)?/models`), get(`(/v1)?/models/` + name)},
			headers: []string{
				"Openai-Beta", "Session_id", "Session-Id", "Conversation_id", "Thread-Id", "Originator", "Http-Referer", "X-Title",
			},
			refusal: `{"error":{"type":"invalid_request_error","code":"%[1]d","param":null,"message":%[2]s}}`,
		},
		agent.Gemini: {
			calls: []endpoint{post(`/v1(alpha|beta)?/models/`+name+`:(generateContent|streamGenerateContent)`, newGenerate)},
			others: []endpoint{
				post(`/v1(alpha|beta)?/models/`+name+`:countTokens`, nil),
				get(`/v1(alpha|beta)?/models`), get(`/v1(alpha|beta)?/models/` + name),
			},
			headers: []string{"X-Goog-Api-Client"},
			refusal: `{"error":{"code":%[1]d,"status":"INVALID_ARGUMENT","message":%[2]s}}`,
		},
	}
})

// refuse is an error of pawl's own in the protocol's form.
func (d dialect) refuse(status int, message string) string {
	quoted, err := json.Marshal(message)
	if err != nil {
		quoted = []byte(`""`)
	}
	return fmt.Sprintf(d.refusal, status, quoted)
}

// find is the endpoint that a request means; false for any other.
func (d dialect) find(method, path string) (endpoint, bool) {
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
		if listed(key, commonHeaders) || listed(key, d.headers) || strings.HasPrefix(key, "X-Stainless-") {
			to[key] = values
		}
	}
	return to
}

func listed(key string, list []string) bool {
	for _, l := range list {
		if key == l {
			return true
		}
		if strings.HasSuffix(l, "-") && strings.HasPrefix(key, l) {
			return true
		}
	}
	return false
}

// token is what a client sends in place of a key, wherever its protocol has it.
func token(r *http.Request) string {
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

// question is what the gateway reads of a request.
type question struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	// The most that the answer may have, in tokens, by the name that each API
	// gives it; 0 is not said.
	MaxTokens           int64 `json:"max_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
	MaxOutputTokens     int64 `json:"max_output_tokens"`
	GenerationConfig    struct {
		MaxOutputTokens int64 `json:"maxOutputTokens"`
	} `json:"generationConfig"`
	Tools json.RawMessage `json:"tools"`
	Tier  string          `json:"service_tier"` // OpenAI
	Speed string          `json:"speed"`        // Anthropic
	// Background: the answer is made after the call, where nobody counts it.
	Background bool `json:"background"`
}

// ask reads a request. A body that is no JSON of this kind asks for nothing that
// is known: the provider says what is wrong with it.
func ask(r *http.Request, path string, body []byte) question {
	var q question
	_ = json.Unmarshal(body, &q)
	if _, rest, ok := strings.Cut(path, "/models/"); ok {
		model, method, _ := strings.Cut(rest, ":")
		// Without alt=sse Gemini's stream is one list, which cannot be cut.
		q.Model, q.Stream = model, method == "streamGenerateContent" && r.URL.Query().Get("alt") == "sse"
	}
	q.Model = strings.TrimPrefix(q.Model, "models/")
	return q
}

// works is whether the call is a step of the agent's work: it offers tools. The
// others name the session, or ask whether all is done.
func (q question) works() bool { return len(q.Tools) > len("[]") }

// tier is how fast the answer shall be; "" is not said. Anthropic's service_tier
// asks for nothing that costs more.
func (q question) tier() string {
	if q.Tier == "standard_only" || q.Tier == "auto" {
		return q.Speed
	}
	return cmp.Or(q.Speed, q.Tier)
}

// most is the limit of the answer, in tokens; 0 when the request has none.
func (q question) most() int64 {
	return max(q.MaxTokens, q.MaxCompletionTokens, q.MaxOutputTokens, q.GenerationConfig.MaxOutputTokens)
}
