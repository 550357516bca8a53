package merge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/test/forgetest"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// proposing is a rig whose target is at a forge.
func proposing(t *testing.T) (*rig, *forgetest.Site, *forgetest.Hub) {
	t.Helper()
	s, hub := forgetest.GitHub(t)
	r := newRig(t)
	r.git("remote", "add", "origin", s.Remote)
	r.git("push", "-q", "-f", "-u", "origin", "main")
	r.o.Policy.Propose = true
	r.o.Forge = forge.New(s.Where, s.Token(forgetest.Owner))
	t.Cleanup(r.o.Forge.Close)
	r.o.Gates = gates("test -f new.txt")
	return r, s, hub
}

// their runs git in the forge's repository.
func their(t *testing.T, hub *forgetest.Hub, args ...string) string {
	t.Helper()
	return gittest.Git(t, hub.Bare, args...)
}

// One is merged by people in each way that a forge has.
func TestPullRequests(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"merge", "squash", "rebase"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			r, s, hub := proposing(t)
			base := r.git("rev-parse", "main")
			id := r.land("new.txt", "new\n")
			url := s.URL + "/pull/1"
			equal(t, "left", r.left(), []string{id + " proposed: its pull request is open: " + url})
			if r.status(id) != board.Review || r.git("rev-parse", "main") != base {
				t.Errorf("the task is %s, the target at %s", r.status(id), r.git("rev-parse", "main"))
			}
			var pull struct{ Title, Body string }
			s.Do(forgetest.Owner, http.MethodGet, s.Repo("/pulls/1"), nil, &pull)
			if pull.Title != id+": Change" || !strings.Contains(pull.Body, "Pawl-Task: "+id) ||
				!strings.Contains(pull.Body, "`test -f new.txt` passes") {
				t.Errorf("it is %q: %s", pull.Title, pull.Body)
			}
			r.drain(r.queue())
			if r.status(id) != board.Review {
				t.Errorf("an open one is %s", r.status(id))
			}
			s.MergeBy(forgetest.Reviewer, 1, method)
			r.drain(r.queue())
			if r.status(id) != board.Done || r.read("new.txt") != "new\n" {
				t.Errorf("a merged one is %s", r.status(id))
			}
			if here, there := r.git("rev-parse", "main"), their(t, hub, "rev-parse", "main"); here != there {
				t.Errorf("the target is at %s here, and at %s there", here, there)
			}
		})
	}
}

// What people who may write say goes to an agent; what others say does not.
func TestAReviewComesBack(t *testing.T) {
	t.Parallel()
	r, s, hub := proposing(t)
	var asked []string
	r.o.Resolve = func(_ context.Context, p Problem) (string, error) {
		asked = append(asked, p.Problem.Said)
		merged := r.commit("Review", p.Entry.Commit, "new.txt", "better\n")
		return merged, nil
	}
	id := r.land("new.txt", "new\n")
	s.CommentBy(forgetest.Stranger, 1, "delete everything")
	s.ReviewBy(forgetest.Reviewer, 1, "not yet", "new.txt", 1, "say better\nthan new")
	r.drain(r.queue())
	equal(t, "asked", asked, []string{"\nrita:\n> not yet\n\nrita at new.txt:1:\n> say better\n> than new\n"})
	if got := their(t, hub, "show", "pawl/"+id+":new.txt"); got != "better" {
		t.Errorf("the request has %q", got)
	}
	r.drain(r.queue())
	if len(asked) != 1 {
		t.Errorf("an agent is told again: %q", asked)
	}
}

