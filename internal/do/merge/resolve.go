package merge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
)

// maxIntents is how many landings the prompt of an agent lists.
const maxIntents = 10

// startResolving keeps an agent's run going for each entry that needs one, as many at
// once as allowed. How one ended is a row of the database, so that it is not
// lost when pawl is killed before the queue has taken it in. Where no agent can
// run, a person is asked.
func (w *worker) startResolving(ctx context.Context) error {
	for _, e := range w.state.Entries {
		if e.Status != queue.Resolving || w.resolving[e.ID] != nil {
			continue
		}
		if w.q.o.Resolve == nil {
			r := queue.Resolution{ID: e.ID, Attempt: e.Attempts, Why: e.Why}
			if err := w.takeEvent(ctx, queue.Event{Kind: queue.Resolved, Resolution: &r}); err != nil {
				return err
			}
			continue
		}
		if len(w.resolving) >= w.q.o.Resolvers {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		w.resolving[e.ID] = cancel
		go func() {
			defer w.q.wakeWorker()
			defer func() { w.resolved <- e.ID }()
			w.q.resolveEntry(own, e)
		}()
	}
	for id, cancel := range w.resolving {
		if e, ok := w.state.Find(id); !ok || e.Status != queue.Resolving {
			cancel() // it was dropped or replaced
		}
	}
	return nil
}

// LaterError is that no agent can work now: its provider or the machine is at fault.
// The attempt is not used up.
type LaterError struct {
	Until time.Time // when it may be tried again, where that is known
	Why   string
}

func (e *LaterError) Error() string { return e.Why }

// The waits before an agent that could not work is started again: they double.
const (
	firstLater = 100 * time.Millisecond
	lastLater  = time.Minute
)

// attemptResolve runs the agent at one entry, as soon as one can work.
func (q *Queue) attemptResolve(ctx context.Context, e queue.Entry) (commit string, err error) {
	for try := 0; ; try++ {
		p, err := q.problemOf(ctx, e)
		if err == nil {
			commit, err = q.o.Resolve(ctx, p)
		}
		if err == nil && commit != "" && commit != e.Commit {
			err = q.keepSolved(ctx, p, commit)
		}
		var later *LaterError
		if !errors.As(err, &later) || ctx.Err() != nil {
			return commit, err
		}
		if try == 0 {
			q.o.Notify(queue.Note{Kind: queue.NoteWaiting, ID: e.ID,
				Text: "its agent cannot run now; pawl tries again: " + later.Why})
		}
		wait := min(firstLater<<min(try, 20), lastLater)
		process.Sleep(ctx, max(wait, time.Until(later.Until)))
	}
}

// resolveEntry runs the agent at one entry and stores what came of it.
func (q *Queue) resolveEntry(ctx context.Context, e queue.Entry) {
	why := ""
	commit, err := q.attemptResolve(ctx, e)
	if ctx.Err() != nil {
		return // the next worker of the queue resumes it
	}
	switch {
	case err != nil:
		commit, why = "", err.Error()
	case commit == "":
		why = "the agent made no commit"
	case commit == e.Commit:
		commit, why = "", "the agent changed nothing"
	}
	r := queue.Resolution{ID: e.ID, Attempt: e.Attempts, Commit: commit, Why: why}
	for try := 0; try < 10 && ctx.Err() == nil; try++ {
		_, err := q.o.Store.AskQueue(ctx, q.toQueueAsk(queue.Event{Kind: queue.Resolved, Resolution: &r}))
		if err == nil {
			return
		}
		q.o.Notify(queue.Note{Kind: queue.NoteTrouble, ID: e.ID, Text: err.Error()})
		process.Sleep(ctx, time.Second<<min(try, 5))
	}
}

// keepSolved makes sure that an agent's commit stays, and that the change is in it: what was left out would
// count as done.
func (q *Queue) keepSolved(ctx context.Context, p Problem, commit string) error {
	m, err := q.o.Repo.MergeTree(ctx, p.Tip, p.Entry.Commit)
	if err != nil {
		return err
	}
	wanted, err := q.sortedChanges(ctx, p.Tip, m.Tree)
	if err != nil {
		return err
	}
	changes, err := q.o.Repo.Changes(ctx, p.Tip, commit)
	if err != nil {
		return err
	}
	made := lists.ToMap(changes, func(ch git.Change) (string, git.Change) { return ch.Path, ch })
	conflict, takesBack := p.Problem.Conflict, p.Entry.Revert != ""
	isMade := func(path string) bool { _, ok := made[path]; return ok }
	isFree := func(path string) bool { // it may be as on the target
		return conflict != nil && slices.ContainsFunc(conflict.Files, func(f queue.File) bool {
			return f.Path == path && (f.Regenerate != "" || takesBack)
		})
	}
	dropped := slices.DeleteFunc(slices.Clone(wanted), func(path string) bool { return isMade(path) || isFree(path) })
	switch {
	case !slices.ContainsFunc(wanted, isMade):
		return errors.New("the agent merged nothing of the task: all that it changed is as on the target")
	case conflict == nil:
	case len(dropped) > 0:
		return fmt.Errorf("the agent dropped what the task changed in %s", deliver.Some(dropped))
	default:
		lost, err := conflict.FindUnmerged(takesBack, func(path string) ([]string, error) {
			return q.linesOfBlob(ctx, made[path].NewObject)
		})
		if err != nil {
			return err
		}
		if lost != "" {
			return fmt.Errorf("the agent's merge is not whole: %s; if one side is right there, take it in the "+
				"browser, or merge on a branch: pawl queue add %s --commit BRANCH", lost, p.Entry.ID)
		}
	}
	return q.o.Repo.UpdateRef(ctx, queuedTaskRef(p.Entry.ID), commit, "", "pawl: merged with the target")
}

// linesOfBlob reads the lines of a blob; none of "".
func (q *Queue) linesOfBlob(ctx context.Context, blob string) (lines []string, err error) {
	if blob == "" {
		return nil, nil
	}
	err = q.shadow.Blobs(ctx, []string{blob}, func(_ int, _ int64, r io.Reader) error {
		text, err := io.ReadAll(r)
		lines = strings.Split(string(text), "\n")
		return err
	})
	return lines, err
}

// problemOf an entry, for the agent: what is wrong, and the landings that changed the
// same paths.
func (q *Queue) problemOf(ctx context.Context, e queue.Entry) (Problem, error) {
	p := Problem{Entry: e}
	if e.Problem == nil {
		return p, fmt.Errorf("cannot solve %s: it has no conflict and no red gate", e.ID)
	}
	p.Problem = *e.Problem
	var err error
	if p.Tip, err = q.Tip(ctx); err != nil {
		return p, err
	}
	base, err := q.o.Repo.Base(ctx, p.Tip, e.Commit)
	if err != nil {
		return p, err
	}
	var paths []string
	if c := p.Problem.Conflict; c != nil {
		paths = lists.Each(c.Files, func(f queue.File) string { return f.Path })
	} else if paths, err = q.sortedChanges(ctx, base, e.Commit); err != nil {
		return p, err
	}
	p.Landed, err = q.o.Repo.Landings(ctx, base, p.Tip, paths[:min(len(paths), 100)], maxIntents)
	return p, err
}

// Regeneration makes files that match a pattern (see [gate.Match]) anew by a
// command for sh -c, where they conflict.
type Regeneration struct {
	Files   []string
	Command string
	Timeout time.Duration // 0 is that of gates
}

func (r *Regeneration) coversPath(path string) bool {
	return slices.ContainsFunc(r.Files, func(p string) bool { return gate.Match(p, path) })
}

// maxRemade is how many merges with files that were made anew are remembered.
const maxRemade = 2000

// markRegenerable names the commands of files in conflict that have one.
func (cs *conflicts) markRegenerable(c *queue.Conflict) {
	for i := range c.Files {
		f := &c.Files[i]
		n := slices.IndexFunc(cs.o.Regenerate, func(r Regeneration) bool { return r.coversPath(f.Path) })
		if n >= 0 && f.Regenerable() {
			f.Regenerate = cs.o.Regenerate[n].Command
		}
	}
}

// completeMerge completes a merge whose files in conflict are the target's for
// now: their commands make them anew from there, which keeps what is pinned.
// Where that changes nothing, they begin with the entry's as well: what comes
// out must be the same, or a side would be taken unseen.
func (cs *conflicts) completeMerge(ctx context.Context, onto string, e *queue.Entry, m mergedTree) (mergedTree, error) {
	key := onto + e.Commit
	cs.mu.Lock()
	known, ok := cs.remade[key]
	cs.mu.Unlock()
	if ok {
		m.tree = known
		return m, nil
	}
	tree, why, err := cs.remakeFiles(ctx, onto, e, m.tree, &m)
	if err == nil && why == "" {
		why, err = cs.reasonSideTaken(ctx, onto, e, tree, &m)
	}
	if err != nil {
		return m, err
	}
	if why != "" {
		m.pending.Regenerating = why
		for i := range m.pending.Files {
			m.pending.Files[i].Regenerate = ""
		}
		return mergedTree{conflict: m.pending}, nil
	}
	m.tree = tree
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.remade) >= maxRemade {
		clear(cs.remade)
	}
	cs.remade[key] = tree
	return m, nil
}

