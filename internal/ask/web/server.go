package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzhttp"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/activity"
	"github.com/pawl-dev/pawl/internal/ask/web/bounds"
	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/listen"
	"github.com/pawl-dev/pawl/internal/ask/web/preview"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/shell"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/peer"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
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
	// Operator does what a person at a browser asks for, so that a button does
	// what the command does and says the same. Its Say and Result are not used.
	*action.Operator
	StateDir string
	Version  string
	Token    string
	// Tree is nil outside of git: then there are no diffs.
	Tree *workspace.Checkout
	// Launch starts pawl in the background with these arguments, and waits until
	// begun finds what it works on by its process, or until it has ended:
	// [ErrEnded] is that it ended without a word.
	Launch func(ctx context.Context, args []string, begun Begun) (id string, err error)
	// Resumed is called when an autopilot that was cut off works again; nil: none is started again.
	Resumed func()
	// AskQueue asks something of the merge queue.
	AskQueue func(ctx context.Context, ask queue.Ask) error
	// OpenQueue opens the merge queue, to look and to ask.
	OpenQueue func(ctx context.Context, do func(*merge.Queue) error) error
	// Pool opens the workspaces of tasks.
	Pool func(ctx context.Context) (*pool.Pool, error)
	// ServeRoot starts the server of another repository, which ends with this one,
	// and waits until it has said where it is.
	ServeRoot func(ctx context.Context, root string) error
	// Shell is a command that opens a shell in the workspace of a task, in its sandbox.
	Shell func(task string) (process.Command, error)
	// Webhook looks at the forge, which has called; nil answers no such calls.
	Webhook func(ctx context.Context) error
}

// Begun finds the id of what a process works on.
type Begun func(pid int) (id string, ok bool, err error)

// ErrEnded is a pawl in the background that ended at once without a message.
var ErrEnded = errors.New("pawl ended immediately")

// core is what all handlers act by, and what several of them ask.
type core struct {
	o        Options
	listener *listen.Listener
	log      *slog.Logger // gets what goes wrong inside
	hub      *hub.Hub
}

// Server answers browsers and scripts: it lets in who may ask, and hands the request to
// the handlers of a noun.
type Server struct {
	*core
	peers    peer.Check
	shells   *shell.Server
	previews *preview.Server // nil where none can be had
	streams  streamHandlers
	pilot    pilotHandlers
	handler  http.Handler
	mux      *http.ServeMux // without [Server.guardRequests]
	api      huma.API
	rings    chan struct{} // the forge has called
	closed   sync.Once
}

// New makes a server for an open listener. Serve must be called on it.
func New(d *listen.Listener, o Options) *Server {
	c := &core{o: o, listener: d, log: o.Log(o.Root)}
	c.hub = hub.New(o.Store, c.log)
	s := &Server{core: c, rings: make(chan struct{}, 1)}
	s.streams.core, s.streams.closing, s.pilot = c, make(chan struct{}), newPilotHandlers(c)
	s.peers.Accepts, s.peers.Unseen = func(pid int) bool { return !supervisor.Boxed(pid) }, true
	s.shells = shell.New(o.Shell)
	s.previews = s.newPreviews()
	mux := http.NewServeMux()
	s.api = s.registerRoutes(mux)
	mux.HandleFunc("/", servePages)
	s.mux, s.handler = mux, s.guardRequests(compressAnswers(mux))
	return s
}

// compressAnswers compresses answers for who takes them so. Events are not: they are
// small, and each is to arrive when it happens.
func compressAnswers(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.ExceptContentTypes([]string{"text/event-stream"}), gzhttp.EnableZstd(false))
	if err != nil {
		panic(err) // these options are right
	}
	return wrap(next)
}

// API answers who needs no token: the tools of this process, which programs call over MCP.
func (s *Server) API() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mux.ServeHTTP(w, r.WithContext(action.Over(r.Context(), action.MCP)))
	})
}

// toolsPath is where programs call tools. It is guarded as the API is.
const toolsPath = "/mcp"

// ServeTools answers programs at [toolsPath]. It must be called before Serve.
func (s *Server) ServeTools(h http.Handler) { s.mux.Handle(toolsPath, h) }

// done answers what was done.
type done = rest.Body[view.Done]

// loadConfig reads the configuration as it is now.
func (s *core) loadConfig() (*config.Config, error) {
	p, err := s.o.Planner(s.o.Root, planner.Flags{})
	if err != nil {
		return nil, err
	}
	return p.Config, nil
}

