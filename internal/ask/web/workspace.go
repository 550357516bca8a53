package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/web/preview"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/shell"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
)

// This file opens the workspace of a task to a person. What is opened is made by rooms of
// its own; here is who may: to open is a change, so it is asked for as one, and a browser
// gets a ticket by which it enters.

// previewing names a port of a task.
type previewing struct {
	rest.CasePath
	Body struct {
		Port int `json:"port,omitempty" minimum:"1" maximum:"65535" doc:"Left out: the only one that answers."`
	}
	host string // by which the browser reaches this server
}

// Resolve implements [huma.Resolver].
func (p *previewing) Resolve(c huma.Context) []error {
	p.host = (&url.URL{Host: c.Host()}).Hostname()
	return p.CasePath.Resolve(c)
}

// workspaceHandlers let a person into the workspace of a task.
type workspaceHandlers struct {
	*core
	shells   *shell.Server
	previews *preview.Server
}

func (s workspaceHandlers) workspaceRoutes(api huma.API, mux *http.ServeMux) {
	at := rest.Tagged(api, "cases")
	rest.Post(at, "/cases/{id}/terminal", "open-terminal",
		"A ticket for a terminal in the workspace of a task, in the sandbox of its agent", s.openTerminal)
	rest.Post(at, "/cases/{id}/preview", "open-preview",
		"What a task serves on its ports, and a link to one of them", s.openPreview)
	mux.Handle("GET "+rest.Base+"/terminal", s.shells)
}

// readWorkspace returns nil for a case that has none.
func (s *core) readWorkspace(ctx context.Context, id string) (*view.Workspace, error) {
	w, ok, err := s.o.Store.Workspace(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	return &view.Workspace{FirstPort: w.Ports, Ports: pool.PortsIn}, nil
}

// haveWorkspace is the workspace of a case that must have one.
func (s workspaceHandlers) haveWorkspace(ctx context.Context, id string) (*view.Workspace, error) {
	if _, err := s.o.Store.Case(ctx, id); err != nil {
		return nil, err
	}
	w, err := s.readWorkspace(ctx, id)
	if err == nil && w == nil {
		err = s.o.LacksWorkspace(ctx, id)
	}
	return w, err
}

func (s workspaceHandlers) openTerminal(ctx context.Context, in *rest.CasePath) (*rest.Body[view.Terminal], error) {
	_, host, err := s.o.TaskElsewhere(ctx, in.ID)
	if err == nil && host == "" { // else the terminal has a copy of what that machine sent
		_, err = s.haveWorkspace(ctx, in.ID)
	}
	if err != nil {
		return nil, err
	}
	ticket, err := s.shells.Ticket(in.ID)
	if errors.Is(err, shell.ErrFull) {
		return nil, rest.Problem(http.StatusServiceUnavailable, "TOO_MANY_TERMINALS", "%v", err).
			Suggest("Close one that you do not need")
	}
	return rest.Answer(view.Terminal{Ticket: ticket}), err
}

// newPreviews makes the server of previews. Their names lead to the machine of the browser,
// so there are none for a server that is reached in another way than on loopback.
func (s *Server) newPreviews() *preview.Server {
	if s.listener == nil || s.listener.Scheme != "http" || !s.listener.Loopback {
		return nil
	}
	p := &preview.Server{
		Port:   s.listener.Port,
		Secret: func(name string) string { return makeKey("preview "+name, s.o.Token) },
		Reserved: func(ctx context.Context, task string) (first, many int, err error) {
			w, err := s.readWorkspace(ctx, task)
			if err != nil || w == nil || w.FirstPort == 0 {
				return 0, 0, err
			}
			return w.FirstPort, w.Ports, nil
		},
		Allows: s.peers.Allows, Log: s.log, Inward: sandbox.InwardFolder(s.o.StateDir),
	}
	p.Start()
	return p
}

func (s workspaceHandlers) openPreview(ctx context.Context, in *previewing) (*rest.Body[view.Preview], error) {
	w, err := s.haveWorkspace(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	ip, err := netip.ParseAddr(in.host)
	loopback := err == nil && ip.IsLoopback()
	if local := loopback || in.host == "localhost"; s.previews == nil || !local {
		return nil, rest.Problem(http.StatusConflict, "PREVIEW_ELSEWHERE",
			"A preview opens only in a browser that reaches this server on loopback").
			Suggest("From another machine: ssh -L 7295:127.0.0.1:7295 HOST, with the port of 'pawl serve'")
	}
	port, out := in.Body.Port, view.Preview{Listening: s.previews.Listening(ctx, w.FirstPort, w.Ports)}
	if port == 0 && len(out.Listening) == 1 {
		port = out.Listening[0]
	}
	its := w.FirstPort <= port && port < w.FirstPort+w.Ports
	if port != 0 && !its {
		return nil, fault.Refuse("%d is no port of %s: it has %d to %d", port, in.ID, w.FirstPort,
			w.FirstPort+w.Ports-1)
	}
	if port != 0 {
		out.URL = s.previews.Link(in.ID, port)
	}
	return rest.Answer(out), nil
}
