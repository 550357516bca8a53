package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/web/shell"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// This file opens the workspace of a task to a person. What is opened is made by rooms of
// its own; here is who may: to open is a change, so it is asked for as one, and a browser
// gets a ticket by which it enters.

// Workspace is what is known of a task's workspace.
type Workspace struct {
	FirstPort int `json:"first_port" doc:"PAWL_PORT_BASE in it."`
	Ports     int `json:"ports" doc:"How many, from the first on."`
}

// Terminal lets its bearer in.
type Terminal struct {
	Ticket string `json:"ticket" doc:"Good once, for a minute: GET /api/v1/terminal?ticket=TICKET is a WebSocket."`
}

func (s *Server) workspaceRoutes(api huma.API, mux *http.ServeMux) {
	post(api, "/cases/{id}/terminal", "open-terminal", "cases",
		"A ticket for a terminal in the workspace of a task, in the sandbox of its agent", s.openTerminal)
	mux.Handle("GET "+base+"/terminal", s.shells)
}

// workspace is nil for a case that has none.
func (s *Server) workspace(ctx context.Context, id string) (*Workspace, error) {
	w, ok, err := s.o.Store.Workspace(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	return &Workspace{FirstPort: w.Ports, Ports: pool.PortsIn}, nil
}

// haveWorkspace is the workspace of a case that must have one.
func (s *Server) haveWorkspace(ctx context.Context, id string) (*Workspace, error) {
	if _, err := s.o.Store.Case(ctx, id); err != nil {
		return nil, err
	}
	w, err := s.workspace(ctx, id)
	if err == nil && w == nil {
		err = fault.Refuse("%s has no workspace here", id).Hint("It gets one when work on it begins")
	}
	return w, err
}

func (s *Server) openTerminal(ctx context.Context, in *CasePath) (*body[Terminal], error) {
	if _, err := s.haveWorkspace(ctx, in.ID); err != nil {
		return nil, err
	}
	ticket, err := s.shells.Ticket(in.ID)
	if errors.Is(err, shell.ErrFull) {
		return nil, problem(http.StatusServiceUnavailable, "TOO_MANY_TERMINALS", "%v", err).suggest("Close one that you do not need")
	}
	return answer(Terminal{ticket}), err
}
