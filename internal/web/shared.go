package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// makers is how many long answers are made at once; who asks meanwhile waits.
// More would take more memory and not less time.
const makers = 2

// shared makes long answers. Twenty pages that ask for the same because of the
// same event are given the same bytes, and those who read slowly hold nothing
// but them.
type shared struct {
	// version changes when an answer may have.
	version func(context.Context) (int64, error)
	turn    chan struct{}

	mu   sync.Mutex
	open map[string]*making // by what is asked, while it is made
}

// making is an answer under way. What it holds is set when ready is closed.
type making struct {
	version int64
	ready   chan struct{}
	text    []byte
	err     error
}

// errUnmade is what the others get when making an answer panicked.
var errUnmade = errors.New("the answer could not be made")

func newShared(version func(context.Context) (int64, error)) *shared {
	return &shared{version: version, turn: make(chan struct{}, makers), open: map[string]*making{}}
}

// get makes an answer, or waits for one that somebody else is making of what is
// stored now.
func (s *shared) get(ctx context.Context, key string, do func(context.Context) ([]byte, error)) ([]byte, error) {
	version, err := s.version(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	m := s.open[key]
	mine := m == nil || m.version != version
	if mine {
		m = &making{version: version, ready: make(chan struct{}), err: errUnmade}
		s.open[key] = m
	}
	s.mu.Unlock()
	if mine {
		s.make(context.WithoutCancel(ctx), key, m, do) // also when who asked is gone: others wait for it
		return m.text, m.err
	}
	select {
	case <-m.ready:
		return m.text, m.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// make makes it when it is its turn.
func (s *shared) make(ctx context.Context, key string, m *making, do func(context.Context) ([]byte, error)) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	s.turn <- struct{}{}
	defer func() {
		<-s.turn
		s.mu.Lock()
		if s.open[key] == m {
			delete(s.open, key)
		}
		s.mu.Unlock()
		close(m.ready)
	}()
	m.text, m.err = do(ctx)
}

// encoded is an answer as it goes over the wire.
type encoded struct {
	Type string `header:"Content-Type"`
	Body []byte
}

// getShared registers what many viewers read at once.
func getShared[I, T any](s *Server, api huma.API, path, id, tag, summary string, do func(context.Context, *I) (*body[T], error)) {
	op := huma.Operation{OperationID: id, Method: http.MethodGet, Path: base + path, Summary: summary, Tags: []string{tag}}
	schema := api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, id)
	ok := &huma.Response{Description: http.StatusText(http.StatusOK), Content: map[string]*huma.MediaType{"application/json": {Schema: schema}}}
	op.Responses = map[string]*huma.Response{"200": ok}
	register(api, op, func(ctx context.Context, in *I) (*encoded, error) {
		text, err := s.shared.get(ctx, fmt.Sprintf("%s %+v", id, *in), func(ctx context.Context) ([]byte, error) {
			out, err := do(ctx, in)
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			err = e.Encode(out.Body)
			return b.Bytes(), err
		})
		return &encoded{"application/json", text}, err
	})
	ok.Headers = nil // the description says the type already
}
