package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// Autopilot is the autopilot of a repository, and the process that drives it, if
// one does.
type Autopilot struct {
	Session     string // its id, and that of its events in the journal
	Phase       string
	Mode        string
	Why         string
	MaxParallel int
	Exit        int    // pawl's exit status, once it has ended
	Sprint      string // "" is none
	Owner       Owner  // the zero Owner: it has ended
	StartedAt   time.Time
	UpdatedAt   time.Time
	EndedAt     time.Time // zero until it has ended
	// State is what it decides from.
	State json.RawMessage
	// Options is what another process needs to go on with it; nil: it ends with its process.
	Options json.RawMessage
	// Turn is greater for each process that drives it, and set by the store. Nothing is
	// stored any more by one whose turn is over.
	Turn int64
}

// On is true while it is to be driven, by whichever process can.
func (a *Autopilot) On() bool { return len(a.Options) > 0 && a.EndedAt.IsZero() }

// AutopilotTables keep the autopilot with its slots, sprints and orders, and what is asked
// of it.
type AutopilotTables struct{ *DB }

// TakeAutopilot makes a the autopilot of the repository. While the process of
// another lives it refuses with a [RunningError]; alive is asked inside the
// transaction, must be quick and must not call the store. What was asked of
// the one before is dropped. Without an owner it is on, and waits for a process
// that takes it over. One that is on is not taken, also while no process drives it.
func (s AutopilotTables) TakeAutopilot(ctx context.Context, a Autopilot, alive func(Owner) bool) (Autopilot, error) {
	if a.Owner.PID == 0 && !a.On() {
		return a, fmt.Errorf("cannot start the autopilot: it needs an owner")
	}
	err := s.driveAutopilot(ctx, &a, alive)
	return a, err
}

// GoOnAutopilot makes owner drive the autopilot that is on. While another process
// drives it, or none is on, it refuses with a [RunningError] or [ErrNotOwner].
func (s AutopilotTables) GoOnAutopilot(ctx context.Context, owner Owner, alive func(Owner) bool) (Autopilot, error) {
	a := Autopilot{Owner: owner}
	err := s.driveAutopilot(ctx, &a, alive)
	return a, err
}

// driveAutopilot begins a turn. Without a session it is that of the autopilot that is on.
func (s AutopilotTables) driveAutopilot(ctx context.Context, a *Autopilot, alive func(Owner) bool) error {
	goesOn := a.Session == ""
	err := s.runWrite(ctx, crashSafe, func(ctx context.Context, w *statements) error {
		old, ok, err := readAutopilot(ctx, w)
		if err != nil {
			return err
		}
		lives, err := s.aliveOrLeased(ctx, w, alive)
		if err != nil {
			return err
		}
		mine := goesOn && old.Owner == a.Owner // of a turn that ended without saying so
		driven := old.Owner.PID != 0 && lives(old.Owner) && !mine
		switch {
		case ok && old.On() && !driven && !goesOn: // a worker takes it over
			return &RunningError{Run: old.Session, Name: "the autopilot"}
		case ok && driven:
			return &RunningError{Run: old.Session, Name: "the autopilot", Owner: old.Owner}
		case goesOn && !old.On():
			return ErrNotOwner
		case goesOn:
			old.Owner = a.Owner
			*a = old
		default:
			w.Do(ctx, `DELETE FROM autopilot_controls`)
		}
		a.Turn = old.Turn + 1
		if err := s.registerLease(ctx, w, a.Owner); err != nil {
			return err
		}
		return putAutopilot(ctx, w, *a)
	})
	if err == nil && a.On() && a.Owner.PID != 0 {
		s.turn.Store(a.Turn)
	}
	return s.explainError(ctx, "start the autopilot", err)
}

// checkOwnTurn refuses with [ErrNotOwner] when the process that has this store drove the
// autopilot, and another one does by now.
func (s *DB) checkOwnTurn(ctx context.Context, w *statements) error {
	turn, now := s.turn.Load(), int64(0)
	if turn == 0 {
		return nil
	}
	_, err := w.One(ctx, `SELECT turn FROM autopilot`, nil, &now)
	if err == nil && now != turn {
		err = fmt.Errorf("%w: another process drives the autopilot", ErrNotOwner)
	}
	return err
}

