package action

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Application is what became of undelivered work: `apply --json`.
type Application struct {
	Run string `json:"run"`
	// Status is applied, nothing, conflict, confirm or check.
	Status  string `json:"status"`
	Changed int    `json:"changed"` // files that the work changes
	// Written and Removed are the paths that were changed, or with check that would be.
	Written []string `json:"written,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Commits int      `json:"commits,omitempty"` // that came with it
	Branch  string   `json:"branch,omitempty"`  // that they moved
	// Conflicts are why nothing was changed.
	Conflicts []workspace.Conflict `json:"conflicts,omitempty"`
	// Confirm are the paths of what runs by itself or is protected, which a person has to say yes to.
	Confirm []string `json:"confirm,omitempty"`
	Why     string   `json:"why,omitempty"` // it was not applied
	// Unverified is why the gates do not vouch for what is in the files then; "" if they do.
	Unverified string `json:"unverified,omitempty"`

	undo int      // the iteration to roll back to, so that only this application is undone
	only []string // what of the work is in the workspace alone, and how it is got
}

// ApplyOptions are how work is applied.
type ApplyOptions struct {
	Check bool // only say what would be done
	// Confirmed: a person has seen by name what runs by itself.
	Confirmed bool
}

// Apply brings what a run came to and what is not in the person's files yet into them,
// verified or not: a person asked for it. That some of it cannot be applied is an
// outcome: then nothing was written.
func (p *Runs) Apply(ctx context.Context, r store.Run, o ApplyOptions) (Application, error) {
	if r.Kind == string(loop.Task) {
		return Application{}, p.suggestForTask(ctx,
			fault.Refuse("run %s worked on %s, whose work lands through the queue", r.ID, r.Name), r)
	}
	if loop.Status(r.Status).Active() && storedrun.Alive(r.Owner) {
		return Application{}, fault.Refuse("run %s is still running, and has no result yet", r.ID).
			Hint("Stop it first: pawl stop %s", r.ID)
	}
	if err := p.CheckHere(ctx, r, "apply"); err != nil {
		return Application{}, err
	}
	w, err := p.workspaceOf(ctx, r)
	if errors.Is(err, delivery.ErrGone) {
		return Application{}, fault.Refuse("run %s has nothing to apply: its work is not kept", r.ID)
	}
	if err != nil {
		return Application{}, err
	}
	a, confirm, err := p.applyFrom(ctx, w, r, o)
	only := delivery.OnlyThere(a.Only, w.Place().Top, w.Person().Repo.Top, r.ID)
	if err := errors.Join(err, w.Release(ctx, delivery.Kept)); err != nil {
		return Application{}, err
	}
	switch {
	case o.Check:
	case a.Kind == deliver.Deliver && a.Before != "":
		err = storedrun.RecordDelivery(ctx, p.Store, r.ID, a.Delivered)
	case a.Kind == deliver.Nothing:
		err = storedrun.ClearUndelivered(ctx, p.Store, r.ID, "all work of the run is in your files")
	case len(a.Conflicts) > 0:
		err = storedrun.NoteConflicts(ctx, p.Store, r.ID, a.Why)
	}
	out := applicationOf(r.ID, a, confirm, o)
	out.only = only
	out.Unverified = unverifiedReason(r, a)
	for _, d := range SetupOf(r).Deliveries {
		if d.Iteration < a.Iteration {
			out.undo = max(out.undo, d.Iteration)
		}
	}
	return out, err
}

// unverifiedReason returns a reason to look at what is applied, or "" if the gates have passed for it.
func unverifiedReason(r store.Run, a delivery.Applied) string {
	state, err := storedrun.StateOf(r)
	switch {
	case a.Kind == deliver.Nothing || err != nil:
		return ""
	case state.PendingReview == nil && !storedrun.LastVerdict(state).Green: // what waits for a review is green
		return "this work is not verified; what is red: pawl show " + r.ID
	case a.Merged:
		return "the gates have not judged this work together with your own changes: run your checks"
	}
	return ""
}

// applyFrom applies what a workspace has, where a person has said yes to what needs it:
// that is confirm.
func (p *Runs) applyFrom(ctx context.Context, w *delivery.Workspace, r store.Run, o ApplyOptions,
) (a delivery.Applied, confirm []string, err error) {
	if a, err = w.Apply(ctx, true); err != nil {
		return a, nil, err
	}
	confirm, err = p.toConfirm(ctx, w.Person(), r, a.Changes)
	isUnseen := a.Kind == deliver.Deliver && len(confirm) > 0 && !o.Confirmed
	if err != nil || o.Check || isUnseen {
		return a, confirm, err
	}
	a, err = w.Apply(ctx, false)
	return a, confirm, err
}

// applicationOf says it.
func applicationOf(run string, a delivery.Applied, confirm []string, o ApplyOptions) Application {
	out := Application{Run: run, Changed: len(a.Changes), Commits: a.Commits, Confirm: confirm,
		Branch: strings.TrimPrefix(a.Branch, "refs/heads/")}
	for _, ch := range a.Changes {
		if ch.NewObject == "" {
			out.Removed = append(out.Removed, ch.Path)
		} else {
			out.Written = append(out.Written, ch.Path)
		}
	}
	switch {
	case a.Kind == deliver.Nothing:
		out.Status = "nothing"
	case a.Kind != deliver.Deliver:
		why := a.Why
		if len(a.Conflicts) > 0 {
			why = bothChanged
		}
		out.Status, out.Why, out.Written, out.Removed = "conflict", a.Why, nil, nil
		out.Conflicts = lists.Each(a.Paths, func(path string) workspace.Conflict {
			return workspace.Conflict{Path: path, Why: why}
		})
	case o.Check:
		out.Status = "check"
	case len(confirm) > 0 && !o.Confirmed:
		out.Status = "confirm"
	default:
		out.Status = "applied"
	}
	return out
}

const bothChanged = "you and the agent both changed it"

// PrintApplied prints what became of an application; verbose lists its paths.
func (p *Runs) PrintApplied(out Application, verbose bool) {
	commits := ""
	if out.Commits > 0 {
		commits = ", " + fault.Numbered(out.Commits, "commit")
		if out.Branch != "" {
			commits += " on " + out.Branch
		}
	}
	switch out.Status {
	case "nothing":
		all := "All work of run %s is in your files.\n"
		if len(out.only) > 0 {
			all = "All work of run %s that can be delivered is in your files.\n"
		}
		p.Result(all, out.Run)
	case "conflict":
		p.printConflicts(out)
	case "confirm":
		p.Result("Nothing was changed: your own programs run these files by themselves, or they are protected, and run %s "+
			"changed them.\n", out.Run)
		for _, path := range out.Confirm {
			p.Result("  %s\n", report.Line(path, 300))
		}
		p.Say("Look at them: pawl show %s --diff. Apply them: pawl apply %s --yes", out.Run, out.Run)
	case "check":
		how := ""
		if len(out.Confirm) > 0 {
			how = ", with --yes"
		}
		p.Result("Run %s can be applied%s: %s would be written, %d removed%s.\n", out.Run, how,
			fault.Numbered(len(out.Written), "file"), len(out.Removed), commits)
		p.listPaths(out)
		if len(out.Confirm) > 0 {
			p.Result("It needs --yes: your own programs run some of it by themselves, or it is protected: %s.\n",
				deliver.Some(out.Confirm))
		}
	case "applied":
		p.Result("Applied run %s: %s written, %d removed%s. No other file was changed.\n",
			out.Run, fault.Numbered(len(out.Written), "file"), len(out.Removed), commits)
		if verbose {
			p.listPaths(out)
		}
		p.Say("To undo this: pawl rollback %s --to %d", out.Run, out.undo)
	}
	if out.Unverified != "" && len(out.Conflicts) == 0 {
		p.Say("Note: %s", out.Unverified)
	}
	for _, line := range out.only {
		p.Say("%s", line)
	}
}

func (p *Runs) printConflicts(out Application) {
	if len(out.Conflicts) == 0 {
		p.Result("Nothing was changed: %s.\n", out.Why)
		return
	}
	p.Result("Nothing was changed: %s of run %s cannot be applied.\n",
		fault.Numbered(len(out.Conflicts), "file"), out.Run)
	for _, c := range out.Conflicts {
		p.Result("  %s: %s\n", report.Line(c.Path, 300), c.Why)
	}
	if slices.ContainsFunc(out.Conflicts, func(c workspace.Conflict) bool { return c.Why == bothChanged }) {
		p.Say("Choose between the two, and apply again: pawl settle %s", out.Run)
		p.Say("Or move your changes to these files away and apply again.")
		return
	}
	p.Say("Then apply it again: pawl apply %s", out.Run)
}

func (p *Runs) listPaths(out Application) {
	for _, path := range out.Written {
		p.Result("  write  %s\n", report.Line(path, 300))
	}
	for _, path := range out.Removed {
		p.Result("  remove %s\n", report.Line(path, 300))
	}
}
