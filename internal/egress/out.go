package egress

import (
	"context"
	"net"
)

// Out makes proxies as a supervisor asks for them: one that serves what comes
// to listener, to the endpoints of reach, until ctx is done, and tells what it
// refuses. getenv says which proxy of the user stands before it.
func Out(getenv func(string) string) func(ctx context.Context, listener net.Listener, reach []string, refused func(host, why string)) (func() error, error) {
	return func(ctx context.Context, listener net.Listener, reach []string, refused func(host, why string)) (func() error, error) {
		p, err := out(listener, reach, refused, getenv)
		if err != nil {
			_ = listener.Close()
			return nil, err
		}
		return func() error { return p.Serve(ctx) }, nil
	}
}

func out(
	listener net.Listener, reach []string, refused func(host, why string), getenv func(string) string,
) (*Proxy, error) {
	c := Config{Listener: listener, Limits: DefaultLimits(), Refused: func(r Refusal) { refused(r.Host, r.Why) }}
	for _, text := range reach {
		endpoint, err := ParseEndpoint(text)
		if err != nil {
			return nil, err
		}
		c.Allow = append(c.Allow, endpoint)
	}
	var err error
	if c.Upstream, err = UpstreamFrom(getenv); err != nil {
		return nil, err
	}
	return New(c), nil
}
