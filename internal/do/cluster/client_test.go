package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/cluster"
)

// The engine sees the machine's certificate and the key, and what it answers is no
// reason to show them.
func TestTheEngineIsSpokenToOverTLS(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		w.WriteHeader(http.StatusUnauthorized)
	}))
	server.EnableHTTP2, server.TLS = true, &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	own := server.TLS.Certificates[0] // as good as any for the machine's
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), 0o600))
	must(t, os.WriteFile(key, keyOf(t, own), 0o600))
	at := autopilot.EngineAt{
		Address: "temporal://" + server.Listener.Addr().String() + "/pawl", CA: ca, Cert: ca, Key: key, APIKey: "very secret",
	}
	_, err := cluster.Dial(t.Context(), at, nil)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("who is not let in is told: %v", err)
	}
	r := <-seen
	if len(r.TLS.PeerCertificates) != 1 || r.Header.Get("Authorization") != "Bearer very secret" {
		t.Errorf("the engine saw %d certificates and the key %q", len(r.TLS.PeerCertificates), r.Header.Get("Authorization"))
	}
	for what, bad := range map[string]autopilot.EngineAt{
		"cannot read cluster.tls.ca":       {Address: at.Address, CA: filepath.Join(dir, "none")},
		"has no certificate":               {Address: at.Address, CA: key},
		"cannot use cluster.tls.cert with": {Address: at.Address, Cert: ca},
	} {
		if _, err := cluster.Dial(t.Context(), bad, nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("it should say %q: %v", what, err)
		}
	}
}

func keyOf(t *testing.T, c tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// A worker that starts while the engine is away says so, and waits.
func TestAnEngineThatIsAway(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(nil) // no engine, at a port that stays taken
	defer other.Close()
	address := other.Listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var said []string
	at := autopilot.EngineAt{Address: "temporal://" + address + "/pawl"}
	err := cluster.Program{}.Work(ctx, at, "repo", autopilot.Offer{Slots: 1}, autopilot.Options{
		StateDir: t.TempDir(),
		Notify: func(n autopilot.Notice) {
			said = append(said, n.Text)
			stop()
		},
	})
	if err != nil || len(said) != 1 || !strings.Contains(said[0], address) {
		t.Errorf("it said %q, and ended with %v", said, err)
	}
}

// An address that is none, a namespace that does not exist and a server that is no engine
// are each told in words, with what was written.
func TestAnEngineThatIsNone(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"temporal://", "temporal://:7233/pawl", "http://127.0.0.1:7233/pawl", "127.0.0.1:7233", "temporal://host:port/pawl",
		"temporal://user:hunter2@host/pawl", "temporal://host/pawl/x", "temporal://host/pawl?tls=yes", "temporal://host/pawl#x", "",
	} {
		_, err := cluster.ParseAddress(address)
		var refused *fault.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "temporal://host:port/namespace") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", address, err)
		}
	}
	at := autopilot.EngineAt{Address: strings.TrimSuffix(startEngine(t, t.TempDir()).at(), "/pawl") + "/elsewhere"}
	if _, _, err := (cluster.Program{}).Join(t.Context(), at, "repo", nil, nil); err == nil || !strings.Contains(err.Error(), "has no namespace elsewhere") {
		t.Errorf("a namespace that does not exist: %v", err)
	}
	err := cluster.Program{}.Work(t.Context(), at, "repo", autopilot.Offer{Slots: 1}, autopilot.Options{StateDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "has no namespace elsewhere") {
		t.Errorf("a worker of a namespace that does not exist: %v", err)
	}
	at.Address = strings.TrimSuffix(at.Address, "elsewhere") + "pawl"
	s, err := cluster.Program{}.Inspect(t.Context(), at, "repo")
	if err != nil || !strings.HasPrefix(s.Version, "1.") || s.Workers != 0 {
		t.Errorf("it found %+v (%v)", s, err)
	}
}
