package merge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// upstream gives the rig a remote, and a clone of it for a colleague.
func (r *rig) upstream() (bare, colleague string) {
	r.t.Helper()
	bare = filepath.Join(folder(r.t), "up.git")
	gittest.Git(r.t, r.dir, "clone", "-q", "--bare", r.dir, bare)
	r.git("remote", "add", "origin", bare)
	r.git("fetch", "-q", "origin")
	r.git("branch", "-q", "--set-upstream-to=origin/main", "main")
	colleague = folder(r.t)
	gittest.Git(r.t, colleague, "clone", "-q", bare, ".")
	return bare, colleague
}

func (r *rig) colleagueCommits(dir, name string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	gittest.Git(r.t, dir, "add", ".")
	gittest.Git(r.t, dir, "commit", "-qm", name)
	gittest.Git(r.t, dir, "push", "-q")
}

func TestARemoteIsFetchedBeforeAndPushedAfter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, colleague := r.upstream()
	r.o.Policy.Push = true
	r.colleagueCommits(colleague, "theirs.txt")
	r.write("b.txt", "mine, not committed\n")
	id := r.land("a.txt", "landed\n")
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.left())
	}
	if got := r.read("theirs.txt"); got != "theirs.txt\n" {
		t.Errorf("the colleague's file is %q", got)
	}
	if got := r.git("status", "--porcelain"); got != " M b.txt" {
		t.Errorf("the checkout: %q", got)
	}
	if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
		t.Errorf("the target is at %s, the remote at %s", here, there)
	}
}

func TestADivergedRemotePausesAndAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, colleague := r.upstream()
	r.colleagueCommits(colleague, "theirs.txt")
	r.commitHere()
	id := r.land("a.txt", "landed\n")
	if n := r.said(queue.NoteStopped); len(n) != 1 || !strings.Contains(n[0], "each have commits of their own") {
		t.Errorf("told %q", n)
	}
	if r.status(id) == board.Done {
		t.Error("it landed")
	}
	q := r.queue()
	if err := q.Ask(t.Context(), queue.Ask{Wish: queue.WishResume}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if s := r.status(id); s != board.Done {
		t.Errorf("after the resume it is %s: %v", s, r.left())
	}
}

// A remote whose branch was force-pushed is not merged: what was taken out of it would come
// back. The queue waits for a person, says so once, and goes on when one has chosen.
func TestAForcedRemoteWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for name, force := range map[string]func(r *rig, dir string){
		"to an unrelated history": func(r *rig, dir string) {
			gittest.Git(r.t, dir, "checkout", "-q", "--orphan", "new")
			gittest.Git(r.t, dir, "commit", "-qm", "new", "--allow-empty")
		},
		"to an earlier commit": func(r *rig, dir string) { gittest.Git(r.t, dir, "reset", "-q", "--hard", "HEAD~1") },
		"to another one of that base": func(r *rig, dir string) {
			gittest.Git(r.t, dir, "reset", "-q", "--hard", "HEAD~1")
			gittest.Git(r.t, dir, "commit", "-qm", "other", "--allow-empty")
		},
	} {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, kept %t", name, keep), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				bare, colleague := r.upstream()
				r.o.Policy.Push = true
				first := r.land("first.txt", "landed\n")
				gittest.Git(t, colleague, "pull", "-q")
				r.colleagueCommits(colleague, "secret.txt")
				second := r.land("second.txt", "landed\n")
				gittest.Git(t, colleague, "pull", "-q")
				here := r.git("rev-parse", "main")
				force(r, colleague)
				gittest.Git(t, colleague, "push", "-qf", "origin", "HEAD:main")
				forced := gittest.Git(t, bare, "rev-parse", "main")

				third := r.land("third.txt", "landed\n")
				if now := gittest.Git(t, bare, "rev-parse", "main"); now != forced {
					t.Fatalf("the remote is at %s, not %s", now, forced)
				}
				gittest.Git(t, colleague, "commit", "-qm", "on it", "--allow-empty")
				gittest.Git(t, colleague, "push", "-q", "origin", "HEAD:main") // it is no other case for that
				there := gittest.Git(t, bare, "rev-parse", "main")
				q := r.queue()
				r.drain(q)
				if now := r.git("rev-parse", "main"); now != here || r.status(third) == board.Done {
					t.Errorf("the target is at %s, not %s; the task is %s", now, here, r.status(third))
				}
				if n := r.said(queue.NoteStopped); len(n) < 1 || len(n) > 2 || !strings.Contains(n[0], "was force-pushed") {
					t.Errorf("told %q", n)
				}
				if keep {
					if err := q.Ask(t.Context(), queue.Ask{Wish: queue.WishResume}); err != nil {
						t.Fatal(err)
					}
				} else {
					r.git("fetch", "-q", "origin", "main")
					r.git("reset", "-q", "--keep", "FETCH_HEAD")
				}
				r.drain(q)
				want := board.Done
				if !keep && strings.Contains(name, "unrelated") {
					want = board.Blocked // it cannot be merged there
				}
				if s := r.status(third); s != want {
					t.Errorf("then it is %s: %v", s, r.left())
				}
				commits := r.git("rev-list", "main")
				if strings.Contains(commits, there) == keep || keep && !strings.Contains(commits, here) {
					t.Errorf("the target has not what was chosen: %s", commits)
				}
				if r.status(first) != board.Done || r.status(second) != board.Done {
					t.Error("work that had landed is not done any more")
				}
			})
		}
	}
}

