package store

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// WorkerTable keeps the workers of a board that several machines have.
type WorkerTable struct{ *DB }

// Worker is a process that works tasks of a board that several machines have, as it
// said itself.
type Worker struct {
	Name    string   `json:"name"`
	Host    string   `json:"host"`
	PID     int      `json:"pid"`
	Version string   `json:"version"`
	Labels  []string `json:"labels,omitempty"`
	Slots   int      `json:"slots"`
	Used    int      `json:"used"`
	Drains  bool     `json:"drains"` // it takes no more tasks
	// OwnRules says why it judges by a configuration of its own, and not by the target's; "" where it does not.
	OwnRules string    `json:"own_rules,omitempty"`
	Lacks    string    `json:"lacks,omitempty"` // what it lacks now, such as the engine, one a line; "" is nothing
	Behind   float64   `json:"behind"`          // seconds that its clock is behind the server's
	BeatAt   time.Time `json:"beat_at"`         // when it said so
	Silent   bool      `json:"silent"`          // it has said nothing for as long as a lease lasts
	// Twin is true for one on another machine that has the host name of this one.
	Twin bool   `json:"-"`
	boot string // that of its machine
}

// TwinError is a worker that another machine has under the same name.
type TwinError struct{ Worker Worker }

func (e *TwinError) Error() string {
	return fmt.Sprintf("another machine that is called %s too has a worker of this repository: process %d",
		e.Worker.Host, e.Worker.PID)
}

// workerColumns are read with the length of a lease as the first value.
const workerColumns = `name, host, pid, version, labels, slots, used, drains, own_rules, lacks,
	(extract(epoch FROM beat_at) - clock / 1000.0)::float8, (extract(epoch FROM beat_at) * 1000)::bigint,
	beat_at < clock_timestamp() - $1 * interval '1 second', boot`

// SaveWorker stores what a worker says of itself. What is new wakes those who watch. A name
// that another machine has is a [TwinError], until that was silent for as long as a lease lasts.
// On a board of one machine it does nothing, as all of this file.
func (s WorkerTable) SaveWorker(ctx context.Context, w Worker) error {
	if !s.shared {
		return nil
	}
	const save = `INSERT INTO workers
		(name, host, pid, version, labels, slots, used, drains, clock, boot, own_rules, lacks, beat_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, clock_timestamp()) ON CONFLICT (name) DO UPDATE SET
		(host, pid, version, labels, slots, used, drains, clock, boot, own_rules, lacks, beat_at) =
		(excluded.host, excluded.pid, excluded.version, excluded.labels, excluded.slots, excluded.used,
		excluded.drains, excluded.clock, excluded.boot, excluded.own_rules, excluded.lacks, excluded.beat_at)
		WHERE workers.boot IN ('', excluded.boot) OR workers.beat_at < clock_timestamp() - $13 * interval '1 second'`
	args := []any{
		w.Name, w.Host, w.PID, w.Version, rows.JoinList(w.Labels), w.Slots, w.Used, w.Drains, time.Now().UnixMilli(),
		s.leases.boot, w.OwnRules, w.Lacks, s.leases.over.Seconds(),
	}
	if err := s.Same(ctx); err != nil {
		return err
	}
	all, err := s.Workers(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(o Worker) bool { return o.Name == w.Name })
	if i >= 0 && !all[i].Silent && !slices.Contains([]string{"", s.leases.boot}, all[i].boot) {
		return &TwinError{all[i]}
	}
	if err := s.compareBeat(all, i); err != nil {
		return err
	}
	isSame := i >= 0 && all[i].Drains == w.Drains && all[i].Lacks == w.Lacks && slices.Equal(all[i].Labels, w.Labels)
	if isSame && !all[i].Silent {
		// this wakes no reader, and waits for no other writer
		_, err := s.db.Reader().ExecContext(ctx, save, s.db.Values(args)...)
		return s.explainError(ctx, "say that the worker lives", err)
	}
	var saved int64
	err = s.changeAs(ctx, powerSafe, "say that the worker lives", func(ctx context.Context, t *statements) error {
		t.Do(ctx, `DELETE FROM workers WHERE beat_at < clock_timestamp() - interval '1 day'`)
		saved, err = t.Exec(ctx, save, args...)
		return err
	})
	if err == nil && saved == 0 { // another machine was quicker
		return s.SaveWorker(ctx, w)
	}
	return err
}

