package action

import (
	"cmp"
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

// BranchLeft returns a line about the branch that the work of an open run goes to, if another one is checked out.
func BranchLeft(ctx context.Context, r store.Run) string {
	s := SetupOf(r)
	if s.Branch == "" || s.UndeliveredBack != "" || !r.EndedAt.IsZero() {
		return ""
	}
	began, now := strings.TrimPrefix(s.Branch, "refs/heads/"), branchIn(ctx, r.Root)
	if now == began {
		return ""
	}
	return fmt.Sprintf("Its work goes to %s, and %s is checked out now; before it can arrive: git checkout %s", began,
		cmp.Or(now, "no branch"), fault.QuoteShell(began))
}

// branchIn returns the branch that is checked out in a folder; "" for none, and where no git can say it.
func branchIn(ctx context.Context, root string) string {
	repo, err := git.Open(ctx, root)
	if err != nil {
		return ""
	}
	now, err := repo.Head(ctx)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(now.Branch, "refs/heads/")
}

// workspaceOf opens the private workspace of a run that no process works on. The error is
// [delivery.ErrGone] if the run has none any more.
func (p *Runs) workspaceOf(ctx context.Context, r store.Run) (*delivery.Workspace, error) {
	id := SetupOf(r).Private
	if id == "" {
		return nil, delivery.ErrGone
	}
	pl, err := p.configOfRoot(r.Root)
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
		return p.openStoredWork(ctx, pl, r, say)
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
	return p.openStoredWork(ctx, pl, r, say)
}

// openStoredWork opens what is stored of the work of a run whose workspace is gone, or works for
// a later run.
func (p *Runs) openStoredWork(ctx context.Context, c *config.Config, r store.Run, say func(string),
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

// finishDelivery finishes a delivery of a run that was cut off when its pawl was killed, and returns the run as it
// is then.
func (p *Runs) finishDelivery(ctx context.Context, r store.Run) (store.Run, error) {
	w, err := p.workspaceOf(ctx, r)
	if errors.Is(err, delivery.ErrGone) {
		return r, nil
	}
	if err == nil {
		err = w.Release(ctx, delivery.Kept)
	}
	if err != nil {
		return r, err
	}
	return p.Store.Run(ctx, r.ID)
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
	c, err := p.configOfRoot(r.Root)
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
func checkHidden(ctx context.Context, c *config.Config, env []string, repo *git.Repo) error {
	if c.Loop.Safety == string(safety.Permissive) {
		return nil
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

// lookByHand looks at the person's files as they are, by the ignore rules of now.
func (p *Runs) lookByHand(ctx context.Context, person *workspace.Checkout) (workspace.Seen, error) {
	if err := person.Renew(ctx, delivery.ByHand); err != nil {
		return workspace.Seen{}, err
	}
	return person.See(ctx, delivery.ByHand)
}

// configOfRoot is the configuration of a root.
func (p *Runs) configOfRoot(root string) (*config.Config, error) {
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
	if err := p.CheckHere(ctx, r, "settle"); err != nil {
		return nil, err
	}
	w, err := p.workspaceOf(ctx, r)
	if errors.Is(err, delivery.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := conflictsNow(ctx, w, r)
	clashes := lists.Each(all, func(c delivery.Conflict) Clash {
		text, err := w.Text(ctx, c)
		if err != nil {
			return Clash{Conflict: c, Why: err.Error()}
		}
		return Clash{Conflict: c, Text: string(text)}
	})
	return clashes, errors.Join(err, w.Release(ctx, delivery.Kept))
}

// conflictsNow returns the conflicts of a run. Those of one that is over are found anew, since the person may have
// changed a file meanwhile; a run that continues finds them itself.
func conflictsNow(ctx context.Context, w *delivery.Workspace, r store.Run) ([]delivery.Conflict, error) {
	if storedrun.WaitsForDelivery(r) {
		if _, err := w.Apply(ctx, true); err != nil {
			return nil, err
		}
	}
	return w.Conflicts()
}

// InConflict reports whether a run rests for conflicts that a person resolves: until it continues, each can
// be chosen again.
func (p *Runs) InConflict(ctx context.Context, r store.Run) (bool, error) {
	id := SetupOf(r).Private
	row, _, err := p.Store.Workspace(ctx, id)
	if err != nil || id == "" {
		return false, err
	}
	return delivery.InConflict(row.Own, statedir.Of(r.Root, p.Env), r.ID)
}

// SettleConflict stores what a person chose for the first of the paths that has a conflict: from the
// top of the repository, or absolute. Of an edit, edit makes the text from the one with markers. left
// is how many are open.
func (p *Runs) SettleConflict(ctx context.Context, r store.Run, paths []string, choice delivery.Choice,
	edit func(path string, text []byte) ([]byte, error)) (path string, left int, err error) {
	path = paths[len(paths)-1]
	if err := p.CheckHere(ctx, r, "settle"); err != nil {
		return path, 0, err
	}
	w, err := p.workspaceOf(ctx, r)
	switch {
	case errors.Is(err, delivery.ErrGone):
		return path, 0, fault.Of(fault.Refused, err)
	case err != nil:
		return path, 0, err
	}
	defer func() { err = errors.Join(err, w.Release(ctx, delivery.Kept)) }()
	all, err := conflictsNow(ctx, w, r)
	if err != nil {
		return path, 0, err
	}
	var text []byte
	for _, name := range paths {
		if below, ok := files.Below(w.Person().Repo.Top, name); ok {
			name = filepath.ToSlash(below)
		}
		i := slices.IndexFunc(all, func(c delivery.Conflict) bool { return c.Path == name })
		if i < 0 {
			continue
		}
		if path = name; choice == delivery.Edited {
			if text, err = w.Text(ctx, all[i]); err == nil {
				text, err = edit(path, text)
			}
		}
		break
	}
	if err != nil {
		return path, 0, fault.Of(fault.Refused, err)
	}
	left, err = w.Settle(ctx, path, choice, text)
	if err != nil {
		return path, left, fault.Of(fault.Refused, fmt.Errorf("cannot settle the conflict: %w", err))
	}
	if left == 0 {
		err = storedrun.NoteConflictsResolved(ctx, p.Store, r.ID)
	}
	return path, left, err
}
