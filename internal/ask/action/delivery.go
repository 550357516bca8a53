package action

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
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
	// Conflicts are why nothing was changed.
	Conflicts []workspace.Conflict `json:"conflicts,omitempty"`
	// Confirm are the paths of what runs by itself or is protected, which a person has to say yes to.
	Confirm []string `json:"confirm,omitempty"`
	Why     string   `json:"why,omitempty"` // it was not applied
	// Unverified is why the gates do not vouch for what is in the files then; "" if they do.
	Unverified string `json:"unverified,omitempty"`

	check bool
	undo  int      // the iteration to roll back to, so that only this application is undone
	only  []string // what of the work is in the workspace alone, and how it is got
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
	if !o.Check && a.Kind == deliver.Deliver && a.Before != "" {
		err = storedrun.RecordDelivery(ctx, p.Store, r.ID, a.Delivered)
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

// unverifiedReason says why the gates have not passed for what is applied; "" if they have.
func unverifiedReason(r store.Run, a delivery.Applied) string {
	state, err := storedrun.StateOf(r)
	switch {
	case a.Kind == deliver.Nothing || err != nil:
		return ""
	case !storedrun.LastVerdict(state).Green:
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
	out := Application{Run: run, Changed: len(a.Changes), Commits: a.Commits, Confirm: confirm, check: o.Check}
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

// workspaceOf opens the private workspace of a run that no process works on. The error is
// [delivery.ErrGone] if the run has none any more.
func (p *Runs) workspaceOf(ctx context.Context, r store.Run) (*delivery.Workspace, error) {
	id := SetupOf(r).Private
	if id == "" {
		return nil, delivery.ErrGone
	}
	pl, err := p.configOf(r.Root)
	if err != nil {
		return nil, err
	}
	if left, ok := Unattended(ctx, statedir.Of(r.Root, p.Env), r.ID); ok && loop.Status(r.Status).Active() {
		return nil, fault.Refuse("run %s runs unattended: its pawl has ended, the agent ends in %s", r.ID, left).
			Hint("Resume it: pawl resume %s", r.ID)
	}
	say := func(text string) { p.Say("Note: %s", text) }
	row, there, err := p.Store.Workspace(ctx, id)
	if err != nil || !there || !delivery.WorksIn(row.Own, r.ID) {
		return p.openKept(ctx, pl, r, say)
	}
	w, err := OpenPrivate(ctx, pl, p.Env, p.Store, id, say)
	if err != nil {
		return nil, err
	}
	if err := p.recordFinished(ctx, w); err != nil {
		return nil, errors.Join(err, w.Release(ctx, delivery.Kept))
	}
	err = w.Continue(ctx, r.ID)
	if err == nil {
		return w, nil
	}
	if rerr := w.Release(ctx, "its folder did not exist"); rerr != nil || !errors.Is(err, delivery.ErrGone) {
		return nil, errors.Join(err, rerr)
	}
	return p.openKept(ctx, pl, r, say)
}

// openKept opens what is stored of the work of a run whose workspace is gone, or works for
// a later run.
func (p *Runs) openKept(ctx context.Context, c *config.Config, r store.Run, say func(string),
) (*delivery.Workspace, error) {
	o, err := privateOptions(ctx, c, p.Env, say)
	if err != nil {
		return nil, err
	}
	w, err := delivery.OpenKept(ctx, o, r.ID)
	if err != nil {
		return nil, err
	}
	return w, p.recordFinished(ctx, w)
}

// recordFinished notes a delivery that was cut off and is finished now.
func (p *Runs) recordFinished(ctx context.Context, w *delivery.Workspace) error {
	run, d, ok := w.Finished()
	if !ok {
		return nil
	}
	return storedrun.RecordDelivery(ctx, p.Store, run, d)
}

// OpenPrivate takes the private workspace of runs with an id, for a configuration. Nothing
// is delivered but what is asked for, until [delivery.Workspace.DeliverWhen] says otherwise.
func OpenPrivate(ctx context.Context, c *config.Config, env []string, db *store.Store, id string, tell func(string),
) (*delivery.Workspace, error) {
	o, err := privateOptions(ctx, c, env, tell)
	if err != nil {
		return nil, err
	}
	o.ID = id
	if o.Pool, err = Pool(ctx, c, env, db); err != nil {
		return nil, err
	}
	return delivery.Take(ctx, o)
}

func privateOptions(ctx context.Context, c *config.Config, env []string, tell func(string)) (delivery.Options, error) {
	o := delivery.Options{StateDir: statedir.Of(c.Root, env), MaxFile: int64(c.Snapshot.MaxFile),
		Hide: hiddenPaths(c), When: deliver.Asked, Tell: tell, Confirm: ConfirmPatterns(c)}
	var err error
	o.Person, err = workspace.Open(ctx, c.Root,
		workspace.Options{StateDir: o.StateDir, MaxFile: o.MaxFile, Hide: o.Hide})
	return o, err
}

// ConfirmPatterns are patterns of what runs by itself, and of what configures pawl.
func ConfirmPatterns(c *config.Config) []string {
	return slices.Concat(c.Safety.Confirm, []string{statedir.FileName},
		runplan.SourceNames(c.Root, c.Root, c.Root, c.Files))
}

// toConfirm are the paths of changes that a person has to say yes to by name: what runs by
// itself, what configures pawl, and what the agents of the run may not change.
func (p *Runs) toConfirm(ctx context.Context, person *workspace.Checkout, r store.Run, changes []git.Change,
) ([]string, error) {
	c, err := p.configOf(r.Root)
	if err != nil {
		return nil, err
	}
	sources := slices.Clone(c.Files)
	if file := SetupOf(r).Flags.File; file != "" {
		sources = append(sources, trust.File{Path: file})
	}
	found := gate.Tampered(lists.Each(changes, func(c git.Change) gate.Change {
		return gate.Change{Path: c.Path, From: c.From, Status: c.Status, Link: c.IsLink()}
	}), gate.Protect{
		Patterns: c.Verification.Protect, New: c.Verification.ProtectNew, Allow: c.Procedures[r.Name].Allow,
		Files: runplan.SourceNames(person.Repo.Top, c.Root, c.Root, sources),
	})
	paths := lists.Each(changes, func(ch git.Change) string { return ch.Path })
	paths, err = delivery.RunsItself(ctx, person.Repo, paths, ConfirmPatterns(c))
	paths = append(paths, lists.Each(found, func(v gate.Violation) string { return v.Path })...)
	return slices.Compact(slices.Sorted(slices.Values(paths))), err
}

// hiddenPaths are the paths of safety.hide, and those that they lead to by links.
func hiddenPaths(c *config.Config) (paths []string) {
	for _, p := range c.Safety.Hide {
		paths = append(paths, string(p))
		if to, err := filepath.EvalSymlinks(string(p)); err == nil && to != string(p) {
			paths = append(paths, to)
		}
	}
	return paths
}

// checkHidden refuses a repository in whose workspaces nothing could be hidden: one that holds the
// home folder, and one that tracks what safety.hide names, since agents have all objects.
func checkHidden(ctx context.Context, c *config.Config, env []string) error {
	if c.Loop.Safety == string(safety.Permissive) {
		return nil
	}
	repo, err := git.Open(ctx, c.Root)
	if err != nil {
		return err
	}
	if _, holds := files.Below(repo.Top, filepath.Join(statedir.Home(env), "file")); holds {
		return fault.Refuse("cannot work in %s, which contains your home folder: agents could read and write all of it",
			repo.Top).
			Hint("Work in a repository below it").Hint("Or allow it: --safety permissive")
	}
	tracked, err := repo.Tracked(ctx, files.NamesBelow(repo.Top, hiddenPaths(c)))
	if err != nil || len(tracked) == 0 {
		return err
	}
	return fault.Refuse("safety.hide cannot hide %s: git tracks it, and agents can read what is in git", tracked[0]).
		Hint("Remove it from git, and commit: git rm --cached %s", strconv.Quote(tracked[0])).
		Hint("Replace the secrets in it: older commits contain them").
		Hint("Or remove it from safety.hide")
}

// HiddenInHistory returns a path that safety.hide names and older commits have, where agents can read
// it; "" for none.
func HiddenInHistory(ctx context.Context, c *config.Config) (string, error) {
	repo, err := git.Open(ctx, c.Root)
	if err != nil || c.Loop.Safety == string(safety.Permissive) {
		return "", err
	}
	return repo.InHistory(ctx, files.NamesBelow(repo.Top, hiddenPaths(c)))
}

// When is at which times verified work of a run with a name, at a level, is delivered. Nothing of the
// level paranoid is delivered unseen, and no other agent may see sealed checks.
func When(c *config.Config, name, level string) deliver.When {
	if level == string(safety.Paranoid) || name == planner.Sealing {
		return deliver.Asked
	}
	return deliver.When(c.Run.Deliver)
}

// PrivateID names the workspace of runs with a name.
func PrivateID(name string) string {
	id := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name)
	return pool.RunPrefix + id[:min(len(id), 80)]
}

const bothChanged = "you and the agent both changed it"

// lookByHand looks at the person's files as they are, by the ignore rules of now.
func (p *Runs) lookByHand(ctx context.Context, person *workspace.Checkout) (workspace.Seen, error) {
	if err := person.Renew(ctx, delivery.ByHand); err != nil {
		return workspace.Seen{}, err
	}
	return person.See(ctx, delivery.ByHand)
}

// PrintApplied prints what became of an application; verbose lists its paths.
func (p *Runs) PrintApplied(out Application, verbose bool) {
	commits := ""
	if out.Commits > 0 {
		commits = ", " + fault.Numbered(out.Commits, "commit")
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
	switch {
	case !slices.ContainsFunc(out.Conflicts, func(c workspace.Conflict) bool { return c.Why == bothChanged }):
	case out.check:
		p.Say("To choose between the two: pawl apply %s, then pawl settle %s, then apply it again", out.Run, out.Run)
	default:
		p.Say("Choose between the two, and apply again: pawl settle %s", out.Run)
	}
	p.Say("Or move your changes to these files away and apply again.")
}

func (p *Runs) listPaths(out Application) {
	for _, path := range out.Written {
		p.Result("  write  %s\n", report.Line(path, 300))
	}
	for _, path := range out.Removed {
		p.Result("  remove %s\n", report.Line(path, 300))
	}
}

// configOf is the configuration of a root.
func (p *Runs) configOf(root string) (*config.Config, error) {
	pl, err := p.Planner(root, planner.Flags{})
	if err != nil {
		return nil, err
	}
	return pl.Config, nil
}

// Clash is a conflict that a run rests for, as a person sees it.
type Clash struct {
	delivery.Conflict
	Text string `json:"text,omitempty"` // both sides, with markers: mine and agent
	Why  string `json:"why,omitempty"`  // there is no text
}

// ListConflicts returns the files that both the user and an agent changed, because of
// which the run's work was not delivered. It returns nil if the workspace of the run is
// gone.
func (p *Runs) ListConflicts(ctx context.Context, r store.Run) ([]Clash, error) {
	w, err := p.workspaceOf(ctx, r)
	if errors.Is(err, delivery.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := w.Conflicts()
	clashes := lists.Each(all, func(c delivery.Conflict) Clash {
		text, err := w.Text(ctx, c)
		if err != nil {
			return Clash{Conflict: c, Why: err.Error()}
		}
		return Clash{Conflict: c, Text: string(text)}
	})
	return clashes, errors.Join(err, w.Release(ctx, delivery.Kept))
}

// InConflict reports whether a run rests until a person has chosen what becomes of its conflicts.
func (p *Runs) InConflict(ctx context.Context, r store.Run) (bool, error) {
	id := SetupOf(r).Private
	row, _, err := p.Store.Workspace(ctx, id)
	if err != nil || id == "" {
		return false, err
	}
	return delivery.InConflict(row.Own, statedir.Of(r.Root, p.Env), r.ID)
}

// SettleConflict stores what a person chose for a path; of an edit, edit makes the text
// from the one with markers. left is how many are open.
func (p *Runs) SettleConflict(ctx context.Context, r store.Run, path string, choice delivery.Choice,
	edit func(text []byte) ([]byte, error)) (left int, err error) {
	w, err := p.workspaceOf(ctx, r)
	if errors.Is(err, delivery.ErrGone) {
		return 0, fault.Of(fault.Refused, err)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.Release(ctx, delivery.Kept)) }()
	var text []byte
	if choice == delivery.Edited {
		all, err := w.Conflicts()
		if err != nil {
			return 0, err
		}
		for _, c := range all {
			if c.Path == path {
				if text, err = w.Text(ctx, c); err == nil {
					text, err = edit(text)
				}
				if err != nil {
					return 0, fault.Of(fault.Refused, err)
				}
			}
		}
	}
	left, err = w.Settle(ctx, path, choice, text)
	if err != nil {
		return left, fault.Of(fault.Refused, fmt.Errorf("cannot settle the conflict: %w", err))
	}
	if left == 0 {
		err = storedrun.NoteConflictsResolved(ctx, p.Store, r.ID)
	}
	return left, err
}
