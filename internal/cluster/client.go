package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
)

// Address is where the engine is.
type Address struct{ HostPort, Namespace string }

// ParseAddress reads the words of cluster.engine: temporal://host:port/namespace.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "temporal" || u.Host == "" || u.User != nil || strings.Count(u.Path, "/") > 1 {
		return Address{}, errors.New("cluster.engine is no address of an engine: write temporal://host:port/namespace")
	}
	a := Address{u.Host, cmp.Or(strings.TrimPrefix(u.Path, "/"), "default")}
	if u.Port() == "" {
		a.HostPort = net.JoinHostPort(u.Hostname(), "7233")
	}
	return a, nil
}

// dialBound is how long an engine that does not answer is waited for.
const dialBound = 15 * time.Second

// Dial connects to the engine. What is sent is compressed: states and records
// repeat themselves, and a history has a limit.
func Dial(ctx context.Context, a Address, log *slog.Logger) (client.Client, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(ctx, dialBound)
	defer cancel()
	c, err := client.DialContext(ctx, client.Options{
		HostPort: a.HostPort, Namespace: a.Namespace, Logger: sdklog.NewStructuredLogger(log), DataConverter: Converter(),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the engine at %s, namespace %s: %v", a.HostPort, a.Namespace, err)
	}
	return c, nil
}

// Converter is how values are sent.
func Converter() converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(),
		converter.NewZlibCodec(converter.ZlibCodecOptions{}))
}
