package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
)

// privateWorld makes a world whose run works in a private workspace, and whose gate is
// red while there is a file "red".
func privateWorld(t *testing.T, turns string) *world {
	t.Helper()
	w := newWorld(t, turns)
	w.o.Private = true
	w.gate("tests", "test ! -e red")
	return w
}

// committed is a turn whose agent changes a file and commits it.
func committed(name, text string) string {
	return `
  - - append: {path: "{dir}/starts", content: "x"}
    - append: {path: ` + name + `, content: "` + text + `\n"}
    - run: {command: "git add ` + name + ` && git commit -qm ` + text + `", must: true}
`
}

// setup is what is stored of the last run beside its state.
func (w *world) setup() (s storedrun.Setup) {
	w.t.Helper()
	run, _, _ := w.stored()
	if err := json.Unmarshal(run.Setup, &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// subjects are the commits of a branch, the newest first.
func (w *world) subjects(branch string) string {
	w.t.Helper()
	return strings.ReplaceAll(w.git("log", "--format=%s", branch), "\n", " ")
}

// Verified work reaches the checkout, as commits and as files, after its iteration; what
// is red never does, and nothing of pawl's is in the person's repository.
func TestGreenIsDeliveredAndRedIsNot(t *testing.T) {
	t.Parallel()
	w := privateWorld(t, committed("a.txt", "one")+`
  - - append: {path: a.txt, content: "two\n"}
    - write: {path: b.txt, content: "b\n"}
`+committed("red", "three"))
	w.o.Policy.MaxIterations = 3
	w.write("repo/mine.txt", "mine\n")
	w.within().start()
	w.holds(loop.Exhausted, "1.1 success", "2.1 success", "3.1 failed")
	if got := w.subjects("main"); got != "one first" {
		t.Errorf("the branch has %q", got)
	}
	if a, b := w.read("repo/a.txt"), w.read("repo/b.txt"); a != "one\ntwo\n" || b != "b\n" {
		t.Errorf("delivered are %q and %q", a, b)
	}
	if got := w.git("status", "--porcelain"); got != " M a.txt\n?? b.txt\n?? mine.txt" {
		t.Errorf("git status says\n%s", got)
	}
	if got := w.git("for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("the person's refs are %q", got)
	}
	s := w.setup()
	if len(s.Deliveries) != 2 || s.Deliveries[0].Commits != 1 || s.Deliveries[1].Files != 2 {
		t.Errorf("deliveries %+v", s.Deliveries)
	}
	if s.Undelivered != "it is not verified" || s.UndeliveredFiles != 1 || s.UndeliveredNeeds {
		t.Errorf("undelivered: %q, %d files, %t", s.Undelivered, s.UndeliveredFiles, s.UndeliveredNeeds)
	}
}

// What a gate writes and commits is no work: it is not delivered, no progress of the next
// iteration, and not in its way. What git ignores stays, as a cache does.
func TestWhatAGateWritesIsNoWork(t *testing.T) {
	t.Parallel()
	for _, onBase := range []bool{false, true} {
		w := privateWorld(t, committed("a.txt", "one")+committed("b.txt", "two"))
		w.write("repo/.gitignore", "cache\n")
		w.commit("second")
		w.gate("build", "test ! -e out && echo x >out && echo x >>cache && git add out && git commit -qm gate")
		h := w.within()
		h.opts.Plan.OnBase = onBase
		h.start()
		w.holds(loop.Completed, "1.1 success", "2.1 success")
		_, records, _ := w.stored()
		if r := records[1]; !slices.Equal(r.Files, []string{"b.txt"}) || r.Commits != 1 {
			t.Errorf("the second iteration changed %q, with %d commits", records[1].Files, records[1].Commits)
		}
		if got := w.subjects("main"); got != "two one second first" {
			t.Errorf("the branch has %q", got)
		}
		if status := w.git("status", "--porcelain"); status != "" || w.read("repo/a.txt") != "one\n" {
			t.Errorf("a.txt is %q, git status says\n%s", w.read("repo/a.txt"), status)
		}
		if want := map[bool]string{false: "x\nx\n", true: "x\nx\nx\n"}[onBase]; w.read("state/workspaces/run-build/cache") != want {
			t.Errorf("what is ignored is %q", w.read("state/workspaces/run-build/cache"))
		}
	}
}

// A person works on while the agent does. Each value that the branch ever gets is one that
// was verified, and nothing of the person's is lost.
func TestAPersonWorksMeanwhile(t *testing.T) {
	t.Parallel()
	// The first iteration makes a commit, the second a file.
	turns := committed("a.txt", "one") + `
  - - write: {path: b.txt, content: "b\n"}
`
	for name, c := range map[string]struct {
		person func(w *world) // while the first iteration runs
		status loop.Status
		why    string // how it begins
		branch string // commits of main, at the end
		files  string // git status of the checkout
		holds  func(w *world) bool
	}{
		"edits another file": {
			person: func(w *world) { w.write("repo/kept.txt", "edited\n") },
			status: loop.Completed, branch: "one first", files: " M kept.txt\n?? b.txt",
			holds: func(w *world) bool {
				return w.read("repo/kept.txt") == "edited\n" && w.read("state/workspaces/run-build/kept.txt") == "edited\n"
			},
		},
		"writes the same file": {
			person: func(w *world) { w.write("repo/a.txt", "mine\n") },
			status: loop.Paused, why: `you and the agent both changed "a.txt"; choose first what stays: pawl settle `, branch: "first", files: "?? a.txt",
			holds: func(w *world) bool {
				return w.read("repo/a.txt") == "mine\n" && w.setup().UndeliveredNeeds && w.setup().Choose
			},
		},
		"commits": {
			person: func(w *world) {
				w.write("repo/other.txt", "other\n")
				w.commit("mine")
			},
			status: loop.Completed, branch: "one mine first", files: "?? b.txt",
			holds: func(w *world) bool { return w.read("repo/a.txt") == "one\n" && w.read("repo/other.txt") == "other\n" },
		},
		"commits what is red together": {
			person: func(w *world) {
				w.write("repo/red", "")
				w.commit("mine")
			},
			status: loop.Exhausted, branch: "mine first", files: "",
			holds: func(w *world) bool {
				return w.read("repo/a.txt") == "" && w.setup().Undelivered == "it is not verified"
			},
		},
		"switches to another branch": {
			person: func(w *world) { w.git("switch", "-qc", "feature") },
			status: loop.Paused, why: "the work began on main, and feature is checked out now; apply it to what is checked out now: pawl apply ",
			branch: "first", files: "",
			holds: func(w *world) bool { return w.subjects("feature") == "first" && w.read("repo/a.txt") == "" },
		},
		"amends the commit that it began with": {
			person: func(w *world) { w.git("commit", "-q", "--amend", "-m", "better") },
			status: loop.Paused, why: "main was reset, rebased or amended meanwhile; ", branch: "better", files: "",
			holds: func(w *world) bool { return w.read("repo/a.txt") == "" },
		},
		"resets": {
			person: func(w *world) { w.git("reset", "-q", "--hard", "HEAD~1") },
			status: loop.Paused, why: "main was reset, rebased or amended meanwhile; ", branch: "root", files: "",
			holds: func(w *world) bool { return w.read("repo/a.txt") == "" },
		},
		"stages another file": {
			person: func(w *world) {
				w.write("repo/kept.txt", "staged\n")
				w.git("add", "kept.txt")
			},
			status: loop.Completed, branch: "one first", files: "M  kept.txt\n?? b.txt",
			holds: func(w *world) bool { return w.git("diff", "--cached", "--name-only") == "kept.txt" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := privateWorld(t, turns)
			if name == "resets" {
				w.git("commit", "-q", "--amend", "-m", "root")
				w.write("repo/more.txt", "x\n")
				w.commit("first")
			}
			h := w.within()
			h.on["agent session"] = func() { c.person(w) }
			d := h.start()
			if s := d.State(); s.Status != c.status || !strings.HasPrefix(s.Why, c.why) {
				t.Errorf("%s (%s), want %s (%s); %q", s.Status, s.Why, c.status, c.why, h.lines)
			}
			if got := w.subjects("main"); got != c.branch {
				t.Errorf("the branch has %q, want %q", got, c.branch)
			}
			if got := w.git("status", "--porcelain"); got != c.files {
				t.Errorf("git status says\n%s\nwant\n%s", got, c.files)
			}
			if !c.holds(w) {
				t.Errorf("something of the person's is lost: %q, set-up %+v", h.lines, w.setup())
			}
		})
	}
}

// A run that rests because another branch is there goes on once the person is back.
func TestAPersonComesBack(t *testing.T) {
	t.Parallel()
	w := privateWorld(t, committed("a.txt", "one")+committed("b.txt", "two"))
	h := w.within()
	h.on["agent session"] = func() { w.git("switch", "-qc", "feature") }
	h.start()
	w.holds(loop.Paused, "1.1 success")
	w.git("switch", "-q", "main")
	h.resume(loop.Event{Kind: loop.Resumed})
	w.holds(loop.Completed, "1.1 success", "2.1 success")
	if got := w.subjects("main") + ", " + w.subjects("feature"); got != "two one first, first" {
		t.Errorf("the branches have %q", got)
	}
}

// An agent may do with the .git of its clone what it likes: the person's is untouched, and
// the work goes on.
func TestAnAgentRuinsItsGit(t *testing.T) {
	t.Parallel()
	for _, deed := range []string{
		"delete: .git", `write: {path: .git/HEAD, content: "nonsense"}`, `write: {path: .git/config, content: "[nonsense"}`,
		`write: {path: .git/hooks/pre-commit, content: "#!/bin/sh\nexit 1", mode: "755"}`, `write: {path: .git/packed-refs, content: "nonsense"}`,
	} {
		w := privateWorld(t, `
  - - write: {path: a.txt, content: "one\n"}
    - `+deed+`
`+committed("b.txt", "two"))
		before := w.git("rev-parse", "HEAD") + w.read("repo/.git/config") + w.read("repo/.git/HEAD")
		h := w.within()
		h.start()
		_, records, s := w.stored()
		if len(records) != 2 || records[0].Outcome != loop.Success || w.read("repo/a.txt") != "one\n" {
			t.Errorf("%s: %s (%s) after %q, %q", deed, s.Status, s.Why, w.told(), h.lines)
		}
		if got := w.git("fsck", "--strict"); got != "" || w.git("rev-list", "--count", "main") == "0" {
			t.Errorf("%s: fsck says %s", deed, got)
		}
		if now := w.git("rev-parse", "main~"+map[bool]string{true: "1", false: "0"}[w.subjects("main") != "first"]) + w.read("repo/.git/config") + w.read("repo/.git/HEAD"); now != before {
			t.Errorf("%s: the person's .git is another:\n%s\nwas\n%s", deed, now, before)
		}
	}
}

// Going back to the best snapshot never goes behind what was delivered.
func TestRewindStaysAfterWhatWasDelivered(t *testing.T) {
	t.Parallel()
	w := privateWorld(t, committed("a.txt", "one")+committed("a.txt", "two")+committed("red", "three")+committed("b.txt", "four"))
	w.o.Policy.MaxIterations = 4
	w.o.Policy.Strategies = []strategy.Strategy{{Name: "back", Priority: 90, Rewind: true, Backoff: strategy.NoBackoff, Instruction: "Go back."}}
	w.o.Policy.Strategy = "back"
	h := w.within()
	h.on["iteration started 3"] = func() {
		w.write("repo/mine.txt", "mine\n")
		w.commit("mine")
	}
	h.start()
	w.holds(loop.Completed, "1.1 success", "2.1 success", "3.1 failed", "4.1 success")
	if got := w.subjects("main"); got != "four two mine one first" || w.read("repo/a.txt") != "one\ntwo\n" || w.read("repo/red") != "" {
		t.Errorf("the branch has %q, the file %q; %q", got, w.read("repo/a.txt"), h.lines)
	}
}

// A pawl that is killed when it has just delivered, or is about to, delivers once.
func TestKilledAroundADelivery(t *testing.T) {
	t.Parallel()
	for _, hold := range []string{"iteration ended 1.1", string(Delivered), "iteration started 2"} {
		w := privateWorld(t, committed("a.txt", "one")+committed("a.txt", "two"))
		w.o.Hold = hold
		p := w.start()
		p.await(hold)
		p.kill()
		w.resume().await("end completed")
		if got := w.subjects("main"); got != "two one first" || w.git("status", "--porcelain") != "" {
			t.Errorf("%s: the branch has %q, git status says %q", hold, got, w.git("status", "--porcelain"))
		}
		if s := w.setup(); s.Undelivered != "" {
			t.Errorf("%s: %+v", hold, s)
		}
	}
}

// Pawl is killed after the last iteration has ended, and before its work is delivered: who
// resumes the run, or starts the next one, has it delivered first.
func TestKilledBeforeTheLastDelivery(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"resume", "start"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			w := privateWorld(t, committed("a.txt", "one"))
			w.o.Policy.MaxIterations, w.o.Hold = 1, string(IterationEnded)
			p := w.start()
			p.await(w.o.Hold)
			p.kill()
			first := w.run()
			if run, _, _ := w.stored(); !storedrun.DiedUndelivered(run) || w.subjects("main") != "first" {
				t.Fatalf("it was not killed in time: %s, %q", run.Status, w.subjects("main"))
			}
			want := "one first"
			if next == "resume" {
				w.resume().await("error the run is completed")
			} else {
				w.o.Hold, want = "", "one one first" // an agent begins anew
				w.start().await("end ")
			}
			if got := w.subjects("main"); got != want {
				t.Errorf("the branch has %q", got)
			}
			w.know(first)
			if run, _, _ := w.stored(); storedrun.DiedUndelivered(run) || run.EndedAt.IsZero() || len(w.setup().Deliveries) != 1 {
				t.Errorf("it ended at %s, with %+v", run.EndedAt, w.setup())
			}
		})
	}
}

// Pawl is killed right after a delivery, before it noted that: who goes on notes it, and a
// rollback takes it back.
func TestKilledAfterADelivery(t *testing.T) {
	t.Parallel()
	w := privateWorld(t, committed("a.txt", "one")+committed("b.txt", "two"))
	w.o.Policy.MaxIterations, w.o.Hold = 2, string(Delivered)
	p := w.start()
	p.await(w.o.Hold)
	p.kill()
	if n := len(w.setup().Deliveries); n != 0 || w.subjects("main") != "one first" {
		t.Fatalf("it was not killed in time: %d, %q", n, w.subjects("main"))
	}
	w.resume().await("end ")
	if s := w.setup(); len(s.Deliveries) != 2 || s.Deliveries[0].Iteration != 1 || s.Deliveries[1].Iteration != 2 {
		t.Errorf("deliveries %+v", s.Deliveries)
	}
}
