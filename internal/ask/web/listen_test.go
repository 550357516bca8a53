package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// Beyond loopback the server wants TLS, or to be told that nobody reads along.
func TestExposure(t *testing.T) {
	t.Parallel()
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"} {
		if d, err := listen.Open(t.Context(), listen.Address{Address: address}); !errors.Is(err, listen.ErrExposed) {
			t.Errorf("%s: %v, %v", address, d, err)
		}
	}
	for _, address := range []string{"127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", ""} {
		if d, err := listen.Open(t.Context(), listen.Address{Address: address}); err == nil || errors.Is(err, listen.ErrExposed) {
			t.Errorf("%s: %v, %v", address, d, err)
		}
	}
	if _, err := listen.Open(t.Context(), listen.Address{Address: "127.0.0.1:0", Cert: "x.pem"}); err == nil {
		t.Error("a certificate without a key is taken")
	}
	if d, err := listen.Open(t.Context(), listen.Address{Address: "127.0.0.1:0", Cert: "x.pem", Key: "y.pem"}); err == nil || d != nil {
		t.Errorf("with a certificate that does not exist: %v, %v", d, err)
	}
	d, err := listen.Open(t.Context(), listen.Address{Address: "0.0.0.0:0", Insecure: true, Hosts: []string{"box.example"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	for host, want := range map[string]bool{
		"127.0.0.1": true, "192.0.2.7": true, "[2001:db8::1]": true, "localhost": true, "box.example": true, "BOX.example": true,
		"attacker.example": false, "box.example.attacker.example": false, "[fe80::1%25eth0]": false, "": false,
	} {
		if got := d.AcceptsHost(host + ":" + d.Port); got != want {
			t.Errorf("answers to %q: %v", host, got)
		}
	}
}

// A busy port that nobody named is passed over; one that was named is an error.
func TestBusyPort(t *testing.T) {
	t.Parallel()
	first, err := listen.Open(t.Context(), listen.Address{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	address := "127.0.0.1:" + first.Port
	if _, err := listen.Open(t.Context(), listen.Address{Address: address, Named: true}); !errors.Is(err, listen.ErrPortInUse) {
		t.Errorf("named: %v", err)
	}
	second, err := listen.Open(t.Context(), listen.Address{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Close() }()
	before, _ := strconv.Atoi(first.Port)
	after, _ := strconv.Atoi(second.Port)
	if after <= before || after > before+listen.NextPorts {
		t.Errorf("the next port after %d is %d", before, after)
	}
}

// Connections that begin a request and never end it keep nobody from an answer.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.serve()
	var first net.Conn
	for range listen.MaxConnections {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: ")); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		}
	}
	req := r.asking(http.MethodGet, "http://"+r.host+rest.Base+"/status", "")
	req.RequestURI = ""
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if data, _ := io.ReadAll(first); len(data) != 0 { // it ends, or is reset
		t.Errorf("the first of them was answered: %q", data)
	}
}

// With a certificate the server speaks TLS only, and its cookie is for TLS.
func TestTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a := listen.Address{Address: "127.0.0.1:0", Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{a.Cert: {Type: "CERTIFICATE", Bytes: der}, a.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRigAt(t, a)
	r.serve()
	pool := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(cert)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.s.listener.URL()+"/?token="+testToken, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.ProtoMajor != 2 || len(res.Cookies()) != 1 || !res.Cookies()[0].Secure || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("got %s with %v", res.Proto, res.Cookies())
	}
}

// The session is for its user alone, and says whether its server lives.
func TestSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := LoadSession(dir); !errors.Is(err, ErrNoSession) {
		t.Errorf("none: %v", err)
	}
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	s := Session{URL: "http://127.0.0.1:1", Token: NewToken(), Owner: self}
	if err := s.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := LoadSession(dir)
	if err != nil || got != s || !got.Alive() || got.Link() != "http://127.0.0.1:1/?token="+s.Token {
		t.Errorf("got %+v, %v", got, err)
	}
	for path, mode := range map[string]os.FileMode{SessionDir(dir): 0o700, sessionFile(dir): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if (Session{}).Alive() || !IsToken(s.Token) || IsToken("short") || IsToken(strings.Repeat("g", 64)) || NewToken() == s.Token || makeKey("cookie", s.Token) == s.Token {
		t.Error("tokens are not what they should be")
	}
	if err := os.WriteFile(sessionFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSession(dir); err == nil || errors.Is(err, ErrNoSession) {
		t.Errorf("a broken one: %v", err)
	}
}

// Servers that start at once each keep a whole session: none takes away what
// another one writes.
func TestSessionsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if err := (Session{Token: NewToken()}).Save(dir); err != nil {
					t.Error(err)
				}
				if s, err := LoadSession(dir); err != nil || !IsToken(s.Token) {
					t.Errorf("it is %+v, %v", s, err)
				}
			}
		})
	}
	all.Wait()
}

// Files of the pages are kept for ever where the name says what is in them, and
// asked for anew otherwise.
func TestPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, path := range []string{"/", "/index.html", "/runs/abc", "/board"} {
		w := r.send(r.asking(http.MethodGet, path, ""))
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/none.js", "/../doc.go", "/dist/index.html.gz", "/.gitkeep.txt", "/..%2f..%2fpages.go"} {
		if w := r.send(r.asking(http.MethodGet, path, "")); w.Code == http.StatusOK && !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %.100s", path, w.Code, w.Body)
		}
	}
	if w := r.send(r.asking(http.MethodPost, "/", "{}")); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a page was posted to: %d", w.Code)
	}
	scripts, err := dist.ReadDir("dist/assets")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("the pages have no scripts: %v", err)
	}
	for _, f := range scripts {
		w := r.send(r.asking(http.MethodGet, "/assets/"+f.Name(), ""))
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", f.Name(), w.Code, w.Header())
		}
	}
}
