package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/cluster"
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
	gone := httptest.NewServer(nil)
	address := gone.Listener.Addr().String()
	gone.Close()
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
