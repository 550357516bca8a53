package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/checkout"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Verdict is what is known of the work when it is to be delivered.
type Verdict struct {
	Iteration int  // whose snapshot it is; negative is the newest
	Green     bool // see [deliver.Facts]
	Completed bool
	Requested bool // a person asked for it
	Gated     bool // gates judge the work, and have to have judged its commits alone
	Together  bool // the gates judged it with all that a person did and that came in
}

// Delivered is what was delivered, or why not.
type Delivered struct {
	deliver.Decision
	Iteration int `json:"iteration"`
	// From and To are what the branch was at and is at; they are the same where it was not
	// moved.
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Before and After are the trees of all files.
	Before  string   `json:"before,omitempty"`
	After   string   `json:"after,omitempty"`
	Commits int      `json:"commits,omitempty"`
	Files   int      `json:"files,omitempty"` // that were to be changed
	Many    string   `json:"many,omitempty"`  // how many of them are new, where they are many
	Left    []string `json:"left,omitempty"`  // that the person changed in that moment
	Staged  []Staged `json:"staged,omitempty"`
	// Apart is what no snapshot has of it, and Only what stays in the workspace alone.
	Apart []Piece              `json:"apart,omitempty"`
	Only  []workspace.Conflict `json:"only,omitempty"`
}

// LastNotIn is the last delivery of the run, if a list of them lacks it; else nil.
func (w *Workspace) LastNotIn(list []Delivered) *Delivered {
	last := w.agreed.Last
	isLast := func(d Delivered) bool {
		return d.Before == last.Before && d.After == last.After && d.From == last.From && d.To == last.To
	}
	if last == nil || slices.ContainsFunc(list, isLast) {
		return nil
	}
	return last
}

// Text says to the person what was delivered.
func (d Delivered) Text() string {
	text := fmt.Sprintf("iteration %d: %s", d.Iteration, d.countFiles())
	if d.Commits > 0 {
		text += fmt.Sprintf(", %s to %.10s", fault.Numbered(d.Commits, "commit"), d.To)
	}
	if d.Many != "" {
		text += ": " + d.Many
	}
	if d.AsFiles {
		text += "; its commits stay in the workspace, since they are not green without what is uncommitted: " +
			deliver.Some(d.Paths)
	}
	dropped := lists.Pick(d.Staged, func(s Staged) (string, bool) { return s.Path, s.Merged == nil })
	if len(dropped) > 0 {
		text += "; no longer staged, since its commits change the same lines: " + deliver.Some(dropped)
	}
	if len(d.Left) > 0 {
		text += "; not changed, since you changed them at the same moment: " + deliver.Some(d.Left)
	}
	if len(d.Only) > 0 {
		paths := lists.Each(d.Only, func(c workspace.Conflict) string { return c.Path })
		text += "; only in the workspace: " + deliver.Some(paths)
	}
	return text
}

// Deliver brings the work into the checkout, if that is what is decided about it.
func (w *Workspace) Deliver(ctx context.Context, v Verdict) (Delivered, error) {
	d, err := w.deliverHeld(ctx, v)
	if err != nil {
		return d, fmt.Errorf("cannot deliver the work: %w", err)
	}
	return d, nil
}

func (w *Workspace) deliverHeld(ctx context.Context, v Verdict) (Delivered, error) {
	hold, err := w.lockCheckout(ctx)
	if err != nil {
		return Delivered{}, err
	}
	defer hold.Close()
	u, err := w.AtSnapshot(ctx, v.Iteration)
	if err == nil {
		u, err = apartFiles{w}.withApart(ctx, u)
	}
	if err != nil {
		return Delivered{}, err
	}
	f, err := w.gatherFacts(ctx, v, u)
	if err != nil {
		return Delivered{}, err
	}
	d := Delivered{Decision: deliver.Decide(f), Iteration: u.N, Branch: w.agreed.Branch, Commits: u.Commits,
		Files: len(u.allChanges()), Apart: lists.Each(u.Apart, pieceOfChange), Only: u.Only,
		From: w.agreed.Head, To: cmp.Or(u.Head.Commit, w.agreed.Head), Before: w.agreed.Tree,
		After: u.Tree, Many: deliver.ManyNew(git.Added(u.allChanges()))}
	if u.Commits == 0 {
		d.To = d.From
	}
	if d.Kind != deliver.Deliver {
		return d, nil
	}
	if d.AsFiles {
		u.Commits, f.Commits, d.Commits, d.To = 0, 0, 0, d.From
	}
	return carrier{w}.carryOutDelivery(ctx, d, u, f, hold)
}

