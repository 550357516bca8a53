package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
)

// Bounds of one stream.
const (
	beatEvery = 10 * time.Second
	// writeLimit is how long one write may take before a reader is given up.
	writeLimit = 10 * time.Second
	// maxReaders is how many streams are open at once, of all kinds.
	maxReaders = 100
	// maxReplay is how many missed events a reader that comes back is sent. One
	// that missed more loads its page anew.
	maxReplay = 5000
)

// streamHandlers answer who follows what happens.
type streamHandlers struct {
	*core
	open    atomic.Int64  // streams, of both kinds
	closing chan struct{} // closed when streams are to end
}

func (s *streamHandlers) streamRoutes(api huma.API) {
	events := huma.Operation{
		OperationID: "follow-events", Method: http.MethodGet, Path: rest.Base + "/events",
		Tags: []string{"live"}, Summary: "Live events",
		Description: "Server-sent events. Those with an id are replayed to a reader that comes back and says in " +
			"Last-Event-ID, or in after, which was its last. reset says that too much was missed: load the data anew. " +
			"dropped says that the reader was too slow, bye that the server ends: in both cases come back.",
	}
	events.Responses = describeStream(api, map[string]any{
		"hello": view.Hello{}, "journal": hub.Event{}, "case": hub.CaseEvent{}, "activity": view.Activity{}, "output": view.Grown{},
		"changed": hub.Changed{}, "beat": view.Beat{}, "reset": view.Parting{}, "dropped": view.Parting{}, "bye": view.Parting{},
	})
	huma.Register(api, events, s.followEvents)
}

// describeStream describes a stream: the kinds of its events, and the data of each.
func describeStream(api huma.API, kinds map[string]any) map[string]*huma.Response {
	var one []*huma.Schema
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		one = append(one, &huma.Schema{Type: huma.TypeObject, Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Enum: []any{kind}},
				"data":  api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(kinds[kind]), true, kind),
				"id":    {Type: huma.TypeString},
			}})
	}
	return map[string]*huma.Response{"200": {
		Description: "Server-sent events",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeArray,
			Items: &huma.Schema{OneOf: one}}}},
	}}
}

// wire writes frames to one reader.
type wire struct {
	w   http.ResponseWriter
	out *http.ResponseController
}

// newEventStream begins a stream. The limits of time that hold for other requests are
// lifted; instead each write has one.
func newEventStream(c huma.Context) (*wire, *http.Request) {
	r, w := humago.Unwrap(c)
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // a recorder in a test has none
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not collect events
	w.WriteHeader(http.StatusOK)
	return &wire{w, out}, r
}

// sendFrames writes frames and flushes them; an error means that the reader is gone,
// or does not read.
func (v *wire) sendFrames(frames ...hub.Frame) error {
	_ = v.out.SetWriteDeadline(time.Now().Add(writeLimit)) // if this fails, so does the write
	for _, f := range frames {
		if _, err := v.w.Write(f.Bytes); err != nil {
			return err
		}
	}
	return v.out.Flush()
}

// openStream counts a stream; closeStream must be called when it ends.
func (s *streamHandlers) openStream() error {
	if s.open.Add(1) <= maxReaders {
		return nil
	}
	s.closeStream()
	return rest.Problem(http.StatusServiceUnavailable, "TOO_MANY_STREAMS", "%d streams are open already",
		maxReaders).Suggest("Close pages that you do not need")
}

func (s *streamHandlers) closeStream() { s.open.Add(-1) }

type eventQuery struct {
	Last  string `header:"Last-Event-ID" maxLength:"50" doc:"The id of the last event that was seen."`
	After string `query:"after" maxLength:"50" pattern:"^([0-9]+-[0-9]+)?$" doc:"The same, for who cannot send the header."`
	Run   string `query:"run" maxLength:"64" pattern:"^[0-9A-Za-z_-]*$" doc:"Only events of this run."`
}

func (s *streamHandlers) followEvents(ctx context.Context, in *eventQuery) (*huma.StreamResponse, error) {
	run := in.Run
	if run != "" {
		r, err := s.o.Store.Run(ctx, run)
		if err != nil {
			return nil, rest.ExplainError(err)
		}
		run = r.ID
	}
	if err := s.openStream(); err != nil {
		return nil, err
	}
	r, at, err := s.hub.Join(ctx, run)
	if err != nil {
		s.closeStream()
		return nil, rest.ExplainError(err)
	}
	last := cmp.Or(in.Last, in.After)
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.closeStream()
		defer s.hub.Leave(r)
		w, req := newEventStream(c)
		s.sendStream(req.Context(), w, r, last, at)
	}}, nil
}

