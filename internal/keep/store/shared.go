package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// imported are the tables that a local board is brought over by, those that others
// refer to first. What the slots do and what is asked of an autopilot stays behind.
const imported = `runs setups iterations events controls learned cases case_texts case_needs case_history
	case_numbers steps queues queue_entries queue_asks landings gate_records sprints case_limits case_reviews tallies
	trial_attempts workspaces`

// ErrNotEmpty says that a board is brought only to where there is none.
var ErrNotEmpty = errors.New("there are tasks or runs on the shared board already")

// Import brings the board of a file here, with its history, all or nothing: both are
// locked for writing meanwhile. If the same file was imported before, was is the time of
// that and nothing is done. While a process works by the file it refuses with a [RunningError].
func (s *DB) Import(ctx context.Context, from *Store, now time.Time, alive func(Owner) bool,
) (count int, was time.Time, err error) {
	if !s.shared || from.shared {
		return 0, was, errors.New("a board is brought from a file to a shared database only")
	}
	err = from.runWrite(ctx, crashSafe, func(ctx context.Context, r *statements) error {
		if err := checkIdle(ctx, r, alive); err != nil {
			return err
		}
		return s.runWrite(ctx, powerSafe, func(ctx context.Context, w *statements) error {
			source := s.place + from.Path()
			found, err := w.One(ctx, `SELECT at FROM imports WHERE source = $1`, []any{source}, &was)
			if found || err != nil {
				return err
			}
			count, err = s.copyTables(ctx, r, w)
			if err == nil {
				_, err = w.Exec(ctx, `INSERT INTO imports (source, at) VALUES ($1, $2)`, source, now)
			}
			return err
		})
	})
	return count, was, s.explainError(ctx, "bring the board to "+s.Path(), err)
}

// checkIdle refuses while a process owns something.
func checkIdle(ctx context.Context, r *statements, alive func(Owner) bool) error {
	owned, err := rows.ListAll(ctx, r, func(r *Run) []any {
		return []any{&r.Name, &r.ID, &r.Owner}
	}, `SELECT name, id, owner_pid, owner_start, owner_boot, owner_host FROM runs WHERE owner_pid <> 0
		UNION ALL SELECT 'the autopilot', session, owner_pid, owner_start, owner_boot, owner_host FROM autopilot
		WHERE owner_pid <> 0
		UNION ALL SELECT 'the queue', target, owner_pid, owner_start, owner_boot, owner_host FROM queues
		WHERE owner_pid <> 0`)
	for _, o := range owned {
		if alive(o.Owner) {
			return &RunningError{Run: o.ID, Name: o.Name, Owner: o.Owner}
		}
	}
	return err
}

// copyTables copies all tables. What they count is copied with them, so nothing is counted again.
func (s *DB) copyTables(ctx context.Context, r, w *statements) (count int, err error) {
	var full bool
	_, err = w.One(ctx, `SELECT EXISTS (SELECT 1 FROM cases) OR EXISTS (SELECT 1 FROM runs)`, nil, &full)
	if err != nil || full {
		return 0, errors.Join(err, ErrNotEmpty)
	}
	counted := []string{"iterations", "events", "case_history"}
	for _, table := range strings.Fields(imported) {
		if slices.Contains(counted, table) {
			w.Do(ctx, `ALTER TABLE `+table+` DISABLE TRIGGER USER`)
		}
		n, err := s.takeTable(ctx, r, w, table)
		if err != nil {
			return count, fmt.Errorf("%s: %w", table, err)
		}
		count += n
	}
	for _, table := range counted {
		w.Do(ctx, `ALTER TABLE `+table+` ENABLE TRIGGER USER`)
	}
	return count, nil
}

// atOnce is how many rows one statement stores; it has at most 65,535 values.
const atOnce = 500