// lockCheckout keeps other pawls from moving files of the same checkout.
func (w *Workspace) lockCheckout(ctx context.Context) (*os.File, error) {
	return files.Lock(ctx, filepath.Join(w.o.StateDir, "queue", "checkout.lock"))
}

// gatherFacts about the checkout and the work.
func (w *Workspace) gatherFacts(ctx context.Context, v Verdict, u Undelivered) (deliver.Facts, error) {
	f := deliver.Facts{
		When: w.o.When, Completed: v.Completed, Green: v.Green, Requested: v.Requested, Commits: u.Commits,
		Files: len(u.allChanges()), Began: w.agreed.Branch, From: w.agreed.Head, GoesOn: w.goesOn,
		TakenBack: w.agreed.Back > 0 && u.N <= w.agreed.Back, Broken: w.tree.Broken(),
		Unjudged: w.agreed.Unjudged > 0 && w.agreed.Unjudged == u.N && !v.Together,
	}
	if f.Files == 0 && f.Commits == 0 {
		return f, nil
	}
	head, err := w.o.Person.Repo.Head(ctx)
	if err != nil {
		return f, err
	}
	f.Now, f.Busy = head.Branch, ""
	if f.Place, err = w.placeSinceAgreed(ctx, head); err != nil {
		return f, err
	}
	if f.Busy = w.o.Person.Repo.Busy(); f.Busy == "bisect" && u.Commits == 0 {
		f.Busy = ""
	}
	paths := lists.Each(u.allChanges(), func(ch git.Change) string { return ch.Path })
	if f.Unseen, err = RunsItself(ctx, w.o.Person.Repo, paths, w.o.Confirm); err != nil {
		return f, err
	}
	if u.Commits > 0 {
		if f.Apart, err = w.filteredChanges(ctx, u); err != nil {
			return f, err
		}
	}
	if u.Commits > 0 && v.Gated {
		if f.Loose, err = w.listLoosePaths(ctx, u); err != nil {
			return f, err
		}
	}
	f.Overlap = w.o.Person.Differing(u.allChanges())
	return f, nil
}

// filteredChanges are the paths that the agent's commits change and that a program filters.
func (w *Workspace) filteredChanges(ctx context.Context, u Undelivered) ([]string, error) {
	from := w.agreed.Head
	if from == "" {
		var err error
		if from, err = w.o.Person.Store.EmptyTree(ctx); err != nil {
			return nil, err
		}
	}
	changes, err := w.tree.TreeChanges(ctx, from, u.Head.Commit)
	if err != nil {
		return nil, err
	}
	return w.o.Person.Repo.Filtered(ctx, lists.Each(changes, func(ch git.Change) string { return ch.Path }))
}

// intention is what a delivery is about to do, stored before it is done. What is stored
// outlives the code: names must not change.
type intention struct {
	Delivered
	Run string    `json:"run"`
	At  time.Time `json:"at"`
}

// carrier moves the branch and the files of a delivery that is decided, and finishes one that
// was cut off.
type carrier struct{ *Workspace }

