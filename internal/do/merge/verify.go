package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

const (
	gateTimeout = 5 * time.Minute // of a gate that says nothing of its own
	keepRuns    = 20              // folders with outputs of gates that are kept
	setUpName   = "setup: "       // begins the name of a command that prepares a workspace
)

// checks are the gates that judge a tree of the target, and their records.
type checks struct {
	*target
	reds sync.Map // by record key: the number of the gate that was red at first
}

// verifyTree gets the gate record of a tree: the stored one, or a new one. A red one
// names the author of the commit.
func (k *checks) verifyTree(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	e, err := k.gateRecord(ctx, s, c)
	if err != nil || e.Verdict.Green || e.Verdict.Transient {
		return e, err
	}
	e.Verdict.By, err = k.authorText(ctx, c.Commit)
	return e, err
}

func (t *target) authorText(ctx context.Context, commit string) (string, error) {
	author, message, err := t.o.Repo.Author(ctx, commit)
	subject, _, _ := strings.Cut(message, "\n")
	return fmt.Sprintf("by %s (%s)", author, subject), err
}

// WasRed reports whether the tree of the commit has a red record under these gates.
func (q *Queue) WasRed(ctx context.Context, commit string) (bool, error) {
	tree, err := q.o.Repo.TreeOf(ctx, commit)
	rules, rerr := q.rulesNow(ctx)
	if err := errors.Join(err, rerr); err != nil {
		return false, err
	}
	r, ok, err := q.o.Store.GateRecord(ctx, recordKey(tree, rules, rules.Gates, rules.Closed))
	return ok && !r.Verdict.Green, err
}

func (k *checks) gateRecord(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	rules, err := k.rulesNow(ctx)
	if err != nil {
		return queue.Event{}, err
	}
	specs, err := k.gatesForTree(ctx, rules, s, c)
	if err != nil {
		return queue.Event{}, err
	}
	closed := rules.Closed || s.IsClosed(c)
	key := recordKey(c.Tree, rules, specs, closed)
	if !c.Again {
		r, ok, err := k.o.Store.GateRecord(ctx, key)
		if err != nil {
			return queue.Event{}, err
		}
		counts := r.Verdict.Green || !c.Fresh
		if ok && counts {
			v := r.Verdict
			v.Cached, v.Retried = true, false
			return queue.Event{Kind: queue.Verified, Verdict: &v}, nil
		}
	}
	v, gates, err := k.judgeTree(ctx, c, key, specs, closed)
	v.Empty = v.Empty && !k.o.Policy.Checks
	if err != nil {
		return queue.Event{}, err
	}
	// A red one counts when it has had its second try, unless its cause passes.
	redForGood := c.Again && !v.Transient
	if v.Green || redForGood {
		err := k.putRecord(ctx, key, v, gates)
		common := recordKey(c.Tree, rules, rules.Gates, rules.Closed)
		if err == nil && v.Green && closed == rules.Closed && common != key { // these were among them
			isOfTask := func(g loop.Gate) bool { return g.Origin != "" }
			err = k.putRecord(ctx, common, v, slices.DeleteFunc(gates, isOfTask))
		}
		if err != nil {
			return queue.Event{}, err
		}
	}
	return queue.Event{Kind: queue.Verified, Verdict: &v}, nil
}

func (k *checks) putRecord(ctx context.Context, key string, v queue.Verdict, gates []loop.Gate) error {
	data, err := json.Marshal(gates)
	if err != nil {
		return err
	}
	return k.o.Store.PutGateRecord(ctx, store.GateRecord{Key: key, Verdict: v, Gates: data, At: time.Now()})
}

// gatesForTree are the gates that a tree has to pass: the project's, then the checks of each task
// whose work is tried in it, and not taken back.
func (k *checks) gatesForTree(ctx context.Context, r Rules, s *queue.State, c queue.Command) ([]gate.Spec, error) {
	specs := slices.Clone(r.Gates)
	if c.Target || r.TaskGates == nil {
		return specs, nil
	}
	for _, id := range c.IDs {
		if e, ok := s.Find(id); ok && e.Revert != "" {
			continue
		}
		c, err := k.o.Store.Case(ctx, id)
		switch {
		case errors.Is(err, store.ErrNoCase):
		case err != nil:
			return nil, err
		default:
			specs = append(specs, r.TaskGates(&c)...)
		}
	}
	// What prints for agents runs before what is sealed from them.
	isSealed := func(s gate.Spec) bool { return s.Origin == loop.Sealed }
	open := slices.DeleteFunc(slices.Clone(specs), isSealed)
	return append(open, slices.DeleteFunc(specs, func(s gate.Spec) bool { return !isSealed(s) })...), nil
}

