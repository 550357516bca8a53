package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// Limits of time. Streams set their own, for each thing that they write.
const (
	headerTime = 5 * time.Second
	readTime   = 20 * time.Second
	writeTime  = 60 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 32 << 10
	// endTime is how long requests under way may take after the end was asked for.
	endTime = 5 * time.Second
)

// Options is what a server shows, and by what it acts.
type Options struct {
	Root     string // of the repository
	StateDir string
	Version  string
	Token    string
	Store    *sqlite.Store
	// Tree is nil outside of git: then there are no diffs.
	Tree *workspace.Checkout
	// Config reads the configuration as it is now.
	Config  func() (*config.Config, error)
	Actions Actions
	// Log gets what goes wrong inside; nil logs nothing.
	Log *slog.Logger
}

// Result is what was done, in the words of the command line.
type Result struct {
	Lines []string
}

// Raise are new limits for a run that goes on or starts; "" leaves them. They
// are written as the flags of the same names are.
type Raise struct {
	MaxIterations string `json:"max_iterations,omitempty" maxLength:"20" doc:"As --max-iterations: the highest number that an iteration may have; 0 is unlimited for procedures."`
	MaxCost       string `json:"max_cost,omitempty" maxLength:"20" doc:"As --max-cost: US dollars of the whole run, e.g. 5 or 2.50."`
	Timeout       string `json:"timeout,omitempty" maxLength:"20" doc:"As --timeout: wall clock with its unit, e.g. 90m."`
}

// StartWish is which procedure is to be started, and how.
type StartWish struct {
	Procedure string   `json:"procedure" minLength:"1" maxLength:"200" doc:"Its name, as in GET /procedures."`
	Fresh     bool     `json:"fresh,omitempty" doc:"Start anew although an earlier run could be resumed."`
	Context   []string `json:"context,omitempty" maxItems:"20" doc:"As --context: each is a text for the prompt, or a file whose text it is."`
	Raise
}

// Actions are what the server does for a person. The command line implements
// them, so that a button does what the command does and says the same. A
// request that cannot be carried out as things are is a [*fault.Error] that
// is refused.
type Actions interface {
	Start(ctx context.Context, w StartWish) (run string, s Result, err error)
	Resume(ctx context.Context, run string, r Raise) (Result, error)
	Pause(ctx context.Context, run string) (Result, error)
	Stop(ctx context.Context, run string) (Result, error)
	// Redirect stops the run of a task and gives its slot to another task, or
	// does neither.
	Redirect(ctx context.Context, run, task string) (Result, error)
	// Message leaves words for the next prompt.
	Message(ctx context.Context, run, text string) (Result, error)
	// Answer takes the number of an option (0: none) and words. goesOn is true
	// when the run waits to be resumed with the answer.
	Answer(ctx context.Context, run, step string, choice int, text string) (s Result, goesOn bool, err error)
	// Rollback goes back to the snapshot after iteration to; -1 is the one
	// before the last. Undo gets back what was there before the last rollback.
	Rollback(ctx context.Context, run string, to int, undo bool) (Result, error)
	// Apply brings the result of a run that worked on a copy into the files.
	Apply(ctx context.Context, run string) (Result, error)
	StartAutopilot(ctx context.Context, w PilotWish) (Result, error)
	StartSprint(ctx context.Context, w SprintWish) (Result, error)
	// AskAutopilot asks the one that runs to pause, resume, stop or mode; text
	// is the mode.
	AskAutopilot(ctx context.Context, wish, text string) (Result, error)
	// AskQueue asks hold, release, retry or drop of an entry, or pause, resume
	// or land of the whole queue.
	AskQueue(ctx context.Context, wish, id, why string) (Result, error)
	// Case does what 'pawl case VERB' does with a task.
	Case(ctx context.Context, verb, id string, w CaseWish) (Result, error)
	// Tree is the history of the files that a run worked on.
	Tree(ctx context.Context, r sqlite.Run) (*workspace.Checkout, error)
	// Gather makes the result of a run that works on a copy readable as a diff.
	Gather(ctx context.Context, run string) error
}

// Server answers browsers and scripts.
type Server struct {
	o        Options
	listener *Listener
	hub      *hub
	streams  atomic.Int64 // that are open, of both kinds
	handler  http.Handler
	api      huma.API
	closing  chan struct{} // closed when streams are to end
	closed   sync.Once
}

// New makes a server for an open listener. Serve must be called on it.
func New(d *Listener, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o, listener: d, closing: make(chan struct{})}
	s.hub = newHub(o.Store, o.Log)
	mux := http.NewServeMux()
	s.api = s.routes(mux)
	mux.Handle("/", pages())
	s.handler = s.guard(mux)
	return s
}

// Handler answers requests; it is for tests and for what wraps a server.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers until ctx is done, and then ends in a bounded time: streams
// are told and closed, requests under way may take a few seconds more.
func (s *Server) Serve(ctx context.Context) error {
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, ReadTimeout: readTime,
		WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { s.hub.run(work) })
	parts.Go(func() { (&watcher{s: s, runs: map[string]*watchedRun{}}).watch(work) })
	served := make(chan error, 1)
	parts.Go(func() { served <- srv.Serve(s.listener.listener) })
	var err error
	select {
	case <-ctx.Done():
		s.closed.Do(func() { close(s.closing) })
		err = shutdown(ctx, srv)
	case err = <-served:
		s.closed.Do(func() { close(s.closing) })
		_ = srv.Close() // the error that matters is the one at hand
	}
	stop()
	parts.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the server stopped: %v", err)
	}
	return nil
}

// Start serves in the background until ctx is done; wait returns when it has
// ended, and must be called.
func (s *Server) Start(ctx context.Context) (wait func() error) {
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	return func() error { return <-ended }
}

// shutdown lets requests end, and cuts off those that do not.
func shutdown(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		return srv.Close()
	}
	return nil
}