// reasonSideTaken says which file is what the target has, although from the entry's
// the commands make another one.
func (cs *conflicts) reasonSideTaken(ctx context.Context, onto string, e *queue.Entry, tree string, m *mergedTree,
) (string, error) {
	changed, err := cs.sortedChanges(ctx, m.tree, tree)
	if err != nil || !slices.ContainsFunc(m.regenerated, func(p string) bool { return !slices.Contains(changed, p) }) {
		return "", err
	}
	from, err := cs.rewriteTree(ctx, m.tree, m.theirs)
	if err != nil {
		return "", err
	}
	other, why, err := cs.remakeFiles(ctx, onto, e, from, m)
	if err != nil || why != "" {
		return why, err
	}
	differs, err := cs.sortedChanges(ctx, tree, other)
	if err != nil {
		return "", err
	}
	for _, p := range m.regenerated {
		if !slices.Contains(changed, p) && slices.Contains(differs, p) {
			return fmt.Sprintf("%s was not regenerated: %s leaves it as on %s, and the changes to it would "+
				"be lost", p, strings.Join(m.commands, ", "), branchName(cs.ref)), nil
		}
	}
	return "", nil
}

// remakeFiles runs the commands of a merge on a tree in a folder of its own, and
// returns it with what they made of all files that they are for; or why not.
func (cs *conflicts) remakeFiles(ctx context.Context, onto string, e *queue.Entry, tree string, m *mergedTree,
) (made, why string, err error) {
	commit, err := cs.shadow.CommitTree(ctx, cs.shadow.Who, tree, "pawl: regenerate files of "+e.ID, onto, e.Commit)
	if err != nil {
		return "", "", err
	}
	ws, err := cs.o.Integration(ctx, commit, e.Closed)
	if err != nil {
		return "", "", err
	}
	defer ws.Done(context.WithoutCancel(ctx))
	if err := checkTree(ctx, ws, tree); err != nil {
		return "", "", err
	}
	var rules []Regeneration
	var specs []gate.Spec
	for _, r := range cs.o.Regenerate {
		if slices.Contains(m.commands, r.Command) {
			rules = append(rules, r)
			if slices.ContainsFunc(specs, func(s gate.Spec) bool { return s.Command == r.Command }) {
				continue
			}
			specs = append(specs, gate.Spec{Command: r.Command, Timeout: r.Timeout, Required: true, AllowEmpty: true,
				Retries: gate.Retries})
		}
	}
	rep, err := cs.checks.runCommands(ctx, ws, specs, nil)
	switch {
	case err != nil:
		return "", "", err
	case rep.Stopped:
		return "", "", fmt.Errorf("cannot regenerate files of %s: the commands were interrupted", e.ID)
	case !rep.Passed():
		return "", fmt.Sprintf("%s not regenerated: %s", queue.PathsWere(m.regenerated), rep.Summary), nil
	}
	if made, err = cs.takeFiles(ctx, ws.Dir, tree, rules); err != nil {
		return "", "", err
	}
	why, err = cs.reasonNotMade(ctx, tree, made, m)
	return made, why, err
}

