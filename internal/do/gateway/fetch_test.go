package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/test/modelserver"
)

// What the provider would open for the agent, by protocol. Each is refused as it is written, with
// its fields in the other spelling, and as the second of two fields of one name.
var fetches = map[agent.Protocol]map[string]string{
	agent.Anthropic: {
		"an image":               `{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://x.example/secret"}}]}]}`,
		"a document":             `{"messages":[{"content":[{"type":"document","source":{"type":"url","url":"https://x.example"}}]}]}`,
		"an image of a result":   `{"messages":[{"content":[{"type":"tool_result","content":[{"source":{"url":"https://x.example"}}]}]}]}`,
		"in the system's prompt": `{"system":[{"type":"image","source":{"type":"url","url":"https://x.example"}}]}`,
		"a search":               `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
		"a fetch":                `{"tools":[{"name":"read"},{"type":"web_fetch_20250910","name":"web_fetch"}]}`,
		"a tool of tomorrow":     `{"tools":[{"type":"teleport_20300101","name":"x"}]}`,
		"code":                   `{"tools":[{"type":"code_execution_20250825","name":"x"}]}`,
		"an MCP server":          `{"mcp_servers":[{"type":"url","url":"https://x.example","name":"x"}]}`,
		"a field of tomorrow":    `{"messages":[{"content":[{"type":"image","source":{"from":"s3://x.example/secret"}}]}]}`,
	},
	agent.OpenAI: {
		"an image of a chat":     `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://x.example/secret"}}]}]}`,
		"an image":               `{"input":[{"content":[{"type":"input_image","image_url":"https://x.example/secret"}]}]}`,
		"an image of a result":   `{"input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"//x.example"}]}]}`,
		"a file":                 `{"input":[{"content":[{"type":"input_file","file_url":"https://x.example"}]}]}`,
		"a variable":             `{"prompt":{"id":"p","variables":{"input":{"type":"input_image","image_url":"https://x.example"}}}}`,
		"a search":               `{"tools":[{"type":"web_search"}]}`,
		"a search in a chat":     `{"web_search_options":{}}`,
		"an MCP server":          `{"tools":[{"type":"mcp","server_label":"x","connector_id":"y"}]}`,
		"a tool of a group":      `{"tools":[{"type":"namespace","name":"x","tools":[{"type":"web_search"}]}]}`,
		"a tool that was found":  `{"input":[{"type":"tool_search_output","tools":[{"type":"mcp"}]}]}`,
		"a model that searches":  `{"model":"gpt-4o-search-preview"}`,
		"a model that is online": `{"model":"some/model:online"}`,
		"a plugin":               `{"plugins":[{"id":"web"}]}`,
		"a server's own search":  `{"enable_search":true}`,
		"live search":            `{"search_parameters":{"mode":"on"}}`,
	},
	agent.Gemini: {
		"a file":     `{"contents":[{"parts":[{"file_data":{"file_uri":"https://x.example"}}]}]}`,
		"a search":   `{"tools":[{"google_search":{}}]}`,
		"addresses":  `{"tools":[{"url_context":{}}]}`,
		"a tool":     `{"tools":{"google_maps":{}}}`,
		"of results": `{"contents":[{"parts":[{"function_response":{"name":"x","response":{},"parts":[{"file_data":{"file_uri":"x"}}]}}]}]}`,
	},
}

