// Package hub sends what happens to its readers. It polls the store once for all of
// them.
package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Bounds of live events.
const (
	// lookEvery is the interval of polling for commits of other processes. Without
	// readers there is no polling.
	lookEvery = 40 * time.Millisecond
	// queueLength is how many frames wait for one reader.
	queueLength = 512
	eventPage   = 200
)

// Cursor is a place in what happened: the last event of the journal, and the
// last change of the board.
type Cursor struct{ Event, Change int64 }

func (c Cursor) String() string { return fmt.Sprintf("%d-%d", c.Event, c.Change) }

// ParseCursor reads a place as String writes it.
func ParseCursor(text string) (c Cursor, ok bool) {
	a, b, found := strings.Cut(text, "-")
	event, err := strconv.ParseInt(a, 10, 64)
	change, err2 := strconv.ParseInt(b, 10, 64)
	return Cursor{event, change}, found && err == nil && err2 == nil && event >= 0 && change >= 0
}

// Frame is one server-sent event, made once for all readers.
type Frame struct {
	Run   string // that it is about; "" is none
	Bytes []byte
}

// Event is one event of the journal.
type Event struct {
	Seq  int64     `json:"seq" doc:"Rises with every event of all runs."`
	N    int64     `json:"n" doc:"Its number in the run's own story; 0 for one beside it."`
	Run  string    `json:"run"`
	At   time.Time `json:"at"`
	Kind string    `json:"kind" doc:"E.g. run.created, iteration.started, iteration.ended, question.asked, finished."`
	Data any       `json:"data" doc:"What belongs to the kind."`
}

func showEvent(e journal.Event) Event {
	out := Event{Seq: e.Seq, N: e.N, Run: e.Run, At: e.At, Kind: e.Kind}
	if len(e.Data) > 0 {
		out.Data = e.Data
	}
	return out
}

// CaseEvent is a change of the board.
type CaseEvent struct {
	ID string `json:"id"`
	board.Entry
}

// NewFrame writes an event as it goes over the wire; id may be empty.
func NewFrame(id, kind string, data any) Frame {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("null") // a stored event that is no JSON
	}
	var b []byte
	if id != "" {
		b = fmt.Appendf(b, "id: %s\n", id)
	}
	return Frame{Bytes: fmt.Appendf(b, "event: %s\ndata: %s\n\n", kind, text)}
}

// Hub looks for what happened once for all readers, and hands it to each. It
// rests while there are none.
type Hub struct {
	store *store.Store
	log   *slog.Logger
	wake  chan struct{} // a first reader came
	came  atomic.Bool   // a reader knows nothing yet of what runs do

	mu      sync.Mutex
	readers map[*Reader]struct{}
	at      Cursor // all readers have, or are being sent, what is up to here

	queue, pilot string // as they were seen last; of run
}

// Reader is one stream.
type Reader struct {
	Queue chan Frame // is closed when the reader is dropped
	Run   string     // only frames of this run, and of none
}

// New returns a hub without readers.
func New(db *store.Store, log *slog.Logger) *Hub {
	return &Hub{store: db, log: log, wake: make(chan struct{}, 1), readers: map[*Reader]struct{}{}}
}

// Join adds a reader and returns the place from which on it gets everything.
func (h *Hub) Join(ctx context.Context, run string) (r *Reader, at Cursor, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) == 0 {
		if h.at.Event, h.at.Change, err = h.store.LastSeqs(ctx); err != nil {
			return nil, at, err
		}
	}
	r = &Reader{Queue: make(chan Frame, queueLength), Run: run}
	h.readers[r] = struct{}{}
	h.came.Store(true)
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return r, h.at, nil
}

// Leave takes a reader away; one that was dropped is away already.
func (h *Hub) Leave(r *Reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, r)
}

// Watched is true while there are readers.
func (h *Hub) Watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.readers) > 0
}

