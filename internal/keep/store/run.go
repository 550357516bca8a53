package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store/rows"
)

// Run is one loop with its state. Times and durations are kept in whole
// milliseconds, and times come back in UTC.
type Run struct {
	ID   string
	Kind string // "procedure", "task", "workflow" or "demo"
	Name string
	Root string // absolute path
	// Work is what a person wants of it, in words: its task's title, or the beginning of
	// what Setup has. Commits leave it alone.
	Work string
	// Status and Why are the kernel's words.
	Status string
	Why    string
	// N is the number of the run's last event; the next one is N+1. The store
	// sets it; what a caller puts here does not count.
	N int64
	// State is the kernel's state after event N. Listings leave it nil.
	State json.RawMessage
	// Setup has flags and the resolved plan, for a resume. Listings leave it
	// nil; a commit with a nil Setup keeps the stored one.
	Setup         json.RawMessage
	Iteration     int    // the last that started, 0 for none
	MaxIterations int    // 0 is unlimited
	Agent         string // that works on it, or did last; a commit without one keeps the stored one
	Cost          int64  // micro-dollars
	CostKnown     bool
	CostPartial   bool // it is at least Cost
	TokensIn      int64
	TokensOut     int64
	// Owner drives the run; without a PID no process does, and Host is the machine where the last one did.
	Owner     Owner
	StartedAt time.Time
	UpdatedAt time.Time // zero in a commit: the event's time
	EndedAt   time.Time // zero until the run has ended; a resume makes it zero again
	Elapsed   time.Duration
}

// Title is the run's name with what it is to do.
func (r *Run) Title() string {
	if r.Work == "" {
		return r.Name
	}
	return r.Name + ": " + r.Work
}

// Level is the safety level at which the agents of the run worked; "" is not known.
func (r *Run) Level() string {
	var setup struct{ Sandbox string }
	_ = json.Unmarshal(r.Setup, &setup) // of a run that has none it says nothing
	level, _, _ := strings.Cut(setup.Sandbox, ":")
	return level
}

// Owner identifies a process, and distinguishes it from a later one with the same
// number.
type Owner struct {
	PID   int    // 0 if there is no owner
	Start string // when the process started, in the system's own words
	Boot  string // which boot of the machine
	Host  string
}

// Columns are the four values as which an owner is stored.
func (o Owner) Columns() []any { return []any{o.PID, o.Start, o.Boot, o.Host} }

// Fields are the addresses of the values of [Owner.Columns].
func (o *Owner) Fields() []any { return []any{&o.PID, &o.Start, &o.Boot, &o.Host} }

func (o Owner) String() string {
	if o.Host == "" {
		return fmt.Sprintf("process %d", o.PID)
	}
	return fmt.Sprintf("process %d on %s", o.PID, o.Host)
}

// openRuns are the runs that have not ended, those that a guard or 'pawl stop' ended, and those that
// failed with a question or, before their agent could work, for what only a person can cure: a person is
// needed for them until a later run of their name. Of a task's runs only the last one can
// be open, and only until the task is done: earlier ones cannot be resumed.
const openRuns = `(ended_at = 0 OR (status = 'aborted' OR kind <> 'task'
		AND (status = 'stopped' AND why LIKE 'stopped by _pawl stop_' OR status = 'failed'
		AND (json_extract(state, '$.question') IS NOT NULL OR why LIKE '` + failure.PersonNeeded + `%'))) AND ` + lastOfName + `)
	AND (kind <> 'task' OR ` + lastOfName + `
		AND (owner_pid <> 0 OR NOT EXISTS (SELECT 1
		FROM cases c WHERE c.id = ` + taskOfRun + ` AND c.status = 'done')))`

// lastOfName and laterOfName compare the numbers of rows: the clocks of machines that start runs differ.
const lastOfName = `NOT EXISTS (SELECT 1 FROM runs l WHERE l.kind = runs.kind AND l.name = runs.name
	AND (l.kind = 'task' OR l.root = runs.root) AND l.rowid > runs.rowid)`

// taskOfRun is the SQL of what board.TaskOf says of the name of a row of runs.
const taskOfRun = `CASE WHEN runs.name LIKE '%-race_' OR runs.name LIKE '%-merge'
	THEN substr(runs.name, 1, length(runs.name) - 6) ELSE runs.name END`

// RunTables keep the runs with their iterations, the steps of their workflows, and what is
// asked of them.
type RunTables struct{ *DB }

