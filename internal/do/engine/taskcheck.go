package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/journal"
)

// This file is about the checks of one task: those with files of their own, and sealed ones,
// run on a copy, and none may be green before the work.

// isSealedCheck reports whether the gate of that name is a sealed check.
func (w *judge) isSealedCheck(name string) bool {
	is := func(s gate.Spec) bool { return s.Origin == loop.Sealed && s.Name == name }
	return slices.ContainsFunc(w.plan.Gates, is)
}

// judgedTop is the folder of all files that are judged.
func (w *judge) judgedTop() string {
	if w.o.Tree == nil {
		return w.plan.Root
	}
	return w.o.Tree.Repo.Top
}

// rootName is the folder in which gates run, as seen from the top.
func (w *judge) rootName() string {
	if w.o.Tree == nil {
		return ""
	}
	name, _ := files.Below(w.o.Tree.Repo.Top, w.o.Tree.Root)
	return name
}

func (w *judge) runGateJob(ctx context.Context, c loop.Command, n int, s gate.Spec) (supervisor.Result, error) {
	if !s.OnCopy() {
		return w.runGateInFolder(ctx, c, n, s, "")
	}
	copied, done, err := w.copyForCheck(ctx, w.attempt(c.Iteration, c.Attempt).CachesFolder(), s)
	if err != nil {
		return supervisor.Result{}, err
	}
	defer done()
	return w.runGateInFolder(ctx, c, n, s, copied)
}

// ownFiles are the files of a check, as seen from the top.
func (w *judge) ownFiles(s gate.Spec) (names []string) {
	for name := range s.Files {
		names = append(names, filepath.Join(w.rootName(), name))
	}
	return names
}

