// Package ratelimit keeps what is known of the limits of model providers, one
// small file for each account that agents use, in a folder that all
// repositories of a user share: the run that meets a limit spares the others
// the call. It also counts what a user's runs spend in a day.
//
// It never waits for a limit, never decides what a run does about one, and
// never stores a key. It never stands in a run's way either: what cannot be
// read, written or believed counts as no limit.
package ratelimit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

const (
	// Lease is how long one run alone tries whether a limit is over. A try that
	// takes longer, or whose process died, does not keep others from trying.
	Lease = 5 * time.Minute

	lockWithin = 2 * time.Second
	forget     = 24 * time.Hour       // after the end of a limit
	ahead      = time.Minute          // by which clocks may differ
	farthest   = 366 * 24 * time.Hour // a limit beyond it is not believed
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
	Probe Probe  `json:"probe,omitzero"`
	Why   string `json:"-"` // where it is the user's own; "" for a provider's
}

// Probe is a run that tries whether a limit is over; the zero one is none.
type Probe struct {
	Run string           `json:"run"`
	At  time.Time        `json:"at"`
	By  process.Identity `json:"by"`
}

// BlockedUntil says until when the limit keeps run from a call, zero if it does
// not. probe is the other run whose try is waited for, "" while the limit lasts.
func (l *Limit) BlockedUntil(run string, now time.Time) (until time.Time, probe string) {
	if l.Until.After(now) {
		return l.Until, ""
	}
	p, end := l.Probe, l.Probe.At.Add(Lease)
	if p.Run == "" || p.Run == run || p.At.After(now.Add(ahead)) || !now.Before(end) || !process.Alive(p.By) {
		return time.Time{}, ""
	}
	return end, p.Run
}

// Same is true while nothing happened to the limit between two looks.
func (l *Limit) Same(o *Limit) bool {
	return l.Until.Equal(o.Until) && l.Times == o.Times && l.Probe.Run == o.Probe.Run
}

// Store is the folder. A nil one knows of no limit and keeps none.
type Store struct {
	dir string
	// Plan is the part of a subscription above which nothing is started, in per cent; 0 is no limit.
	Plan int
}

// NewStore uses a folder, which is made when the first limit is met.
func NewStore(dir string) *Store { return &Store{dir: dir} }

// Key names an account by what identifies it, e.g. the agent, its base
// URL and its key. None of it can be read from the name.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Look returns an account's known limit, the provider's or the user's own; false when it has none.
func (s *Store) Look(key string, now time.Time) (l Limit, ok bool) {
	if l, ok = s.limitMet(key, now); ok && l.Until.After(now) {
		return l, true
	}
	if own, reached := s.limitPlan(key, now); reached {
		return own, true
	}
	return l, ok
}

// limitMet reads the provider's limit.
func (s *Store) limitMet(key string, now time.Time) (l Limit, ok bool) {
	if s == nil || key == "" || files.ReadJSON(s.fileOfAccount(key), &l) != nil || !l.isCredible(now) {
		return Limit{}, false
	}
	return l, true
}

// isCredible is false for what pawl would not have written: garbage, the future of
// a clock that was set back, and what is long over.
func (l *Limit) isCredible(now time.Time) bool {
	switch l.Class {
	case failure.RateLimit, failure.QuotaExhausted, failure.ServiceUnavailable:
	default:
		return false
	}
	if l.Met.IsZero() || l.Met.After(now.Add(ahead)) || l.Times < 1 {
		return false
	}
	lasts := l.Until.Sub(l.Met)
	return lasts >= 0 && lasts <= farthest && now.Before(l.Until.Add(forget)) && isRunID(l.Run) && isRunID(l.Probe.Run)
}