// maxCandidates is how many runs an ambiguous prefix is explained with.
const maxCandidates = 10

// Create stores a new run and its first event, numbered 1. While a live
// process owns a run with the same root and name it refuses with a
// [RunningError]. alive is asked inside the transaction, so that of two starts
// at once only one wins; it must be quick and must not call the store.
// Repeating the same Create does nothing.
func (s RunTables) Create(ctx context.Context, r Run, e journal.Event, alive func(Owner) bool) error {
	what := "create run " + r.ID
	if r.ID == "" || r.Owner.PID == 0 || e.Run != r.ID || e.N != 1 {
		return fmt.Errorf("cannot %s: it needs an id, an owner and event 1 of this run", what)
	}
	return s.changeAs(ctx, crashSafe, what, func(ctx context.Context, w *statements) error {
		if again, err := isCreated(ctx, w, r, e); again || err != nil {
			return err
		}
		same, args := `root = $2`, []any{r.Name, r.Root}
		switch {
		case s.shared && r.Kind == "task":
			same, args = `kind = 'task'`, args[:1] // on any machine
		case s.shared: // another machine's clone at the same path is another one
			same, args = same+` AND owner_host = $3`, append(args, r.Owner.Host)
		}
		lives, err := s.aliveOrLeased(ctx, w, alive)
		if err == nil {
			err = checkNotOwned(ctx, w, lives, same, args...)
		}
		if err == nil {
			err = s.registerLease(ctx, w, r.Owner)
		}
		if err != nil {
			return err
		}
		insertRun(ctx, w, r, e)
		_, err = insertEvent(ctx, w, e)
		return err
	})
}

// isCreated reports whether the same owner created this very run before: its process did
// not learn that the commit had succeeded.
func isCreated(ctx context.Context, w *statements, r Run, e journal.Event) (bool, error) {
	row, err := existingHead(ctx, w, r.ID)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	same := false
	if err == nil {
		same, err = isStored(ctx, w, e)
	}
	isOther := !same || row.owner != r.Owner
	if err == nil && isOther {
		err = errors.New("another run has this id")
	}
	return err == nil, err
}

// checkNotOwned refuses while a live process owns a run with a name, $1, that is the same
// in another way.
func checkNotOwned(ctx context.Context, w *statements, alive func(Owner) bool, same string, args ...any) error {
	owned, err := rows.ListAll(ctx, w, func(r *Run) []any {
		return []any{&r.ID, &r.Name, &r.Owner}
	},
		`SELECT id, name, owner_pid, owner_start, owner_boot, owner_host FROM runs
			WHERE name = $1 AND `+same+` AND owner_pid <> 0 ORDER BY rowid`, args...)
	for _, r := range owned {
		if alive(r.Owner) {
			return &RunningError{Run: r.ID, Name: r.Name, Owner: r.Owner}
		}
	}
	return err
}

var putRun = rows.UpsertSQL("runs", 0, storedColumns+", state")

func insertRun(ctx context.Context, w *statements, r Run, e journal.Event) {
	w.Do(ctx, putRun(),
		r.ID, r.Kind, r.Name, r.Root, r.Status, r.Why, e.N, r.Iteration, r.MaxIterations, r.Agent, r.Cost,
		r.costKnown(), r.TokensIn, r.TokensOut, r.Owner, r.StartedAt, updatedAt(r, e), r.EndedAt, r.Elapsed, r.State)
	w.Do(ctx, `INSERT INTO setups (run, setup) VALUES ($1, $2)`, r.ID, r.Setup)
}

// Take makes owner the owner of a run that no process drives, and returns the run
// to continue from. While its owner is alive it refuses with a [RunningError];
// alive is also asked about owner itself, when it owned the run before, since
// only the caller knows whether its own process still drives it. Of two that
// take a run at once only one wins. Changes to the run itself come with the
// commit that follows.
func (s RunTables) Take(ctx context.Context, id string, owner Owner, alive func(Owner) bool) (Run, error) {
	what := "take run " + id
	if owner.PID == 0 {
		return Run{}, fmt.Errorf("cannot %s: it needs an owner", what)
	}
	return changeValue(ctx, s.DB, crashSafe, what, func(ctx context.Context, w *statements) (Run, error) {
		r, err := rows.RequireFirst(ctx, w, ErrNotFound, id, wholeRunFields, wholeRun+` WHERE id = $1`, id)
		if err != nil {
			return Run{}, err
		}
		refusal := &RunningError{Run: id, Name: r.Name, Owner: r.Owner}
		if err := s.replaceOwner(ctx, w, r.Owner, owner, alive, refusal); err != nil {
			return Run{}, err
		}
		r.Owner = owner
		_, err = w.Exec(ctx, `
			UPDATE runs SET owner_pid = $1, owner_start = $2, owner_boot = $3, owner_host = $4 WHERE id = $5`,
			owner, id)
		return r, err
	})
}

