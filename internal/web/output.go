package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/spool"
)

// growEvery is how soon more of a file is noticed.
const growEvery = 80 * time.Millisecond

type outputQuery struct {
	IterationPath
	Last string `header:"Last-Event-ID" maxLength:"20" doc:"The id of the last event that was seen."`
	From int64  `query:"from" minimum:"0" maximum:"1099511627776" doc:"The same, for who cannot send the header: the offset to begin at."`
}

// followOutput sends an agent's output as it is written. It reads from the file, so
// a slow reader only falls behind and needs no queue.
func (s *Server) followOutput(ctx context.Context, in *outputQuery) (*huma.StreamResponse, error) {
	root, _, err := s.folder(ctx, &in.IterationPath)
	if err != nil {
		return nil, explain(err)
	}
	if err := s.openStream(); err != nil {
		_ = root.Close()
		return nil, err
	}
	from := in.From
	if last, err := strconv.ParseInt(in.Last, 10, 64); err == nil && last >= 0 {
		from = last
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.closeStream()
		defer func() { _ = root.Close() }()
		w, req := newWire(c)
		s.tail(req.Context(), w, root, from)
	}}, nil
}

// tail sends events until the agent has ended and all were sent. An error of
// the wire means that nobody reads any more.
func (s *Server) tail(ctx context.Context, w *wire, root *os.Root, from int64) {
	t := &tailing{root: root, from: from}
	defer t.close()
	grow, beat := time.NewTicker(growEvery), time.NewTicker(beatEvery)
	defer grow.Stop()
	defer beat.Stop()
	if w.out.Flush() != nil {
		return
	}
	for {
		// Whether it has ended is asked before it is read: what came last is then
		// read for sure.
		ended := t.ended()
		for {
			frames := t.read()
			if len(frames) == 0 {
				break
			}
			if w.send(frames...) != nil || ctx.Err() != nil {
				return
			}
		}
		if ended {
			_ = w.send(newFrame("", "end", Parting{Why: "The agent has ended."}))
			return
		}
		select {
		case <-grow.C:
		case <-beat.C:
			if w.send(newFrame("", "beat", Beat{Now: time.Now().UTC()})) != nil {
				return
			}
		case <-s.closing:
			_ = w.send(newFrame("", "bye", Parting{Why: "The server ends."}))
			return
		case <-ctx.Done():
			return
		}
	}
}

// tailing reads the events of one attempt while they come.
type tailing struct {
	root  *os.Root
	spool *spool.Reader
	lines *spool.Lines
	from  int64
}

func (t *tailing) close() {
	if t.spool != nil {
		_ = t.spool.Close()
	}
}

// ended is true when the agent's result is there, or its files were moved.
func (t *tailing) ended() bool {
	if t.lines != nil && errors.Is(t.lines.Err, fs.ErrNotExist) {
		return true
	}
	return exists(t.root, "agent.result.json") || !exists(t.root, "begun.json")
}

// open opens the events, once there are any; until then it is an error.
func (t *tailing) open() error {
	if t.spool != nil {
		return nil
	}
	f, err := spool.Open(t.root, eventsFile)
	if err == nil {
		t.spool, t.lines = f, spool.NewLines(f, t.from)
	}
	return err
}

// batch is how many events go out together.
const batch = 200

// read takes the next events; none when there is nothing new.
func (t *tailing) read() []frame {
	if t.open() != nil {
		return nil // it has said nothing yet
	}
	var frames []frame
	for len(frames) < batch && t.lines.Next() {
		if e, ok := readEvent(t.lines.Line, t.lines.At); ok {
			frames = append(frames, newFrame(strconv.FormatInt(t.lines.End, 10), "agent", e))
		}
	}
	return frames
}

// rawRoute serves whole files, which have no schema.
func (s *Server) rawRoute(api huma.API) {
	op := huma.Operation{
		OperationID: "get-iteration-file", Method: http.MethodGet,
		Path: base + "/runs/{run}/iterations/{number}/files/{file}/raw", Tags: []string{"iterations"},
		Summary: "A whole file, or ranges of it, as plain text to keep",
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "The file",
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	huma.Register(api, op, func(_ context.Context, in *struct {
		IterationPath
		File string `path:"file" maxLength:"40"`
	}) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(c huma.Context) { s.serveRaw(c, &in.IterationPath, in.File) }}, nil
	})
}