func (s *DB) takeTable(ctx context.Context, r, w *statements, table string) (count int, err error) {
	columns, err := rows.ReadTexts(ctx, w, `SELECT column_name::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND column_name <> 'rowid'
		ORDER BY ordinal_position`, table)
	if err != nil {
		return 0, err
	}
	order := ""
	if slices.Contains([]string{"runs", "steps", "workspaces"}, table) {
		order = ` ORDER BY rowid`
	}
	var values []any
	flush := func() error {
		if len(values) == 0 {
			return nil
		}
		_, err := w.Exec(ctx, `INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) VALUES `+
			rows.Placeholders(len(values)/len(columns), len(columns)), values...)
		values = nil
		return err
	}
	err = r.Each(ctx, func(row rows.Row) error {
		one, to := make([]any, len(columns)), make([]any, len(columns))
		for i := range one {
			to[i] = &one[i]
		}
		if err := row.Scan(to...); err != nil {
			return err
		}
		if table == "workspaces" {
			one[slices.Index(columns, "id")] = s.place + string(rows.BytesOf(one[slices.Index(columns, "id")]))
		}
		count++
		if values = append(values, one...); len(values)/len(columns) < atOnce {
			return nil
		}
		return flush()
	}, `SELECT `+strings.Join(columns, ", ")+` FROM `+table+order)
	if err == nil {
		err = flush()
	}
	if err != nil || !slices.ContainsFunc(columns, func(c string) bool { return c == "seq" || c == "id" }) {
		return count, err
	}
	return count, s.numberFrom(ctx, w, table)
}

// numberFrom has new rows numbered after those that were copied.
func (s *DB) numberFrom(ctx context.Context, w *statements, table string) error {
	numbered, err := rows.ReadTexts(ctx, w, `SELECT column_name::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'
		AND column_name <> 'rowid'`, table)
	for _, column := range numbered {
		var last int64
		_, err = w.One(ctx, `SELECT setval(pg_get_serial_sequence('`+table+`', '`+column+`'),
			(SELECT coalesce(max(`+column+`), 0) + 1 FROM `+table+`), false)`, nil, &last)
	}
	return err
}

// SharedAt finds the TCP ports of the servers at an address of a shared database, and what is on this
// machine: sockets, and files that open it.
func SharedAt(address string) (ports []int, paths []string) { return postgres.At(address) }

// Inspection is what is found of a shared database.
type Inspection struct {
	Address  string   `json:"address"` // without its password
	Board    string   `json:"board"`   // as the repository is called there
	Schema   string   `json:"schema"`  // that has the board
	Version  string   `json:"version"` // of the server
	Steps    int      `json:"steps"`   // of the schema that were applied
	Others   []string `json:"others"`  // schemas of other boards in the same database
	Behind   float64  `json:"behind"`  // seconds that the clock here is behind the server's
	Notified bool     `json:"notified"`
}

// OthersWhenMade are the other boards of the database when this one was made by being opened;
// none when it was there already. Perhaps one of them was meant.
func (s *DB) OthersWhenMade() []string {
	if db, shared := s.db.(*postgres.DB); shared {
		return db.OthersWhenMade()
	}
	return nil
}

// Restarted is true once the server of a shared database was started again, or another one
// took its place: what was stored last may be gone.
func (s *DB) Restarted(ctx context.Context) (bool, error) {
	db, shared := s.db.(*postgres.DB)
	if !shared {
		return false, nil
	}
	again, err := db.Restarted(ctx)
	return again, s.explainError(ctx, "look at the database", err)
}

// notified is how long it is waited for a notice that was just sent.
const notified = 5 * time.Second

// Inspect tries what a shared board needs: it writes, and looks whether a watcher
// hears of it.
func (s *DB) Inspect(ctx context.Context) (i Inspection, err error) {
	db, shared := s.db.(*postgres.DB)
	if !shared {
		return i, errors.New("the database is no shared one")
	}
	i.Address = s.Path()
	i.Board, i.Schema = db.Board()
	var there float64
	before := time.Now()
	_, err = s.reads.One(ctx, `SELECT current_setting('server_version'), (SELECT count(*) FROM migrations),
		extract(epoch FROM clock_timestamp())::float8`, nil, &i.Version, &i.Steps, &there)
	took := time.Since(before)
	i.Behind = there - float64(before.Add(took/2).UnixMilli())/1000
	if err == nil {
		i.Others, err = db.Others(ctx)
	}
	if err != nil {
		return i, s.explainError(ctx, "look at the database", err)
	}
	first, err := s.DataVersion(ctx)
	if err == nil {
		err = s.changeAs(ctx, powerSafe, "write the database", func(ctx context.Context, w *statements) error {
			w.Do(ctx, beat, 0, "", "", "check")
			_, err := w.Exec(ctx, `DELETE FROM leases WHERE pid = 0`)
			return err
		})
	}
	for until := time.Now().Add(notified); err == nil && !i.Notified && time.Now().Before(until); {
		var now int64
		now, err = s.DataVersion(ctx)
		i.Notified = now != first
	}
	return i, err
}