// Run finds a run by its id or by a prefix that only its id has. It returns
// [ErrNotFound] or an [AmbiguousError].
func (s RunTables) Run(ctx context.Context, idOrPrefix string) (Run, error) {
	what := "find run " + idOrPrefix
	id, err := s.resolvePrefix(ctx, idOrPrefix)
	if err != nil {
		return Run{}, s.explainError(ctx, what, err)
	}
	r, err := rows.RequireFirst(ctx, &s.reads, ErrNotFound, idOrPrefix, wholeRunFields, wholeRun+` WHERE id = $1`, id)
	if err == nil {
		err = s.clearDeadOwners(ctx, &r.Owner)
	}
	return r, s.explainError(ctx, what, err)
}

// resolvePrefix makes a prefix an id. An id that is also the prefix of others is
// itself.
func (s RunTables) resolvePrefix(ctx context.Context, prefix string) (string, error) {
	if prefix == "" {
		return "", fmt.Errorf("%w: no id is given", ErrNotFound)
	}
	// In bytes, every text with the prefix lies between it and the prefix
	// with the highest character after it; the index serves both bounds.
	ids, err := rows.ReadTexts(ctx, &s.reads, `SELECT id FROM runs WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3`,
		prefix, prefix+"\U0010FFFF", maxCandidates+1)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", fmt.Errorf("%w: %s", ErrNotFound, prefix)
	case len(ids) == 1 || ids[0] == prefix:
		return ids[0], nil
	}
	shown := ids[:min(len(ids), maxCandidates)]
	return "", &AmbiguousError{Prefix: prefix, Runs: shown, More: len(ids) > maxCandidates}
}

// MoveRuns makes the runs of one root those of another: the repository was moved.
func (s RunTables) MoveRuns(ctx context.Context, from, to string) error {
	return s.execOne(ctx, crashSafe, "move the runs of a root", `UPDATE runs SET root = ? WHERE root = ?`, to, from)
}

// Latest returns the run of this root and name that was started last, or
// [ErrNotFound]; root "" is any. On a board that several machines have, a task's last run may be of another one.
func (s RunTables) Latest(ctx context.Context, root, name string) (Run, error) {
	what := "find the last run of " + name
	var r Run
	var ok bool
	var err error
	if s.shared { // a task may be worked on any machine
		r, ok, err = rows.FindFirst(ctx, &s.reads, wholeRunFields, wholeRun+` WHERE kind = 'task' AND name = $1
			ORDER BY runs.rowid DESC LIMIT 1`, name)
	}
	if err == nil && !ok {
		where, args := ` WHERE name = $1`, []any{name}
		if root != "" {
			where, args = where+` AND root = $2`, append(args, root)
		}
		r, ok, err = rows.FindFirst(ctx, &s.reads, wholeRunFields,
			wholeRun+where+` ORDER BY runs.rowid DESC LIMIT 1`, args...)
	}
	if err == nil && !ok {
		err = fmt.Errorf("%w of %s in %s", ErrNotFound, name, root)
	}
	if err == nil {
		err = s.clearDeadOwners(ctx, &r.Owner)
	}
	return r, s.explainError(ctx, what, err)
}

// TaskUse adds up the known usage of all runs of a task except one, those of racers and
// of conflicts included.
func (s RunTables) TaskUse(ctx context.Context, task, but string) (u loop.Use, err error) {
	_, err = s.reads.One(ctx, `SELECT coalesce(sum(cost), 0), coalesce(sum(tokens_in + tokens_out), 0),
		coalesce(sum(CAST(coalesce(json_extract(state, '$.spent.calls'), '0') AS BIGINT)), 0)
		FROM runs WHERE kind = 'task' AND id <> $1
		AND `+taskOfRun+` = $2`, []any{but, task}, &u.Cost, &u.Tokens, &u.Calls)
	return u, s.explainError(ctx, "add up what the runs of "+task+" used", err)
}

