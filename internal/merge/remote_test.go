package merge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/gittest"
	"github.com/pawl-dev/pawl/internal/queue"
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
	r.write("own.txt", "own\n")
	r.git("add", ".")
	r.git("commit", "-qm", "own")
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

// What somebody pushed between the fetch and the push is merged with the landing,
// verified, and pushed: nobody is asked, and nothing is left here only.
func TestAPushThatSomebodyWasQuickerWith(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, colleague := r.upstream()
	r.o.Policy.Push = true
	r.o.Gates = gates("! test -f bad.txt")
	once := sync.OnceFunc(func() { r.colleagueCommits(colleague, "theirs.txt") })
	r.o.point = func(name string) {
		if name == "after ref" {
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
	if n := r.said(queue.NoteWarning); len(n) != 2 || !strings.Contains(n[0], "goes on with what is here") || !strings.Contains(n[1], "was not pushed") {
		t.Errorf("told %q", n)
	}
}

// gh is a host's program of three commands, whose pull requests are files.
const gh = `#!/bin/sh
case "$2" in
list) [ -f "$HOST/pr" ] && printf '[{"url":"https://host.test/1","state":"%s","mergeCommit":{"oid":"%s"}}]' "$(cat "$HOST/pr")" "$(cat "$HOST/oid" 2>/dev/null)" || printf '[]' ;;
create) echo "$*" >> "$HOST/created"; printf OPEN > "$HOST/pr"; echo "https://host.test/1" ;;
*) exit 2 ;;
esac
`

func TestPullRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.upstream()
	host, bin := folder(t), folder(t)
	if err := os.WriteFile(filepath.Join(bin, "gh"), []byte(gh), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	r.o.Policy.Propose = true
	r.o.HostEnviron = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOST="+host)
	r.o.Gates = gates("test -f new.txt")
	base := r.git("rev-parse", "main")
	id := r.land("new.txt", "new\n")
	equal(t, "left", r.left(), []string{id + " proposed: its pull request is open: https://host.test/1"})
	if s := r.status(id); s != board.Review || r.git("rev-parse", "main") != base {
		t.Errorf("the task is %s, the target at %s", s, r.git("rev-parse", "main"))
	}
	proposed := gittest.Git(t, bare, "rev-parse", "pawl/"+id)
	if got := string(readFile(t, filepath.Join(host, "created"))); !strings.Contains(got, "--head pawl/"+id+" --base main --title "+id+": Change") {
		t.Errorf("gh was told %q", got)
	}
	// Open still, then merged on the host, with a commit of the host's.
	q := r.queue()
	look := func() {
		t.Helper()
		row, _, err := r.store.Queue(t.Context(), q.target)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := q.review(t.Context(), &row.State, queue.Command{IDs: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		ev.For = row.State.Seq
		state, _ := queue.Step(atReview(row.State, id), ev)
		row.N++
		row.Owner = r.o.Owner
		if _, err := r.store.TakeQueue(t.Context(), q.target, r.o.Owner, time0(), r.o.Alive); err != nil {
			t.Fatal(err)
		}
		if err := r.store.CommitQueue(t.Context(), stepOf(row, state)); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if s := r.status(id); s != board.Review {
		t.Errorf("an open one is %s", s)
	}
	merged := gittest.Git(t, bare, "commit-tree", proposed+"^{tree}", "-p", base, "-p", proposed, "-m", "Merge pull request 1")
	gittest.Git(t, bare, "update-ref", "refs/heads/main", merged)
	for name, text := range map[string]string{"pr": "MERGED", "oid": merged} {
		if err := os.WriteFile(filepath.Join(host, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	look()
	if s := r.status(id); s != board.Done {
		t.Errorf("a merged one is %s", s)
	}
	if got := r.git("rev-parse", "main"); got != merged || r.read("new.txt") != "new\n" {
		t.Errorf("the target here is at %s", got)
	}
}

func TestPullRequestsNeedTheProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.upstream()
	r.o.Policy.Propose = true
	r.o.HostEnviron = []string{"PATH=" + folder(t)}
	if err := CanPropose(t.Context(), &r.o); !errors.Is(err, ErrNoProgram) {
		t.Errorf("before: %v", err)
	}
	q := r.queue()
	id, commit := r.task("Change", r.git("rev-parse", "main"), "new.txt", "new\n")
	r.add(q, id, commit, "Change")
	if err := q.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "gh is not installed") {
		t.Errorf("got %v", err)
	}
	if n := r.said(queue.NoteTrouble); len(n) == 0 || !strings.Contains(n[0], "gh is not installed") {
		t.Errorf("told %q", n)
	}
}
