package hub

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/store"
)

// open is the hub of an empty store.
func open(t *testing.T) *Hub {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "pawl.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return New(db, slog.New(slog.DiscardHandler))
}

// happens makes a run, which is an event.
func (h *Hub) happens(t *testing.T) {
	t.Helper()
	row := store.Run{ID: "abc123", Kind: "procedure", Name: "build", Root: "/repo", Status: "running", Owner: store.Owner{PID: 1}, State: []byte(`{}`), Setup: []byte(`{}`)}
	e, err := journal.New(row.ID, 1, time.Now(), journal.RunCreated, journal.Created{Kind: row.Kind, Name: row.Name})
	if err == nil {
		err = h.store.Create(t.Context(), row, e, func(store.Owner) bool { return false })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A reader whose queue is full is dropped, and gets what it had; others go on.
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	h := open(t)
	slow, _, err := h.Join(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	quick, _, err := h.Join(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for range queueLength + 1 {
		h.Broadcast(NewFrame("", "activity", nil))
		<-quick.Queue
		got++
	}
	n := 0
	for range slow.Queue { // it is closed
		n++
	}
	if n != queueLength || got != queueLength+1 {
		t.Errorf("the slow one had %d, the quick one %d", n, got)
	}
	h.Leave(slow) // again does nothing
	if !h.Watched() {
		t.Error("the quick one is gone too")
	}
}

// What was read for readers who have left is not handed to one who came since:
// it has begun behind that.
func TestWhoJoinsLaterIsNotHandedWhatCameBefore(t *testing.T) {
	t.Parallel()
	h := open(t)
	first, began, err := h.Join(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	h.happens(t)
	h.Leave(first)
	second, behind, err := h.Join(t.Context(), "")
	if err != nil || behind == began {
		t.Fatalf("the second reader begins at %v: %v", behind, err)
	}
	h.send([]Frame{NewFrame(behind.String(), "journal", "one")}, began, behind)
	if n := len(second.Queue); n != 0 {
		t.Errorf("%d frames from before it came", n)
	}
}