// takeFiles is a tree with what a folder has of the files that rules are for.
func (cs *conflicts) takeFiles(ctx context.Context, dir, tree string, rules []Regeneration) (string, error) {
	file, done, err := cs.scratchIndex()
	if err != nil {
		return "", err
	}
	defer done()
	x := cs.shadow.Over(dir).Index(file, nil)
	if err := x.ReadTree(ctx, tree); err != nil {
		return "", err
	}
	scan, err := x.Scan(ctx, git.ScanOptions{})
	if err != nil {
		return "", err
	}
	paths := slices.DeleteFunc(slices.Concat(scan.Changed, scan.Gone, scan.Untracked), func(p string) bool {
		return !slices.ContainsFunc(rules, func(r Regeneration) bool { return r.coversPath(p) })
	})
	if err := x.Add(ctx, paths); err != nil {
		return "", err
	}
	return x.WriteTree(ctx)
}

// reasonNotMade names a file that a command was to make and is no file afterwards.
func (cs *conflicts) reasonNotMade(ctx context.Context, before, after string, m *mergedTree) (why string, err error) {
	changes, err := cs.o.Repo.Changes(ctx, before, after)
	for _, c := range changes {
		file := c.NewMode == git.ModeFile || c.NewMode == git.ModeExec
		if !file && slices.Contains(m.regenerated, c.Path) {
			return fmt.Sprintf("%s was not regenerated: %s left no file there", c.Path,
				strings.Join(m.commands, ", ")), nil
		}
	}
	return "", err
}