// What somebody pushed between the fetch and the push is brought together with the landing, verified, and pushed:
// nobody is asked, and nothing is left here only. A person may have a commit here that is at no remote.
func TestAPushThatSomebodyWasQuickerWith(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"before sent", "after ref"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bare, colleague := r.upstream()
			r.o.Policy.Push = true
			r.o.Gates = gates("! test -f bad.txt")
			if at == "after ref" {
				r.commitHere()
			}
			once := sync.OnceFunc(func() { r.colleagueCommits(colleague, "theirs.txt") })
			r.o.point = func(name string) {
				if name == at {
					once()
				}
			}
			id := r.land("a.txt", "landed\n")
			if s := r.status(id); s != board.Done {
				t.Errorf("it is %s", s)
			}
			if n := r.said(queue.NoteStopped); len(n) > 0 {
				t.Errorf("told %q", n)
			}
			if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
				t.Errorf("the target is at %s, the remote at %s", here, there)
			}
			if a, theirs := r.read("a.txt"), r.read("theirs.txt"); a != "landed\n" || theirs != "theirs.txt\n" {
				t.Errorf("the files are %q and %q", a, theirs)
			}
		})
	}
}

// commitHere makes a commit of the person's, which is at no remote.
func (r *rig) commitHere() {
	r.t.Helper()
	r.write("own.txt", "own\n")
	r.git("add", "own.txt")
	r.git("commit", "-qm", "own")
}

// What cannot be brought together, or is red then, is for a person; the landing
// stays here, and is known not to be pushed.
func TestAPushThatCannotBeBroughtTogether(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"they conflict in a.txt": "a.txt", "together they are red": "bad.txt"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bare, colleague := r.upstream()
			r.o.Policy.Push = true
			r.o.Gates = gates("! test -f bad.txt")
			r.o.point = func(name string) {
				if name == "after ref" {
					r.colleagueCommits(colleague, file)
				}
			}
			there := r.git("rev-parse", "main")
			r.commitHere()
			id := r.land("a.txt", "landed\n")
			if s := r.status(id); s != board.Done {
				t.Errorf("it is %s", s)
			}
			if n := r.said(queue.NoteStopped); len(n) != 1 || !strings.Contains(n[0], name) {
				t.Errorf("told %q", n)
			}
			row, _, err := r.store.Queue(t.Context(), "refs/heads/main")
			if err != nil || row.State.Unpushed == nil {
				t.Errorf("it is not known that it is not pushed: %v", err)
			}
			if now := gittest.Git(t, bare, "rev-parse", "main~1"); now != there {
				t.Errorf("something else was pushed")
			}
		})
	}
}

func TestARemoteThatIsNotThereIsAWarning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.upstream()
	r.o.Policy.Push = true
	if err := os.RemoveAll(bare); err != nil {
		t.Fatal(err)
	}
	id := r.land("a.txt", "landed\n")
	if s := r.status(id); s != board.Done {
		t.Errorf("it is %s: %v", s, r.left())
	}
	if n := r.said(queue.NoteWarning); len(n) != 2 || !strings.Contains(n[0], "continues with the local branch") || !strings.Contains(n[1], "was not pushed") {
		t.Errorf("told %q", n)
	}
}

