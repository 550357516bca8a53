package web

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

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/store"
)

// Bounds of live events.
const (
	// lookEvery is how soon a commit of another process is noticed while
	// somebody watches; nobody looks when nobody does.
	lookEvery = 40 * time.Millisecond
	// queueLength is how many frames wait for one reader.
	queueLength = 512
	// maxReaders is how many streams are open at once, of all kinds.
	maxReaders = 100
	// maxReplay is how many missed events a reader that comes back is sent. One
	// that missed more loads its page anew.
	maxReplay = 5000
	eventPage = 200
)

// cursor is a place in what happened: the last event of the journal, and the
// last change of the board.
type cursor struct{ event, change int64 }

func (c cursor) String() string { return fmt.Sprintf("%d-%d", c.event, c.change) }

func parseCursor(text string) (c cursor, ok bool) {
	a, b, found := strings.Cut(text, "-")
	event, err := strconv.ParseInt(a, 10, 64)
	change, err2 := strconv.ParseInt(b, 10, 64)
	return cursor{event, change}, found && err == nil && err2 == nil && event >= 0 && change >= 0
}

// frame is one server-sent event, made once for all readers.
type frame struct {
	run   string // that it is about; "" is none
	bytes []byte
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

// newFrame writes an event as it goes over the wire; id may be empty.
func newFrame(id, kind string, data any) frame {
	text, err := json.Marshal(data)
	if err != nil {
		text = []byte("null") // a stored event that is no JSON
	}
	var b []byte
	if id != "" {
		b = fmt.Appendf(b, "id: %s\n", id)
	}
	return frame{bytes: fmt.Appendf(b, "event: %s\ndata: %s\n\n", kind, text)}
}

// hub looks for what happened once for all readers, and hands it to each. It
// rests while there are none.
type hub struct {
	store *store.Store
	log   *slog.Logger
	wake  chan struct{} // a first reader came
	came  atomic.Bool   // a reader knows nothing yet of what runs do

	mu      sync.Mutex
	readers map[*reader]struct{}
	at      cursor // all readers have, or are being sent, what is up to here

	queue, pilot string // as they were seen last; of run
}

// reader is one stream. Its queue is closed when it is dropped.
type reader struct {
	queue chan frame
	run   string // only frames of this run, and of none
}

func newHub(db *store.Store, log *slog.Logger) *hub {
	return &hub{store: db, log: log, wake: make(chan struct{}, 1), readers: map[*reader]struct{}{}}
}

// join adds a reader and returns the place from which on it gets everything.
func (h *hub) join(ctx context.Context, run string) (r *reader, at cursor, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.readers) == 0 {
		if h.at.event, h.at.change, err = h.store.LastSeqs(ctx); err != nil {
			return nil, at, err
		}
	}
	r = &reader{queue: make(chan frame, queueLength), run: run}
	h.readers[r] = struct{}{}
	h.came.Store(true)
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return r, h.at, nil
}

// leave takes a reader away; one that was dropped is away already.
func (h *hub) leave(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, r)
}

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.readers) > 0
}

// send hands out what happened between two places, unless the readers are at
// another one by now: all have left, and others came.
func (h *hub) send(frames []frame, from, to cursor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == from {
		h.at = to
		h.deliver(frames)
	}
}

// broadcast hands out what is stored nowhere.
func (h *hub) broadcast(f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deliver([]frame{f})
}

// deliver gives each frame to its subscribers. A reader without room left is
// dropped: its queue is closed after what it has.
func (h *hub) deliver(frames []frame) {
	for r := range h.readers {
		for _, f := range frames {
			if r.run != "" && f.run != r.run {
				continue
			}
			if len(r.queue) == cap(r.queue) {
				close(r.queue)
				delete(h.readers, r)
				break
			}
			r.queue <- f // only deliver writes to it, so there is room
		}
	}
}

// run looks for news until ctx is done.
func (h *hub) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	version, broken := int64(-1), false
	for {
		if !h.watched() {
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
			err = errors.Join(h.poll(ctx), h.compare(ctx))
		}
		if err != nil && ctx.Err() == nil && !broken {
			h.log.Error("cannot look for events", "error", err)
		}
		if broken = err != nil; broken {
			version = -1
		}
	}
}

// poll reads what happened since and hands it out.
func (h *hub) poll(ctx context.Context) error {
	h.mu.Lock()
	at := h.at
	h.mu.Unlock()
	for {
		frames, next, err := h.between(ctx, at, cursor{math.MaxInt64, math.MaxInt64}, "")
		if err != nil || next == at {
			return err
		}
		h.send(frames, at, next)
		at = next
	}
}

// Changed says that something that has no events of its own is to be read again.
type Changed struct {
	What string `json:"what" enum:"queue,autopilot,repositories"`
}

// compare tells of what changed beside events and the board.
func (h *hub) compare(ctx context.Context) error {
	queue, pilot, err := h.store.Marks(ctx)
	if err != nil {
		return err
	}
	if queue != h.queue {
		h.queue = queue
		h.broadcast(newFrame("", "changed", Changed{"queue"}))
	}
	if pilot != h.pilot {
		h.pilot = pilot
		h.broadcast(newFrame("", "changed", Changed{"autopilot"}))
	}
	return nil
}

// between reads a page of what happened after a place and not after another:
// of one run, or of all runs and the board. next is where the page ends, and
// from at the end of all.
func (h *hub) between(ctx context.Context, from, until cursor, run string) (frames []frame, next cursor, err error) {
	next = from
	events, err := h.store.Events(ctx, run, from.event, eventPage)
	if err != nil {
		return nil, from, err
	}
	for _, e := range events {
		if e.Seq > until.event {
			break
		}
		next.event = e.Seq
		f := newFrame(next.String(), "journal", showEvent(e))
		f.run = e.Run
		frames = append(frames, f)
	}
	if run != "" {
		return frames, next, nil
	}
	changes, err := h.store.CaseChanges(ctx, from.change, eventPage)
	if err != nil {
		return nil, from, err
	}
	for _, c := range changes {
		if c.Seq > until.change {
			break
		}
		next.change = c.Seq
		frames = append(frames, newFrame(next.String(), "case", CaseEvent{ID: c.ID, Entry: c.Entry}))
	}
	return frames, next, nil
}