// Same is [ErrGone] once another board has taken the place of the one that was opened: it was put back
// from a copy, dropped or made anew. On a board of one machine it is nil.
func (s *DB) Same(ctx context.Context) error {
	db, shared := s.db.(*postgres.DB)
	if !shared {
		return nil
	}
	return s.explainError(ctx, "use the board", db.Same(ctx))
}

// mayLose is how much of the last time a server may have lost that has crashed, or whose place a copy took.
const mayLose = time.Minute

// compareBeat compares the beat that the board has of a worker with the last one that it had. All of a
// server's disk may have been put back: then it is the same board by all else, and has an older beat or none.
func (s WorkerTable) compareBeat(all []Worker, i int) error {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	last, began := s.leases.said, s.leases.began
	isOlder := i >= 0 && all[i].BeatAt.Before(last.Add(-mayLose))
	isMissing := i < 0 && last.Sub(began) > mayLose
	isPutBack := isOlder || isMissing
	if db, shared := s.db.(*postgres.DB); shared && !last.IsZero() && isPutBack {
		return s.explainError(context.Background(), "use the board", db.GiveUp())
	}
	if i >= 0 {
		s.leases.said = all[i].BeatAt
		if began.IsZero() {
			s.leases.began = all[i].BeatAt
		}
	}
	return nil
}

// DropWorker forgets a worker that has ended.
func (s WorkerTable) DropWorker(ctx context.Context, name string) error {
	if !s.shared {
		return nil
	}
	return s.execOne(ctx, powerSafe, "say that the worker ends",
		`DELETE FROM workers WHERE name = $1 AND boot IN ('', $2)`, name, s.leases.boot)
}

// Workers returns the workers that sent a sign of life within a day, sorted by name.
func (s WorkerTable) Workers(ctx context.Context) ([]Worker, error) {
	if !s.shared {
		return nil, nil
	}
	all, err := readRows(ctx, s.DB, "list the workers", func(w *Worker) []any {
		return []any{
			&w.Name, &w.Host, &w.PID, &w.Version, rows.ScanList(&w.Labels, "\n"), &w.Slots, &w.Used, &w.Drains,
			&w.OwnRules, &w.Lacks, &w.Behind, &w.BeatAt, &w.Silent, &w.boot,
		}
	}, `SELECT `+workerColumns+` FROM workers ORDER BY name`, s.leases.over.Seconds())
	here, _ := os.Hostname()
	for i, w := range all {
		all[i].Twin = w.Host == here && w.boot != "" && w.boot != s.leases.boot
	}
	return all, err
}

// Unserved are the ready tasks that need labels which no worker has that is there.
func (s WorkerTable) Unserved(ctx context.Context) ([]board.Case, error) {
	if !s.shared {
		return nil, nil
	}
	all, err := CaseTables(s).Cases(ctx, CaseFilter{Ready: true, Labelled: true})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	workers, err := s.Workers(ctx)
	return slices.DeleteFunc(all, func(c board.Case) bool {
		return slices.ContainsFunc(workers, func(w Worker) bool { return !w.Silent && !w.Drains && c.Fits(w.Labels) })
	}), err
}

// On a board that several machines share, no machine can see whether a process of another
// lives. So each owner renews a lease there, and counts as dead when the lease expires.
// Times are the server's.
const leaseOver = 30 * time.Second

// renewalInterval leaves time for two failed renewals before a lease expires.
func (l *leases) renewalInterval() time.Duration { return max(l.over/3, 100*time.Millisecond) }

// leases are those that this process beats.
type leases struct {
	mu   sync.Mutex
	mine map[Owner]bool
	over time.Duration
	boot string             // see [Shared]
	stop context.CancelFunc // nil until there is one
	// When the worker of this process beat first and last, as the board had it.
	began, said time.Time
	done        chan struct{}
}

const beat = `INSERT INTO leases (pid, start, boot, host, beat_at) VALUES ($1, $2, $3, $4, clock_timestamp())
	ON CONFLICT (host, boot, pid, start) DO UPDATE SET beat_at = excluded.beat_at`