// What agents ask all day.
var works = map[agent.Protocol]map[string]string{
	agent.Anthropic: {
		"tools":     `{"model":"m","tools":[{"name":"Fetch","description":"https://x.example","input_schema":{"properties":{"url":{"default":"https://x.example"}}}},{"type":"custom","name":"x"},{"type":"bash_20250124","name":"bash"}],"mcp_servers":[]}`,
		"arguments": `{"messages":[{"role":"assistant","content":[{"type":"tool_use","name":"Fetch","input":{"url":"https://x.example"}}]},{"role":"user","content":"https://x.example"}]}`,
		"an image":  `{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"iVBORw0KGgo"}},{"type":"text","text":"https://x.example"}]}]}`,
	},
	agent.OpenAI: {
		"tools":  `{"tools":[{"type":"function","name":"x","parameters":{"properties":{"url":{"default":"https://x.example"}}}},{"type":"custom","name":"apply_patch"},{"type":"local_shell"}],"tool_choice":"auto"}`,
		"a chat": `{"tools":[{"type":"function","function":{"name":"x","parameters":{"url":"https://x.example"}}}],"messages":[{"role":"tool","content":"https://x.example"},{"tool_calls":[{"function":{"arguments":"{\"url\":\"https://x.example\"}"}}]}]}`,
		"notes":  `{"client_metadata":{"repository":"https://x.example/y.git"}}`,
		"images": `{"input":[{"content":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo"}]},{"type":"local_shell_call","action":{"env":{"BASE_URL":"https://x.example"}}}]}`,
	},
	agent.Gemini: {
		"tools": `{"tools":[{"functionDeclarations":[{"name":"x","parameters":{"url":"https://x.example"}}]}],"contents":[{"parts":[{"functionCall":{"args":{"url":"https://x.example"}}},{"functionResponse":{"response":{"uri":"https://x.example"}}},{"inlineData":{"data":"iVBORw0KGgo"}}]}]}`,
	},
}

var askPaths = map[agent.Protocol][]string{
	agent.Anthropic: {"/anthropic/v1/messages", "/anthropic/v1/messages/count_tokens"},
	agent.OpenAI:    {"/openai/responses", "/openai/chat/completions"},
	agent.Gemini:    {"/gemini/v1beta/models/m:generateContent", "/gemini/v1beta/models/m:countTokens"},
}

// The provider of an agent that reaches its models only opens no address for it; it does at other
// levels.
func TestProviderOpensNoAddress(t *testing.T) {
	t.Parallel()
	closed := with(t, modelserver.Scenario{}, func(c *Config) { c.Closed = true })
	open := with(t, modelserver.Scenario{}, nil)
	ask := func(r *rig, path, body string) (int, string) {
		t.Helper()
		status, text, _ := r.post(path, "X-Api-Key", body)
		return status, text
	}
	for protocol, all := range fetches {
		for name, body := range all {
			double := strings.Replace(body, `{"`, `{"x":{"url":"data:,"},"`, 1)
			for _, body := range []string{body, camel(body), strings.ToUpper(body[:4]) + body[4:], double} {
				for _, path := range askPaths[protocol] {
					if status, text := ask(closed, path, body); status != http.StatusBadRequest || !strings.Contains(text, "open an address") {
						t.Errorf("%s, %s: %s is answered %d %s", path, name, body, status, text)
					}
				}
			}
			if status, text := ask(open, askPaths[protocol][0], body); strings.Contains(text, "open an address") {
				t.Errorf("at another level %s is answered %d %s", body, status, text)
			}
		}
	}
	for _, body := range []string{"", "{", "{}{}", `{"x":NaN}`, strings.Repeat(`{"x":`, 300) + "1" + strings.Repeat("}", 300)} {
		if status, text := ask(closed, "/anthropic/v1/messages", body); status != http.StatusBadRequest {
			t.Errorf("%.20q is answered %d %s", body, status, text)
		}
	}
	if n := len(closed.provider.Requests()); n != 0 {
		t.Errorf("the provider got %d requests", n)
	}
	for protocol, all := range works {
		for name, body := range all {
			if status, text := ask(closed, askPaths[protocol][0], body); strings.Contains(text, "open an address") {
				t.Errorf("%s: %s is answered %d %s", name, body, status, text)
			}
		}
	}
}

// camel is the other spelling of fields: web_search_options as webSearchOptions.
func camel(body string) string {
	parts := strings.Split(body, `"`)
	for i := 1; i < len(parts); i += 2 {
		if i+1 < len(parts) && strings.HasPrefix(parts[i+1], ":") {
			words := strings.Split(parts[i], "_")
			for j, w := range words[1:] {
				words[j+1] = strings.ToUpper(w[:1]) + w[1:]
			}
			parts[i] = strings.Join(words, "")
		}
	}
	return strings.Join(parts, `"`)
}
