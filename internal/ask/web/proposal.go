package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
)

// Proposal are the tasks that an agent proposed for a goal, until a person adds them.
type Proposal struct {
	Version  string                `json:"version" doc:"Of the list; \"\" where there is none. It is named by what changes or adds the list."`
	Tasks    []action.ProposedTask `json:"tasks" nullable:"false"`
	Judged   bool                  `json:"judged" doc:"The configuration has gates, which will judge the tasks."`
	Problems []string              `json:"problems" nullable:"false" doc:"Why the list is not in order; then it shows no tasks."`
}

// Version names the list that a person has seen.
type Version struct {
	Version string `query:"version" required:"true" maxLength:"64" doc:"As in GET /proposal: nothing is done to a list that has changed since."`
}

func (s caseHandlers) proposalRoutes(api huma.API) {
	get(api, "/proposal", "get-proposal", "cases", "The tasks that an agent proposed for a goal (pawl plan)", s.proposal)
	post(api, "/proposal", "edit-proposal", "cases", "Replace the proposed tasks", s.editProposal)
	post(api, "/proposal/add", "add-proposal", "cases", "Add the proposed tasks to the board, all or none", s.addProposal)
	addRoute(api, huma.Operation{OperationID: "drop-proposal", Method: http.MethodDelete, Path: base + "/proposal",
		Summary: "Throw the proposed tasks away", Tags: []string{"cases"}, DefaultStatus: http.StatusOK}, s.dropProposal)
}

func (s caseHandlers) proposal(context.Context, *nothing) (*body[Proposal], error) {
	drafts, version, err := action.ReadProposal(s.o.Root)
	out := Proposal{Version: version, Tasks: action.Proposed(drafts), Problems: []string{}}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return answer(out), nil
	case err != nil && version == "":
		return nil, err
	case err != nil:
		out.Problems = strings.Split(err.Error(), "\n")
	}
	if c, err := s.loadConfig(); err == nil {
		out.Judged = len(c.Verification.Gates()) > 0
	}
	return answer(out), nil
}

func (s caseHandlers) editProposal(ctx context.Context, in *struct {
	Version
	Body struct {
		Tasks []action.ProposedTask `json:"tasks" minItems:"1" maxItems:"50" nullable:"false"`
	}
}) (*body[Proposal], error) {
	_, err := s.doAction(ctx, func(p *action.Operator) (string, error) {
		return "", p.SaveProposal(in.Body.Tasks, in.Version.Version)
	})
	if err != nil {
		return nil, err
	}
	return s.proposal(ctx, nil)
}

func (s caseHandlers) addProposal(ctx context.Context, in *Version) (*body[Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.AddProposal(ctx, in.Version) })
}

func (s caseHandlers) dropProposal(ctx context.Context, in *Version) (*body[Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.DropProposal(in.Version) })
}