// runColumns are those of runFields, in its order.
const runColumns = storedColumns + `, ` + workColumn + ` AS work`

const storedColumns = `id, kind, name, root, status, why, n, iteration, max_iterations, agent,
	cost, cost_known, tokens_in, tokens_out, owner_pid, owner_start, owner_boot, owner_host,
	started_at, updated_at, ended_at, elapsed`

// workColumn is what the run is to do, in words; "" for none.
const workColumn = `coalesce((SELECT title FROM cases WHERE runs.kind = 'task' AND cases.id = ` + taskOfRun + `),
	(SELECT substr(json_extract(s.setup, '$.flags.work'), 1, 500) FROM setups s
	WHERE s.run = runs.id AND json_valid(s.setup)), '')`

func runFields(r *Run) []any {
	return []any{
		&r.ID, &r.Kind, &r.Name, &r.Root, &r.Status, &r.Why, &r.N, &r.Iteration, &r.MaxIterations, &r.Agent,
		&r.Cost, readCostKnown(r), &r.TokensIn, &r.TokensOut, &r.Owner, &r.StartedAt, &r.UpdatedAt, &r.EndedAt,
		&r.Elapsed, &r.Work,
	}
}

// wholeRun selects a run with its state and setup.
const wholeRun = `SELECT ` + runColumns + `, state, setup FROM runs JOIN setups ON setups.run = runs.id`

func wholeRunFields(r *Run) []any {
	return append(runFields(r), &r.State, &r.Setup)
}

// EndedRun is a run that has ended, or that will not be resumed.
type EndedRun struct {
	ID, Kind, Name, Status string
	N                      int64
	Owner                  Owner     // of a pawl that was killed, or that works on it just now
	EndedAt                time.Time // or when it was last worked on
	Last                   bool      // of its name
	// Open: the task that it works on, or brings together with the target, is on the board and not done.
	Open bool
}

const (
	laterOfName = `EXISTS (SELECT 1 FROM runs l WHERE l.root = runs.root AND l.name = runs.name
		AND l.rowid > runs.rowid)`
	onBoard = `EXISTS (SELECT 1 FROM cases c WHERE c.status <> 'done' AND c.id = ` + taskOfRun + `)`
)

// EndedRuns lists the runs that have ended, the latest first, and those of tasks that
// were left by a pawl that was killed: a later one has taken their place, or the task
// is done or gone.
func (s RunTables) EndedRuns(ctx context.Context) ([]EndedRun, error) {
	return readRows(ctx, s.DB, "list the runs that have ended", func(r *EndedRun) []any {
		return []any{&r.ID, &r.Kind, &r.Name, &r.Status, &r.N, &r.Owner, &r.EndedAt, &r.Last, &r.Open}
	}, `SELECT id, kind, name, status, n, owner_pid, owner_start, owner_boot, owner_host,
			CASE ended_at WHEN 0 THEN updated_at ELSE ended_at END AS over,
			NOT `+laterOfName+`, runs.kind = 'task' AND `+onBoard+`
		FROM runs WHERE ended_at <> 0 AND owner_pid = 0
			OR ended_at = 0 AND runs.kind = 'task' AND (`+laterOfName+` OR NOT `+onBoard+`)
		ORDER BY over DESC, id`)
}

// DropRun deletes a run that has ended, with its iterations and events, unless somebody
// has taken it up since. What it came to stays in the tallies.
func (s RunTables) DropRun(ctx context.Context, r EndedRun) error {
	args := []any{r.ID, r.N, r.Owner.PID, r.Owner.Start}
	return s.changeAs(ctx, crashSafe, "drop run "+r.ID, func(ctx context.Context, w *statements) error {
		const over = ` WHERE id = $1 AND n = $2 AND owner_pid = $3 AND owner_start = $4`
		w.Do(ctx, `DELETE FROM events WHERE run IN (SELECT id FROM runs`+over+`)`, args...)
		_, err := w.Exec(ctx, `DELETE FROM runs`+over, args...)
		return err
	})
}

// oldEvents are events from before a time that are of no run, or of one that ended
// before it, too.
const oldEvents = ` FROM events WHERE at < $1 AND NOT EXISTS (
	SELECT 1 FROM runs WHERE runs.id = events.run AND (ended_at = 0 OR ended_at >= $1))`