// sendStream sends the missed frames, and then new ones as they come. An error means that
// the reader has disconnected, so there is nowhere to report it.
func (s *streamHandlers) sendStream(ctx context.Context, w *wire, r *hub.Reader, last string, at hub.Cursor) {
	hello := hub.NewFrame("", "hello", view.Hello{Cursor: at.String(), Version: s.o.Version, Now: time.Now().UTC()})
	hello.Bytes = append([]byte("retry: 1000\n"), hello.Bytes...)
	if w.sendFrames(hello) != nil || s.sendMissed(ctx, w, r, last, at) != nil {
		return
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		var err error
		select {
		case f, open := <-r.Queue:
			if !open {
				_ = w.sendFrames(hub.NewFrame("", "dropped",
					view.Parting{Why: "This page is slower than the events; it continues where it was."}))
				return
			}
			err = w.sendFrames(f)
		case <-beat.C:
			err = w.sendFrames(hub.NewFrame("", "beat", view.Beat{Now: time.Now().UTC()}))
		case <-s.closing:
			_ = w.sendFrames(hub.NewFrame("", "bye", view.Parting{Why: "The server ends."}))
			return
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// sendMissed sends what happened between the last event that the reader saw and
// the place from which on its queue has everything.
func (s *streamHandlers) sendMissed(ctx context.Context, w *wire, r *hub.Reader, last string, until hub.Cursor) error {
	if last == "" {
		return nil
	}
	from, ok := hub.ParseCursor(last)
	missed := until.Event - from.Event + until.Change - from.Change
	if !ok || from.Event > until.Event || from.Change > until.Change || missed > maxReplay {
		return w.sendFrames(hub.NewFrame(until.String(), "reset",
			view.Parting{Why: "Too much was missed: load the data anew."}))
	}
	for from != until {
		frames, next, err := s.hub.Between(ctx, from, until, r.Run)
		if err != nil {
			s.log.Error("cannot replay events", "error", err)
			return err
		}
		if err := w.sendFrames(frames...); err != nil {
			return err
		}
		if next == from {
			return nil
		}
		from = next
	}
	return nil
}

// rawRoute serves whole files, which have no schema.
func (s iterationHandlers) rawRoute(api huma.API) {
	serveFiles(api, "get-iteration-file", "files/{file}/raw", "A whole file, or ranges of it, as plain text to keep",
		s.serveRaw)
	serveFiles(api, "get-evidence", "evidence/{file}", "A file of evidence: a picture, or the text of a report",
		func(c huma.Context, in *rest.IterationPath, name string) { serveEvidence(c, s.core, in, name) })
}

func serveFiles(api huma.API, id, path, summary string, serve func(c huma.Context, in *rest.IterationPath, name string)) {
	op := huma.Operation{
		OperationID: id, Method: http.MethodGet, Path: rest.Base + "/runs/{run}/iterations/{number}/" + path,
		Tags: []string{"iterations"}, Summary: summary,
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "The file",
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	huma.Register(api, op, func(_ context.Context, in *struct {
		rest.IterationPath
		File string `path:"file" maxLength:"255"`
	}) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(c huma.Context) { serve(c, &in.IterationPath, in.File) }}, nil
	})
}

// serveEvidence serves a file that somebody hostile may have written: as a picture or as plain text, never as a page.
func serveEvidence(c huma.Context, s *core, in *rest.IterationPath, name string) {
	r, w := humago.Unwrap(c)
	root, _, err := s.openAttempt(r.Context(), in)
	if err == nil {
		defer func() { _ = root.Close() }()
	}
	var file *os.File
	kind := outputs.EvidenceType(name)
	if err == nil && kind != "" && filepath.IsLocal(name) {
		file, _ = root.Open(filepath.Join("evidence", name))
	}
	if file == nil {
		where := "not there"
		if _, rec, err := s.findRecord(r.Context(), in); err == nil {
			where = outputs.ReasonGone(s.o.Store.OutputsFolder(), rec.Pushed)
		}
		rest.Problem(http.StatusNotFound, "FILE_NOT_FOUND", "Evidence %q of iteration %d of run %s is %s",
			fault.Cut(name, 100), in.Number, in.Run, where).
			Suggest("See what there is: GET " + rest.Base + "/runs/" + in.Run + "/iterations").WriteTo(w)
		return
	}
	defer func() { _ = file.Close() }()
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", time.Time{}, file)
}
