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
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// doneElsewhere is why a task is put off that its list says is done.
const doneElsewhere = "it is done in its list"

// UpdateList brings the board to a list. What is new is added. What is there, by its ref or its
// id, and without either by its title, follows the list until work on it begins.
func (p *Lists) UpdateList(
	ctx context.Context, drafts []board.Draft,
) (added []board.Case, changed, left int, err error) {
	ids, err := p.namesOfCases(ctx)
	if err != nil {
		return nil, 0, 0, err
	}
	var fresh []board.Draft
	var known []board.Case
	place := make([]int, len(drafts)+1) // of a draft among the fresh ones
	at := make([]string, len(drafts)+1) // the id of a draft that is known
	for i, d := range drafts {
		c := board.Tidy(d.Case)
		if c.ID = ids[c.Ref]; c.Ref == "" {
			c.ID = ids["title "+c.Title]
		}
		if c.ID != "" {
			known, at[i+1] = append(known, c), c.ID
			continue
		}
		if at[d.In] != "" {
			d.Case.Parent = at[d.In]
		}
		d.In = place[d.In]
		fresh = append(fresh, d)
		place[i+1] = len(fresh)
	}
	if len(fresh) > 0 {
		if added, err = p.Store.AddCases(ctx, fresh, board.Person, time.Now()); err != nil {
			return nil, 0, 0, err
		}
	}
	for _, c := range added {
		ids[c.Ref] = c.ID
	}
	for _, c := range known {
		how, err := p.followList(ctx, c, ids)
		if err != nil {
			return added, changed, left, err
		}
		switch how {
		case followed:
			changed++
		case begun:
			left++
		}
	}
	return added, changed, left, nil
}

// namesOfCases returns the ids of the cases of the board, by all that a list can call them.
func (p *Lists) namesOfCases(ctx context.Context) (map[string]string, error) {
	all, err := p.Store.Cases(ctx, store.CaseFilter{})
	ids := make(map[string]string, 3*len(all))
	for _, c := range all {
		ids["title "+c.Title], ids[c.ID] = c.ID, c.ID
	}
	for _, c := range all {
		if c.Ref != "" {
			ids[c.Ref] = c.ID
		}
	}
	delete(ids, "")
	return ids, err
}

// RefsToIDs puts ids in the place of the refs among names of cases. Other names stay.
func (p *Lists) RefsToIDs(ctx context.Context, names []string) ([]string, error) {
	isID := func(name string) bool { _, _, ok := board.ParseID(name); return ok }
	if !slices.ContainsFunc(names, func(name string) bool { return !isID(name) }) {
		return names, nil
	}
	all, err := p.Store.Cases(ctx, store.CaseFilter{})
	out := slices.Clone(names)
	for i, name := range names {
		for _, c := range all {
			if c.Ref != "" && c.Ref == name && !isID(name) {
				out[i] = c.ID
			}
		}
	}
	return out, err
}

// following is what became of a case that a list names.
type following int

const (
	same following = iota
	followed
	begun // it stays as it is
)

// errSame ends an edit that changes nothing.
var errSame = errors.New("nothing is different")

// followList brings one case to what a list says.
func (p *Lists) followList(ctx context.Context, c board.Case, ids map[string]string) (following, error) {
	old, err := p.Store.Case(ctx, c.ID)
	if err != nil || old.Status == board.Done {
		return same, err
	}
	_, err = p.Store.Latest(ctx, p.Root, c.ID)
	if err == nil || !slices.Contains([]board.Status{board.Pending, board.Blocked, board.Deferred}, old.Status) {
		return begun, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return same, err
	}
	how := same
	move := board.Change{By: board.Person, Why: doneElsewhere, At: time.Now()}
	switch {
	case c.Status == board.Done && old.Status != board.Deferred && old.Type == board.Task:
		move.Action = board.Defer
	case c.Status != board.Done && c.Status != board.Deferred && old.Status == board.Deferred &&
		old.Why == doneElsewhere:
		move.Action, move.Why = board.Undefer, "it is open in its list again"
	}
	if move.Action != "" {
		if _, err = p.Store.MoveCase(ctx, c.ID, move); err != nil {
			return same, err
		}
		how = followed
	}
	needs := make([]string, len(c.Needs))
	for i, name := range c.Needs {
		if needs[i] = ids[name]; needs[i] == "" {
			needs[i] = name
		}
	}
	_, err = p.Store.EditCase(ctx, c.ID, board.Person, time.Now(), func(to *board.Case) error {
		is := to.Control.String() == c.Control.String() && to.Title == c.Title && to.Description == c.Description &&
			to.Priority == c.Priority && to.Same(c.Checks) &&
			slices.Equal(to.Acceptance, c.Acceptance) && slices.Equal(to.Tags, c.Tags) &&
			slices.Equal(slices.Sorted(slices.Values(to.Needs)), slices.Sorted(slices.Values(needs)))
		if is {
			return errSame
		}
		to.Title, to.Description, to.Acceptance = c.Title, c.Description, c.Acceptance
		to.Priority, to.Tags, to.Control = c.Priority, c.Tags, c.Control
		to.Checks, to.Needs = c.Checks, needs
		return nil
	})
	if errors.Is(err, errSame) {
		return how, nil
	}
	return followed, err
}