// CountEvents counts what DropEvents would delete.
func (s EventTable) CountEvents(ctx context.Context, before time.Time) (n int, err error) {
	_, err = s.reads.One(ctx, `SELECT count(*)`+oldEvents, []any{before}, &n)
	return n, s.explainError(ctx, "count old events", err)
}

// DropEvents deletes the events from before a time, but those of runs that have
// not ended or ended later.
func (s EventTable) DropEvents(ctx context.Context, before time.Time) error {
	return s.execOne(ctx, crashSafe, "drop old events", `DELETE`+oldEvents, before)
}

// What a person, or another process, can ask of a run.
const (
	ControlStop    = "stop"
	ControlPause   = "pause"
	ControlAnswer  = "answer"
	ControlChoice  = "choice" // the number of an option, a space, and words if any
	ControlReply   = "reply"  // an answer to a step that asks: its id and the text, as JSON
	ControlMessage = "message"
	ControlLimits  = "limits" // JSON, for a run that works
	ControlResume  = "resume" // for the record: it is taken by the process that resumes
)

// Control is one request to a run, until its owner takes it. It outlives both
// processes: a run that is resumed later finds it.
type Control struct {
	ID   int64 // rises
	Run  string
	Kind string
	Text string
	At   time.Time
	// Person is who asked it, and Host the machine; pawl itself is [ByPawl].
	Person, Host string
	Taken        bool
}

// ByPawl is the person of what pawl asks by itself.
const ByPawl = "pawl"

// Who returns the person, with the machine where several share the board.
func (c Control) Who(shared bool) string {
	if shared && c.Host != "" {
		return c.Person + " on " + c.Host
	}
	return c.Person
}

// IsAnswer reports whether the row is a person's answer to a question.
func (c Control) IsAnswer() bool {
	return c.Kind == ControlAnswer || c.Kind == ControlChoice || c.Kind == ControlReply
}

// AddControl asks something of a run and returns the id of the row. An answer
// is on disk when it returns: a person does not give it twice. It returns
// [ErrNotFound] when there is no such run.
func (s RunTables) AddControl(ctx context.Context, c Control) (id int64, err error) {
	return changeValue(ctx, s.DB, durability(c.IsAnswer()), "ask run "+c.Run+" to "+c.Kind,
		func(ctx context.Context, w *statements) (int64, error) { return addControl(ctx, w, c) })
}

func addControl(ctx context.Context, w *statements, c Control) (id int64, err error) {
	if _, err := existingHead(ctx, w, c.Run); err != nil {
		return 0, err
	}
	const add = `INSERT INTO controls (run, kind, text, at, taken_at, person, host)
		VALUES ($1, $2, $3, $4, 0, $5, $6) RETURNING id`
	_, err = w.One(ctx, add, []any{c.Run, c.Kind, c.Text, c.At, cmp.Or(c.Person, w.Person()), w.Host}, &id)
	return id, err
}

// Redirect asks the autopilot to start a task next, and a run to stop, in one
// transaction. It returns [ErrNotFound] when there is no such run.
func (s RunTables) Redirect(ctx context.Context, run, task string, when time.Time) error {
	return s.changeAs(ctx, crashSafe, "give the slot of run "+run+" to "+task,
		func(ctx context.Context, w *statements) error {
			if _, err := askAutopilot(ctx, w,
				AutopilotControl{Kind: AutopilotStart, Text: task, At: when}); err != nil {
				return err
			}
			_, err := addControl(ctx, w, Control{Run: run, Kind: ControlStop, At: when})
			return err
		})
}

// Controls returns the rows of a run that were not taken yet, oldest first, and leaves
// them so. A caller that must not lose one in a crash names their ids in [Step].Taken of
// the commit that carries them out.
func (s RunTables) Controls(ctx context.Context, run string) ([]Control, error) {
	return s.readControls(ctx, run, " AND taken_at = 0")
}

// AllControls returns the rows of a run, also those that were taken, oldest first.
func (s RunTables) AllControls(ctx context.Context, run string) ([]Control, error) {
	return s.readControls(ctx, run, "")
}

func (s RunTables) readControls(ctx context.Context, run, and string) ([]Control, error) {
	return readRows(ctx, s.DB, "read what is asked of run "+run, func(c *Control) []any {
		return []any{&c.ID, &c.Run, &c.Kind, &c.Text, &c.At, &c.Person, &c.Host, &c.Taken}
	}, `SELECT id, run, kind, text, at, person, host, taken_at <> 0 FROM controls WHERE run = $1`+and+` ORDER BY id`, run)
}
