package web

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/web/patch"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Bounds of a diff.
const (
	maxDiffFiles = 5000
	maxPatch     = 4 << 20 // bytes of one file's patch
)

// diffHandlers answer what differs between the states of a run.
type diffHandlers struct{ *core }

func (s diffHandlers) diffRoutes(api huma.API) {
	at := rest.Tagged(api, "diffs")
	rest.Get(at, "/runs/{run}/snapshots", "list-snapshots", "The snapshots that a run can go back to", s.listSnapshots)
	rest.Get(at, "/runs/{run}/diff", "diff-run", "Files that a run changed, or that differ between snapshots",
		s.answerRunDiff)
	rest.Get(at, "/runs/{run}/diff/file", "diff-run-file", "The differences in one file", s.diffRunFile)
	rest.Get(at, "/runs/{run}/iterations/{number}/diff", "diff-iteration", "The files that an iteration changed",
		s.diffIteration)
	rest.Get(at, "/runs/{run}/iterations/{number}/diff/file", "diff-iteration-file",
		"The changes of an iteration to one file", s.diffIterationFile)
}

// lacksRepository is the problem of a folder without snapshots.
func (s *core) lacksRepository(what string) *rest.ProblemError {
	return rest.Problem(http.StatusConflict, "NO_SNAPSHOTS", "There are no %s: %s is not in a git repository", what,
		s.o.Root).Suggest("Run 'git init' there; later runs have snapshots")
}

// checkoutOfRun returns the history of the files that a run worked on, or why there is none.
func (s diffHandlers) checkoutOfRun(ctx context.Context, r store.Run) (*workspace.Checkout, error) {
	if s.o.Tree == nil {
		return nil, s.lacksRepository("snapshots")
	}
	if r.Kind != string(loop.Task) {
		return s.o.Tree, nil
	}
	return s.o.Operator.Tree(ctx, r)
}