// recordKey of a verdict: tree, definition of the gates, their level, and environment.
func recordKey(tree string, r Rules, specs []gate.Spec, closed bool) string {
	h := sha256.New()
	for _, g := range specs {
		h.Write([]byte(g.Key()))
	}
	fmt.Fprintf(h, "%s\n%s/%s\n%s\n%v", tree, runtime.GOOS, runtime.GOARCH, r.Environment, closed)
	return hex.EncodeToString(h.Sum(nil))
}

// judgeTree runs the gates. A second try begins at the gate that was red. On the target itself
// that one is tried more often: everything waits for it.
func (k *checks) judgeTree(ctx context.Context, c queue.Command, key string, specs []gate.Spec, closed bool,
) (queue.Verdict, []loop.Gate, error) {
	v := queue.Verdict{Tree: c.Tree, Retried: c.Again}
	if len(specs) == 0 {
		v.Green, v.Empty = true, true
		return v, nil, nil
	}
	first := 0
	was, _ := k.reds.LoadAndDelete(key)
	if c.Again {
		first, _ = was.(int)
	}
	if specs = slices.Clone(specs[min(first, len(specs)-1):]); c.Again {
		tip, err := k.Tip(ctx)
		specs[0].Doubted = err == nil && tip == c.Commit
	}
	rep, err := k.runGates(ctx, c.Commit, c.Tree, k.affectedGates(ctx, c, specs), closed)
	switch {
	case err != nil:
		return v, nil, err
	case rep.Stopped:
		return v, nil, fmt.Errorf("cannot verify %s: the gates were interrupted", c.Commit)
	}
	if rep.Cold && len(c.IDs) == 0 { // the target itself, of which nothing is new
		k.o.Notify(queue.Note{Kind: queue.NoteSlow, Text: sandbox.ColdCaches()})
	}
	v.Green, v.Summary, v.Warnings = rep.Passed(), rep.Summary, rep.Warnings
	v.Transient = rep.Failure != nil && rep.Failure.Transient
	if !v.Green {
		k.reds.Store(key, first+max(0, slices.IndexFunc(rep.Gates, gate.IsRed)))
		names, err := k.o.Repo.FilesOf(ctx, c.Tree)
		if only := gate.NotCommitted(v.Summary, k.o.Repo.Top, names); err == nil && only != "" {
			v.Summary += "; " + only + " is in your checkout, and not committed"
		}
	}
	return v, rep.Gates, nil
}

// affectedGates marks the gates that are about files which the tree has as the target has them.
func (k *checks) affectedGates(ctx context.Context, c queue.Command, specs []gate.Spec) []gate.Spec {
	return gate.SkipUnaffected(specs, k.o.Folder, func() ([]string, bool) {
		tip, err := k.Tip(ctx)
		if err != nil || c.Target {
			return nil, false
		}
		changes, err := k.o.Repo.Changes(ctx, tip, c.Tree)
		return lists.Each(changes, func(c git.Change) string { return c.Path }), err == nil
	})
}

// runGates runs gates on a commit that is checked out for them alone; see [Options.Integration].
func (k *checks) runGates(ctx context.Context, commit, tree string, specs []gate.Spec, closed bool,
) (gate.Report, error) {
	ws, err := k.o.Integration(ctx, commit, closed)
	if err != nil {
		return gate.Report{}, err
	}
	defer ws.Done(context.WithoutCancel(ctx))
	if err := checkTree(ctx, ws, tree); err != nil {
		return gate.Report{}, err
	}
	setup := len(ws.Setup)
	for i, command := range ws.Setup {
		specs = slices.Insert(slices.Clone(specs), i, gate.Spec{
			Name: setUpName + command, Command: command, Required: true, Retries: gate.Retries,
		})
	}
	index, done, err := k.scratchIndex()
	if err != nil {
		return gate.Report{}, err
	}
	defer done()
	w, files, err := k.watchFiles(ctx, ws, index, tree)
	if err != nil {
		return gate.Report{}, err
	}
	rules, err := k.rulesNow(ctx)
	if err != nil {
		return gate.Report{}, err
	}
	w.protect = rules.Protect
	ws.guarded = w.protect.Covers(ws.Dir, files)
	rep, err := k.runCommands(ctx, ws, specs, w.afterCommand)
	rep.Gates = rep.Gates[min(setup, len(rep.Gates)):]
	return rep, err
}