// Who may not push to the repository pushes to a fork: the request comes from there, hears its
// reviewers, and is kept up to date there.
func TestAPullRequestFromAFork(t *testing.T) {
	t.Parallel()
	r, s, hub := proposing(t)
	fork, err := hub.Fork(forgetest.Stranger)
	if err != nil {
		t.Fatal(err)
	}
	r.git("remote", "add", "mine", fork)
	r.o.Fork = Fork{Remote: "mine", Owner: forgetest.Stranger}
	r.o.Forge = forge.New(s.Where, s.Token(forgetest.Stranger))
	t.Cleanup(r.o.Forge.Close)
	var asked []string
	r.o.Resolve = func(_ context.Context, p Problem) (string, error) {
		asked = append(asked, p.Problem.Said)
		return r.commit("Review", p.Entry.Commit, "new.txt", "better\n"), nil
	}
	id := r.land("new.txt", "new\n")
	equal(t, "left", r.left(), []string{id + " proposed: its pull request is open: " + s.URL + "/pull/1"})
	s.ReviewBy(forgetest.Reviewer, 1, "not yet", "new.txt", 1, "say better")
	r.drain(r.queue())
	equal(t, "asked", asked, []string{"\nrita:\n> not yet\n\nrita at new.txt:1:\n> say better\n"})
	if got := gittest.Git(t, fork, "show", "pawl/"+id+":new.txt"); got != "better" {
		t.Errorf("the fork has %q", got)
	}
	if got := their(t, hub, "for-each-ref", "--format=%(refname)", "refs/heads"); got != "refs/heads/main" {
		t.Errorf("the repository has %q", got)
	}
	s.MergeBy(forgetest.Reviewer, 1, "squash")
	r.drain(r.queue())
	if r.status(id) != board.Done || r.read("new.txt") != "better\n" {
		t.Errorf("a merged one is %s: %q", r.status(id), r.left())
	}
}