// SaveAutopilot stores what the autopilot is now. It returns [ErrNotOwner]
// when another process has it. With EndedAt set it has no owner afterwards. Without an
// owner another process takes it over.
func (s AutopilotTables) SaveAutopilot(ctx context.Context, a Autopilot) error {
	return s.changeAs(ctx, crashSafe, "store what the autopilot does", func(ctx context.Context, w *statements) error {
		stored, ok, err := readAutopilot(ctx, w)
		if err != nil {
			return err
		}
		if !ok || stored.Session != a.Session || stored.Turn != a.Turn {
			return ErrNotOwner
		}
		a.StartedAt, a.Options = stored.StartedAt, stored.Options
		if !a.EndedAt.IsZero() {
			a.Owner = Owner{}
		}
		return putAutopilot(ctx, w, a)
	})
}

// Autopilot is the last one of the repository; ok is false when there never
// was one.
func (s AutopilotTables) Autopilot(ctx context.Context) (a Autopilot, ok bool, err error) {
	if a, ok, err = readAutopilot(ctx, &s.reads); err == nil {
		err = s.clearDeadOwners(ctx, &a.Owner)
	}
	return a, ok, s.explainError(ctx, "read what the autopilot does", err)
}

const autopilotColumns = `session, phase, mode, why, max_parallel, exit, sprint,
	owner_pid, owner_start, owner_boot, owner_host,
	started_at, updated_at, ended_at, state, options, turn`

func readAutopilot(ctx context.Context, from *statements) (a Autopilot, ok bool, err error) {
	return rows.FindFirst(ctx, from, func(a *Autopilot) []any {
		return []any{
			&a.Session, &a.Phase, &a.Mode, &a.Why, &a.MaxParallel, &a.Exit, &a.Sprint, &a.Owner, &a.StartedAt,
			&a.UpdatedAt, &a.EndedAt, &a.State, &a.Options, &a.Turn,
		}
	}, `SELECT `+autopilotColumns+` FROM autopilot`)
}

var putAutopilotQuery = rows.UpsertSQL("autopilot", 1, "one, "+autopilotColumns)

func putAutopilot(ctx context.Context, w *statements, a Autopilot) error {
	_, err := w.Exec(ctx, putAutopilotQuery(), 1,
		a.Session, a.Phase, a.Mode, a.Why, a.MaxParallel, a.Exit, a.Sprint, a.Owner, a.StartedAt, a.UpdatedAt,
		a.EndedAt, a.State, a.Options, a.Turn)
	return err
}

// Slot is what happens in one slot of the autopilot.
type Slot struct {
	Case       string
	Run        string // "" until there is one
	Since      time.Time
	Activity   string // what its agent or its gates did last
	ActivityAt time.Time
}

// SaveSlot stores what happens in a slot.
func (s AutopilotTables) SaveSlot(ctx context.Context, l Slot) error {
	return s.execOne(ctx, crashSafe, "store what is done for "+l.Case,
		putSlot(), l.Case, l.Run, l.Since, l.Activity, l.ActivityAt)
}

var putSlot = rows.UpsertSQL("slots", 1, "id, run, since, activity, activity_at")

// DropSlot forgets the slot of a task; "" is all.
func (s AutopilotTables) DropSlot(ctx context.Context, id string) error {
	return s.execOne(ctx, crashSafe, "give the slot of "+id+" back", `DELETE FROM slots WHERE id = $1 OR $1 = ''`, id)
}

// Slots returns the occupied slots, the oldest first.
func (s AutopilotTables) Slots(ctx context.Context) ([]Slot, error) {
	return readRows(ctx, s.DB, "read the slots", func(l *Slot) []any {
		return []any{&l.Case, &l.Run, &l.Since, &l.Activity, &l.ActivityAt}
	}, `SELECT id, run, since, activity, activity_at FROM slots ORDER BY since, id`)
}

// What other processes ask of the autopilot.
const (
	AutopilotPause  = "pause"
	AutopilotResume = "resume"
	AutopilotStop   = "stop"
	AutopilotMode   = "mode"  // Text: the mode
	AutopilotSlots  = "slots" // Text: their number
	AutopilotStart  = "start" // Text: the task
)

