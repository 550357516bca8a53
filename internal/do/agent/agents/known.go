package agents

import (
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Program is the known program that an agent runs: the one of its name, else
// the one that a word of its command names, else the one whose format it
// prints; "" when none is known.
func Program(name, format string, argv []string) string {
	candidates := []string{name}
	candidates = append(candidates, lists.Each(argv, programNamed)...)
	for _, c := range append(candidates, format) {
		if _, ok := known()[c]; ok {
			return c
		}
	}
	return ""
}

// programNamed returns the name of the program that a word of a command line stands for: a path, an
// npm package with its version, or the program's bridge to ACP, e.g. claude-agent-acp.
func programNamed(word string) string {
	word, _, _ = strings.Cut(filepath.Base(word), "@")
	for _, end := range []string{"-acp", "-agent", "-code"} {
		word = strings.TrimSuffix(word, end)
	}
	for _, p := range known() {
		if p.Binary == word {
			return p.Name
		}
	}
	return word
}

// Folders returns the folders in which a program keeps the user's logins, settings and sessions.
// getenv looks up the environment that the program will have.
func Folders(program, home string, getenv func(string) string) []string {
	return known()[program].Homes(home, getenv)
}

// LoggedIn looks for signs of a login of a program: a variable with a key, else a file or folder of
// its own. exists reports whether there is one at a path. ok is false for a program that pawl does
// not know. What a keychain holds is not seen.
func LoggedIn(program, home string, env []string, exists func(path string) bool) (sign string, ok bool) {
	p, is := known()[program]
	if !is {
		return "", false
	}
	values := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	getenv := func(name string) string { return values[name] }
	for _, name := range slices.Sorted(maps.Keys(values)) {
		secret := strings.HasSuffix(name, "KEY") || strings.HasSuffix(name, "TOKEN") || strings.Contains(name, "_USE_")
		fits := func(pattern string) bool { match, _ := path.Match(pattern, name); return match }
		secret = secret && !slices.Contains(p.Unread, name)
		if secret && values[name] != "" && slices.ContainsFunc(Variables(program, "", getenv), fits) {
			return name, true
		}
	}
	places := p.Homes(home, getenv)
	if p.Login != "" && len(places) > 0 && runtime.GOOS == "linux" {
		if strings.HasPrefix(places[0], home) { // not moved
			places[0] = filepath.Join(home, p.Login)
		}
		places = places[:1]
	}
	for _, place := range places {
		if exists(place) {
			return place, true
		}
	}
	return "", true
}

// Keys are the variables that a program reads the key of its provider from; nil where that is not known.
func Keys(program string) []string { return known()[program].State.Keys }

// OthersFolders returns the folders of all other programs, wherever they may be.
func OthersFolders(program, home string, getenv func(string) string) []string {
	var out []string
	none := func(string) string { return "" }
	for _, name := range Names() {
		if name == program {
			continue
		}
		out = lists.Union(out, slices.Concat(Folders(name, home, none), Folders(name, home, getenv))...)
	}
	return out
}

// Endpoints returns the addresses at which the agent program of that name calls its models, in the
// words of egress.ParseEndpoint, sorted. see looks up a variable as the program will see it: base
// URLs, regions, and the keys of providers decide. nil finds nothing. What is configured in files
// of the program itself is not known.
func Endpoints(name string, see func(string) string) []string {
	if see == nil {
		see = func(string) string { return "" }
	}
	var all []string
	for _, s := range known()[name].Services {
		all = append(all, s.Endpoints(see)...)
	}
	return lists.Distinct(all)
}

// providers are the variables from which programs read the keys and addresses
// of model providers. * stands for any characters.
var providers = []string{
	"ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_GEMINI_*",
	"MISTRAL_*", "CODESTRAL_*", "DEEPSEEK_*", "GROQ_*",
	"XAI_*", "OPENROUTER_*", "TOGETHER_*", "TOGETHERAI_*", "FIREWORKS_*", "CEREBRAS_*", "COHERE_*", "PERPLEXITY_*",
	"DASHSCOPE_*", "MOONSHOT_*", "ZAI_*", "ZHIPU_*", "MINIMAX_*", "NVIDIA_API_KEY",
	"AZURE_OPENAI_*", "AZURE_API_*", "AZURE_RESOURCE_NAME", "AWS_BEARER_TOKEN_BEDROCK", "HF_TOKEN", "OLLAMA_*",
	"LITELLM_*", "LM_STUDIO_*", "VERTEXAI_*", "AI_GATEWAY_*",
}

// Variables are patterns of the names of variables that an agent reads its
// credentials and addresses from: those that a level that withholds secrets
// must leave. A user's own agent that prints the format of a known one has
// that one's; of any other it is not known which provider it talks to, so all
// are left. getenv is the environment that the agent inherits.
func Variables(name, output string, getenv func(string) string) []string {
	if output != "" || !slices.Contains(Names(), name) {
		name = output
	}
	if name == played {
		return []string{} // it calls no model
	}
	p := known()[name]
	out := slices.Clone(p.Variables)
	if !p.Single {
		out = append(out, providers...)
	}
	for _, c := range p.Clouds {
		if !slices.Contains([]string{"", "0", "false"}, getenv(c.When)) {
			out = append(out, c.Needs...)
		}
	}
	return out
}