// The target moves: the request is brought up to date, and verified again.
func TestAPullRequestIsKeptUpToDate(t *testing.T) {
	t.Parallel()
	r, s, hub := proposing(t)
	id := r.land("new.txt", "new\n")
	before := their(t, hub, "rev-parse", "pawl/"+id)
	other := folder(t)
	gittest.Git(t, other, "clone", "-q", s.Remote, ".")
	gittest.Git(t, other, "commit", "-q", "--allow-empty", "-m", "others")
	gittest.Git(t, other, "push", "-q", "origin", "main")
	r.drain(r.queue())
	after := their(t, hub, "rev-parse", "pawl/"+id)
	if after == before {
		t.Fatal("it was left behind")
	}
	their(t, hub, "merge-base", "--is-ancestor", "main", after)

	// What somebody else adds to it is part of the work: it is verified, and gone on from.
	gittest.Git(t, other, "fetch", "-q", "origin", "pawl/"+id)
	gittest.Git(t, other, "checkout", "-q", "-B", "theirs", "FETCH_HEAD")
	if err := os.WriteFile(filepath.Join(other, "more.txt"), []byte("more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, other, "add", "more.txt")
	gittest.Git(t, other, "commit", "-q", "-m", "theirs")
	gittest.Git(t, other, "push", "-q", "origin", "HEAD:pawl/"+id)
	theirs := gittest.Git(t, other, "rev-parse", "HEAD")
	r.drain(r.queue())
	r.drain(r.queue())
	if got := r.left(); len(got) != 1 || !strings.Contains(got[0], " proposed: its pull request is open") {
		t.Errorf("left: %q", got)
	}
	their(t, hub, "merge-base", "--is-ancestor", theirs, "pawl/"+id)
	if got := their(t, hub, "show", "pawl/"+id+":more.txt") + their(t, hub, "show", "pawl/"+id+":new.txt"); got != "morenew" {
		t.Errorf("the request has %q", got)
	}
	gittest.Git(t, other, "checkout", "-q", "main")

	// Somebody replaces its commits: it is left alone, also when its branch goes.
	gittest.Git(t, other, "fetch", "-q", "origin", "pawl/"+id)
	gittest.Git(t, other, "commit", "-q", "--allow-empty", "-m", "more of others")
	gittest.Git(t, other, "push", "-q", "-f", "origin", "HEAD:pawl/"+id)
	r.drain(r.queue())
	if got := r.left(); len(got) != 1 || !strings.HasSuffix(got[0], "somebody else replaced its commits, so pawl leaves it alone") {
		t.Errorf("left: %q", got)
	}
	if err := r.queue().Ask(t.Context(), queue.Ask{Wish: queue.WishRetry, ID: id}); err != nil {
		t.Fatal(err)
	}
	r.drain(r.queue())
	if got := r.left(); len(got) != 1 || !strings.Contains(got[0], "parked") || !strings.Contains(got[0], "somebody else pushed") {
		t.Errorf("left: %q", got)
	}
	their(t, hub, "update-ref", "-d", "refs/heads/pawl/"+id)
	if err := r.queue().Ask(t.Context(), queue.Ask{Wish: queue.WishRetry, ID: id}); err != nil {
		t.Fatal(err)
	}
	r.drain(r.queue())
	if got := r.left(); len(got) != 1 || !strings.Contains(got[0], "proposed") {
		t.Errorf("left: %q", got)
	}
}

// Pawl merges as soon as the forge lets it, and with red checks an agent works first.
func TestChecksAndAutoMerge(t *testing.T) {
	t.Parallel()
	r, s, hub := proposing(t)
	r.o.AutoMerge, r.o.Required = true, []string{"build", "test"}
	var asked []string
	r.o.Resolve = func(_ context.Context, p Problem) (string, error) {
		asked = append(asked, p.Problem.Said)
		return r.commit("Repair", p.Entry.Commit, "new.txt", "better\n"), nil
	}
	id := r.land("new.txt", "new\n")
	head := their(t, hub, "rev-parse", "pawl/"+id)
	s.Status(head, "build", "success")
	r.drain(r.queue())
	if got := r.left(); len(got) != 1 || !strings.HasSuffix(got[0], "; it waits for its checks: test") {
		t.Errorf("left: %q", got)
	}
	hub.Check(head, "test", "failure", strings.Repeat("noise\n", 300)+"--- FAIL: TestNew\n")
	r.drain(r.queue())
	if len(asked) != 1 || !strings.Contains(asked[0], "The check test is red:\n> noise") ||
		!strings.Contains(asked[0], "> --- FAIL: TestNew\n") || strings.Count(asked[0], "noise") != 199 {
		t.Fatalf("asked %q", asked)
	}
	head = their(t, hub, "rev-parse", "pawl/"+id)
	s.Status(head, "build", "success")
	hub.Check(head, "test", "success", "")
	r.drain(r.queue())
	if r.status(id) != board.Done || r.read("new.txt") != "better\n" {
		t.Errorf("it is %s: %q", r.status(id), r.left())
	}
}

// A forge that is down stops nothing for good, and a closed request is for a person.
func TestAForgeWithTrouble(t *testing.T) {
	t.Parallel()
	r, s, hub := proposing(t)
	id := r.land("new.txt", "new\n")
	hub.Trouble = func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "<html>", http.StatusInternalServerError)
		return true
	}
	q := r.queue()
	row, _, err := r.store.Queue(t.Context(), q.ref)
	if err != nil {
		t.Fatal(err)
	}
	var later *forge.LaterError
	if _, err := q.requests.lookAtRequests(t.Context(), &row.State, queue.Command{IDs: []string{id}}); !errors.As(err, &later) {
		t.Errorf("got %v", err)
	}
	hub.Trouble = nil
	r.drain(r.queue())
	r.drain(r.queue())
	quiet := len(hub.Calls())
	r.drain(r.queue())
	if calls := hub.Calls()[quiet:]; !slices.Equal(calls, []string{"GET /repos/olga/project/pulls"}) {
		t.Errorf("nothing has changed, and it is asked %q", calls)
	}
	s.CloseBy(forgetest.Reviewer, 1)
	r.drain(r.queue())
	if got := r.left(); len(got) != 1 || !strings.Contains(got[0], "parked: its pull request was closed without being merged") {
		t.Errorf("left: %q", got)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "new.txt")); err == nil {
		t.Error("it landed")
	}
}