// AutopilotControl is one request.
type AutopilotControl struct {
	ID   int64
	Kind string
	Text string
	At   time.Time
	Who  string // asked, with the machine
}

// AskAutopilot stores a request to the autopilot that runs.
func (s AutopilotTables) AskAutopilot(ctx context.Context, c AutopilotControl) (id int64, err error) {
	return changeValue(ctx, s.DB, crashSafe, "ask the autopilot to "+c.Kind,
		func(ctx context.Context, w *statements) (int64, error) { return askAutopilot(ctx, w, c) })
}

func askAutopilot(ctx context.Context, w *statements, c AutopilotControl) (id int64, err error) {
	who := ""
	if person := w.Person(); person != "" {
		who = person + " on " + w.Host
	}
	_, err = w.One(ctx, `INSERT INTO autopilot_controls (kind, text, at, who) VALUES ($1, $2, $3, $4) RETURNING id`,
		[]any{c.Kind, c.Text, c.At, who}, &id)
	return id, err
}

// AutopilotAsked reports whether such a request waits to be taken.
func (s AutopilotTables) AutopilotAsked(ctx context.Context, kind string) (bool, error) {
	n := 0
	_, err := s.reads.One(ctx, `SELECT count(*) FROM autopilot_controls WHERE kind = $1`, []any{kind}, &n)
	return n > 0, s.explainError(ctx, "read what is asked of the autopilot", err)
}

// TakeAutopilotControls returns what is asked of the autopilot, oldest first:
// each request once. When there is none it only reads.
func (s AutopilotTables) TakeAutopilotControls(ctx context.Context) (asked []AutopilotControl, err error) {
	const what = "take what is asked of the autopilot"
	open := 0
	if _, err = s.reads.One(ctx, `SELECT count(*) FROM autopilot_controls`, nil, &open); err != nil || open == 0 {
		return nil, s.explainError(ctx, what, err)
	}
	return changeValue(ctx, s.DB, crashSafe, what,
		func(ctx context.Context, w *statements) ([]AutopilotControl, error) {
			asked, err := rows.ListAll(ctx, w,
				func(c *AutopilotControl) []any { return []any{&c.ID, &c.Kind, &c.Text, &c.At, &c.Who} },
				`SELECT id, kind, text, at, who FROM autopilot_controls ORDER BY id`)
			if err == nil {
				_, err = w.Exec(ctx, `DELETE FROM autopilot_controls`)
			}
			return asked, err
		})
}

// Sprint is one with its statistics, as JSON.
type Sprint struct {
	ID        string
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
	Stats     json.RawMessage
}

// NewSprintID is the id of the next sprint of a day: YYYY-MM-DD-NNN.
func (s AutopilotTables) NewSprintID(ctx context.Context, day string) (string, error) {
	var last int
	_, err := s.reads.One(ctx, `SELECT coalesce(max(CAST(substr(id, 12) AS INTEGER)), 0) FROM sprints WHERE id LIKE $1`,
		[]any{day + "-%"}, &last)
	return fmt.Sprintf("%s-%03d", day, last+1), s.explainError(ctx, "number a sprint", err)
}

// SaveSprint stores a sprint; it survives a power loss once it has ended.
func (s AutopilotTables) SaveSprint(ctx context.Context, p Sprint) error {
	return s.execOne(ctx, durability(!p.EndedAt.IsZero()), "store sprint "+p.ID,
		putSprint(), p.ID, p.StartedAt, p.EndedAt, p.Stats)
}

var putSprint = rows.UpsertSQL("sprints", 1, "id, started_at, ended_at, stats")

// Sprints are the last ones, the latest first.
func (s AutopilotTables) Sprints(ctx context.Context, limit int) ([]Sprint, error) {
	return readRows(ctx, s.DB, "list the sprints", func(p *Sprint) []any {
		return []any{&p.ID, &p.StartedAt, &p.EndedAt, &p.Stats}
	}, `SELECT id, started_at, ended_at, stats FROM sprints ORDER BY started_at DESC, id DESC LIMIT $1`, limit)
}
