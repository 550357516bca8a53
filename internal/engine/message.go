package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// This file brings what people say to a run to its agent: at once where its program
// takes messages while it works, else in the next prompt. A message is a control row;
// which ones an attempt has told is noted with it before it does, and they count as
// taken when its iteration is recorded. So a crash loses none, and an attempt that a
// limit of the provider cut off leaves them for the next one. Of a workflow, the agent
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

// hearing is an agent at work that takes messages; without one they wait.
type hearing struct {
	mu    sync.Mutex
	b     *begun
	begun string // where it is kept
}

func (h *hearing) open(b begun, path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b, h.begun = &b, path
}

// close returns what was begun, with the messages that were passed on.
func (h *hearing) close(b begun) begun {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.b != nil {
		b, h.b = *h.b, nil
	}
	return b
}

// pass hands a message to the agent, once. It is noted before it is handed on: after a
// crash it may be told again, and is never lost.
func (h *hearing) pass(row store.Control, warn func(string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.b == nil || slices.Contains(h.b.Messages, row.ID) {
		return
	}
	h.b.Messages, h.b.Said, h.b.Later = append(h.b.Messages, row.ID), append(h.b.Said, row.Text), h.b.Later+1
	err := h.b.write(h.begun)
	if err == nil {
		err = appendTo(h.b.Job.Messages(), agent.UserLine(row.Text))
	}
	if err != nil {
		warn(fmt.Sprintf("cannot tell the agent a message now, its next prompt has it: %v", err))
	}
}

func appendTo(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// told leaves out the messages that came too late for the agent.
func (b begun) told(res supervisor.Result) begun {
	n := len(b.Messages) - max(0, b.Later-res.Told)
	b.Messages, b.Said = b.Messages[:n], b.Said[:n]
	return b
}

// warnOfUnread warns of messages that no agent was told.
func (d *Driver) warnOfUnread(ctx context.Context) {
	if d.state.Status != loop.Completed {
		return // it can go on
	}
	if texts, _ := d.messages(ctx); len(texts) > 0 {
		d.warn(fault.Numbered(len(texts), "message") + " reached no agent: none started after that")
	}
}
