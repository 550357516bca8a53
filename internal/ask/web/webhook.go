package web

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"
)

// A forge may call this address when something has happened there. What it sends is not
// read: it says only that pawl is to look, which it does with its own token.
const webhookPath = "/webhooks"

const (
	maxWebhook = 25 << 20         // bytes of one call; GitHub sends no more
	ringEvery  = 10 * time.Second // that pawl looks, at most
)

// WebhookSecret returns the secret by which the calls of a forge are signed.
func (s Session) WebhookSecret() string { return makeKey("webhook", s.Token) }

// handleWebhook takes one call of a forge. Both kinds sign in the same way.
func (s *Server) handleWebhook(w http.ResponseWriter, r *http.Request) {
	mac := hmac.New(sha256.New, []byte(Session{Token: s.o.Token}.WebhookSecret()))
	_, err := io.Copy(mac, http.MaxBytesReader(w, r.Body, maxWebhook))
	if !equalSecrets(r.Header.Get("X-Hub-Signature-256"), "sha256="+hex.EncodeToString(mac.Sum(nil))) || err != nil {
		rest.Problem(http.StatusUnauthorized, "SIGNATURE_REFUSED", "This call is not signed with the secret").
			Suggest("Set the secret at the forge to the one that 'pawl serve --webhooks' prints").WriteTo(w)
		return
	}
	select {
	case s.rings <- struct{}{}:
	default: // it is to look already
	}
	w.WriteHeader(http.StatusNoContent)
}

// answerRings looks at the forge when it has called.
func (s *Server) answerRings(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.rings:
		}
		if err := s.o.Webhook(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("the forge has called, and pawl cannot look", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(ringEvery):
		}
	}
}
