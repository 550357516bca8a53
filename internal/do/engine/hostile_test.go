package engine

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/statefile"
)

// hostile runs an agent that does a deed in its first turn and works on in the
// next two.
func hostile(t *testing.T, deed string) (*world, *within) {
	t.Helper()
	w := newWorld(t, `
  - - append: {path: "{dir}/starts", content: "x"}
    - write: {path: a.txt, content: "one"}
    - `+deed+`
  - - append: {path: "{dir}/starts", content: "x"}
    - append: {path: a.txt, content: "two"}
`)
	w.o.Policy.MaxIterations = 3
	h := w.within()
	return w, h
}

func TestAnAgentDeletesPawlsFolder(t *testing.T) {
	t.Parallel()
	w, h := hostile(t, "delete: .pawl")
	h.on["iteration started 2"] = func() {
		if f, err := statefile.Read(statefile.Path(w.o.Root, "build")); err != nil || f.Iteration != 1 {
			t.Errorf("the state file is not written again: %+v, %v", f, err)
		}
	}
	h.start()
	w.holds(loop.Completed, "1.1 success", "2.1 success", "3.1 success")
	if h.count(string(Warning)) != 0 {
		t.Errorf("warnings: %q", h.lines)
	}
}

// Without its folder a run ends, and says so: neither the claim of the agent that
// saw it go counts, nor is another one started to work at nothing.
func TestTheFolderOfARunIsRemoved(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]bool{"while the agent works": false, "between two iterations": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `
  - - append: {path: "{dir}/starts", content: "x"}
    - write: {path: a.txt, content: "one"}
    - run: {command: "`+map[bool]string{false: "rm -r {dir}/repo", true: "true"}[between]+`", must: true}
    - say: "<promise>COMPLETE</promise>"
`)
			if between {
				w.gate("tests", "false")
			}
			w.o.Policy.MaxIterations = 3
			h, last := w.within(), 1
			h.on["iteration ended 1"] = func() {
				if between {
					last = 2
					_ = os.RemoveAll(w.o.Root)
				}
			}
			h.start()
			_, records, s := w.stored()
			if len(records) != last || s.Status != loop.FailedRun || !strings.Contains(s.Why, w.o.Root+" was removed during the run") {
				t.Errorf("it is %s (%s), %d records, want %d", s.Status, s.Why, len(records), last)
			}
			if n := w.starts(); n != 1 {
				t.Errorf("%d agents were started", n)
			}
			if _, err := os.Stat(w.o.Root); err == nil {
				t.Error("the folder was made again")
			}
			if n := h.count(string(Warning)); n != last-1 { // COMPLETE with a red gate
				t.Errorf("%d warnings: %q", n, h.lines)
			}
		})
	}
}

func TestAnAgentDeletesTheRunsFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - append: {path: "{dir}/starts", content: "x"}
    - usage: {input: 10, output: 5, cost: 0.5}
    - write: {path: a.txt, content: "one"}
    - run: {command: "until rm -rf {dir}/state/runs/*; do :; done", must: true} # the supervisor writes meanwhile
  - - append: {path: a.txt, content: "two"}
`)
	w.gate("tests", "true")
	w.within().start()
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if run, records, _ := w.stored(); run.Cost != 500_000 || records[0].Gates[0].Status != loop.GatePassed {
		t.Errorf("cost %d, record %+v", run.Cost, records[0])
	}
}

func TestAnAgentCommitsAndChangesTheBranch(t *testing.T) {
	t.Parallel()
	w, h := hostile(t, `run: {command: "git switch -q -c other && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm work", must: true}`)
	h.start()
	w.holds(loop.Completed, "1.1 success", "2.1 success", "3.1 success")
	if _, records, _ := w.stored(); records[0].Commits != 1 || !slices.Equal(records[0].Files, []string{"a.txt"}) || records[1].Commits != 0 {
		t.Errorf("records %+v", records)
	}
	if h.count(string(Warning)) != 0 {
		t.Errorf("warnings: %q", h.lines)
	}
}

// What a gate wrote was there before the next agent, also when the gate before it left
// all as it was.
func TestAGateWritesAFile(t *testing.T) {
	t.Parallel()
	w, h := hostile(t, `say: "Done."`)
	w.gate("lint", "true")
	w.gate("tests", "echo x >left.txt; test $PAWL_ITERATION -gt 1")
	h.opts.Plan.Gates = w.o.Gates
	h.start()
	w.holds(loop.Completed, "1.1 failed", "2.1 success", "3.1 success")
	if _, records, _ := w.stored(); !slices.Equal(records[1].Files, []string{"a.txt"}) {
		t.Errorf("the second agent wrote %q", records[1].Files)
	}
}

// Without a repository there is nothing to compare protected files with: the
// run goes on, says so once, and does not complete on a claim.
func TestAnAgentRemovesTheRepository(t *testing.T) {
	t.Parallel()
	for _, deed := range []string{"delete: .git", `write: {path: .git/HEAD, content: "nonsense"}`, `write: {path: .git/config, content: "[nonsense"}`} {
		w, h := hostile(t, deed+`
    - say: "<promise>COMPLETE</promise>"`)
		w.o.Gates = nil
		h.opts.Plan.Gates = nil
		w.gate("tests", "true")
		h.opts.Plan.Gates = w.o.Gates
		h.start()
		run, records, _ := w.stored()
		ends := []string{string(loop.Completed), string(loop.Exhausted), string(loop.Aborted)}
		if len(records) != 3 || !slices.Contains(ends, run.Status) {
			t.Errorf("%s: %s after %q", deed, run.Status, w.told())
		}
		if r := records[0]; r.Outcome != loop.Failed || len(r.Tampered) == 0 {
			t.Errorf("%s: the claim counts: %+v", deed, r)
		}
		seen := 0
		for _, l := range h.lines {
			if strings.HasPrefix(l, "warning no snapshot") || strings.HasPrefix(l, "warning cannot see") {
				seen++
			}
		}
		if seen > 1 {
			t.Errorf("%s: %d warnings: %q", deed, seen, h.lines)
		}
	}
}

func TestTamperingIsMeasuredAgainstTheBase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - write: {path: kept.txt, content: "changed"}
    - exit: 1
  - - append: {path: a.txt, content: "x"}
    - say: "<promise>COMPLETE</promise>"
`)
	w.o.Protect.Patterns = []string{"*.txt"}
	w.gate("tests", "true")
	w.within().start()
	_, records, _ := w.stored()
	if len(records) != 2 || !slices.Equal(records[1].Tampered, []string{"kept.txt"}) {
		t.Errorf("records %+v", records)
	}
}