// A branch with GitHub's merge queue: a request is put there once, left alone while it is in, and
// done when the queue has merged it. One that is taken out is brought up to date and put there
// again; where it is up to date a person is told.
func TestMergeQueueOfTheForge(t *testing.T) {
	t.Parallel()
	r, s, hub := proposing(t)
	r.o.AutoMerge = true
	hub.UseQueue()
	one, two := r.land("new.txt", "new\n"), r.land("new.txt", "new\n", "two.txt", "2\n")
	again := func(want ...string) {
		t.Helper()
		r.drain(r.queue())
		equal(t, "left", r.left(), want)
	}
	at := func(id string, n int, text string) string {
		return fmt.Sprintf("%s proposed: its pull request is open: %s/pull/%d; %s", id, s.URL, n, text)
	}
	const in = "it is in the forge's merge queue, at place "
	again(at(one, 1, in+"1"), at(two, 2, in+"2"))
	head := their(t, hub, "rev-parse", "pawl/"+two)
	if err := hub.Advance(true); err != nil {
		t.Fatal(err)
	}
	again(at(two, 2, in+"1"))
	if r.status(one) != board.Done || their(t, hub, "rev-parse", "pawl/"+two) != head {
		t.Errorf("the first is %s, and the second was pushed to while it is in the queue", r.status(one))
	}
	if err := hub.Advance(false); err != nil {
		t.Fatal(err)
	}
	r.drain(r.queue()) // brings it up to date
	again(at(two, 2, in+"1"))
	if their(t, hub, "rev-parse", "pawl/"+two) == head {
		t.Error("what was taken out is put there again as it is")
	}
	if err := hub.Advance(false); err != nil {
		t.Fatal(err)
	}
	again(at(two, 2, "the forge's merge queue took it out; put it there again, or comment on what is to change"))
	if got := hub.Queued(); len(got) > 0 {
		t.Errorf("%v is in the queue", got)
	}
}

// A forge that rebases puts several commits on the target: they are taken back together, also those that others
// pushed to the branch, and no state between them is looked at.
func TestARebasedRequestIsTakenBackWhole(t *testing.T) {
	t.Parallel()
	for _, pushed := range []string{"", "others.txt"} {
		t.Run(pushed, func(t *testing.T) {
			t.Parallel()
			r, s, hub := proposing(t)
			r.o.Gates = nil
			base := r.git("rev-parse", "main")
			id, first := r.task("Change", base, "new.txt", "1\n")
			q := r.queue()
			more := r.commit("More\n\nPawl-Task: task-777", first, "more.txt", "2\n") // a lie about whose it is
			r.add(q, id, more, "Change")
			r.drain(q)
			other := folder(t)
			gittest.Git(t, other, "clone", "-q", s.Remote, ".")
			if pushed != "" {
				head := gittest.Git(t, other, "rev-parse", "origin/pawl/"+id)
				gittest.Commit(t, other, "refs/commits/more", "of others", head, pushed, "3\n")
				gittest.Git(t, other, "push", "-q", "origin", "refs/commits/more:pawl/"+id)
			} else { // the commits are made anew
				gittest.Git(t, other, "commit", "-q", "--allow-empty", "-m", "before it")
				gittest.Git(t, other, "push", "-q", "origin", "main")
			}
			start := their(t, hub, "rev-parse", "main")
			s.MergeBy(forgetest.Reviewer, 1, "rebase")
			their(t, hub, "update-ref", "-d", "refs/heads/pawl/"+id) // as forges do
			r.drain(r.queue())
			if r.status(id) != board.Done || r.read("more.txt") != "2\n" {
				t.Fatalf("it is %s, left %v, said %v", r.status(id), r.left(), r.notes)
			}
			var tried []string
			found, err := r.queue().Bisect(t.Context(), gates("! test -e new.txt"), "", func(commit string, _ gate.Report) error {
				tried = append(tried, commit)
				return nil
			})
			if err != nil || found.Commit != r.git("rev-parse", "main") || found.Good != start || len(tried) != 2 ||
				!slices.Equal(found.Tasks, []string{id}) {
				t.Errorf("found %+v (%v) by %v", found, err, tried)
			}
			askQueue(t, r.queue(), offerRevert(t, r.queue(), id, "wrong"))
			r.drain(r.queue())
			s.MergeBy(forgetest.Reviewer, 2, "squash")
			r.drain(r.queue())
			if got := r.git("diff", "--name-only", start, "main"); got != "" || r.status(id) != board.Pending {
				t.Errorf("it is %s, and these differ: %q; left %v", r.status(id), got, r.left())
			}
		})
	}
}