// Serve answers until ctx is done, and then ends in a bounded time: streams get a
// last event and are closed, and open requests have a few seconds more.
func (s *Server) Serve(ctx context.Context) error {
	srv := &http.Server{
		Handler: bounds.Answering(s.handler), ReadHeaderTimeout: headerTime, ReadTimeout: readTime,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return s.peers.WithConn(bounds.WithConn(ctx, c), c)
		},
		WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watcher := &activity.Watcher{Hub: s.hub, Active: s.activeRuns, Checks: s.checksOfRunID, Open: s.openOutputs}
	var parts sync.WaitGroup
	parts.Go(func() { s.hub.Run(work) })
	parts.Go(func() { watcher.WatchRuns(work) })
	parts.Go(func() { neighbourHandlers{s.core}.lookAround(work) })
	parts.Go(func() { s.pilot.beginPlanned(work) })
	parts.Go(func() { <-s.streams.closing; s.shells.Close() })
	if s.previews != nil {
		parts.Go(func() { <-s.streams.closing; s.previews.Close() })
	}
	if s.o.Webhook != nil {
		parts.Go(func() { s.answerRings(work) })
	}
	served := make(chan error, 1)
	parts.Go(func() { served <- srv.Serve(s.listener) })
	var err error
	select {
	case <-ctx.Done():
		s.closed.Do(func() { close(s.streams.closing) })
		err = shutDownServer(ctx, srv)
	case err = <-served:
		s.closed.Do(func() { close(s.streams.closing) })
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

// shutDownServer lets requests end, and cuts off those that do not.
func shutDownServer(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		return srv.Close()
	}
	return nil
}

// dist is what the browser gets: built from the sources in web at the top, and kept beside
// the code so that a build of pawl needs nothing else.
//
//go:embed all:dist
var dist embed.FS

//go:embed unknown.html
var unauthorizedPage []byte // for a browser without a session

// types are those of the files that pages are made of; the system's own table
// may say otherwise.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
}

// servePages serves the browser's side. An address without a file of its own is a
// place in the application, which finds its way by itself.
func servePages(w http.ResponseWriter, r *http.Request) {
	if mayWrite(r) {
		rest.Problem(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
			"Pages are read only").Suggest("The operations are listed at " + rest.Base + "/openapi.json").WriteTo(w)
		return
	}
	name := path.Clean(r.URL.Path)
	switch {
	case path.Ext(name) != "":
	case strings.HasPrefix(name, "/terminal/"):
		name = "/terminal.html"
		w.Header().Set("Content-Security-Policy", terminalPolicy)
	default:
		name = "/index.html"
	}
	data, err := dist.ReadFile("dist" + name)
	kind := types[path.Ext(name)]
	if err != nil || kind == "" {
		rest.Problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is no page %s",
			fault.Cut(r.URL.Path, 200)).Suggest("Go to the first page: /").WriteTo(w)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-cache")
	if strings.HasPrefix(name, "/assets/") { // its name has a hash of the content
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// registerRoutes registers everything that can be asked under /api/v1, which is also
// what the OpenAPI description is made of.
func (s *Server) registerRoutes(mux *http.ServeMux) huma.API {
	api := rest.NewAPI(mux)
	runHandlers{s.core}.runRoutes(api)
	iterationHandlers{s.core}.iterationRoutes(api)
	runHandlers{s.core}.stepRoutes(api)
	diffHandlers{s.core}.diffRoutes(api)
	actionHandlers{s.core}.actionRoutes(api)
	caseHandlers{s.core}.caseRoutes(api)
	workspaceHandlers{s.core, s.shells, s.previews}.workspaceRoutes(api, mux)
	caseHandlers{s.core}.proposalRoutes(api)
	reviewHandlers{s.core}.reviewRoutes(api)
	queueHandlers{s.core}.queueRoutes(api)
	s.pilot.pilotRoutes(api)
	statHandlers{s.core}.statRoutes(api)
	placeHandlers{s.core}.placeRoutes(api)
	neighbourHandlers{s.core}.repositoryRoutes(api)
	s.streams.streamRoutes(api)
	iterationHandlers{s.core}.rawRoute(api)
	mux.HandleFunc("GET "+rest.Base+"/openapi.json", s.serveDescription)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		rest.Problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is nothing at %s %s", r.Method, fault.Cut(r.URL.Path, 200)).
			Suggest("See what there is: GET " + rest.Base + "/openapi.json").WriteTo(w)
	})
	return api
}

// serveDescription answers with the OpenAPI description.
func (s *Server) serveDescription(w http.ResponseWriter, _ *http.Request) {
	data, err := s.Description()
	if err != nil {
		rest.InternalProblem(err).WriteTo(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who asked is gone
}

// Description is the OpenAPI 3.1 description of the API, as JSON.
func (s *Server) Description() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }
