package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/fault"
)

// poster sends messages and remembers the first failure: a collector that is
// away is told of once, at the end of the run, and holds nothing up.
type poster struct {
	client  http.Client
	headers map[string]string

	mu     sync.Mutex
	failed int
	why    error
}

// maxReply bounds what is read of a collector's answer.
const maxReply = 4 << 10

// post sends a message. That it could not is kept for the end of the run.
func (p *poster) post(ctx context.Context, to string, message object) {
	err := p.try(ctx, to, message)
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed++
	if p.why == nil {
		p.why = err
	}
}

func (p *poster) try(ctx context.Context, to string, message object) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode telemetry: %v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range p.headers {
		req.Header.Set(name, value)
	}
	res, err := p.client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the whole address
		}
		return fmt.Errorf("%s: %w", withoutSecrets(to), err)
	}
	defer res.Body.Close()
	reply, _ := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s: %s", withoutSecrets(to), res.Status,
			strings.Join(strings.Fields(string(reply)), " "))
	}
	return nil
}

// trouble is what went wrong, nil when nothing did.
func (p *poster) trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == 0 {
		return nil
	}
	return fmt.Errorf("telemetry is not complete: %s could not be sent: %w", fault.Numbered(p.failed, "message"), p.why)
}

func withoutSecrets(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		return "the collector"
	}
	return u.Scheme + "://" + u.Host + u.Path
}