// A gate runs code of the agent's. What it does to protected files is seen before the
// next one judges by them, and puts them back.
func TestAGateChangesATestForTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ build, test, tampered string }{
		"it is swapped":       {"cp -p kept.txt ../x && echo weak >kept.txt", "grep -q weak kept.txt && cp -p ../x kept.txt", "kept.txt"},
		"it is new":           {"echo weak >new.txt", "rm new.txt", "new.txt"},
		"it is new, hidden":   {"printf 'new.txt\n.gitignore\n' >.gitignore && echo weak >new.txt", "rm new.txt .gitignore", "new.txt"},
		"nobody puts it back": {"true", "echo weak >kept.txt", "kept.txt"},
		"other files":         {"mkdir -p cache && echo x | tee built >cache/built", "test ! -e built && rm cache/built", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, `
  - - append: {path: a.txt, content: "x"}
    - say: "<promise>COMPLETE</promise>"
`)
			w.o.Policy.MaxIterations = 1
			w.o.Protect.Patterns, w.o.Protect.New = []string{"kept.txt", "new.txt"}, true
			w.write("repo/.gitignore", "cache\n")
			w.commit("second")
			w.gate("build", c.build)
			w.gate("test", c.test)
			w.within().start()
			_, records, s := w.stored()
			if len(records) != 1 || strings.Join(records[0].Tampered, ",") != c.tampered || (s.Status == loop.Completed) != (c.tampered == "") {
				t.Errorf("%s (%s), %+v", s.Status, s.Why, records)
			}
		})
	}
}

// Gates have their own limits: however long they take, protected files are
// compared after them.
func TestLongGatesLeaveTimeForTampering(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `
  - - append: {path: a.txt, content: "x"}
    - say: "<promise>COMPLETE</promise>"
`)
	w.o.Protect.Patterns = []string{"kept.txt"}
	w.gate("tests", "true")
	h := w.within()
	var ends []context.CancelFunc
	h.opts.after = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		ends = append(ends, cancel)
		return ctx, cancel
	}
	h.on["gate ended tests"] = func() { // the time of all that began before is over
		for _, end := range ends {
			end()
		}
	}
	if d := h.start(); d.State().Status != loop.Completed {
		t.Errorf("%s after %q: %q", d.State().Status, w.told(), h.lines)
	}
	w.holds(loop.Completed, "1.1 success")
}

func TestTheDatabaseIsGoneForGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	h := w.within()
	h.on["iteration started 2"] = func() { _ = h.opts.Store.Close() }
	d := h.start()
	if d.State().Status != loop.Completed || w.starts() != 2 || h.count("warning the run is not recorded") != 1 {
		t.Errorf("%+v after %d starts: %q", d.State().Status, w.starts(), h.lines)
	}
	// What was not stored is taken from the run's files, and not paid again.
	w.resumeAfterLoss()
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if w.starts() != 2 {
		t.Errorf("%d starts", w.starts())
	}
}

// resumeAfterLoss goes on with the run as a process that the database calls
// dead, which this one is not.
func (w *world) resumeAfterLoss() {
	w.t.Helper()
	ctx := context.Background()
	opts, err := w.o.options(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = opts.Store.Close() }()
	run, err := opts.Store.Run(ctx, w.run())
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := newDriver(opts, run.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	d.releaseUnresumed(ctx, run, context.Canceled)
	w.resume().await("end completed")
}
