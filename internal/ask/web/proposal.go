package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/view"

	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
)

// Version names the list that a person has seen.
type Version struct {
	Version string `query:"version" required:"true" maxLength:"64" doc:"As in GET /proposal: nothing is done to a list that has changed since."`
}

func (s caseHandlers) proposalRoutes(api huma.API) {
	at := rest.Tagged(api, "cases")
	rest.Get(at, "/proposal", "get-proposal", "The tasks that an agent proposed for a goal (pawl plan)", s.proposal)
	rest.Post(at, "/proposal", "edit-proposal", "Replace the proposed tasks", s.editProposal)
	rest.Post(at, "/proposal/add", "add-proposal", "Add the proposed tasks to the board, all or none", s.addProposal)
	rest.Delete(at, "/proposal", "drop-proposal", "Throw the proposed tasks away", s.dropProposal)
}

func (s caseHandlers) proposal(context.Context, *rest.Nothing) (*rest.Body[view.Proposal], error) {
	drafts, version, err := action.ReadProposal(s.o.Root)
	out := view.Proposal{Version: version, Tasks: action.Proposed(drafts), Problems: []string{}}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rest.Answer(out), nil
	case err != nil && version == "":
		return nil, err
	case err != nil:
		out.Problems = strings.Split(err.Error(), "\n")
	}
	if c, err := s.loadConfig(); err == nil {
		out.Judged = len(c.Verification.Gates()) > 0
	}
	return rest.Answer(out), nil
}

func (s caseHandlers) editProposal(ctx context.Context, in *struct {
	Version
	Body struct {
		Tasks []action.ProposedTask `json:"tasks" minItems:"1" maxItems:"50" nullable:"false"`
	}
}) (*rest.Body[view.Proposal], error) {
	_, err := s.doAction(ctx, func(p *action.Operator) (string, error) {
		return "", p.SaveProposal(in.Body.Tasks, in.Version.Version)
	})
	if err != nil {
		return nil, err
	}
	return s.proposal(ctx, nil)
}

func (s caseHandlers) addProposal(ctx context.Context, in *Version) (*rest.Body[view.Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.AddProposal(ctx, in.Version) })
}

func (s caseHandlers) dropProposal(ctx context.Context, in *Version) (*rest.Body[view.Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (string, error) { return "", p.DropProposal(in.Version) })
}
