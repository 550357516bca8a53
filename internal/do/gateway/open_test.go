package gateway

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// company is a certificate authority that no system knows.
type company struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newCompany(t *testing.T) *company {
	t.Helper()
	c := &company{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	c.cert, c.key = c.issue(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "company"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	})
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.cert.Raw})
	if err := os.WriteFile(c.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// issue signs a certificate; the first one signs itself.
func (c *company) issue(plan *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	plan.NotBefore, plan.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, with := plan, key
	if c.key != nil {
		by, with = c.cert, c.key
	}
	der, err := x509.CreateCertificate(rand.Reader, plan, by, &key.PublicKey, with)
	if err != nil {
		c.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		c.t.Fatal(err)
	}
	return cert, key
}

// provider serves over TLS as provider.test and as 127.0.0.1, in these versions of HTTP.
func (c *company) provider(protocols ...string) *httptest.Server {
	c.t.Helper()
	cert, key := c.issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "provider"}, DNSNames: []string{"provider.test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"type":"message","model":"m","content":[{"type":"text","text":"`+r.Proto+`"}],"stop_reason":"end_turn"}`)
	}))
	s.EnableHTTP2 = len(protocols) > 0 && protocols[0] == "h2"
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, NextProtos: protocols}
	s.StartTLS()
	c.t.Cleanup(s.Close)
	return s
}

// opened is a gateway as a supervisor opens it.
func opened(t *testing.T, base, ca string) (*rig, error) {
	t.Helper()
	r := &rig{t: t, client: &http.Client{Transport: &http.Transport{}}}
	plan := supervisor.ModelPlan{Token: testToken, Gateway: agent.Gateway{CA: ca, Routes: []agent.Route{
		{Name: "anthropic", Protocol: agent.Anthropic, Base: base, Header: "X-Api-Key", Key: testKey},
	}}}
	server, err := Open(plan, r.emit, r.end)
	if err != nil {
		return nil, err
	}
	r.gateway = server.(*Gateway)
	r.gateway.config.Sleep = r.sleep
	s := httptest.NewServer(r.gateway)
	t.Cleanup(s.Close)
	t.Cleanup(r.client.CloseIdleConnections)
	r.url = s.URL
	return r, nil
}

// A provider behind a company's own certificates is believed when gateway.ca says
// so, and never without. One that speaks HTTP/2 only is spoken to.
func TestCompanysCertificates(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	for _, protocol := range []string{"http/1.1", "h2"} {
		s := c.provider(protocol)
		r, err := opened(t, s.URL, c.file)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"http/1.1": "HTTP/1.1", "h2": "HTTP/2.0"}[protocol]
		if status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != 200 || !strings.Contains(answer, want) {
			t.Errorf("%s: status %d: %s", protocol, status, answer)
		}
		if r, err = opened(t, s.URL, ""); err != nil {
			t.Fatal(err)
		}
		status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole)
		if status != http.StatusBadGateway || !strings.Contains(answer, "name its certificates in gateway.ca") || len(r.slept) != 0 || len(r.ended) != 1 || r.ended[0] != loop.EndedRetries {
			t.Errorf("%s without gateway.ca: status %d: %s, ended %v", protocol, status, answer, r.ended)
		}
	}
	for name, file := range map[string]string{"there is none": filepath.Join(t.TempDir(), "no.pem"), "no certificate": "open_test.go"} {
		if _, err := opened(t, "https://provider.test", file); err == nil || !strings.Contains(err.Error(), "gateway.ca") {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// Calls leave through the user's proxy. The environment is read once in a
// process, so this one has a process of its own.
func TestThroughProxy(t *testing.T) {
	t.Parallel()
	if base := os.Getenv("PAWL_TEST_PROVIDER"); base != "" {
		r, err := opened(t, base, os.Getenv("PAWL_TEST_CA"))
		if err != nil {
			t.Fatal(err)
		}
		if status, answer, _ := r.post(kinds[0].path, kinds[0].header, kinds[0].whole); status != 200 {
			t.Errorf("status %d: %s", status, answer)
		}
		return
	}
	c := newCompany(t)
	s := c.provider("http/1.1")
	p := newTunnel(t, strings.TrimPrefix(s.URL, "https://"))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestThroughProxy$")
	cmd.Env = append(os.Environ(), "HTTPS_PROXY=http://user:secret@"+p.address, "NO_PROXY=", "no_proxy=", "https_proxy=",
		"PAWL_TEST_PROVIDER=https://provider.test", "PAWL_TEST_CA="+c.file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) != 1 || p.asked[0] != "CONNECT provider.test:443 Basic dXNlcjpzZWNyZXQ=" {
		t.Errorf("the proxy was asked for %q", p.asked)
	}
}

// tunnel is a proxy whose every tunnel ends at one address.
type tunnel struct {
	address string
	mu      sync.Mutex
	asked   []string
}

func newTunnel(t *testing.T, to string) *tunnel {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tunnel{address: l.Addr().String()}
	var work sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.pass(ctx, conn, to) })
		}
	})
	return p
}

func (p *tunnel) pass(ctx context.Context, conn net.Conn, to string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close(); _ = out.Close() })()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, in); _ = out.Close() })
	both.Go(func() { _, _ = io.Copy(conn, out); _ = conn.Close() })
	both.Wait()
}
