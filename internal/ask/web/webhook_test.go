package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
)

// signed is a forge's call, signed with a secret.
func signed(r *rig, body, secret string) *http.Request {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(body))
	q := r.asking(http.MethodPost, webhookPath, body)
	q.Header.Del("Authorization")
	q.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return q
}

// A forge whose call is signed has pawl look, once for all calls that come meanwhile. Nobody
// else has, whatever is sent, and nothing else is to be had there.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	secret := Session{Token: testToken}.WebhookSecret()
	if w := r.send(signed(r, "{}", secret)); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "TOKEN_REQUIRED") {
		t.Errorf("where no webhooks are served: %d %s", w.Code, w.Body)
	}
	looks := make(chan bool, 10)
	r.s.o.Webhook = func(context.Context) error { looks <- true; return errors.New("the forge does not answer") }
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"signed":            {func(*http.Request) {}, http.StatusNoContent},
		"again":             {func(*http.Request) {}, http.StatusNoContent},
		"by another":        {func(q *http.Request) { *q = *signed(r, "{}", testToken) }, http.StatusUnauthorized},
		"of another body":   {func(q *http.Request) { q.Body = signed(r, "{ }", secret).Body }, http.StatusUnauthorized},
		"not signed":        {func(q *http.Request) { q.Header.Del("X-Hub-Signature-256") }, http.StatusUnauthorized},
		"empty signature":   {func(q *http.Request) { q.Header.Set("X-Hub-Signature-256", "sha256=") }, http.StatusUnauthorized},
		"too large":         {func(q *http.Request) { *q = *signed(r, strings.Repeat(" ", maxWebhook+1), secret) }, http.StatusUnauthorized},
		"a form":            {func(q *http.Request) { q.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, http.StatusUnsupportedMediaType},
		"of another site":   {func(q *http.Request) { q.Header.Set("Origin", "https://example.com") }, http.StatusForbidden},
		"to the API":        {func(q *http.Request) { q.URL.Path = rest.Base + "/cases" }, http.StatusUnauthorized},
		"below it":          {func(q *http.Request) { q.URL.Path = webhookPath + "/x" }, http.StatusUnauthorized},
		"by another method": {func(q *http.Request) { q.Method = http.MethodDelete }, http.StatusUnauthorized},
	} {
		q := signed(r, "{}", secret)
		c.change(q)
		if w := r.send(q); w.Code != c.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go r.s.answerRings(ctx)
		synctest.Wait() // it has looked, and rests
	})
	if len(looks) != 1 || !strings.Contains(r.log.String(), "the forge does not answer") {
		t.Errorf("it looked %d times: %s", len(looks), r.log)
	}
}

// No body and no signature but the right one has pawl look.
func FuzzWebhook(f *testing.F) {
	f.Add("{}", "sha256=00")
	f.Fuzz(func(t *testing.T, body, signature string) {
		r := newRig(t)
		r.s.o.Webhook = func(context.Context) error { return nil }
		q := signed(r, body, Session{Token: testToken}.WebhookSecret())
		right := q.Header.Get("X-Hub-Signature-256")
		q.Header.Set("X-Hub-Signature-256", signature)
		if w := r.send(q); (w.Code == http.StatusNoContent) != (signature == right) || len(r.s.rings) > 0 != (signature == right) {
			t.Errorf("%q is answered with %d", signature, w.Code)
		}
	})
}