// Came is true once after a reader came who knows nothing yet of what runs do.
func (h *Hub) Came() bool { return h.came.Swap(false) }

// sendBetween hands out what happened between two places, unless the readers are at
// another one by now: all have left, and others came.
func (h *Hub) sendBetween(frames []Frame, from, to Cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == from {
		h.at = to
		h.deliverFrames(frames)
	}
}

// Broadcast hands out what is stored nowhere.
func (h *Hub) Broadcast(f Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deliverFrames([]Frame{f})
}

// deliverFrames gives each frame to its subscribers. A reader without room left is
// dropped: its queue is closed after what it has.
func (h *Hub) deliverFrames(frames []Frame) {
	for r := range h.readers {
		for _, f := range frames {
			if r.Run != "" && f.Run != r.Run {
				continue
			}
			if len(r.Queue) == cap(r.Queue) {
				close(r.Queue)
				delete(h.readers, r)
				break
			}
			r.Queue <- f // only deliver writes to it, so there is room
		}
	}
}

// Every calls do in equal steps of time until ctx is done.
func Every(ctx context.Context, step time.Duration, do func()) {
	tick := time.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// Run looks for news until ctx is done.
func (h *Hub) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	version, broken := int64(-1), false
	for {
		if !h.Watched() {
			tick.Stop()
			select {
			case <-h.wake:
				tick.Reset(lookEvery)
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now, err := h.store.DataVersion(ctx)
		if err == nil && now != version {
			version = now
			err = errors.Join(h.pollStore(ctx), h.sendOtherChanges(ctx))
		}
		if err != nil && ctx.Err() == nil && !broken {
			h.log.Error("cannot look for events", "error", err)
		}
		if broken = err != nil; broken {
			version = -1
		}
	}
}

// pollStore reads what happened since the last call, and delivers it.
func (h *Hub) pollStore(ctx context.Context) error {
	h.mu.Lock()
	at := h.at
	h.mu.Unlock()
	for {
		frames, next, err := h.Between(ctx, at, Cursor{math.MaxInt64, math.MaxInt64}, "")
		if err != nil || next == at {
			return err
		}
		h.sendBetween(frames, at, next)
		at = next
	}
}

// Changed says that something that has no events of its own is to be read again.
type Changed struct {
	What string `json:"what" enum:"queue,autopilot,repositories"`
}

// sendOtherChanges reports changes that have neither an event nor a change of the board.
func (h *Hub) sendOtherChanges(ctx context.Context) error {
	queue, pilot, err := h.store.Marks(ctx)
	if err != nil {
		return err
	}
	if queue != h.queue {
		h.queue = queue
		h.Broadcast(NewFrame("", "changed", Changed{"queue"}))
	}
	if pilot != h.pilot {
		h.pilot = pilot
		h.Broadcast(NewFrame("", "changed", Changed{"autopilot"}))
	}
	return nil
}

// Between reads a page of what happened after a place and not after another:
// of one run, or of all runs and the board. next is where the page ends, and
// from at the end of all.
func (h *Hub) Between(ctx context.Context, from, until Cursor, run string) (frames []Frame, next Cursor, err error) {
	next = from
	events, err := h.store.Events(ctx, run, from.Event, eventPage)
	if err != nil {
		return nil, from, err
	}
	for _, e := range events {
		if e.Seq > until.Event {
			break
		}
		next.Event = e.Seq
		f := NewFrame(next.String(), "journal", showEvent(e))
		f.Run = e.Run
		frames = append(frames, f)
	}
	if run != "" {
		return frames, next, nil
	}
	changes, err := h.store.CaseChanges(ctx, from.Change, eventPage)
	if err != nil {
		return nil, from, err
	}
	for _, c := range changes {
		if c.Seq > until.Change {
			break
		}
		next.Change = c.Seq
		frames = append(frames, NewFrame(next.String(), "case", CaseEvent{ID: c.ID, Entry: c.Entry}))
	}
	return frames, next, nil
}
