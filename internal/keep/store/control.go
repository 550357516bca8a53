package store

import (
	"context"
	"fmt"
	"time"
)

// What a person, or another process, can ask of a run.
const (
	ControlStop    = "stop"
	ControlPause   = "pause"
	ControlAnswer  = "answer"
	ControlChoice  = "choice" // the number of an option, a space, and words if any
	ControlReply   = "reply"  // an answer to a step that asks: its id and the text, as JSON
	ControlMessage = "message"
	ControlLimits  = "limits" // JSON, for a run that works
)

// Control is one wish for a run, until its owner takes it. It outlives both
// processes: a run that is resumed later finds it.
type Control struct {
	ID   int64 // rises
	Run  string
	Kind string
	Text string
	At   time.Time
}

// Answers is true for a person's answer, of whatever kind.
func (c Control) Answers() bool {
	return c.Kind == ControlAnswer || c.Kind == ControlChoice || c.Kind == ControlReply
}

// AddControl asks something of a run and returns the id of the row. An answer
// is on disk when it returns: a person does not give it twice. It returns
// [ErrNotFound] when there is no such run.
func (s *Store) AddControl(ctx context.Context, c Control) (id int64, err error) {
	d := crashSafe
	if c.Answers() {
		d = powerSafe
	}
	err = s.transact(ctx, d, func(ctx context.Context, w *statements) (err error) {
		id, err = addControl(ctx, w, c)
		return err
	})
	return id, s.explain(ctx, "ask run "+c.Run+" to "+c.Kind, err)
}

func addControl(ctx context.Context, w *statements, c Control) (id int64, err error) {
	if _, ok, err := head(ctx, w, c.Run); err != nil {
		return 0, err
	} else if !ok {
		return 0, fmt.Errorf("%w: %s", ErrNotFound, c.Run)
	}
	_, err = w.one(ctx, `INSERT INTO controls (run, kind, text, at, taken_at) VALUES ($1, $2, $3, $4, 0) RETURNING id`,
		[]any{c.Run, c.Kind, c.Text, ms(c.At)}, &id)
	return id, err
}

// Redirect asks the autopilot to start a task next, and a run to stop, in one
// transaction. It returns [ErrNotFound] when there is no such run.
func (s *Store) Redirect(ctx context.Context, run, task string, when time.Time) error {
	return s.change(ctx, crashSafe, "give the slot of run "+run+" to "+task,
		func(ctx context.Context, w *statements) error {
			if _, err := askAutopilot(ctx, w, AutopilotControl{Kind: AutopilotStart, Text: task, At: when}); err != nil {
				return err
			}
			_, err := addControl(ctx, w, Control{Run: run, Kind: ControlStop, At: when})
			return err
		})
}

// Controls returns the rows of a run that nobody has taken, oldest first, and
// leaves them so. Who must not lose one in a crash names their ids in
// [Step].Taken of the commit that carries them out.
func (s *Store) Controls(ctx context.Context, run string) ([]Control, error) {
	return read(ctx, s, "read what is asked of run "+run, func(c *Control) []any {
		return []any{&c.ID, &c.Run, &c.Kind, &c.Text, when(&c.At)}
	}, `SELECT id, run, kind, text, at FROM controls WHERE run = $1 AND taken_at = 0 ORDER BY id`, run)
}