// carryOutDelivery moves branch, files and index.
func (w carrier) carryOutDelivery(ctx context.Context, d Delivered, u Undelivered, f deliver.Facts, hold *os.File,
) (Delivered, error) {
	repo := w.o.Person.Repo
	done := func() {}
	if u.Commits > 0 {
		var err error
		if done, err = repo.TakeHeld(ctx, w.o.Person.Store, w.at.Own, d.From, d.To); err != nil {
			return d, err
		}
	}
	defer done()
	var move *checkout.FastForward
	if u.Commits > 0 {
		var err error
		if move, err = w.beginIndex(ctx, d, hold); err != nil {
			return d, err
		}
		defer move.End()
		if d.Staged, f.Staged, err = w.stageOver(ctx, move, u); err != nil {
			return d, err
		}
		if d.Decision = deliver.Decide(f); d.Kind != deliver.Deliver {
			return d, nil
		}
	}
	if err := w.storeIntention(intention{Delivered: d, Run: w.run, At: time.Now()}); err != nil {
		return d, err
	}
	w.o.point("intended")
	if u.Commits > 0 {
		changed, err := w.moveBranch(ctx, d)
		if err != nil || changed {
			d.Decision = deliver.Decision{Kind: deliver.Combine, Why: "the branch moved at the same moment"}
			return d, errors.Join(err, w.dropIntention())
		}
		w.o.point("branch")
	}
	return w.carryFiles(ctx, d, u.Changes, move)
}

// entriesOf the paths that the work changed, as it began with them.
func entriesOf(changes []git.Change) map[string]git.Entry {
	built := make(map[string]git.Entry, len(changes))
	for _, ch := range changes {
		built[ch.Path] = git.Entry{Mode: ch.OldMode, Object: ch.OldObject}
	}
	return built
}

// beginIndex locks the person's index.
func (w carrier) beginIndex(ctx context.Context, d Delivered, hold *os.File) (*checkout.FastForward, error) {
	return checkout.WhenUnlocked(ctx, func() (*checkout.FastForward, error) {
		return checkout.BeginIndexMove(ctx, w.o.Person.Repo, d.From, d.To, hold)
	})
}

// moveBranch moves what was checked out; changed is true where somebody else did.
func (w carrier) moveBranch(ctx context.Context, d Delivered) (changed bool, err error) {
	repo := w.o.Person.Repo
	name, from := cmp.Or(d.Branch, "HEAD"), cmp.Or(d.From, repo.Zero())
	if err := repo.SyncObjects(ctx, d.From, d.To); err != nil {
		return false, err
	}
	if d.Branch != "" {
		if head, err := repo.Head(ctx); err != nil || head.Branch != d.Branch {
			return true, err
		}
	}
	reason := fmt.Sprintf("pawl: deliver run %s, iteration %d", w.run, d.Iteration)
	return repo.SetRef(ctx, name, d.To, from, reason)
}

// carryFiles writes the files and the index, and then that both agree.
func (w carrier) carryFiles(ctx context.Context, d Delivered, changes []git.Change, move *checkout.FastForward,
) (Delivered, error) {
	carried, err := w.o.Person.Carry(ctx, w.o.ID, slices.Concat(changes, lists.Each(d.Apart, changeOfPiece)))
	if err != nil {
		return d, err
	}
	w.o.point("files")
	if err := w.syncFiles(carried.Written); err != nil {
		return d, err
	}
	if move != nil {
		if err := move.MoveIndex(ctx, lists.Pick(d.Staged, Staged.mergedEntry)...); err != nil {
			return d, err
		}
		w.o.point("index")
	}
	after := d.After
	if len(carried.Left) > 0 {
		d.Left = nil
		var back []git.Change
		for _, left := range carried.Left {
			d.Left = append(d.Left, left.Path)
			for _, ch := range changes {
				if ch.Path == left.Path {
					back = append(back, reverseChange(ch))
				}
			}
		}
		if after, err = w.tree.TreeWith(ctx, w.run, d.After, back); err != nil {
			return d, err
		}
	}
	if err := apartFiles(w).noteApart(ctx, d, carried.Left); err != nil {
		return d, err
	}
	own := slices.Clone(w.agreed.Own)
	own = append(own, lists.Pick(changes, func(ch git.Change) (string, bool) { return ch.Path, ch.OldObject == "" })...)
	var persons uncommitted
	loose, err := w.listLooseChanges(ctx, d.To, after)
	if err == nil {
		persons, err = findUncommitted(ctx, w.Workspace)
	}
	if err == nil {
		_, loose, err = persons.splitChanges(ctx, loose)
	}
	if err != nil {
		return d, err
	}
	now := Agreed{Run: w.agreed.Run, Tree: after, Head: d.To, Branch: d.Branch, Base: w.agreed.Base, Own: own, Last: &d,
		Loose: lists.Each(loose, func(ch git.Change) string { return ch.Path })}
	if err := w.keepAgreed(ctx, d.Iteration, now); err != nil {
		return d, err
	}
	w.o.point("agreed")
	return d, w.dropIntention()
}