// isRunID guards what is shown on terminals.
func isRunID(id string) bool {
	return len(id) <= 32 && strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// Acquire is asked right before a call. While the limit keeps the run from it,
// throttled is true. Once it is over, one run gets probe: its call is the try
// that the others wait for, until it says what came of it by [Store.Record],
// [Store.Clear] or [Store.Release]. insist tries before the limit is over.
func (s *Store) Acquire(
	ctx context.Context, key, run string, by process.Identity, insist bool,
) (probe, throttled bool) {
	if _, reached := s.limitPlan(key, time.Now()); reached && !insist {
		return false, true
	}
	err := s.changeLimit(ctx, key, func(l *Limit, now time.Time) *Limit {
		until, _ := l.BlockedUntil(run, now)
		throttled = !until.IsZero() && !insist
		if probe = !throttled; probe {
			l.Probe = Probe{Run: run, At: now, By: by}
		}
		return l
	})
	return probe && err == nil, throttled
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

// Record notes a limit. One that was met before the attempt began is met again:
// it counts up. Else several were on their way when it came, and the longest
// wait holds.
func (s *Store) Record(ctx context.Context, key string, m Meeting) error {
	return s.replaceLimit(ctx, key, func(l *Limit, now time.Time) *Limit {
		l = cmp.Or(l, &Limit{})
		again := l.Times == 0 || m.Began.After(l.Met)
		if again {
			*l = Limit{Met: now, Times: l.Times + 1}
		}
		if !m.Until.After(now) {
			m.Until, m.Named = now.Add(min(minBackoff<<min(l.Times-1, 10), maxBackoff)), false
		}
		if again || m.Until.After(l.Until) {
			l.Class, l.Until, l.Named, l.Run = m.Class, m.Until, m.Named, m.Run
		}
		return l
	})
}

// Clear forgets a limit that was met before began: a call since then went well.
func (s *Store) Clear(ctx context.Context, key string, began time.Time) error {
	return s.changeLimit(ctx, key, func(l *Limit, _ time.Time) *Limit {
		if began.After(l.Met) {
			return nil
		}
		return l
	})
}

// Release gives run's try up without a result, so that the next may try.
func (s *Store) Release(ctx context.Context, key, run string) error {
	return s.changeLimit(ctx, key, func(l *Limit, _ time.Time) *Limit {
		if l.Probe.Run == run {
			l.Probe = Probe{}
		}
		return l
	})
}

// changeLimit replaces what is known of a limit, where there is one. fn returns nil
// to leave none.
func (s *Store) changeLimit(ctx context.Context, key string, fn func(*Limit, time.Time) *Limit) error {
	if _, limited := s.limitMet(key, time.Now()); !limited {
		return nil
	}
	return s.replaceLimit(ctx, key, func(l *Limit, now time.Time) *Limit {
		if l == nil {
			return nil
		}
		return fn(l, now)
	})
}

// replaceLimit is change also where there is no limit: fn gets nil then. One process
// does it at a time.
func (s *Store) replaceLimit(ctx context.Context, key string, fn func(*Limit, time.Time) *Limit) error {
	if s == nil || key == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockWithin)
	defer cancel()
	lock, err := files.Lock(ctx, filepath.Join(s.dir, "lock"))
	if err != nil {
		return fmt.Errorf("cannot store a provider's limit: %v", err)
	}
	defer func() { _ = lock.Close() }()
	now := time.Now()
	var old *Limit
	if l, limited := s.limitMet(key, now); limited {
		old = &l
	}
	if l := fn(old, now); l != nil {
		return files.ReplaceJSON(s.fileOfAccount(key), l, false)
	}
	if err := os.Remove(s.fileOfAccount(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove a provider's limit: %v", err)
	}
	return nil
}

func (s *Store) fileOfAccount(key string) string { return filepath.Join(s.dir, key+".json") }

// What all runs of a user use in a day is in one small file, in the folder of the
// limits. The day is that of this machine's zone.

// day is what the file has. It is stored: names must not change.
type day struct {
	Date string `json:"date"` // 2026-11-23
	loop.Use
}

// NextDay returns the end of the day of now.
func NextDay(now time.Time) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.Local)
}

