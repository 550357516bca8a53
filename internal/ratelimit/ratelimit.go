// Package ratelimit keeps what is known of the limits of model providers, one
// small file for each account that agents use, in a folder that all
// repositories of a user share: the run that meets a limit spares the others
// the call.
//
// It never waits for a limit, never decides what a run does about one, and
// never stores a key. It never stands in a run's way either: what cannot be
// read, written or believed counts as no limit.
package ratelimit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/process"
)

const (
	// Lease is how long one run alone tries whether a limit is over. A try that
	// takes longer, or whose process died, keeps nobody from trying as well.
	Lease = 5 * time.Minute

	lockWithin = 2 * time.Second
	forget     = 24 * time.Hour       // after the end of a limit
	ahead      = time.Minute          // by which clocks may differ
	farthest   = 366 * 24 * time.Hour // a limit beyond it is not believed
	maxFile    = 16 << 10
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Limit is a limit of one account. It is stored: names must not change.
type Limit struct {
	Class failure.Class `json:"class"`
	Met   time.Time     `json:"met"` // first, since it was last over
	Until time.Time     `json:"until"`
	// Named is true when the provider said until when.
	Named bool `json:"named,omitempty"`
	// Times counts how often it was met in a row, each time after it should
	// have been over.
	Times int    `json:"times"`
	Run   string `json:"run"` // that met it last
	Probe *Probe `json:"probe,omitempty"`
}

// Probe is a run that tries whether a limit is over.
type Probe struct {
	Run string           `json:"run"`
	At  time.Time        `json:"at"`
	By  process.Identity `json:"by"`
}

// Bars says until when the limit keeps run from a call, zero if it does not.
// probe is the other run whose try is waited for, "" while the limit lasts.
func (l *Limit) Bars(run string, now time.Time) (until time.Time, probe string) {
	if l.Until.After(now) {
		return l.Until, ""
	}
	p := l.Probe
	if p == nil || p.Run == run || p.At.After(now.Add(ahead)) || !now.Before(p.At.Add(Lease)) || !process.Alive(p.By) {
		return time.Time{}, ""
	}
	return p.At.Add(Lease), p.Run
}

// Same is true while nothing happened to the limit between two looks.
func (l *Limit) Same(o *Limit) bool {
	if (l.Probe == nil) != (o.Probe == nil) || l.Probe != nil && l.Probe.Run != o.Probe.Run {
		return false
	}
	return l.Until.Equal(o.Until) && l.Times == o.Times
}

// Shelf is the folder. A nil one knows of no limit and keeps none.
type Shelf struct{ dir string }

// NewShelf uses a folder, which is made when the first limit is met.
func NewShelf(dir string) *Shelf { return &Shelf{dir} }

// Key names an account by what tells it from others, e.g. the agent, its base
// URL and its key. None of it can be read from the name.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Look is what is known of an account's limit; false when it has none.
func (s *Shelf) Look(key string, now time.Time) (Limit, bool) {
	if s == nil || key == "" {
		return Limit{}, false
	}
	f, err := os.Open(s.file(key))
	if err != nil {
		return Limit{}, false
	}
	defer f.Close()
	data := make([]byte, maxFile)
	n, _ := f.Read(data)
	var l Limit
	if json.Unmarshal(data[:n], &l) != nil || !l.credible(now) {
		return Limit{}, false
	}
	return l, true
}

// credible is false for what nobody would have written: garbage, the future of
// a clock that was set back, and what is long over.
func (l *Limit) credible(now time.Time) bool {
	switch l.Class {
	case failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable:
	default:
		return false
	}
	if l.Met.IsZero() || l.Met.After(now.Add(ahead)) || l.Until.Before(l.Met) || l.Until.Sub(l.Met) > farthest || l.Times < 1 {
		return false
	}
	return now.Before(l.Until.Add(forget)) && plain(l.Run) && (l.Probe == nil || plain(l.Probe.Run))
}

// plain is true for the id of a run: it is shown on terminals.
func plain(id string) bool {
	return len(id) <= 32 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// Enter is asked right before a call. While the limit bars the run, barred is
// true. Once it is over, one run gets probe: its call is the try that the
// others wait for, until it says what came of it by [Shelf.Meet],
// [Shelf.Clear] or [Shelf.Release]. insist tries before the limit is over.
func (s *Shelf) Enter(ctx context.Context, key, run string, by process.Identity, insist bool) (probe, barred bool) {
	if _, limited := s.Look(key, time.Now()); !limited {
		return false, false
	}
	err := s.change(ctx, key, func(l *Limit, now time.Time) *Limit {
		if l == nil {
			return nil
		}
		if until, _ := l.Bars(run, now); !until.IsZero() && !insist {
			barred = true
			return l
		}
		probe = true
		l.Probe = &Probe{Run: run, At: now, By: by}
		return l
	})
	return probe && err == nil, barred
}

// Meeting is that a call met a limit.
type Meeting struct {
	Run   string
	Class failure.Class
	Began time.Time // the attempt
	// Until is when it is over; Named that the provider said so. Zero backs off.
	Until time.Time
	Named bool
}

// Meet notes a limit. One that was met before the attempt began is met again:
// it counts up. Else several were on their way when it came, and the longest wait holds.
func (s *Shelf) Meet(ctx context.Context, key string, m Meeting) error {
	return s.change(ctx, key, func(l *Limit, now time.Time) *Limit {
		if l == nil {
			l = &Limit{}
		}
		again := l.Times == 0 || m.Began.After(l.Met)
		if again {
			*l = Limit{Met: now, Times: l.Times + 1}
		}
		if !m.Until.After(now) {
			m.Until, m.Named = now.Add(backoff(l.Times)), false
		}
		if again || m.Until.After(l.Until) {
			l.Class, l.Until, l.Named, l.Run = m.Class, m.Until, m.Named, m.Run
		}
		return l
	})
}

// backoff is the n-th wait in a row that nobody named.
func backoff(n int) time.Duration {
	if n >= 10 {
		return maxBackoff
	}
	return min(minBackoff<<max(n-1, 0), maxBackoff)
}

// Clear forgets a limit that was met before began: a call since then went well.
func (s *Shelf) Clear(ctx context.Context, key string, began time.Time) error {
	if l, limited := s.Look(key, time.Now()); !limited || !began.After(l.Met) {
		return nil
	}
	return s.change(ctx, key, func(l *Limit, _ time.Time) *Limit {
		if l == nil || began.After(l.Met) {
			return nil
		}
		return l
	})
}

// Release gives run's try up without a result, so that the next may try.
func (s *Shelf) Release(ctx context.Context, key, run string) error {
	if _, limited := s.Look(key, time.Now()); !limited {
		return nil
	}
	return s.change(ctx, key, func(l *Limit, _ time.Time) *Limit {
		if l != nil && l.Probe != nil && l.Probe.Run == run {
			l.Probe = nil
		}
		return l
	})
}

// change replaces what is known of a limit, one process at a time. fn gets nil
// when there is none, and returns nil to leave none.
func (s *Shelf) change(ctx context.Context, key string, fn func(*Limit, time.Time) *Limit) error {
	if s == nil || key == "" {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot keep a provider's limit: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockWithin)
	defer cancel()
	lock, err := files.Lock(ctx, filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("cannot keep a provider's limit: %v", err)
	}
	now := time.Now()
	var old *Limit
	if l, limited := s.Look(key, now); limited {
		old = &l
	}
	return errors.Join(s.write(key, fn(old, now)), lock.Close())
}

// write stores a limit in one step, or removes it.
func (s *Shelf) write(key string, l *Limit) error {
	path := s.file(key)
	if l == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot forget a provider's limit: %v", err)
		}
		return nil
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("cannot encode a provider's limit: %v", err)
	}
	if err = os.WriteFile(path+".tmp", data, 0o600); err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		_ = os.Remove(path + ".tmp")
		return fmt.Errorf("cannot keep a provider's limit: %v", err)
	}
	return nil
}

func (s *Shelf) file(key string) string { return filepath.Join(s.dir, key+".json") }