// copyForCheck makes a copy of the files that are judged, with those of the check in their places.
// The caller calls done when the check has ended.
func (w *judge) copyForCheck(ctx context.Context, scratch string, s gate.Spec) (dir string, done func(), err error) {
	if w.o.Tree == nil {
		return "", nil, fmt.Errorf("%s runs on a copy, which needs a git repository: git init", s.Name)
	}
	dir = filepath.Join(scratch, "copy")
	done = func() { w.dropCaches(dir) }
	if err = errors.Join(files.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err == nil {
		err = w.o.Tree.CopyTo(ctx, dir)
	}
	if err == nil {
		_, _, err = gate.LayFiles(filepath.Join(dir, w.rootName()), s.Files)
	}
	if err != nil {
		done()
		return "", nil, fmt.Errorf("cannot copy the files for %s: %w", s.Name, err)
	}
	return dir, done, nil
}

// showCopyToGate makes a gate judge a copy of the files: shown in their place, or else by its own path.
// It returns the folder that the gate runs in, and its box.
func (w *judge) showCopyToGate(tree string, box *sandbox.Policy) (dir string, _ *sandbox.Policy) {
	top := w.judgedTop()
	shown := top // where the box shows the files
	var binds []sandbox.Bind
	if box != nil {
		binds = slices.Clone(box.Binds)
	}
	if at := slices.IndexFunc(binds, func(b sandbox.Bind) bool { return b.From == top }); at >= 0 {
		shown = binds[at].To
		binds = slices.Delete(binds, at, at+1)
	}
	if box == nil || !box.Means.Mounts {
		if box != nil {
			own := *box
			own.Write, own.Show = append(slices.Clone(box.Write), tree), append(slices.Clone(box.Show), tree)
			box = &own
		}
		return filepath.Join(tree, w.rootName()), box
	}
	own := *box
	own.Binds = append([]sandbox.Bind{{From: tree, To: shown}}, binds...)
	return w.plan.Root, &own
}

// verifyBeforeAgents runs what is to be known before the first agent: the gates, and the checks of the task.
func (w *judge) verifyBeforeAgents(ctx context.Context, s loop.State) *loop.Record {
	if r := w.verifyBase(ctx, s); r != nil {
		return r
	}
	return w.tryChecks(ctx, s)
}

// triesFirst reports whether checks and tests are tried without the work.
func (w *judge) triesFirst() bool { return w.plan.RedFirst == "warn" || w.plan.RedFirst == "require" }

// tryChecks runs the checks of the task once before its first agent. One that is green there
// proves nothing: that is said, or a person is asked; then it returns the record of the
// iteration that was not begun.
//
// It may be stopped meanwhile: its caller looks at ctx.
func (w *judge) tryChecks(ctx context.Context, s loop.State) *loop.Record {
	c := s.Command
	begun := s.Spent.Active > 0 || c.Iteration > 1 || w.plan.Worked
	own := slices.DeleteFunc(slices.Clone(w.plan.Gates), func(s gate.Spec) bool { return s.Origin == "" })
	if begun || len(own) == 0 || !w.triesFirst() {
		return nil
	}
	w.baseSnapshot(ctx)
	base := c
	base.Iteration = 0
	scratch := w.attempt(0, c.Attempt).CachesFolder()
	w.dropCaches(scratch)
	defer w.dropCaches(scratch)
	err := w.readBefore(ctx)
	wasTried := !slices.ContainsFunc(own, func(s gate.Spec) bool { return w.howBefore(s) == "" })
	if err == nil && !wasTried {
		err = w.runChecksFirst(ctx, base)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return ending.NotStarted(c, err)
	}
	own = slices.DeleteFunc(own, func(s gate.Spec) bool { return w.howBefore(s) != greenBefore })
	if len(own) == 0 {
		return nil
	}
	text := "green before any work, so it proves nothing: " +
		strings.Join(lists.Each(own, func(s gate.Spec) string { return s.Name }), ", ")
	if w.plan.RedFirst != "require" {
		if !wasTried {
			w.warn(text)
		}
		return nil
	}
	r := ending.NotBegun(c)
	r.Exit, r.Agent = loop.Exit{}, ""
	again := "with another --verify"
	if w.plan.Kind == string(loop.Task) {
		id := board.TaskOf(w.plan.Name)
		again = fmt.Sprintf("(pawl case edit %s --verify COMMAND, then pawl case retry %s)", id, id)
	}
	text += ". Change the check and start again " + again + ", or continue with it?"
	r.Signal = signal.Signal{Kind: signal.Pending, Text: text}
	return r
}

const greenBefore = "green"

// readBefore reads how each check of the task ended before the work. It is in the database: it runs then once, even
// if pawl is killed, or another machine resumes the run.
func (w *judge) readBefore(ctx context.Context) error {
	if w.before != nil {
		return nil
	}
	tried, err := w.o.Store.EventsOfKind(ctx, w.id, journal.ChecksTried)
	w.before = map[string]string{}
	for _, e := range tried {
		err = errors.Join(err, json.Unmarshal(e.Data, &w.before))
	}
	return err
}

// howBefore returns how a check of the task ended before the work; see [loop.Gate]. "" is that it did not run.
func (w *judge) howBefore(s gate.Spec) string { return w.before[s.Mark()] }

// runChecksFirst runs the checks of the task on the files as they are before the work, says how
// each of them is red, and keeps that.
func (w *judge) runChecksFirst(ctx context.Context, base loop.Command) (err error) {
	before := map[string]string{}
	var judged workspace.Seen
	if w.o.Tree != nil {
		if judged, err = w.o.Tree.See(ctx, w.id); err != nil {
			return err
		}
	}
	w.notify(Notice{Kind: Note, Text: "running the checks of the task once before the first agent"})
	for n, s := range w.gatesOfIteration(base) {
		if s.Origin == "" {
			continue
		}
		s.Retries = 0
		var written []string
		rep, err := gate.Verify(ctx, []gate.Spec{s}, func(ctx context.Context, _ int, s gate.Spec) (gate.Exec, error) {
			e, err := w.runSupervisedGate(ctx, base, n, s, judged)
			written, e.Tampered = e.Added, nil // no work is judged
			return e, err
		}, time.Now)
		how := greenBefore
		if f := rep.Failure; f != nil {
			how = "red: " + f.Summary
		}
		before[s.Mark()] = how
		switch f := rep.Failure; {
		case err != nil:
			return err
		case rep.Stopped:
			return ctx.Err()
		case f == nil:
		case gate.IsOfItsOwn(f):
			w.warn(fmt.Sprintf("%s is red before any work, perhaps for a reason of its own: %s", s.Name, rep.Summary))
		default:
			w.notify(Notice{Kind: Note, Text: "red before any work, as expected: " + rep.Summary})
		}
		if len(written) > 0 {
			w.warn(fmt.Sprintf("%s writes %s; it is removed afterwards, so let git ignore what it leaves", s.Name,
				deliver.Some(written)))
		}
	}
	w.before = before
	_, err = journal.Append(ctx, w.o.Store, w.id, time.Now(), journal.ChecksTried, before)
	return err
}

// weakGate is the name under which tests that prove nothing are among the gates.
const weakGate = "red first"

// tryTests tries the tests that the work added or changed against the sources from before it.
// Where they are green there they show nothing: the next prompt names them, and where red
// comes first the work is not done. Neither is it then where they cannot be tried: an agent may have seen to that.
func (w *judge) tryTests(ctx context.Context, c loop.Command, r *loop.Record, specs []gate.Spec) {
	w.weakTests = ""
	names, err := w.testsGreenBefore(ctx, c, r, specs)
	isNone := err == nil && len(names) == 0
	if isNone || ctx.Err() != nil {
		return
	}
	note := "green without the change too, so they show nothing of it: " + deliver.Some(names)
	text := "tests are " + note
	w.weakTests = "Of the tests that were added or changed these are " + note + ". Have them fail without the change."
	if err != nil {
		text = "the tests of the work cannot be tried on the sources from before it: " + err.Error()
		note, w.weakTests = text, ""
	}
	weak := loop.Gate{Name: weakGate, Status: loop.GateFailed, Total: -1, Origin: loop.OfTask, Note: note}
	isOfTask := func(g loop.Gate) bool { return g.Origin != "" }
	weak.Required = w.plan.RedFirst == "require" && !slices.ContainsFunc(r.Gates, isOfTask)
	r.Gates = append(r.Gates, weak)
	if !weak.Required {
		w.warn(text)
		return
	}
	r.Failure = &failure.Analysis{
		Class: failure.TestFailure, Kind: failure.Work, Severity: failure.Medium, Step: weakGate, Code: gate.CodeFailed,
		Summary: text, Items: []failure.Item{{Message: cmp.Or(w.weakTests, text)}},
	}
	r.Failure.Fingerprint = failure.Fingerprint(*r.Failure, names...)
}

// testsGreenBefore lists the tests that the work added or changed, if they are all green without the rest of it.
func (w *judge) testsGreenBefore(ctx context.Context, c loop.Command, r *loop.Record, specs []gate.Spec,
) (names []string, err error) {
	base := w.treeBeforeWork()
	if !w.triesFirst() || w.o.Tree == nil || base == "" || r.TreeAfter == "" {
		return nil, nil
	}
	changes, more, err := w.o.Tree.Changes(ctx, base, r.TreeAfter)
	if err == nil && more {
		err = fmt.Errorf("more than %d files are changed", len(changes))
	}
	if err != nil {
		return nil, err
	}
	tests := slices.DeleteFunc(slices.Clone(changes), func(ch git.Change) bool {
		isTest := gate.IsTest(ch.Path) || w.plan.Protect.CoversOne(ch.Path)
		return !isTest || ch.Status == 'D'
	})
	var judges []gate.Spec // of the project, that run tests
	for i, g := range r.Gates {
		if g.Test && g.Origin == "" {
			judges = append(judges, specs[i])
		}
	}
	onlyTests := len(tests) == len(changes)
	if len(tests) == 0 || onlyTests || len(judges) == 0 {
		return nil, nil
	}
	w.notify(Notice{Kind: Note, Text: "running the tests of the work on the sources from before it"})
	green, err := w.greenWithout(ctx, c, base, tests, judges)
	if !green {
		return nil, err
	}
	return lists.Each(tests, func(ch git.Change) string { return ch.Path }), nil
}

// greenWithout reports whether the gates are green on a tree that has nothing of the work but
// its tests.
func (w *judge) greenWithout(ctx context.Context, c loop.Command, base string, tests []git.Change, judges []gate.Spec,
) (bool, error) {
	dir, done, err := w.copyForCheck(ctx, w.attempt(c.Iteration, c.Attempt).CachesFolder(), gate.Spec{Name: weakGate})
	if err != nil {
		return false, err
	}
	defer done()
	if err := w.o.Tree.LayOver(ctx, dir, base, tests); err != nil {
		return false, err
	}
	first := len(w.plan.Gates) // its outputs are beside those of the gates
	for i := range judges {
		judges[i].Required, judges[i].Retries = true, 0
	}
	rep, err := gate.Verify(ctx, judges, func(ctx context.Context, n int, s gate.Spec) (gate.Exec, error) {
		res, err := w.runGateInFolder(ctx, c, first+n, s, dir)
		return ending.GateExec(res), err
	}, time.Now)
	return rep.Passed(), err
}
