package program

import (
	"slices"
	"strings"
)

// Service is a model provider, or a part of one, as a program reaches it.
type Service struct {
	Hosts []string // where it is; nothing at all when only a variable can tell
	// Base are variables with a base URL of the user's own. One that is set
	// takes the place of Hosts.
	Base []string
	// When are variables of which one must be set; nil is always.
	When []string
	// Unless are variables of which none may be set.
	Unless []string
}

// The providers that several programs reach. Bedrock and Vertex count as [Service.Only] says.
var (
	Anthropic = Service{Hosts: []string{"api.anthropic.com"}, Base: []string{"ANTHROPIC_BASE_URL"},
		When: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"}}
	OpenAI = Service{Hosts: []string{"api.openai.com"},
		Base: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_HOST"},
		When: []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_HOST"}}
	Google = Service{Hosts: []string{"generativelanguage.googleapis.com"}, Base: []string{"GOOGLE_GEMINI_BASE_URL"},
		When: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_GEMINI_BASE_URL"}}
	Bedrock = Service{Base: []string{"ANTHROPIC_BEDROCK_BASE_URL"},
		Hosts: []string{"bedrock-runtime.{AWS_REGION}.amazonaws.com", "bedrock-runtime.{AWS_DEFAULT_REGION}.amazonaws.com"}}
	Vertex = Service{
		Hosts: []string{"aiplatform.googleapis.com", "{CLOUD_ML_REGION}-aiplatform.googleapis.com",
			"{GOOGLE_CLOUD_LOCATION}-aiplatform.googleapis.com", "oauth2.googleapis.com"},
		Base: []string{"ANTHROPIC_VERTEX_BASE_URL", "GOOGLE_VERTEX_BASE_URL"},
	}
)

// Keyed are the providers of programs that work with many, after those of the
// program itself. Each counts when its key is set.
func Keyed(own ...Service) []Service {
	return append(own, []Service{
		Anthropic, OpenAI, Google,
		{Hosts: []string{"openrouter.ai"}, When: []string{"OPENROUTER_API_KEY"}},
		{Hosts: []string{"api.groq.com"}, When: []string{"GROQ_API_KEY"}},
		{Hosts: []string{"api.mistral.ai"}, When: []string{"MISTRAL_API_KEY"}},
		{Hosts: []string{"api.deepseek.com"}, When: []string{"DEEPSEEK_API_KEY"}},
		{Hosts: []string{"api.x.ai"}, When: []string{"XAI_API_KEY"}},
		{Hosts: []string{"{AZURE_RESOURCE_NAME}.openai.azure.com"}, Base: []string{"AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"}},
		{Base: []string{"OLLAMA_HOST", "OLLAMA_API_BASE"}},
		Bedrock.Only("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
		Vertex.Only("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_VERTEX_PROJECT"),
	}...)
}

// Only is the service where one of the variables is set.
func (s Service) Only(variables ...string) Service {
	s.When = variables
	return s
}

// Endpoints is where the service is, in the words of egress.ParseEndpoint. see
// looks up a variable as the program will see it.
func (s Service) Endpoints(see func(string) string) []string {
	set := func(name string) bool { return see(name) != "" }
	missing := s.When != nil && !slices.ContainsFunc(s.When, set)
	if missing || slices.ContainsFunc(s.Unless, set) {
		return nil
	}
	for _, name := range s.Base {
		if v := strings.TrimSpace(see(name)); v != "" {
			return []string{baseURL(name, v)}
		}
	}
	var hosts []string
	for _, h := range s.Hosts {
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
