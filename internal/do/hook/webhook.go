package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
)

// Webhook is an address that gets events by POST. Address and Headers may
// hold secrets: neither is ever part of an error.
type Webhook struct {
	Address string
	Headers map[string]string
	// Plain sends the text alone instead of JSON.
	Plain   bool
	Timeout time.Duration // of one try; positive
}

const (
	maxRetryAfter = 30 * time.Second
	maxAnswer     = 4 << 10 // bytes read of an answer
)

// sender posts events. It follows no redirect.
type sender struct {
	client    *http.Client
	transport *http.Transport
	backoff   []time.Duration // pauses between tries
}

func newSender(backoff []time.Duration) *sender {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		MaxIdleConns:    4, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &sender{transport: t, backoff: backoff, client: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (s *sender) closeIdle() { s.transport.CloseIdleConnections() }

// body is what Slack, Mattermost, Rocket.Chat and Google Chat show as text,
// Discord as content, and programs read as event.
type body struct {
	Text    string `json:"text"`
	Content string `json:"content"`
	Event   Event  `json:"event"`
}

// inChat keeps the words of others from being a mention or a link in a chat: what
// Slack and Google Chat write in angle brackets, @everyone, links with a text.
var inChat = strings.NewReplacer("<", "‹", ">", "›", "@", "@\u200b", "](", "] (")

// sendWebhook posts e. What may pass is tried again, as often as there are pauses: no
// answer, 408, 429 and 5xx.
func (s *sender) sendWebhook(ctx context.Context, w Webhook, e Event) error {
	if err := w.Check(); err != nil {
		return err
	}
	data, kind := []byte(e.Text+"\n"), "text/plain; charset=utf-8"
	if !w.Plain {
		var err error
		text := inChat.Replace(e.Text)
		if data, err = json.Marshal(body{Text: text, Content: text, Event: e}); err != nil {
			return fmt.Errorf("cannot encode the event: %v", err)
		}
		kind = "application/json"
	}
	for try := 0; ; try++ {
		after, again, err := s.postOnce(ctx, w, data, kind)
		if err == nil || !again || try == len(s.backoff) || ctx.Err() != nil {
			return w.removeSecrets(err, try+1)
		}
		if !process.Sleep(ctx, max(s.backoff[try], min(after, maxRetryAfter))) {
			return w.removeSecrets(err, try+1)
		}
	}
}

// postOnce makes one try. again: another one may help, and after how long
// the server wants it.
func (s *sender) postOnce(ctx context.Context, w Webhook, data []byte, kind string) (
	after time.Duration, again bool, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Address, bytes.NewReader(data))
	if err != nil {
		return 0, false, errors.New("the address cannot be used")
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("User-Agent", "pawl")
	for name, value := range w.Headers {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, true, fmt.Errorf("no answer within %s", w.Timeout)
		}
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // holds the address
			err = wrapped.Err
		}
		return 0, true, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode < 300:
		return 0, false, nil
	case res.StatusCode < 400:
		const message = "the server redirects (%s), and pawl follows no redirect: write the new address"
		return 0, false, fmt.Errorf(message, res.Status)
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	again = res.StatusCode >= 500 ||
		res.StatusCode == http.StatusRequestTimeout || res.StatusCode == http.StatusTooManyRequests
	line, _, _ := strings.Cut(strings.TrimSpace(string(answer)), "\n")
	if line != "" {
		line = ": " + makePrintable(line, 200)
	}
	return time.Duration(max(0, seconds)) * time.Second, again, fmt.Errorf("the server answered %s%s", res.Status, line)
}

// removeSecrets takes the secrets of w out of an error.
func (w Webhook) removeSecrets(err error, tries int) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	secrets := []string{w.Address}
	if u, perr := url.Parse(w.Address); perr == nil {
		secrets = append(secrets, u.RequestURI(), u.EscapedPath(), u.Path, u.RawQuery)
		if u.User != nil {
			word, _ := u.User.Password()
			secrets = append(secrets, u.User.Username(), word)
		}
	}
	for _, value := range w.Headers {
		secrets = append(secrets, value)
		if _, token, ok := strings.Cut(value, " "); ok {
			secrets = append(secrets, token)
		}
	}
	for _, secret := range secrets {
		if len(secret) > 3 {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if tries > 1 {
		text += fmt.Sprintf(" (tried %d times)", tries)
	}
	return errors.New(text)
}

// Check refuses an address that is none of http or https. The error does not
// hold it.
func (w Webhook) Check() error {
	u, err := url.Parse(w.Address)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return errors.New("the address is not an http or https address")
	}
	return nil
}
