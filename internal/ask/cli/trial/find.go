package trial

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/trial"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// tried is what trying a commit showed. It is stored by commit and gates, so that nothing is tried twice.
type tried struct {
	Task trial.Task `json:"task"`
	Why  string     `json:"why,omitempty"` // it is no task; "" where it is
}

// findTasks goes back through the history until it has so many tasks.
func (b *bench) findTasks(ctx context.Context, j *judge) ([]trial.Task, error) {
	head, err := b.repo.Head(ctx)
	if err != nil {
		return nil, err
	}
	line, err := b.repo.Landings(ctx, "", head.Commit, nil, b.last)
	if err != nil {
		return nil, err
	}
	all := make([]tried, len(line))
	var found, unclear atomic.Int64
	err = sideBySide(len(line), b.parallel, func(i int) (more bool, err error) {
		all[i], err = b.tryCommit(ctx, j, line[i])
		switch why := all[i].Why; {
		case err != nil:
			return false, err
		case why == "":
			found.Add(1)
		case strings.HasPrefix(why, notJudged) && unclear.Add(1) == mostUnclear && found.Load() == 0:
			return false, fault.Refuse("the gates cannot judge commits of the history here: %s", why).
				Hint("Commits are tried on fresh copies: workspace.setup has to install what git ignores")
		}
		return found.Load() < int64(b.most), nil
	})
	if err != nil {
		return nil, err
	}
	var tasks []trial.Task
	why, looked := map[string]int{}, 0
	for _, t := range all {
		if len(tasks) == b.most || t.Task.Commit == "" {
			break
		}
		looked++
		if t.Why != "" {
			kind, _, _ := strings.Cut(t.Why, ":")
			why[kind]++
			continue
		}
		tasks = append(tasks, t.Task)
	}
	b.app.Say("%s found in %s of the history.", fault.Numbered(len(tasks), "task"), fault.Numbered(looked, "commit"))
	for _, kind := range reasons {
		if why[kind] > 0 {
			b.app.Say("  %s left out: %s.", fault.Numbered(why[kind], "commit"), kind)
		}
	}
	return tasks, nil
}

// mostUnclear is how many commits may not be judged before the first task is found.
const mostUnclear = 10

// Why a commit is no task, in the order in which that is found out.
const (
	hasNoParent   = "has no commit before it"
	changesNoBoth = "changes no tests, or nothing but tests"
	saysTooLittle = "its message says too little to begin work"
	notGreen      = "its gates are not green here"
	notRed        = "its tests are green without it"
	unstable      = "its tests are not green each time"
	notJudged     = "its gates could not judge"
)

var reasons = []string{hasNoParent, changesNoBoth, saysTooLittle, notGreen, notRed, unstable, notJudged}

func (b *bench) tryCommit(ctx context.Context, j *judge, one git.Landing) (t tried, err error) {
	parent, err := b.repo.Find(ctx, one.Commit+"^1")
	if err != nil || parent == "" {
		return tried{Task: trial.Task{Commit: one.Commit}, Why: hasNoParent}, err
	}
	t.Task = trial.Task{Commit: one.Commit, Parent: parent}
	changes, err := b.repo.Changes(ctx, parent, one.Commit)
	if err != nil {
		return t, err
	}
	for _, c := range changes {
		if !j.isTestFile(c.Path) {
			t.Task.Files++
		} else if c.Status != 'D' {
			t.Task.Tests = append(t.Task.Tests, c.Path)
		}
	}
	if t.Task.Files == 0 || len(t.Task.Tests) == 0 {
		t.Why = changesNoBoth
		return t, nil
	}
	message, err := b.requestText(ctx, one.Message)
	if err != nil {
		return t, err
	}
	var saysEnough bool
	if t.Task.Title, t.Task.Words, saysEnough = trial.Words(message); !saysEnough {
		t.Why = saysTooLittle
		return t, nil
	}
	file := filepath.Join(b.dir, "tried", b.hashGates(j)+"-"+one.Commit+".json")
	known := t
	err = files.ReadJSON(file, &known)
	triesAgain := b.again && known.Why != ""
	if !errors.Is(err, fs.ErrNotExist) && !triesAgain {
		known.Task.Title, known.Task.Words = t.Task.Title, t.Task.Words // they may come from elsewhere now
		return known, err
	}
	stat, err := b.repo.DiffStat(ctx, parent, one.Commit)
	if err != nil {
		return t, err
	}
	t.Task.Lines = stat.Added + stat.Deleted
	if t.Why, err = j.reasonNoTask(ctx, t.Task); err != nil {
		return t, err
	}
	b.app.Say("%.10s %s: %s", one.Commit, report.Line(t.Task.Title, 60), taskOrReason(t.Why))
	if strings.HasPrefix(t.Why, notJudged) {
		return t, nil // it may be judged another time
	}
	return t, storeJSON(file, t)
}

// requestText returns the title and text of the pull request that a commit merged, if --requests asks for them and
// somebody opened it who may write to the repository; else the commit's message. The text is asked for once.
func (b *bench) requestText(ctx context.Context, message string) (string, error) {
	number := trial.RequestOf(message)
	if b.forge == nil || number == 0 {
		return message, nil
	}
	var r forge.Issue
	file := filepath.Join(b.dir, "requests", fmt.Sprint(number)+".json")
	err := files.ReadJSON(file, &r)
	if errors.Is(err, fs.ErrNotExist) {
		if r, err = b.forge.Issue(ctx, number); err != nil {
			return "", fmt.Errorf("cannot read pull request #%d: %w", number, err)
		}
		may, err := b.forge.Writers(ctx, []string{r.Author})
		if err != nil {
			return "", fmt.Errorf("cannot find out whether the author of pull request #%d may write: %w", number, err)
		}
		if !may[r.Author] {
			b.app.Say("Pull request #%d is by %s, who may not write here: the commit message is used", number, r.Author)
			r = forge.Issue{}
		}
		if err := storeJSON(file, r); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	if _, _, ok := trial.Words(r.Title + "\n\n" + r.Body); !ok {
		return message, nil
	}
	return r.Title + "\n\n" + r.Body, nil
}

func taskOrReason(why string) string {
	if why == "" {
		return "a task: red without it, green with it, twice"
	}
	return "no task: " + why
}

// reasonNoTask tries a commit: red without it, green with it, and once more green. "" is a task.
func (j *judge) reasonNoTask(ctx context.Context, t trial.Task) (string, error) {
	tree, err := j.withTests(ctx, t.Parent, t.Commit)
	if err != nil {
		return "", err
	}
	for _, try := range []struct {
		tree, otherwise string
		want            verdict
	}{{t.Commit + "^{tree}", notGreen, green}, {tree, notRed, red}, {t.Commit + "^{tree}", unstable, green}} {
		v, why, err := j.judgeTree(ctx, try.tree)
		switch {
		case err != nil:
			return "", err
		case v == unclear && try.want == red: // green with it: what its tests miss here is what it adds
		case v == unclear:
			return notJudged + ": " + why, nil
		case v == flaky:
			return unstable, nil
		case v != try.want:
			return strings.TrimSuffix(try.otherwise+": "+why, ": "), nil
		}
	}
	return "", nil
}

// hashGates is another one for other gates, and other preparations for them.
func (b *bench) hashGates(j *judge) string {
	h := sha256.New()
	for _, g := range j.gates {
		h.Write([]byte(g.Key()))
	}
	fmt.Fprintf(h, "%q", b.config.Workspace.Setup)
	return hex.EncodeToString(h.Sum(nil)[:6])
}