// registerLease starts the lease of an owner in the transaction, and renews it until the
// store is closed.
func (s *DB) registerLease(ctx context.Context, w *statements, o Owner) error {
	if !s.shared || o.PID == 0 {
		return nil
	}
	if _, err := w.Exec(ctx, beat, o); err != nil {
		return err
	}
	w.Do(ctx, `DELETE FROM leases WHERE beat_at < clock_timestamp() - interval '1 day'`)
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

// replaceOwner starts the lease of an owner that takes something over. While the one
// before lives it returns the refusal.
func (s *DB) replaceOwner(ctx context.Context, w *statements, before, owner Owner, alive func(Owner) bool,
	refusal error) error {
	lives, err := s.aliveOrLeased(ctx, w, alive)
	if err == nil && before.PID != 0 && lives(before) {
		err = refusal
	}
	if err != nil {
		return err
	}
	return s.registerLease(ctx, w, owner)
}

func (s *DB) keepLeases(ctx context.Context) {
	defer close(s.leases.done)
	tick := time.NewTicker(s.leases.renewalInterval())
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

// beatLeases renews the leases. It wakes no reader, and waits for no other writer. After a
// failure the next call renews them.
func (s *DB) beatLeases(ctx context.Context) {
	s.leases.mu.Lock()
	mine := slices.Collect(maps.Keys(s.leases.mine))
	s.leases.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.leases.renewalInterval())
	defer cancel()
	if s.Same(ctx) != nil {
		return
	}
	for _, o := range mine {
		_, _ = s.db.Reader().ExecContext(ctx, beat, o.Columns()...)
	}
}

func (s *DB) endLeases() {
	s.leases.mu.Lock()
	stop := s.leases.stop
	s.leases.mu.Unlock()
	if stop != nil {
		stop()
		<-s.leases.done
	}
}

// aliveOrLeased returns a function like alive that also answers for owners on other
// machines: those are alive while their lease is renewed. For one lease's time after a
// start of the server all count as alive, since nothing could be renewed while it was
// down.
func (s *DB) aliveOrLeased(ctx context.Context, from *statements, alive func(Owner) bool) (func(Owner) bool, error) {
	if !s.shared {
		return alive, nil
	}
	list, err := rows.ListAll(ctx, from, func(o *Owner) []any { return []any{o} },
		`SELECT pid, start, boot, host FROM leases WHERE beat_at > clock_timestamp() - $1 * interval '1 second'
			OR pg_postmaster_start_time() > clock_timestamp() - $1 * interval '1 second'`, s.leases.over.Seconds())
	beaten := lists.Set(list)
	return func(o Owner) bool {
		switch {
		case s.isVisible(o):
			return alive(o)
		case !beaten[o]:
			return false
		}
		return alive(s.withDistinctHost(o))
	}, err
}

// withDistinctHost renames the host of an owner that cannot be seen from here though its
// machine has the same name as this one.
func (s *DB) withDistinctHost(o Owner) Owner {
	if here, _ := os.Hostname(); o.Host == here && !s.isVisible(o) {
		o.Host += " (another one)"
	}
	return o
}

// isVisible reports whether the owner's process could be seen from here if it lives. A
// container that was started again, and another machine with the same name, have another
// boot.
func (s *DB) isVisible(o Owner) bool {
	if o.Host == "" {
		return true
	}
	here, _ := os.Hostname()
	return o.Host == here && slices.Contains([]string{"", o.Boot}, s.leases.boot)
}

// clearDeadOwners clears the owners on other machines whose leases have expired, and
// gives machines with the name of this one a distinct name.
func (s *DB) clearDeadOwners(ctx context.Context, owners ...*Owner) error {
	for _, o := range owners {
		if !s.shared || o.PID == 0 || s.isVisible(*o) {
			continue
		}
		lives, err := s.aliveOrLeased(ctx, &s.reads, func(Owner) bool { return true })
		if err != nil {
			return err
		}
		for _, o := range owners {
			if !lives(*o) {
				*o = Owner{Host: o.Host}
			}
			*o = s.withDistinctHost(*o)
		}
		return nil
	}
	return nil
}
