package program

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// Door is a provider that a program can be pointed at pawl's gateway for.
type Door struct {
	To       string // the one of providers.json that it is like
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
	Part Part
}

// Key is a variable with a key, and the header that the key goes out in; "" is the protocol's.
type Key struct{ Variable, Header string }

// Part is a piece of JSON: the members of an object, or the elements of a list.
type Part string

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
	return lists.Pick(a.Doors, func(d Door) (agent.Route, bool) { return d.routeOfDoor(see) }), can
}

func (d Door) routeOfDoor(see func(string) string) (agent.Route, bool) {
	kept := see(agent.KeySetting + d.Name)
	i := slices.IndexFunc(d.Keys, func(k Key) bool { return kept != "" || see(k.Variable) != "" })
	if i < 0 {
		return agent.Route{}, false
	}
	r := agent.Route{
		Name: d.Name, Protocol: d.Protocol, Base: d.Home, Header: cmp.Or(d.Keys[i].Header, d.Protocol.KeyHeader()),
		Key:   cmp.Or(kept, see(d.Keys[i].Variable)),
		KeyIn: d.Keys[i].Variable, Own: slices.Clone(d.Base),
	}
	r.Own = append(r.Own, lists.Each(d.Keys, func(k Key) string { return k.Variable })...)
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
		if a.Pointing.Path != "" && !servesModel(r, in) {
			continue
		}
		i := slices.IndexFunc(a.Doors, func(d Door) bool { return d.Name == r.Name })
		if i < 0 {
			continue
		}
		url := strings.NewReplacer("{url}", r.Address(), "{state}", in.StateDir)
		env = append(env, lists.Each(a.Doors[i].Env, url.Replace)...)
		args = append(args, lists.Each(a.Doors[i].Args, url.Replace)...)
		if part := string(a.Doors[i].Part); part != "" {
			part = strings.ReplaceAll(part, "{model}", strings.TrimPrefix(in.Model, a.Prefix))
			parts = append(parts, url.Replace(part))
		}
	}
	if a.Pointing.Path != "" && in.StateDir != "" {
		content := strings.ReplaceAll(a.Pointing.Content, "{parts}", strings.Join(parts, ","))
		start.Files = append(start.Files,
			agent.File{Path: filepath.Join(in.StateDir, a.Pointing.Path), Content: content})
	}
	if a.Settings.Path != "" && in.StateDir != "" && in.Safety == "paranoid" {
		a.Settings.Path = filepath.Join(in.StateDir, a.Settings.Path)
		start.Files = append(start.Files, a.Settings)
	}
	if a.Pointer != "" && len(parts) > 0 {
		env = append(env, strings.ReplaceAll(a.Pointer, "{parts}", strings.Join(parts, ",")))
	}
	start.Point(in.Routes, args, env)
}

// servesModel reports whether a route is the one for the model of in: a program whose settings have
// one provider takes the one that the model's name suggests.
func servesModel(r agent.Route, in agent.Invocation) bool {
	return len(in.Routes) == 1 || (r.Protocol == agent.Anthropic) == strings.Contains(in.Model, "claude")
}

// Service is a model provider, or a part of one, as a program reaches it.
type Service struct {
	Of    string   // the one of providers.json that it is like
	Hosts []string // its addresses; none when only a variable has it
	// Base are variables with a base URL of the user's own. One that is set
	// takes the place of Hosts.
	Base []string
	// When are variables of which one must be set; nil is always.
	When []string
	// Unless are variables of which none may be set.
	Unless []string
}

// Endpoints returns the addresses of the service, in the words of egress.ParseEndpoint. see looks
// up a variable as the program will see it.
func (s Service) Endpoints(see func(string) string) []string {
	set := func(name string) bool { return see(name) != "" }
	missing := s.When != nil && !slices.ContainsFunc(s.When, set)
	if missing || slices.ContainsFunc(s.Unless, set) {
		return nil
	}
	for _, name := range s.Base {
		if v := strings.TrimSpace(see(name)); v != "" {
			return []string{endpointOfVariable(name, v)}
		}
	}
	var hosts []string
	for _, h := range s.Hosts {
		if h := fillHost(h, see); h != "" {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// endpointOfVariable is the value of a variable as an endpoint. Where a server of one's
// own is meant, a value without a scheme is plain http.
func endpointOfVariable(name, value string) string {
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

// fillHost puts the value of "{VARIABLE}" into a host; "" when it is not set.
func fillHost(host string, see func(string) string) string {
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