func (s diffHandlers) listSnapshots(ctx context.Context, in *rest.RunPath) (*rest.Body[view.Snapshots], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	if s.o.Tree == nil {
		return rest.Answer(view.Snapshots{Snapshots: []view.Snapshot{}}), nil
	}
	if s.o.RemoteHost(ctx, r) != "" {
		records, err := s.o.Store.Iterations(ctx, r.ID)
		return rest.Answer(view.SentSnapshots(records)), err
	}
	tree, err := s.checkoutOfRun(ctx, r)
	if err != nil {
		return nil, err
	}
	snaps, err := tree.Snapshots(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	undo, err := s.o.RolledBack(ctx, r.ID)
	return rest.Answer(view.ListSnapshots(snaps, undo)), err
}

// Span is two states of a run.
type Span struct {
	From int `query:"from" minimum:"0" maximum:"1000000" default:"0" doc:"The state after this iteration; 0 is before the run."`
	To   int `query:"to" minimum:"-1" maximum:"1000000" default:"-1" doc:"The state after this iteration; -1 is the last one."`
}

// FilePath names a file in a diff.
type FilePath struct {
	Path string `query:"path" required:"true" minLength:"1" maxLength:"4096"`
	Old  string `query:"old" maxLength:"4096" doc:"The old path of a renamed file."`
	All  bool   `query:"all" doc:"With all lines that did not change, not only those around changes."`
}

func (s diffHandlers) answerRunDiff(ctx context.Context, in *struct {
	rest.RunPath
	Span
}) (*rest.Body[view.Diff], error) {
	return answerDiff(ctx)(s.findStates(ctx, in.Run, in.Span))
}

func (s diffHandlers) diffRunFile(ctx context.Context, in *struct {
	rest.RunPath
	Span
	FilePath
}) (*rest.Body[patch.FileDiff], error) {
	return answerFileDiff(ctx, in.FilePath)(s.findStates(ctx, in.Run, in.Span))
}

func (s diffHandlers) diffIteration(ctx context.Context, in *rest.IterationPath) (*rest.Body[view.Diff], error) {
	return answerDiff(ctx)(s.iterationStates(ctx, in))
}

func (s diffHandlers) diffIterationFile(ctx context.Context, in *struct {
	rest.IterationPath
	FilePath
}) (*rest.Body[patch.FileDiff], error) {
	return answerFileDiff(ctx, in.FilePath)(s.iterationStates(ctx, &in.IterationPath))
}

// compared are two states of files: trees or commits that tree knows.
type compared struct {
	tree     *workspace.Checkout
	from, to string
}

// iterationStates are the files before and after an iteration.
func (s diffHandlers) iterationStates(ctx context.Context, in *rest.IterationPath) (compared, error) {
	r, rec, err := s.findRecord(ctx, in)
	if err != nil {
		return compared{}, err
	}
	if w, known, err := s.o.WorkBetween(ctx, r, rec.Number-1, rec.Number); known {
		return compared{w.Tree, w.From, w.To}, err
	}
	tree, err := s.checkoutOfRun(ctx, r)
	return compared{tree, rec.TreeBefore, rec.TreeAfter}, err
}

// findStates finds two states of a run.
func (s diffHandlers) findStates(ctx context.Context, run string, of Span) (c compared, err error) {
	r, err := s.o.Store.Run(ctx, run)
	if err != nil {
		return c, err
	}
	if s.o.Tree != nil {
		if w, known, err := s.o.WorkBetween(ctx, r, of.From, of.To); known {
			return compared{w.Tree, w.From, w.To}, err
		}
	}
	if c.tree, err = s.checkoutOfRun(ctx, r); err != nil {
		return c, err
	}
	snaps, err := c.tree.Snapshots(ctx, r.ID)
	if err != nil {
		return c, err
	}
	if len(snaps) == 0 {
		return c, rest.Problem(http.StatusNotFound, "SNAPSHOT_NOT_FOUND",
			"Run %s has no snapshots: none was taken yet, or they were removed after its end", r.ID).
			Suggest("snapshot.keep in pawl.yaml says how long they are kept")
	}
	if of.To < 0 {
		c.to = snaps[len(snaps)-1].Tree
	} else if c.to, err = treeAfterIteration(snaps, of.To); err != nil {
		return c, err
	}
	c.from, err = treeAfterIteration(snaps, of.From)
	return c, err
}

func treeAfterIteration(snaps []workspace.Snapshot, n int) (string, error) {
	if s := action.SnapshotAfter(snaps, n); s != nil {
		return s.Tree, nil
	}
	return "", rest.Problem(http.StatusNotFound, "SNAPSHOT_NOT_FOUND",
		"There is no snapshot after iteration %d: old ones are removed, and an interrupted iteration has none", n).
		Suggest("List them: GET /api/v1/runs/{run}/snapshots")
}

// refuseUnknown refuses states that nothing is known of.
func (c compared) refuseUnknown(err error) error {
	unknown := c.from == "" || c.to == ""
	if err == nil && unknown {
		err = rest.Problem(http.StatusNotFound, "NO_DIFF",
			"The changes are unknown: the folder is not in a git repository, or the snapshots were removed").
			Suggest("Runs in a git repository have snapshots; snapshot.keep in pawl.yaml says for how long")
	}
	return err
}

// answerDiff answers with the files that differ between two states, if they were found.
func answerDiff(ctx context.Context) func(compared, error) (*rest.Body[view.Diff], error) {
	return func(c compared, err error) (*rest.Body[view.Diff], error) {
		if err := c.refuseUnknown(err); err != nil {
			return nil, err
		}
		return c.diffFiles(ctx)
	}
}

// answerFileDiff answers with what differs in one file.
func answerFileDiff(ctx context.Context, of FilePath) func(compared, error) (*rest.Body[patch.FileDiff], error) {
	return func(c compared, err error) (*rest.Body[patch.FileDiff], error) {
		if err := c.refuseUnknown(err); err != nil {
			return nil, err
		}
		return c.diffFile(ctx, of)
	}
}

func (c compared) diffFiles(ctx context.Context) (*rest.Body[view.Diff], error) {
	files, more, err := c.tree.FileChanges(ctx, c.from, c.to, maxDiffFiles)
	if err != nil {
		return nil, explainGone(err)
	}
	out := view.Diff{From: c.from, To: c.to, Files: make([]view.DiffFile, len(files)), More: more}
	for i, f := range files {
		out.Files[i] = view.DiffFile{Path: f.Path, From: f.From, Status: statusWord(f), Added: f.Added,
			Deleted: f.Deleted, Binary: f.Binary}
		out.Added += f.Added
		out.Deleted += f.Deleted
	}
	return rest.Answer(out), nil
}

// explainGone explains what is most likely wrong with two trees that were recorded.
func explainGone(err error) error {
	return rest.Problem(http.StatusNotFound, "NO_DIFF",
		"The snapshots cannot be compared: they may have been removed since").Detail(err.Error()).
		Suggest("snapshot.keep in pawl.yaml says how long they are kept")
}

func statusWord(f git.FileChange) string {
	word := map[byte]string{'A': "added", 'D': "deleted", 'R': "renamed", 'T': "type"}[f.Status]
	return cmp.Or(word, "modified")
}

func (c compared) diffFile(ctx context.Context, of FilePath) (*rest.Body[patch.FileDiff], error) {
	around := 3
	if of.All {
		around = maxPatch
	}
	text, cut, err := c.tree.DiffAround(ctx, c.from, c.to, maxPatch, around, of.Path, cmp.Or(of.Old, of.Path))
	if err != nil {
		return nil, explainGone(err)
	}
	if text == "" {
		return nil, rest.Problem(http.StatusNotFound, "NO_DIFF", "%q does not differ between the two snapshots",
			fault.Cut(of.Path, 200)).
			Suggest("List the files that do: leave out /file")
	}
	out := patch.Read(text)
	out.Path, out.Truncated = of.Path, cut
	return rest.Answer(out), nil
}