// Work that another machine did comes from the remote: where it is queued, and where
// it lands, which may be yet another one. So it does not matter whose commit is missing.
func TestWorkOfAnotherMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, colleague := r.upstream()
	draft := board.Draft{Case: board.Case{Type: board.Task, Title: "theirs"}}
	cases, err := r.store.AddCases(t.Context(), []board.Draft{draft}, board.Person, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id := cases[0].ID
	gittest.Git(t, colleague, "checkout", "-q", "-b", "work")
	if err := os.WriteFile(filepath.Join(colleague, "theirs.txt"), []byte("theirs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, colleague, "add", ".")
	gittest.Git(t, colleague, "commit", "-qm", "theirs")
	commit := gittest.Git(t, colleague, "rev-parse", "HEAD")
	r.o.Travel = "origin"
	q := r.queue()
	if err := q.Add(t.Context(), Entry{ID: id, Commit: commit}); err == nil {
		t.Fatal("a commit was queued that is nowhere")
	}
	gittest.Git(t, colleague, "push", "-q", "origin", commit+":"+git.WorkRef(id, commit))
	gittest.Git(t, bare, "update-ref", git.WorkRef(id, strings.Repeat("1", 40)), commit)
	if err := q.Add(t.Context(), Entry{ID: id, Commit: strings.Repeat("1", 40)}); err == nil {
		t.Fatal("a commit was queued under the name of another one")
	}
	r.add(q, id, commit, "theirs")
	r.git("update-ref", "-d", "refs/pawl/queue/"+id)
	r.git("prune", "--expire=now") // as in a clone where it was never
	tip := r.git("rev-parse", "main")
	at, entry := place{tip: tip, head: tip, tree: r.git("rev-parse", "main^{tree}")}, queue.Entry{ID: id, Commit: commit}
	if err := os.Rename(bare, bare+".away"); err != nil {
		t.Fatal(err)
	}
	if m, _, err := q.mergeEntry(t.Context(), at, &entry, 1); err == nil || m.Lost != "" {
		t.Errorf("while the remote is away its work is lost for good: %q (%v)", m.Lost, err)
	}
	if err := os.Rename(bare+".away", bare); err != nil {
		t.Fatal(err)
	}
	missing := queue.Entry{ID: id, Commit: strings.Repeat("2", 40)}
	if m, _, err := q.mergeEntry(t.Context(), at, &missing, 1); err != nil || m.Lost == "" {
		t.Errorf("a commit that the remote does not have is waited for: %q (%v)", m.Lost, err)
	}
	r.drain(q)
	if s := r.status(id); s != board.Done || r.read("theirs.txt") != "theirs\n" {
		t.Errorf("it is %s: %v", s, r.left())
	}
}

// The target goes where the work travels when it follows no branch. Where there is
// nothing to push to, that is said.
func TestWhereATargetIsPushed(t *testing.T) {
	t.Parallel()
	for name, travel := range map[string]string{"by the work's remote": "upstream", "nowhere": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bare, _ := r.upstream()
			r.git("remote", "rename", "origin", "upstream")
			r.git("branch", "-q", "--unset-upstream", "main")
			r.o.Travel, r.o.Policy.Push = travel, true
			before := gittest.Git(t, bare, "rev-parse", "main")
			id := r.land("a.txt", "landed\n")
			if s := r.status(id); s != board.Done {
				t.Fatalf("it is %s: %v", s, r.left())
			}
			here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main")
			row, _, err := r.store.Queue(t.Context(), "refs/heads/main")
			if err != nil {
				t.Fatal(err)
			}
			if travel != "" {
				if here != there || row.State.Unpushed != nil {
					t.Errorf("the target is at %s, the remote at %s: %+v", here, there, row.State.Unpushed)
				}
				return
			}
			if there != before || !row.State.Unpushed.Stuck() || !strings.Contains(row.State.Unpushed.Why, "has no remote") {
				t.Errorf("it is not said that nothing was pushed: %+v", row.State.Unpushed)
			}
		})
	}
}

// Where several machines work, what the remote does not take does not land: it would
// be on this machine only.
func TestNothingLandsUnpushedAmongMachines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ hook, why string }{
		"refused":    {"echo main is protected; exit 1", "main is protected"},
		"in trouble": {"echo disk full; exit 1", "disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bare, _ := r.upstream()
			r.o.Travel, r.o.Policy.Push = "origin", true
			hook := filepath.Join(bare, "hooks", "pre-receive")
			if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+tt.hook+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			before := r.git("rev-parse", "main")
			id, commit := r.task("One", before, "a.txt", "landed\n")
			q := r.queue()
			r.add(q, id, commit, "One")
			err := q.Drain(t.Context())
			told := strings.Join(append(r.said(queue.NoteWaiting), r.said(queue.NoteTrouble)...), "\n")
			if r.git("rev-parse", "main") != before || r.status(id) == board.Done || !strings.Contains(told, tt.why) {
				t.Errorf("it is %s (%v); told %q", r.status(id), err, told)
			}
			if strings.Contains(told, "push it yourself") { // it is on no branch here
				t.Errorf("told %q", told)
			}
			if err := os.Remove(hook); err != nil {
				t.Fatal(err)
			}
			r.drain(r.queue())
			if s := r.status(id); s != board.Done {
				t.Errorf("then it is %s: %v", s, r.left())
			}
			if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
				t.Errorf("the target is at %s, the remote at %s", here, there)
			}
		})
	}
}

// What somebody pushed just before a landing comes first, also where machines share the
// work.
func TestALandingThatSomebodyWasQuickerWith(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, colleague := r.among()
	r.o.Gates = gates("! test -f bad.txt")
	once := sync.OnceFunc(func() { r.colleagueCommits(colleague, "theirs.txt") })
	r.o.point = func(name string) {
		if name == "before sent" {
			once()
		}
	}
	id := r.land("a.txt", "landed\n")
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s: %v", s, r.left())
	}
	here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main")
	row, _, err := r.store.Queue(t.Context(), "refs/heads/main")
	if err != nil || here != there || row.State.Unpushed != nil || r.read("theirs.txt") != "theirs.txt\n" {
		t.Errorf("the target is at %s, the remote at %s: %+v, %v", here, there, row.State.Unpushed, err)
	}
}
