package trial

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// judge runs the gates of the person's configuration on trees, in a repository of its own that no agent sees. What it
// makes is stored there: the person's repository is read only.
type judge struct {
	queue   *merge.Queue
	repo    *git.Repo
	shadow  *git.Shadow
	mu      sync.Mutex // of index
	index   *git.Index
	gates   []gate.Spec
	protect gate.Protect
	scratch string
	below   string       // where pawl.yaml is in the repository
	drop    func() error // of repo
	db      *store.Store
}

// verdict is how the gates judged a tree.
type verdict string

const (
	green   verdict = "green"
	flaky   verdict = "flaky" // green, but not each time
	red     verdict = "red"
	unclear verdict = "unclear" // red for what no work would change, such as a program that is missing
)

func (b *bench) openJudge(ctx context.Context) (*judge, error) {
	head, err := b.repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "judge", "repo")
	j := &judge{scratch: b.dir, drop: func() error { return b.dropScratch(dir) }}
	if j.below, err = filepath.Rel(b.repo.Top, b.config.Root); err != nil {
		return nil, err
	}
	if j.repo, err = b.scratchAt(ctx, dir, head.Commit, true); err != nil {
		return nil, err
	}
	if j.shadow, err = git.OpenShadow(ctx, j.repo, j.repo, filepath.Join(b.dir, "judge.git")); err != nil {
		return nil, err
	}
	j.index = j.shadow.Index(filepath.Join(b.dir, "judge.index"), nil)
	app, c, err := b.loadConfig(j.repo, "", nil)
	if err != nil {
		return nil, err
	}
	if j.db, err = app.LocalDatabase(ctx, c.Root); err != nil {
		return nil, err
	}
	_, j.queue, err = session.OpenJudge(ctx, app, c, j.db, b.unsandboxed, func(o *merge.Options) {
		o.Local = true
		j.gates, j.protect = o.Gates, o.Protect
	})
	if err != nil {
		return nil, errors.Join(err, j.db.Close())
	}
	return j, nil
}

// closeJudge removes what the judge made: verdicts are stored elsewhere.
func (j *judge) closeJudge() error {
	gone := files.RemoveAll(filepath.Join(j.scratch, "judge.git"))
	return errors.Join(j.db.Close(), gone, os.RemoveAll(filepath.Join(j.scratch, "judge.index")), j.drop())
}

// isTestFile reports whether a file belongs to the tests: by its name, or because the configuration protects it.
func (j *judge) isTestFile(path string) bool { return gate.IsTest(path) || j.protect.CoversOne(path) }

// isJudgedBy reports whether a file belongs to what a commit is judged by: tests, and what decides how they are run.
func (j *judge) isJudgedBy(file string) bool {
	if below, err := filepath.Rel(j.below, file); err == nil {
		commands := lists.Each(j.gates, func(s gate.Spec) string { return s.Command })
		return j.isTestFile(file) || trial.DecidesHowTestsRun(below, commands)
	}
	return j.isTestFile(file)
}

// withTests is a tree whose tests, and what decides how they are run, are all as they are in a commit.
func (j *judge) withTests(ctx context.Context, tree, commit string) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	theirs, err := j.judgingFiles(ctx, commit)
	if err != nil {
		return "", err
	}
	has := lists.Set(lists.Each(theirs, func(e git.Entry) string { return e.Path }))
	own, err := j.judgingFiles(ctx, tree)
	if err != nil {
		return "", err
	}
	for _, e := range own {
		if !has[e.Path] {
			theirs = append(theirs, git.Entry{Path: e.Path})
		}
	}
	return j.index.TreeWith(ctx, tree, theirs)
}

func (j *judge) judgingFiles(ctx context.Context, tree string) ([]git.Entry, error) {
	if err := j.index.ReadTree(ctx, tree); err != nil {
		return nil, err
	}
	all, err := j.index.Entries(ctx)
	return slices.DeleteFunc(all, func(e git.Entry) bool { return !j.isJudgedBy(e.Path) }), err
}

// judgeTree runs the gates on a tree, on a fresh copy. why is the red one's summary.
func (j *judge) judgeTree(ctx context.Context, tree string) (v verdict, why string, err error) {
	return judgeRedTwice(func() (verdict, string, error) { return j.judgeOnce(ctx, tree) })
}

// judgeRedTwice judges again what is red: a test that is green then is flaky, and no fault of the work.
func judgeRedTwice(judge func() (verdict, string, error)) (v verdict, why string, err error) {
	if v, why, err = judge(); v != red || err != nil {
		return v, why, err
	}
	again, _, err := judge()
	if again == green {
		v = flaky
	}
	return v, why, err
}

func (j *judge) judgeOnce(ctx context.Context, tree string) (v verdict, why string, err error) {
	commit, err := j.shadow.Commit(ctx, tree, "a tree of a trial")
	if err != nil {
		return "", "", err
	}
	r, err := j.queue.Judge(ctx, commit, j.gates)
	refused, isRefused := errors.AsType[*fault.Error](err)
	switch {
	case isRefused: // the set-up failed
		return unclear, report.Line(refused.Error(), 200), nil
	case err != nil:
		return "", "", err
	case r.Passed():
		return green, "", nil
	case r.Failure == nil, gate.IsOfItsOwn(r.Failure):
		return unclear, report.Line(r.Summary, 200), nil
	}
	return red, report.Line(r.Summary, 200), nil
}

// judgeWork judges what an agent left, a tree in the objects of another repository, by the tests of a commit.
func (j *judge) judgeWork(ctx context.Context, of *git.Repo, tree, commit string) (verdict, error) {
	done, err := j.repo.TakeHeld(ctx, of, j.scratch, "", tree)
	if err != nil {
		return "", err
	}
	defer done()
	if tree, err = j.withTests(ctx, tree, commit); err != nil {
		return "", err
	}
	v, _, err := j.judgeTree(ctx, tree)
	return v, err
}