// Spend adds to what was used on the day of now, and returns all of it. It takes
// less than 0 back. With nothing to add it only looks.
func Spend(dir string, add loop.Use, now time.Time) (loop.Use, error) {
	path := filepath.Join(dir, "day.json")
	if add == (loop.Use{}) {
		d, err := readDayUse(path, now)
		return d.Use, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	lock, err := files.Lock(ctx, filepath.Join(dir, "day.lock"))
	if err != nil {
		return loop.Use{}, fmt.Errorf("cannot store the use of today: %v", err)
	}
	defer func() { _ = lock.Close() }()
	d, err := readDayUse(path, now)
	if err != nil {
		return loop.Use{}, err
	}
	d.Use = d.Plus(add)
	d.Cost, d.Tokens, d.Calls = max(0, d.Cost), max(0, d.Tokens), max(0, d.Calls)
	if err := files.ReplaceJSON(path, d, false); err != nil {
		return loop.Use{}, fmt.Errorf("cannot store the use of today: %v", err)
	}
	return d.Use, nil
}

// readDayUse is the day of now. Clocks and zones of processes may differ by a day: the
// later one counts, so that nothing is counted from zero twice.
func readDayUse(path string, now time.Time) (day, error) {
	today := day{Date: now.Local().Format(time.DateOnly)}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return today, nil
	case err != nil:
		return today, fmt.Errorf("cannot read the use of today: %v", err)
	}
	var d day
	if json.Unmarshal(data, &d) != nil || min(int64(d.Cost), d.Tokens, d.Calls) < 0 {
		return today, fmt.Errorf("cannot read the use of today: %s is damaged; remove it to count from 0", path)
	}
	if d.Date < today.Date || d.Date > now.Local().AddDate(0, 0, 1).Format(time.DateOnly) {
		return today, nil
	}
	return d, nil
}

// Dir is the folder; "" of a nil one.
func (s *Store) Dir() string {
	if s == nil {
		return ""
	}
	return s.dir
}

// Plan of a subscription, as a program reports it. It is stored: names must not change.
type Plan struct {
	Agent   string                `json:"agent"`
	Windows []subscription.Window `json:"windows"`
	Seen    time.Time             `json:"seen"`
}

const planEnd = ".plan.json"

// SavePlan keeps what an agent's program said of the plan of its account.
func (s *Store) SavePlan(key, agent string, windows []subscription.Window, now time.Time) error {
	p := Plan{Agent: agent, Windows: subscription.Known(windows, now), Seen: now}
	if s == nil || key == "" || len(p.Windows) == 0 {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot store the use of a plan: %v", err)
	}
	return files.ReplaceJSON(filepath.Join(s.dir, key+planEnd), p, false)
}

// planOfAccount reads the plan of an account; one without windows is not known.
func (s *Store) planOfAccount(key string, now time.Time) (p Plan) {
	if s == nil || key == "" || files.ReadJSON(filepath.Join(s.dir, key+planEnd), &p) != nil {
		return Plan{}
	}
	p.Windows = subscription.Known(p.Windows, now)
	return p
}

// Plans of some accounts in words, nil for all of the user, and how much of the fullest is used, in per cent.
func (s *Store) Plans(keys []string, now time.Time) (said []string, most int) {
	if keys == nil && s != nil {
		names, _ := filepath.Glob(filepath.Join(s.dir, "*"+planEnd)) // the pattern is good
		keys = lists.Each(names, func(name string) string { return strings.TrimSuffix(filepath.Base(name), planEnd) })
	}
	for _, key := range keys {
		if p := s.planOfAccount(key, now); len(p.Windows) > 0 {
			said, most = append(said, p.String()), max(most, subscription.Fullest(p.Windows).Used)
		}
	}
	slices.Sort(said)
	return slices.Compact(said), most
}

// String is for people.
func (p Plan) String() string {
	return "plan of " + p.Agent + ": " + strings.Join(lists.Each(p.Windows, subscription.Window.String), "; ")
}

// limitPlan makes a limit of limits.plan, where it is reached.
func (s *Store) limitPlan(key string, now time.Time) (Limit, bool) {
	if s == nil || s.Plan == 0 {
		return Limit{}, false
	}
	p := s.planOfAccount(key, now)
	w := subscription.Fullest(p.Windows)
	return Limit{
		Class: failure.QuotaExhausted, Met: p.Seen, Until: w.Resets, Named: true, Times: 1,
		Why: fmt.Sprintf("%d %% of the plan of %s is used, and limits.plan is %d %%", w.Used, p.Agent, s.Plan),
	}, w.Used >= s.Plan
}
