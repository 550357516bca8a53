package program

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
)

// Door is a provider that a program can be pointed at pawl's gateway for.
type Door struct {
	Name     string
	Protocol agent.Protocol
	Keys     []Key
	Base     []string // variables with an address of the user's own
	Home     string   // the provider's own address
	// Extra are variables that become headers of the account.
	Extra map[string]string
	// Env and Args point the program; "{url}" is the gateway's address for this
	// provider, "{state}" pawl's folder.
	Env, Args []string
	// Part is what Program.Pointer or Program.Pointing has of this provider;
	// "{model}" is the model's name.
	Part string
}

// Key is a variable with a key, and the header that the key goes out in.
type Key struct{ Variable, Header string }

const bearer = "Authorization"

// The providers whose keys the gateway keeps.
var (
	ToAnthropic = Door{
		Name: "anthropic", Protocol: agent.Anthropic,
		Home: "https://api.anthropic.com", Base: []string{"ANTHROPIC_BASE_URL"},
		Keys: []Key{{"ANTHROPIC_API_KEY", "X-Api-Key"}, {"ANTHROPIC_AUTH_TOKEN", bearer}},
	}
	ToOpenAI = Door{
		Name: "openai", Protocol: agent.OpenAI,
		Home: "https://api.openai.com/v1", Base: []string{"OPENAI_BASE_URL"},
		Keys: []Key{{"OPENAI_API_KEY", bearer}},
		Extra: map[string]string{
			"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_ORGANIZATION": "OpenAI-Organization",
			"OPENAI_PROJECT_ID": "OpenAI-Project",
		},
	}
	ToGoogle = Door{
		Name: "gemini", Protocol: agent.Gemini,
		Home: "https://generativelanguage.googleapis.com", Base: []string{"GOOGLE_GEMINI_BASE_URL"},
		Keys: []Key{{"GEMINI_API_KEY", "X-Goog-Api-Key"}},
	}
)

// With is the door of a program that takes its key from these variables only;
// the header stays.
func (d Door) With(variables ...string) Door {
	header := d.Keys[0].Header
	d.Keys = nil
	for _, v := range variables {
		d.Keys = append(d.Keys, Key{v, header})
	}
	return d
}

// By is the door of a program that these variables point.
func (d Door) By(env ...string) Door {
	d.Env = env
	return d
}

// Routes are the ways to the providers whose keys the program would find. see
// looks up a variable as the program will see it. can is false for a program that
// no door is known of.
func (a Adapter) Routes(isolated bool, see func(string) string) (routes []agent.Route, can bool) {
	can = len(a.Doors) > 0
	if a.Pointing.Path != "" && !isolated {
		return nil, can
	}
	for _, name := range a.Closed {
		if see(name) != "" {
			return nil, can
		}
	}
	for _, d := range a.Doors {
		if r, ok := d.route(see); ok {
			routes = append(routes, r)
		}
	}
	return routes, can
}

func (d Door) route(see func(string) string) (agent.Route, bool) {
	kept := see(agent.KeySetting + d.Name)
	i := slices.IndexFunc(d.Keys, func(k Key) bool { return kept != "" || see(k.Variable) != "" })
	if i < 0 {
		return agent.Route{}, false
	}
	r := agent.Route{
		Name: d.Name, Protocol: d.Protocol, Base: d.Home, Header: d.Keys[i].Header,
		Key:   cmp.Or(kept, see(d.Keys[i].Variable)),
		KeyIn: d.Keys[i].Variable, Own: slices.Clone(d.Base),
	}
	for _, k := range d.Keys {
		r.Own = append(r.Own, k.Variable)
	}
	for _, name := range d.Base {
		if base := strings.TrimSpace(see(name)); base != "" {
			r.Base = base
		}
	}
	for name, header := range d.Extra {
		if v := see(name); v != "" {
			if r.Extra == nil {
				r.Extra = map[string]string{}
			}
			r.Extra[header] = v
		}
	}
	return r, true
}

// Point makes the program reach its models by the routes of in.
func (a Adapter) Point(start *agent.Start, in agent.Invocation) {
	if len(in.Routes) == 0 {
		return
	}
	var args, env, parts []string
	for _, r := range in.Routes {
		if a.Pointing.Path != "" && !serves(r, in) {
			continue
		}
		i := slices.IndexFunc(a.Doors, func(d Door) bool { return d.Name == r.Name })
		if i < 0 {
			continue
		}
		url := strings.NewReplacer("{url}", r.Address(), "{state}", in.StateDir)
		for _, text := range a.Doors[i].Env {
			env = append(env, url.Replace(text))
		}
		for _, text := range a.Doors[i].Args {
			args = append(args, url.Replace(text))
		}
		if part := a.Doors[i].Part; part != "" {
			part = strings.ReplaceAll(part, "{model}", strings.TrimPrefix(in.Model, a.Prefix))
			parts = append(parts, url.Replace(part))
		}
	}
	if a.Pointing.Path != "" && in.StateDir != "" {
		content := strings.ReplaceAll(a.Pointing.Content, "{parts}", strings.Join(parts, ","))
		start.Files = append(start.Files, agent.File{Path: filepath.Join(in.StateDir, a.Pointing.Path), Content: content})
	}
	if a.Pointer != "" && len(parts) > 0 {
		env = append(env, strings.ReplaceAll(a.Pointer, "{parts}", strings.Join(parts, ",")))
	}
	start.Point(in.Routes, args, env)
}

// serves is whether a route is the one for the model of in: a program whose
// settings have one provider takes the one that the model's name tells.
func serves(r agent.Route, in agent.Invocation) bool {
	return len(in.Routes) == 1 || (r.Protocol == agent.Anthropic) == strings.Contains(in.Model, "claude")
}
