package action

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/planner"
)

// maxProposal is the most that is read of a proposal, in bytes.
const maxProposal = 1 << 20

// ProposedTask is a task of a proposal, as the file has it.
type ProposedTask struct {
	Ref         string   `json:"ref" maxLength:"200" doc:"By which other tasks of the list need it."`
	Title       string   `json:"title" maxLength:"1000"`
	Description string   `json:"description,omitempty" maxLength:"20000"`
	Acceptance  []string `json:"acceptance" maxItems:"100" nullable:"false" doc:"How a check can tell that it is done."`
	Needs       []string `json:"needs,omitempty" maxItems:"100" doc:"Refs of tasks of the list that must have landed before."`
	Priority    int      `json:"priority,omitempty" doc:"Higher first."`
}

// Proposed are the tasks of a list that is in order.
func Proposed(drafts []board.Draft) []ProposedTask {
	list := make([]ProposedTask, len(drafts))
	for i, d := range drafts {
		c := d.Case
		list[i] = ProposedTask{c.Ref, c.Title, c.Description, c.Acceptance, c.Needs, c.Priority}
	}
	return list
}

// ReadProposal reads the list that an agent, or the person, wrote below root, and checks
// it. version changes with the file. The error is [fs.ErrNotExist] when there is none, and
// a [*board.ProblemsError] or [*board.CycleError] when it is not in order.
func ReadProposal(root string) (drafts []board.Draft, version string, err error) {
	text, err := files.ReadBelow(root, planner.ProposalFile, maxProposal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	if err != nil {
		return nil, "", fault.Refuse("cannot read the list: %v", err).Hint("Put a plain file of tasks there, or remove it")
	}
	sum := sha256.Sum256(text)
	drafts, err = board.Propose(text)
	return drafts, hex.EncodeToString(sum[:8]), err
}

// SaveProposal replaces the list of that version by other tasks, if those are in order.
func (p *Operator) SaveProposal(tasks []ProposedTask, version string) error {
	if _, _, err := p.seen(version); err != nil {
		return err
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	for _, t := range tasks {
		if err := lines.Encode(t); err != nil {
			return err
		}
	}
	if _, err := board.Propose(text.Bytes()); err != nil {
		return err
	}
	return files.ReplaceBelow(p.Root, planner.ProposalFile, text.Bytes(), 0o644, false)
}

// AddProposal adds the tasks of the list of that version to the board, all or none, and
// removes the file.
func (p *Operator) AddProposal(ctx context.Context, version string) error {
	drafts, wrong, err := p.seen(version)
	if err := cmp.Or(err, wrong); err != nil {
		return err
	}
	added, err := p.Store.AddCases(ctx, drafts, board.Person, time.Now())
	if err != nil {
		return err
	}
	if err := files.RemoveBelow(p.Root, planner.ProposalFile); err != nil {
		p.Say("Warning: %v", err)
	}
	if len(added) == 1 {
		p.Say("1 task added: %s. Work it off: pawl autopilot", added[0].ID)
		return nil
	}
	p.Say("%d tasks added: %s to %s. Work them off: pawl autopilot", len(added), added[0].ID, added[len(added)-1].ID)
	return nil
}

// DropProposal removes the list of that version.
func (p *Operator) DropProposal(version string) error {
	if _, _, err := p.seen(version); err != nil {
		return err
	}
	if err := files.RemoveBelow(p.Root, planner.ProposalFile); err != nil {
		return err
	}
	p.Say("The list is gone: %s", planner.ProposalFile)
	return nil
}

// seen is the list of that version, which a person has looked at; wrong is what is not in
// order in it. The error is that somebody has changed it since.
func (p *Operator) seen(version string) (drafts []board.Draft, wrong, err error) {
	drafts, now, err := ReadProposal(p.Root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fault.Refuse("there is no list any more: %s", planner.ProposalFile).
			Hint("Let an agent write one: pawl plan \"GOAL\"")
	case now == "":
		return nil, nil, err
	case now != version:
		return nil, nil, fault.Refuse("the list was changed meanwhile: %s", planner.ProposalFile).
			Hint("Look at it again: pawl plan")
	}
	return drafts, err, nil
}
