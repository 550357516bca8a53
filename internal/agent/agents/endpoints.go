package agents

import (
	"slices"
	"strings"
)

// service is a model provider, or a part of one, as a program reaches it.
type service struct {
	hosts []string // where it is; nothing at all when only a variable can tell
	// base are variables with a base URL of the user's own. One that is set
	// takes the place of hosts.
	base []string
	// when are variables of which one must be set; nil is always.
	when []string
	// unless are variables of which none may be set.
	unless []string
}

var (
	anthropic = service{hosts: []string{"api.anthropic.com"}, base: []string{"ANTHROPIC_BASE_URL"},
		when: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"}}
	openai = service{hosts: []string{"api.openai.com"},
		base: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_HOST"},
		when: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_HOST"}}
	google = service{hosts: []string{"generativelanguage.googleapis.com"}, base: []string{"GOOGLE_GEMINI_BASE_URL"},
		when: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_GEMINI_BASE_URL"}}
	bedrock = service{base: []string{"ANTHROPIC_BEDROCK_BASE_URL"},
		hosts: []string{"bedrock-runtime.{AWS_REGION}.amazonaws.com", "bedrock-runtime.{AWS_DEFAULT_REGION}.amazonaws.com"}}
	vertex = service{
		hosts: []string{"aiplatform.googleapis.com", "{CLOUD_ML_REGION}-aiplatform.googleapis.com",
			"{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com", "oauth2.googleapis.com"},
		base: []string{"ANTHROPIC_VERTEX_BASE_URL", "GOOGLE_VERTEX_BASE_URL"},
	}
)

// keyed are the providers of programs that work with many: each counts when
// its key is set.
var keyed = []service{
	anthropic, openai, google,
	{hosts: []string{"openrouter.ai"}, when: []string{"OPENROUTER_API_KEY"}},
	{hosts: []string{"api.groq.com"}, when: []string{"GROQ_API_KEY"}},
	{hosts: []string{"api.mistral.ai"}, when: []string{"MISTRAL_API_KEY"}},
	{hosts: []string{"api.deepseek.com"}, when: []string{"DEEPSEEK_API_KEY"}},
	{hosts: []string{"api.x.ai"}, when: []string{"XAI_API_KEY"}},
	{hosts: []string{"{AZURE_RESOURCE_NAME}.openai.azure.com"}, base: []string{"AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"}},
	{base: []string{"OLLAMA_HOST", "OLLAMA_API_BASE"}},
	bedrock.only("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
	vertex.only("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_VERTEX_PROJECT"),
}

// reached is where each program calls its models: measured for those that were
// run, from their documentation for the others. What is not here has to be
// named in the configuration.
var reached = map[string][]service{
	"claude": {
		{
			hosts: anthropic.hosts, base: anthropic.base,
			unless: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"},
		},
		{ // a login is renewed
			hosts: []string{"platform.claude.com", "console.anthropic.com"},
			unless: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK",
				"CLAUDE_CODE_USE_VERTEX"},
		},
		bedrock.only("CLAUDE_CODE_USE_BEDROCK"), vertex.only("CLAUDE_CODE_USE_VERTEX"),
	},
	"codex": {
		{hosts: openai.hosts, base: []string{"OPENAI_BASE_URL"}},
		{hosts: []string{"chatgpt.com", "auth.openai.com"},
			unless: []string{"CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}},
	},
	"gemini": {
		{hosts: google.hosts, base: google.base, unless: []string{"GOOGLE_GENAI_USE_VERTEXAI"}},
		{
			hosts: []string{"cloudcode-pa.googleapis.com", "oauth2.googleapis.com"}, base: []string{"CODE_ASSIST_ENDPOINT"},
			unless: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_GENAI_USE_VERTEXAI"},
		},
		vertex.only("GOOGLE_GENAI_USE_VERTEXAI"),
	},
	"qwen": {
		{hosts: []string{"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"}, base: []string{"OPENAI_BASE_URL"}},
		{hosts: []string{"portal.qwen.ai", "chat.qwen.ai"}, unless: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL"}},
	},
	"copilot": {
		{hosts: []string{"api.githubcopilot.com", "*.githubcopilot.com", "api.github.com"},
			base: []string{"COPILOT_PROVIDER_BASE_URL"}},
	},
	"cursor": {{hosts: []string{"*.cursor.sh"}}},
	"droid":  {{hosts: []string{"api.factory.ai"}}},
	"amp":    {{hosts: []string{"ampcode.com"}, base: []string{"AMP_URL"}}},
	"kiro": {{hosts: []string{"q.us-east-1.amazonaws.com", "oidc.us-east-1.amazonaws.com",
		"prod.us-east-1.auth.desktop.kiro.dev"}}},
	"cline": append([]service{{hosts: []string{"api.cline.bot"}}}, keyed...),
	"kilo":  append([]service{{hosts: []string{"api.kilo.ai"}}}, keyed...),
	"opencode": append([]service{
		{hosts: []string{"opencode.ai"}, when: []string{"OPENCODE_API_KEY"}},
	}, keyed...),
	"aider": keyed,
	"crush": keyed,
	"goose": keyed,
}

// Endpoints is where the agent program of that name calls its models, in the
// words of egress.ParseEndpoint, sorted. see looks up a variable as the program
// will see it: base URLs, regions, and the keys of providers decide. nil finds
// nothing. What is configured in files of the program itself is not known.
func Endpoints(name string, see func(string) string) []string {
	if see == nil {
		see = func(string) string { return "" }
	}
	var all []string
	for _, s := range reached[name] {
		all = append(all, s.endpoints(see)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// only is the service where one of the variables is set.
func (s service) only(variables ...string) service {
	s.when = variables
	return s
}

func (s service) endpoints(see func(string) string) []string {
	set := func(name string) bool { return see(name) != "" }
	missing := s.when != nil && !slices.ContainsFunc(s.when, set)
	if missing || slices.ContainsFunc(s.unless, set) {
		return nil
	}
	for _, name := range s.base {
		if v := strings.TrimSpace(see(name)); v != "" {
			return []string{baseURL(name, v)}
		}
	}
	var hosts []string
	for _, h := range s.hosts {
		if h := fill(h, see); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// baseURL is the value of a variable as an endpoint. Where a server of one's
// own is meant, a value without a scheme is plain http.
func baseURL(name, value string) string {
	scheme, rest, ok := strings.Cut(value, "://")
	if !ok {
		scheme, rest = "https", value
		if strings.HasPrefix(name, "OLLAMA_") {
			scheme = "http"
		}
	}
	host := rest
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if name == "OLLAMA_HOST" && !strings.Contains(host, ":") {
		host += ":11434"
	}
	return strings.ToLower(scheme) + "://" + host
}

// fill puts the value of "{VARIABLE}" into a host; "" when it is not set.
func fill(host string, see func(string) string) string {
	before, rest, ok := strings.Cut(host, "{")
	if !ok {
		return host
	}
	name, after, _ := strings.Cut(rest, "}")
	v := see(name)
	if v == "" || v == "global" {
		return ""
	}
	return before + v + after
}