// reverseChange makes the change that takes one back.
func reverseChange(ch git.Change) git.Change {
	return git.Change{Path: ch.Path, OldMode: ch.NewMode, OldObject: ch.NewObject,
		NewMode: ch.OldMode, NewObject: ch.OldObject}
}

func (w carrier) syncFiles(written []string) error {
	top := w.o.Person.Repo.Top
	var paths []string
	for _, p := range written {
		name := filepath.Join(top, filepath.FromSlash(p))
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			paths = append(paths, name)
		}
		paths = append(paths, files.Folders(name, top)...)
	}
	if len(paths) == 0 {
		return nil
	}
	if err := files.Sync(paths...); err != nil {
		return fmt.Errorf("cannot keep the files on the disk: %w", err)
	}
	return nil
}

func (w carrier) storeIntention(i intention) error {
	if err := files.ReplaceJSON(filepath.Join(w.at.Own, intentionFile), i, true); err != nil {
		return fmt.Errorf("cannot record the delivery, so nothing was delivered: %w", err)
	}
	return nil
}

func (w carrier) dropIntention() error {
	return files.UnlessGone(os.Remove(filepath.Join(w.at.Own, intentionFile)))
}

// finishInterrupted finishes a delivery that was cut off, or forgets one that had not
// moved anything yet.
func (w carrier) finishInterrupted(ctx context.Context) error {
	var i intention
	err := files.ReadJSON(filepath.Join(w.at.Own, intentionFile), &i)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = w.finishDelivery(ctx, i)
	}
	if err != nil {
		return fmt.Errorf("cannot finish the interrupted delivery: %w", err)
	}
	return nil
}

func (w carrier) finishDelivery(ctx context.Context, i intention) error {
	hold, err := w.lockCheckout(ctx)
	if err != nil {
		return err
	}
	defer hold.Close()
	repo := w.o.Person.Repo
	moved := i.From == i.To
	if !moved {
		tip, err := repo.Find(ctx, cmp.Or(i.Branch, "HEAD"))
		if err != nil {
			return err
		}
		if moved, err = repo.IsAncestor(ctx, i.To, tip); tip == "" || err != nil {
			moved = false
		}
	}
	var move *checkout.FastForward
	if i.From != i.To {
		if move, err = w.beginIndex(ctx, i.Delivered, hold); err != nil {
			return err
		}
		defer move.End()
	}
	if !moved { // only the lock of the index can be left
		return w.dropIntention()
	}
	changes, err := w.tree.TreeChanges(ctx, i.Before, i.After)
	if err != nil {
		return err
	}
	w.run = i.Run
	d, err := w.carryFiles(ctx, i.Delivered, changes, move)
	if err == nil {
		i.Delivered = d
		w.finished = &i
		w.o.Tell(fmt.Sprintf("finished the interrupted delivery of run %s, %s", i.Run, d.Text()))
		err = workspace.Sweep(ctx, w.o.Person, w.o.ID)
	}
	return err
}
