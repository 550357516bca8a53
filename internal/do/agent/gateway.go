package agent

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Gateway is what stands between an attempt's agent and its models, when the
// agent has a key and can be pointed at it. nil is nothing: the program calls
// its models by itself.
type Gateway struct {
	Routes []Route `json:"routes"`
	// CA is a file of certificates that are trusted beside the system's; "" is none.
	CA string `json:"ca,omitempty"`
	// DayDir is the folder that has what all runs of the user used today; "" counts
	// nothing. Day is what they may.
	DayDir string         `json:"day_dir,omitempty"`
	Day    loop.DayLimits `json:"day,omitzero"`
}

// ModelUse is the use of one model.
type ModelUse struct {
	Usage
	Calls int           `json:"calls"` // that were answered, or may have been
	Cost  loop.MicroUSD `json:"cost_micro_usd"`
	// Unpriced is true if the cost is not complete, or not known at all.
	Unpriced bool `json:"unpriced,omitempty"`
}

// Route is the way to one provider.
type Route struct {
	Name     string   `json:"name"` // the first element of the path, e.g. "anthropic"
	Protocol Protocol `json:"protocol"`
	Base     string   `json:"base"` // URL that the rest of the path is added to, e.g. https://api.anthropic.com
	// Header is the name of the header for Key; "Authorization" is a bearer's.
	Header string `json:"header"`
	// Key is the provider's. It is never written to a file.
	Key string `json:"-"`
	// Extra are further headers of the account, e.g. OpenAI-Organization.
	Extra map[string]string `json:"extra,omitempty"`
	// KeyIn is the variable that the program finds its key in; Own are all that it
	// would look into for a key or an address.
	KeyIn string   `json:"key_in"`
	Own   []string `json:"own,omitempty"`
	// Next is another endpoint of the same protocol, for when this one does not
	// answer; of it Base, Header and Key count. nil is none.
	Next *Route `json:"next,omitempty"`
}

// Other is another endpoint of the route's protocol, whose key goes out as the
// protocol says.
func (r Route) Other(base, key string) *Route {
	return &Route{Name: r.Name, Protocol: r.Protocol, Base: base, Header: r.Protocol.KeyHeader(), Key: key}
}

// Protocol is the API that a provider speaks.
type Protocol string

// The protocols. OpenAI is Responses and Chat Completions, which differ by their paths.
const (
	Anthropic Protocol = "anthropic"
	OpenAI    Protocol = "openai"
	Gemini    Protocol = "gemini"
)

// KeyHeader is the header that a key of the protocol goes out in.
func (p Protocol) KeyHeader() string {
	return map[Protocol]string{Anthropic: "X-Api-Key", OpenAI: "Authorization", Gemini: "X-Goog-Api-Key"}[p]
}

// Placeholders for the gateway's address and for the attempt's token in a command line and in
// variables. The supervisor replaces both when it starts the agent: they are not known before.
const (
	GatewayAddress = "{pawl-gateway}"
	GatewayToken   = "{pawl-token}"
)

// Address returns the placeholder of the route's address, which the supervisor replaces.
func (r Route) Address() string { return GatewayAddress + "/" + r.Name }

// KeySetting begins the name that a route's provider has where a program looks for
// its key and the user keeps it elsewhere: gateway.keys.
const KeySetting = "gateway.keys."

// Keys are the keys of the routes in their order, each with that of its next one.
func (g *Gateway) Keys() []string {
	if g == nil {
		return nil
	}
	var keys []string
	for _, r := range g.Routes {
		keys = append(keys, r.Key)
		if r.Next != nil {
			keys = append(keys, r.Next.Key)
		}
	}
	return keys
}

// WithKeys is the gateway with keys that came another way.
func (g *Gateway) WithKeys(keys []string) *Gateway {
	if g == nil {
		return nil
	}
	take := func() (key string) {
		if len(keys) > 0 {
			key, keys = keys[0], keys[1:]
		}
		return key
	}
	out := *g
	out.Routes = nil
	for _, r := range g.Routes {
		r.Key = take()
		if r.Next != nil {
			next := *r.Next
			next.Key = take()
			r.Next = &next
		}
		out.Routes = append(out.Routes, r)
	}
	return &out
}

// withoutOwn is env without the variables of the routes.
func withoutOwn(env []string, routes []Route) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(routes, func(r Route) bool { return slices.Contains(r.Own, name) })
	})
}

// Point makes a program that is started so reach its models by the routes: the
// token takes the place of each key, and what the program takes addresses from
// is add and args.
func (s *Start) Point(routes []Route, args, add []string) {
	s.Env = withoutOwn(s.Env, routes)
	for _, r := range routes {
		s.Unset = append(s.Unset, r.Own...)
		s.Env = append(s.Env, r.KeyIn+"="+GatewayToken)
	}
	s.Env = append(s.Env, add...)
	s.Args = append(s.Args, args...)
}