// maxProposal is the most that is read of a proposal, in bytes.
const maxProposal = 1 << 20

// ProposedTask is a task of a proposal, as the file has it.
type ProposedTask struct {
	Ref         string            `json:"ref" maxLength:"200" doc:"By which other tasks of the list need it."`
	Title       string            `json:"title" maxLength:"1000"`
	Description string            `json:"description,omitempty" maxLength:"20000"`
	Acceptance  []string          `json:"acceptance" maxItems:"100" nullable:"false" doc:"How a check can tell that it is done."`
	Verify      []board.TaskCheck `json:"verify,omitempty" doc:"Checks that show it: commands."`
	Needs       []string          `json:"needs,omitempty" maxItems:"100" doc:"Refs of tasks of the list that must have landed before."`
	Priority    int               `json:"priority,omitempty" doc:"Higher first."`
}

// Proposed are the tasks of a list that is in order.
func Proposed(drafts []board.Draft) []ProposedTask {
	list := make([]ProposedTask, len(drafts))
	for i, d := range drafts {
		c := d.Case
		list[i] = ProposedTask{c.Ref, c.Title, c.Description, c.Acceptance, c.Verify, c.Needs, c.Priority}
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
		return nil, "", fault.Refuse("cannot read the list: %v", err).
			Hint("Put a plain file of tasks there, or remove it")
	}
	sum := sha256.Sum256(text)
	drafts, err = board.Propose(text)
	return drafts, hex.EncodeToString(sum[:8]), err
}

// SaveProposal replaces the list of that version by other tasks, if those are in order.
func (p *Lists) SaveProposal(tasks []ProposedTask, version string) error {
	if _, _, err := p.shownList(version); err != nil {
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
func (p *Lists) AddProposal(ctx context.Context, version string) error {
	drafts, wrong, err := p.shownList(version)
	if err := cmp.Or(err, wrong); err != nil {
		return err
	}
	there, err := p.Store.Cases(ctx, store.CaseFilter{})
	if err != nil {
		return err
	}
	taken := lists.ToMap(there, func(c board.Case) (string, bool) { return c.Ref, c.Ref != "" })
	board.FreeRefs(drafts, taken)
	added, err := p.Store.AddCases(ctx, drafts, board.Person, time.Now())
	if err != nil {
		return err
	}
	if err := files.RemoveBelow(p.Root, planner.ProposalFile); err != nil {
		p.Say("Warning: %v", err)
	}
	if len(added) == 1 {
		p.Say("1 task added: %s. Work on it: pawl autopilot", added[0].ID)
		return nil
	}
	p.Say("%d tasks added: %s to %s. Work on them: pawl autopilot", len(added), added[0].ID, added[len(added)-1].ID)
	return nil
}

// DropProposal removes the list of that version.
func (p *Lists) DropProposal(version string) error {
	if _, _, err := p.shownList(version); err != nil {
		return err
	}
	if err := files.RemoveBelow(p.Root, planner.ProposalFile); err != nil {
		return err
	}
	p.Say("The list was deleted: %s", planner.ProposalFile)
	return nil
}

// shownList returns the list if it is still the version that the user was shown. wrong is what
// the list itself has wrong; err is for a list that has changed or does not exist.
func (p *Lists) shownList(version string) (drafts []board.Draft, wrong, err error) {
	drafts, now, err := ReadProposal(p.Root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fault.Refuse("the list no longer exists: %s", planner.ProposalFile).
			Hint("Let an agent write one: pawl plan \"GOAL\"")
	case now == "":
		return nil, nil, err
	case now != version:
		return nil, nil, fault.Refuse("the list was changed in the meantime: %s", planner.ProposalFile).
			Hint("Look at it again: pawl plan")
	}
	return drafts, err, nil
}

// State is the status as a person wants it: a pending task may be ready.
func State(c *board.Case) string {
	if c.IsReady() {
		return "ready"
	}
	return string(c.Status)
}

// statusPhraseOf is the status as what follows "it is" in a sentence.
func statusPhraseOf(c *board.Case) string {
	if c.IsReady() {
		return "ready"
	}
	return c.Status.Phrase()
}