// watched is a folder that is judged: each command begins with the files that are to land. A
// command runs what an agent wrote, which could change them for the commands after it.
type watched struct {
	k     *checks
	ws    Workspace
	index *git.Index
	known map[string]bool // what is not compared

	protect gate.Protect
}

// watchFiles returns the names of all files, too.
func (k *checks) watchFiles(ctx context.Context, ws Workspace, indexFile, tree string) (*watched, []string, error) {
	dir := filepath.Dir(indexFile)
	own, err := k.o.Repo.OpenOwn(ctx, filepath.Join(dir, "own"))
	if err != nil {
		return nil, nil, err
	}
	shadow, err := git.OpenShadow(ctx, k.o.Repo, own, filepath.Join(dir, "git"))
	if err != nil {
		return nil, nil, err
	}
	w := &watched{k: k, ws: ws, index: shadow.Over(ws.Dir).Index(indexFile, nil), known: map[string]bool{}}
	if err := w.index.ReadTree(ctx, tree); err != nil {
		return nil, nil, err
	}
	names, err := w.index.Names(ctx)
	if err != nil {
		return nil, nil, err
	}
	now, err := w.index.Scan(ctx, git.ScanOptions{}) // the checkout converted files, or they were copied for the gates
	for _, path := range slices.Concat(now.Untracked, now.Gone) {
		w.known[path] = true
	}
	return w, names, errors.Join(err, w.index.Add(ctx, now.Changed))
}

// afterCommand finds what command n did to the files, and makes them as they were. What git
// ignores stays, and so does what a set-up makes beside, or fills in, as LFS does.
func (w *watched) afterCommand(ctx context.Context, n int, e *gate.Exec) error {
	scan, err := w.index.Scan(ctx, git.ScanOptions{})
	if err != nil {
		return err
	}
	isKnown := func(path string) bool { return w.known[path] }
	changed := slices.DeleteFunc(slices.Concat(scan.Changed, scan.Gone), isKnown)
	added := slices.DeleteFunc(scan.Untracked, isKnown)
	var all []gate.Change
	for status, paths := range map[byte][]string{'M': scan.Changed, 'D': scan.Gone, 'A': added} {
		for _, path := range paths {
			if !w.known[path] {
				all = append(all, gate.Change{Path: path, Status: status})
			}
		}
	}
	e.Tampered = gate.Tampered(all, w.protect)
	if n >= len(w.ws.Setup) {
		e.Changed, e.Added = changed, added
		return w.restoreFiles(ctx, changed, added)
	}
	filled, err := w.k.o.Repo.Filtered(ctx, changed)
	for _, path := range slices.Concat(filled, added) {
		w.known[path] = true
	}
	return errors.Join(err, w.restoreFiles(ctx, slices.DeleteFunc(changed, isKnown), nil))
}

// restoreFiles makes files what they were, and removes others.
func (w *watched) restoreFiles(ctx context.Context, changed, added []string) error {
	if len(changed)+len(added) == 0 {
		return nil
	}
	top, err := os.OpenRoot(w.ws.Dir)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, path := range added {
		err = errors.Join(err, top.RemoveAll(path))
	}
	if err == nil {
		err = w.index.Restore(ctx, changed)
	}
	if err != nil {
		return fmt.Errorf("the files could not be restored: %w", err)
	}
	return nil
}

// checkTree makes sure that what is tested is what is to land.
func checkTree(ctx context.Context, ws Workspace, tree string) error {
	repo, err := git.Open(ctx, ws.Dir)
	if err != nil {
		return err
	}
	is, err := repo.TreeOf(ctx, "HEAD")
	if err != nil {
		return err
	}
	if is != tree {
		return fmt.Errorf("cannot verify in %s: it has the tree %s checked out and not %s", ws.Dir, is, tree)
	}
	return nil
}

