package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
)

// This file brings what people say to a run into the next prompt. A message is
// a control row; which ones are in a prompt is noted with the attempt before
// its agent starts, and they count as taken when its iteration is recorded. So
// a crash neither loses one nor tells it twice, and an attempt that a limit of
// the provider cut off leaves them for the next one. Of a workflow, the agent
// step that starts next is told.

// ErrNoReader is that no prompt of a run follows that a message could be in.
var ErrNoReader = errors.New("nobody would read it")

// LeaveMessage keeps what a person says to the agent of a run, whether it runs
// or rests, for the next prompt. by is where it comes from, e.g. "cli".
func LeaveMessage(ctx context.Context, db *store.Store, r store.Run, text, by string) error {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return errors.New("the message is empty")
	case r.Status == string(loop.Completed):
		return fmt.Errorf("%w: run %s is completed", ErrNoReader, r.ID)
	}
	now := time.Now()
	c := store.Control{Run: r.ID, Kind: store.ControlMessage, Text: text, At: now}
	if _, err := db.AddControl(ctx, c); err != nil {
		return err
	}
	_, err := journal.Append(ctx, db, r.ID, now, journal.MessageLeft, journal.Asked{Text: text, By: by})
	return err
}

// messages are those that wait, oldest first, and their rows. Without a
// database nobody can have left any; one that cannot be read has them later.
func (s *session) messages(ctx context.Context) (texts []string, rows []int64) {
	if s.o.Store == nil {
		return nil, nil
	}
	open, err := s.o.Store.Controls(ctx, s.id)
	if err != nil {
		s.warn(err.Error())
		return nil, nil
	}
	for _, r := range open {
		if r.Kind == store.ControlMessage {
			texts, rows = append(texts, r.Text), append(rows, r.ID)
		}
	}
	return texts, rows
}

// warnOfUnread warns of messages that no agent was told.
func (d *Driver) warnOfUnread(ctx context.Context) {
	if d.state.Status != loop.Completed {
		return // it can go on
	}
	if texts, _ := d.messages(ctx); len(texts) > 0 {
		d.warn(fmt.Sprintf("%d message(s) were told to no agent: none started after them", len(texts)))
	}
}
