package storedrun

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Setup is what a resume needs beside the kernel's state. What is stored
// outlives the code: fields can be added, but names must not change.
type Setup struct {
	Flags json.RawMessage `json:"flags,omitempty"`
	// Sandbox says what is enforced by the operating system.
	Sandbox string `json:"sandbox,omitempty"`
	// Checks are the gates that the run's work goes through, in their order; nil of a run
	// that was made from a state file.
	Checks []runplan.Check `json:"checks"`
	// Private is the id of the workspace that the run works in, where its work is delivered
	// to the root; "" is none. Deliveries are those that were made.
	Private    string               `json:"private,omitempty"`
	Branch     string               `json:"branch,omitempty"` // that was checked out when it began
	Deliveries []delivery.Delivered `json:"deliveries,omitempty"`
	// Undelivered says why verified work of the run is not in the checkout; "" is that there
	// is none, or that it is there.
	Undelivered      string `json:"undelivered,omitempty"`
	UndeliveredFiles int    `json:"undelivered_files,omitempty"`
	// Needs: it takes a person to bring it there.
	UndeliveredNeeds bool `json:"undelivered_needs,omitempty"`
	// UndeliveredBack is the branch that has to be checked out again before that; "" is none.
	UndeliveredBack string `json:"undelivered_back,omitempty"`
	// Choose is true when a person has to choose between their lines and the agent's before anything else.
	Choose bool `json:"choose,omitempty"`
	// Only is what of the work is in the workspace alone.
	Only []workspace.Conflict `json:"only,omitempty"`
	// Host is the machine that has its work, and Place where its agents worked there, when
	// that is not the run's root.
	Host  string `json:"host,omitempty"`
	Place string `json:"place,omitempty"`
	// Base is the tree that tampering is measured against.
	Base string `json:"base,omitempty"`
	// TaskBase is the tree before the first run of its task; "" is that of a run without a task.
	TaskBase string `json:"task_base,omitempty"`
}

// NoteDelivery keeps what became of the work.
func (s *Setup) NoteDelivery(d delivery.Delivered) {
	asked := d.Kind == deliver.Ask && len(d.Paths) > 0
	s.UndeliveredFiles, s.Undelivered, s.Only = d.Files, d.Why, d.Only
	s.Choose, s.UndeliveredBack = d.Kind == deliver.Settle, d.Back
	needing := []deliver.Kind{deliver.Settle, deliver.Wait, deliver.Rest, deliver.Combine}
	s.UndeliveredNeeds = asked || slices.Contains(needing, d.Kind)
	switch {
	case d.Kind == deliver.Deliver:
		s.Deliveries, s.Undelivered = append(s.Deliveries, d), ""
	case d.Kind == deliver.Nothing && d.Files == 0 && d.Commits == 0:
		s.Undelivered = ""
	}
}

// editSetup changes what is stored of a run at rest, with an event.
func editSetup(ctx context.Context, db *store.Store, id, kind string, data any, edit func(*Setup)) error {
	self, err := process.Self()
	if err != nil {
		return err
	}
	run, err := db.Take(ctx, id, OwnerOf(self), Alive)
	if err != nil {
		return err
	}
	var s Setup
	if len(run.Setup) > 0 {
		if err := json.Unmarshal(run.Setup, &s); err != nil {
			return fmt.Errorf("cannot read the set-up of run %s: %v", id, err)
		}
	}
	edit(&s)
	run.Setup = Encode(s)
	if endedWithoutPawl(run) {
		run.EndedAt = run.UpdatedAt
	}
	e, err := journal.New(id, run.N+1, time.Now(), kind, data)
	if err != nil {
		return err
	}
	return db.Commit(ctx, store.Step{Run: run, Event: e, Release: true})
}