// runCommands runs commands in a folder, one after the other, up to the first
// required one that fails, or that changes a protected file.
func (k *checks) runCommands(ctx context.Context, ws Workspace, specs []gate.Spec,
	after func(ctx context.Context, n int, e *gate.Exec) error,
) (gate.Report, error) {
	dir := filepath.Join(k.o.Dir, "gates", time.Now().UTC().Format("20060102T150405.000000000"))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return gate.Report{}, fmt.Errorf("cannot make a folder for the gates: %v", err)
	}
	defer pruneFolders(filepath.Dir(dir), keepRuns)
	// What these commands write to the tools' caches counts for them alone.
	scratch := filepath.Join(dir, "caches")
	defer func() { _ = files.RemoveAll(scratch) }() // else it goes with the folder
	var env []string
	if ws.Box != nil {
		box, caches := ws.Box.WithCaches(ws.Caches, scratch)
		ws.Box, env = &box, caches
	}
	shows, err := sandbox.OpenEvidence(ws.Box, filepath.Join(scratch, "evidence"))
	if err != nil {
		return gate.Report{}, err
	}
	ws.Environ = slices.Concat(ws.Environ, env, shows)
	defer func() { _ = files.RemoveAll(filepath.Join(dir, "tmp")) }() // pruning tries again
	client, err := supervisor.Start(ctx, supervisor.Options{
		RunDir: dir, Exe: k.o.Exe, Args: k.o.Args, Lease: k.o.Lease, Run: k.queueRunMark(), Unboxed: ws.Box == nil,
	})
	if err != nil {
		return gate.Report{}, err
	}
	rep, err := gate.Verify(ctx, specs, func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
		e, err := k.runOnTree(ctx, client, ws, dir, n, s)
		if err == nil && after != nil && !e.Stopped {
			err = after(ctx, n, &e)
		}
		return e, err
	}, time.Now)
	if cerr := client.Close(); err == nil {
		err = cerr
	}
	rep.Cold = ws.Box != nil && sandbox.BeganCold(ws.Caches, scratch)
	return rep, err
}

func (k *checks) runOnTree(ctx context.Context, client *supervisor.Client, ws Workspace, dir string, n int, s gate.Spec,
) (gate.Exec, error) {
	if s.Timeout <= 0 {
		s.Timeout = gateTimeout
	}
	if k.o.Begins != nil {
		k.o.Begins(s.Name)
	}
	begun := time.Now()
	defer time.AfterFunc(gate.Slow, func() {
		k.o.Notify(queue.Note{Kind: queue.NoteSlow, Text: "in the merge queue, " + gate.SlowText(s, begun)})
	}).Stop()
	own, back, err := gate.LayFiles(ws.Dir, s.Files)
	if err != nil {
		return gate.Exec{}, err
	}
	isGate := n >= len(ws.Setup)
	if isGate && ws.Box != nil && len(ws.guarded)+len(own) > 0 { // it could change a test before it is read
		box := *ws.Box
		box.Keep = slices.Concat(box.Keep, ws.guarded, own)
		ws.Box = &box
	}
	if s.Origin == loop.Sealed {
		ws.Box = ws.Box.Offline()
	}
	job := supervisor.Job{
		ID:    fmt.Sprintf("gate/%d/%d", n+1, time.Now().UnixNano()), // a job runs once, and a gate may run again
		Files: filepath.Join(dir, fmt.Sprintf("gate-%d", n+1)), Dir: ws.Dir,
		Args: []string{"sh", "-c", s.Command}, Env: slices.Concat(k.o.Environ, ws.Environ), Merge: true,
		Limits: supervisor.Limits{Wall: s.Timeout}, Box: ws.Box,
	}
	res, err := client.Run(ctx, job, nil)
	if err := errors.Join(err, back()); err != nil {
		return gate.Exec{}, err
	}
	lost := res.Exit.Ended == loop.EndedLost || res.Exit.Ended == loop.EndedLease
	return gate.Exec{
		ExitCode: res.Exit.Code, Signal: res.Exit.Signal, TimedOut: res.Exit.Ended == loop.EndedTimeout,
		Stopped: res.Exit.Ended == loop.EndedStop || lost, NotStarted: res.Error,
		Elapsed: res.Elapsed, Output: res.Stdout.Text(),
		Explain: func(a *failure.Analysis) { ws.Box.ExplainGate(a, res.Stdout.Text(), res.Unreached) },
	}, nil
}

// queueRunMark is the run that the queue's processes carry.
func (k *checks) queueRunMark() string {
	sum := sha256.Sum256([]byte(k.o.Dir + "\n" + k.ref))
	return "queue-" + hex.EncodeToString(sum[:8])
}

// endLeftovers ends what a pawl that was killed left: gates and their supervisor. Only
// the owner of the queue may.
func (k *checks) endLeftovers(ctx context.Context) error {
	ended, err := process.Sweep(ctx, supervisor.Mark(k.queueRunMark()), 2*time.Second)
	if err == nil && ended.Left > 0 {
		err = fmt.Errorf("cannot end %d processes of gates that an earlier pawl left", ended.Left)
	}
	return err
}

// pruneFolders removes all but the last folders, by name.
func pruneFolders(dir string, keep int) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list[:max(0, len(list)-keep)] {
		_ = files.RemoveAll(filepath.Join(dir, e.Name())) // outputs only; the next one tries again
	}
}
