package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
)

// Address is the address of the engine.
type Address struct{ HostPort, Namespace string }

// ParseAddress reads the words of cluster.engine: temporal://host:port/namespace.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "temporal" || u.Hostname() == "" || u.User != nil || strings.Count(u.Path, "/") > 1 ||
		u.RawQuery != "" || u.Fragment != "" {
		return Address{}, fault.Refuse("cluster.engine is not an address: write temporal://host:port/namespace")
	}
	a := Address{u.Host, cmp.Or(strings.TrimPrefix(u.Path, "/"), "default")}
	if u.Port() == "" {
		a.HostPort = net.JoinHostPort(u.Hostname(), "7233")
	}
	return a, nil
}

const (
	dialBound = 15 * time.Second // for an engine that does not answer
	dialAgain = 2 * time.Second  // a worker tries it again
)

// awayError: the engine cannot be reached, or refuses access.
type awayError struct{ text string }

func (e *awayError) Error() string { return e.text }

// Dial connects to the engine. What is sent is compressed: states and records
// repeat themselves, and a history has a limit.
func Dial(ctx context.Context, at autopilot.EngineAt, log *slog.Logger) (client.Client, error) {
	a, err := ParseAddress(at.Address)
	if err != nil {
		return nil, err
	}
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(ctx, dialBound)
	defer cancel()
	o := client.Options{
		HostPort: a.HostPort, Namespace: a.Namespace, Logger: sdklog.NewStructuredLogger(log),
		DataConverter: Converter(),
	}
	if o.ConnectionOptions.TLS, err = tlsConfig(at); err != nil {
		return nil, err
	}
	if at.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(at.APIKey)
	}
	c, err := client.DialContext(ctx, o)
	if err != nil {
		why := fmt.Sprintf("cannot reach the engine at %s, namespace %s: %v", a.HostPort, a.Namespace, err)
		return nil, &awayError{why}
	}
	_, err = c.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: a.Namespace})
	if fault.Is[*serviceerror.NamespaceNotFound](err) { // any other answer is reported where the engine is used
		c.Close()
		return nil, fault.Refuse("the engine at %s has no namespace %s", a.HostPort, a.Namespace).
			Hint("Create it: temporal operator namespace create --address %s --namespace %s", a.HostPort, a.Namespace).
			Hint("Or write another one at the end of cluster.engine")
	}
	return c, nil
}

// tlsConfig is the TLS that files or a key ask for; nil for none. A key never goes
// over a line that is open.
func tlsConfig(at autopilot.EngineAt) (*tls.Config, error) {
	if at.CA == "" && at.Cert == "" && at.Key == "" && at.APIKey == "" {
		return nil, nil //nolint:nilnil // none is no error
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if at.CA != "" {
		text, err := os.ReadFile(at.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read cluster.tls.ca: %v", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("cluster.tls.ca, %s, has no certificate in PEM", at.CA)
		}
	}
	if at.Cert == "" && at.Key == "" {
		return c, nil
	}
	pair, err := tls.LoadX509KeyPair(at.Cert, at.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot use cluster.tls.cert with cluster.tls.key: %v", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// Converter is how values are sent.
func Converter() converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(),
		converter.NewZlibCodec(converter.ZlibCodecOptions{}))
}
