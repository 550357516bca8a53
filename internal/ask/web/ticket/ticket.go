// Package ticket has one-time, short-lived passes for what a browser opens by an address
// alone: a WebSocket, or a page of another origin. It knows nothing of what they open.
package ticket

import (
	"crypto/rand"
	"sync"
	"time"
)

const (
	// Life is how long a ticket is good.
	Life = time.Minute
	// most is how many may be out; the oldest goes first.
	most = 64
)

// Desk issues tickets and takes them back.
type Desk struct {
	mu  sync.Mutex
	out []issued // the oldest first
}

type issued struct {
	secret, opens string
	until         time.Time
}

// Issue makes a ticket for what it opens.
func (d *Desk) Issue(opens string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := issued{secret: rand.Text() + rand.Text(), opens: opens, until: time.Now().Add(Life)}
	d.out = append(d.out[max(0, len(d.out)+1-most):], t)
	return t.secret
}

// Use uses a ticket up and returns what it opens. ok is false if there is no such
// ticket, or if it has expired.
func (d *Desk) Use(secret string) (opens string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, t := range d.out {
		if t.secret == secret { // 256 random bits: the time of a comparison reveals nothing
			d.out = append(d.out[:i:i], d.out[i+1:]...)
			return t.opens, time.Now().Before(t.until)
		}
	}
	return "", false
}
