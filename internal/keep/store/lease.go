package store

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// On a board that several machines have, nobody sees whether a process of another
// machine lives. So who owns something beats a lease there, and counts as dead when it
// is over. Times are the server's.
const leaseOver = 30 * time.Second

// every is the time between two beats.
func (l *leases) every() time.Duration { return max(l.over/3, 100*time.Millisecond) }

// leases are those that this process beats.
type leases struct {
	mu   sync.Mutex
	mine map[Owner]bool
	over time.Duration
	boot string             // see [Shared]
	stop context.CancelFunc // nil until there is one
	done chan struct{}
}

const beat = `INSERT INTO leases (pid, start, boot, host, beat_at) VALUES ($1, $2, $3, $4, clock_timestamp())
	ON CONFLICT (host, boot, pid, start) DO UPDATE SET beat_at = excluded.beat_at`

// own begins the lease of an owner with a transaction, and beats it until the store
// is closed.
func (s *Store) own(ctx context.Context, w *statements, o Owner) error {
	if !s.shared || o.PID == 0 {
		return nil
	}
	if _, err := w.exec(ctx, beat, o.PID, o.Start, o.Boot, o.Host); err != nil {
		return err
	}
	if _, err := w.exec(ctx, `DELETE FROM leases WHERE beat_at < clock_timestamp() - interval '1 day'`); err != nil {
		return err
	}
	l := &s.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mine == nil {
		l.mine, l.done = map[Owner]bool{}, make(chan struct{})
		var beating context.Context
		beating, l.stop = context.WithCancel(context.WithoutCancel(ctx))
		go s.keepLeases(beating)
	}
	l.mine[o] = true
	return nil
}

func (s *Store) keepLeases(ctx context.Context) {
	defer close(s.leases.done)
	tick := time.NewTicker(s.leases.every())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.beatLeases(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// beatLeases wakes nobody, and waits for no other who writes. A beat that fails is
// made up for by the next one.
func (s *Store) beatLeases(ctx context.Context) {
	s.leases.mu.Lock()
	mine := slices.Collect(maps.Keys(s.leases.mine))
	s.leases.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.leases.every())
	defer cancel()
	for _, o := range mine {
		_, _ = s.db.Reader().ExecContext(ctx, beat, o.PID, o.Start, o.Boot, o.Host)
	}
}

func (s *Store) endLeases() {
	s.leases.mu.Lock()
	stop := s.leases.stop
	s.leases.mu.Unlock()
	if stop != nil {
		stop()
		<-s.leases.done
	}
}

// living is alive where it can be seen, and else whether the lease is beaten. While
// the server was away nobody could beat one.
func (s *Store) living(ctx context.Context, from *statements, alive func(Owner) bool) (func(Owner) bool, error) {
	if !s.shared {
		return alive, nil
	}
	beaten := map[Owner]bool{}
	list, err := list(ctx, from, func(o *Owner) []any { return []any{&o.PID, &o.Start, &o.Boot, &o.Host} },
		`SELECT pid, start, boot, host FROM leases WHERE beat_at > clock_timestamp() - $1 * interval '1 second'
			OR pg_postmaster_start_time() > clock_timestamp() - $1 * interval '1 second'`, s.leases.over.Seconds())
	for _, o := range list {
		beaten[o] = true
	}
	return func(o Owner) bool {
		switch {
		case s.seen(o):
			return alive(o)
		case !beaten[o]:
			return false
		}
		return alive(s.afar(o))
	}, err
}

// afar is an owner as who looks at processes has to take it: one that cannot be seen from here,
// on a machine that is called as this one, has another host.
func (s *Store) afar(o Owner) Owner {
	if here, _ := os.Hostname(); o.Host == here && !s.seen(o) {
		o.Host += " (another one)"
	}
	return o
}

// seen is true for an owner whose process can be seen from here if it lives. A container that
// was started again, and another machine that is called the same, have another boot.
func (s *Store) seen(o Owner) bool {
	if o.Host == "" {
		return true
	}
	here, _ := os.Hostname()
	return o.Host == here && slices.Contains([]string{"", o.Boot}, s.leases.boot)
}

// see forgets owners of other machines whose leases are over, and tells those apart that are
// called as this one.
func (s *Store) see(ctx context.Context, owners ...*Owner) error {
	for _, o := range owners {
		if !s.shared || o.PID == 0 || s.seen(*o) {
			continue
		}
		lives, err := s.living(ctx, &s.reads, func(Owner) bool { return true })
		if err != nil {
			return err
		}
		for _, o := range owners {
			if !lives(*o) {
				*o = Owner{}
			}
			*o = s.afar(*o)
		}
		return nil
	}
	return nil
}
