package hub

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
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
	h.sendBetween([]Frame{NewFrame(behind.String(), "journal", "one")}, began, behind)
	if n := len(second.Queue); n != 0 {
		t.Errorf("%d frames from before it came", n)
	}
}

// A page begins behind one place and ends at another, and says where: the next one
// begins there. Of one run there are its events only.
func TestBetween(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.happens(t)
	if _, err := h.store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "Count words"}}}, board.Pawl, time.Now()); err != nil {
		t.Fatal(err)
	}
	event, change, err := h.store.LastSeqs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start, end := Cursor{}, Cursor{event, change}
	for _, c := range []struct {
		name        string
		from, until Cursor
		run         string
		kinds       string
		next        Cursor
	}{
		{"all", start, end, "", "journal case ", end},
		{"the events", Cursor{0, change}, end, "", "journal ", end},
		{"the board", Cursor{event, 0}, end, "", "case ", end},
		{"what came later is left", start, start, "", "", start},
		{"nothing more", end, Cursor{event + 9, change + 9}, "", "", end},
		{"a run", start, end, "abc123", "journal ", Cursor{event, 0}},
		{"another run", start, end, "def456", "", start},
	} {
		frames, next, err := h.Between(t.Context(), c.from, c.until, c.run)
		kinds, at := "", c.from
		for _, f := range frames {
			text := string(f.Bytes)
			kind := between(text, "event: ", "\n")
			if kinds += kind + " "; kind == "journal" {
				at.Event = event
			} else {
				at.Change = change
			}
			if id := between(text, "id: ", "\n"); id != at.String() || (f.Run == "abc123") != (kind == "journal") {
				t.Errorf("%s: a frame of %q with the place %s, want %s", c.name, f.Run, id, at)
			}
		}
		if err != nil || kinds != c.kinds || next != c.next {
			t.Errorf("%s: %s up to %s, want %s up to %s: %v", c.name, kinds, next, c.kinds, c.next, err)
		}
	}
}

// between is what stands behind one word and before another.
func between(text, begin, end string) string {
	_, text, _ = strings.Cut(text, begin)
	text, _, _ = strings.Cut(text, end)
	return text
}
