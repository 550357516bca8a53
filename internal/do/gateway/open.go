package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// Open makes the gateway of an attempt as a supervisor asks for it. It goes out
// through the user's proxy (HTTPS_PROXY, NO_PROXY), and trusts the system's
// certificates and those of the plan.
func Open(
	p supervisor.ModelPlan, emit func(agent.Event), end func(loop.Ended, string),
) (supervisor.ModelServer, error) {
	tls, err := trustedRoots(p.CA)
	if err != nil {
		return nil, err
	}
	var spend func(loop.Use) (loop.Use, error)
	if p.DayDir != "" {
		spend = func(add loop.Use) (loop.Use, error) { return ratelimit.Spend(p.DayDir, add, time.Now()) }
	}
	g, err := New(Config{
		Token: p.Token, From: p.From, Routes: p.Routes, Prices: p.Prices,
		Limits: Limits{Cost: p.Cost, Tokens: p.Tokens, Calls: p.Calls, Priced: p.Priced, Day: p.Day}, Spend: spend,
		Closed: p.Closed,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: headerTime,
			ResponseHeaderTimeout: silence, MaxResponseHeaderBytes: maxHeader,
		},
		Emit: emit, End: end, Alive: p.Alive,
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// trustedRoots is whose certificates are believed: the system's, and those in file.
func trustedRoots(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // nil is the system's
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read gateway.ca: %v", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("cannot read the system's certificates: %v", err)
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("cannot use gateway.ca: %s has no certificate in PEM", file)
	}
	return &tls.Config{RootCAs: pool}, nil
}
