package merge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// everyCommit is a hook that takes only commits whose message has a line.
const everyCommit = `#!/bin/sh
for c in $(git rev-list $2..$3); do
	git log -1 --format=%%B $c | grep -q '^%s' || { echo "commit $c: the commit message has no %[1]s"; exit 1; }
done
`

// refusing gives a remote a hook.
func refusing(t *testing.T, bare, hook string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(bare, "hooks", "update"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
}

// anew is an agent that makes the change of an entry in one commit with a message.
func (r *rig) anew(message string) func(context.Context, Problem) (string, error) {
	return func(_ context.Context, p Problem) (string, error) {
		if p.Problem.Refused == "" {
			return "", fmt.Errorf("what the remote says is missing: %+v", p.Problem)
		}
		return r.git("commit-tree", p.Entry.Commit+"^{tree}", "-p", p.Tip, "-m", message), nil
	}
}

// Commits that the remote refuses for what they say land nowhere: an agent makes them anew, and nobody is asked. The
// message of its commit is that of the landing, which the remote takes too.
func TestAnAgentRepairsWhatTheRemoteRefuses(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("among machines %t", shared), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bare, _ := r.upstream()
			r.o.Policy.Push = true
			if shared {
				r.o.Travel = "origin"
			}
			refusing(t, bare, fmt.Sprintf(everyCommit, "Signed-off-by: "))
			before, seen := r.git("rev-parse", "main"), 0
			repair := r.anew("Add a\n\nSigned-off-by: t <t@x>")
			r.o.Resolve = func(ctx context.Context, p Problem) (string, error) {
				seen++
				for _, dir := range []string{r.dir, bare} {
					if now := gittest.Git(t, dir, "rev-parse", "main"); now != before {
						t.Errorf("%s moved to %s", dir, now)
					}
				}
				if !strings.Contains(p.Problem.Refused, "has no Signed-off-by") || strings.Contains(p.Problem.Refused, "push it yourself") {
					t.Errorf("the agent reads %q", p.Problem.Refused)
				}
				return repair(ctx, p)
			}
			id := r.land("a.txt", "landed\n")
			if s := r.status(id); s != board.Done || seen != 1 {
				t.Fatalf("it is %s after %d attempts: %v", s, seen, r.left())
			}
			here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main")
			if here != there || r.read("a.txt") != "landed\n" {
				t.Errorf("the target is at %s, the remote at %s", here, there)
			}
			if bad := r.git("log", "--invert-grep", "--grep=^Signed-off-by: ", "--format=%s", before+"..main"); bad != "" {
				t.Errorf("these came along: %s", bad)
			}
			trailers := r.git("log", "-1", "--format=%(trailers:key=Pawl-Task,valueonly)%(trailers:key=Signed-off-by,valueonly)", "main")
			if !strings.Contains(trailers, id) || !strings.Contains(trailers, "t <t@x>") {
				t.Errorf("the landing's trailers: %q", trailers)
			}
			for _, kind := range []queue.NoteKind{queue.NoteEscalated, queue.NoteStopped, queue.NoteWarning} {
				if n := r.said(kind); len(n) > 0 {
					t.Errorf("told %q", n)
				}
			}
			row, _, err := r.store.Queue(t.Context(), "refs/heads/main")
			if err != nil || row.State.Unpushed != nil {
				t.Errorf("it counts as not pushed: %+v, %v", row.State.Unpushed, err)
			}
			r.audit(before)
		})
	}
}

// Where only the message that pawl writes is refused, no agent is paid: the landing gets the one of its commit.
func TestALandingGetsTheMessageThatTheRemoteTakes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.upstream()
	r.o.Policy.Push = true
	refusing(t, bare, fmt.Sprintf(everyCommit, "PROJ-[0-9]"))
	r.o.Resolve = func(context.Context, Problem) (string, error) { t.Error("an agent was started"); return "", nil }
	base := r.git("rev-parse", "main")
	q := r.queue()
	var ids []string
	for i := range 3 { // together they have a merge of their own
		id, commit := r.task(fmt.Sprintf("PROJ-%d: work", i), base, fmt.Sprintf("%d.txt", i), "x\n")
		r.add(q, id, commit, "Work")
		ids = append(ids, id)
	}
	r.drain(q)
	for _, id := range ids {
		if s := r.status(id); s != board.Done {
			t.Errorf("%s is %s: %v", id, s, r.left())
		}
	}
	if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
		t.Errorf("the target is at %s, the remote at %s", here, there)
	}
	r.audit(base)
}

// A remote that refuses what an agent makes, too, is a question to a person after as many attempts as a conflict has;
// the others of its batch land. Once the hook is gone a retry lands it.
func TestARemoteThatRefusesForEver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.upstream()
	r.o.Policy.Push = true
	refusing(t, bare, `#!/bin/sh
git diff --name-only $2 $3 | grep -q bad.txt && echo "the commit message of bad.txt does not follow the pattern" && exit 1
exit 0
`)
	base, seen := r.git("rev-parse", "main"), 0
	r.o.Resolve = func(ctx context.Context, p Problem) (string, error) {
		seen++
		return r.anew(fmt.Sprint("try ", seen))(ctx, p)
	}
	q := r.queue()
	bad, commit := r.task("bad", base, "bad.txt", "x\n")
	r.add(q, bad, commit, "Bad")
	good, commit := r.task("good", base, "good.txt", "x\n")
	r.add(q, good, commit, "Good")
	r.drain(q)
	if s := r.status(good); s != board.Done {
		t.Errorf("the other one is %s: %v", s, r.left())
	}
	if s := r.status(bad); s != board.Blocked || seen != r.o.Policy.Retries {
		t.Errorf("it is %s after %d attempts: %v", s, seen, r.left())
	}
	if n := r.said(queue.NoteEscalated); len(n) != 1 || !strings.Contains(n[0], "(after 2 attempts of an agent)") {
		t.Errorf("told %q", n)
	}
	if here, there := r.git("rev-parse", "main"), gittest.Git(t, bare, "rev-parse", "main"); here != there {
		t.Errorf("the target is at %s, the remote at %s", here, there)
	}
	refusing(t, bare, "#!/bin/sh\nexit 0\n")
	if err := q.Ask(t.Context(), queue.Ask{Wish: queue.WishRetry, ID: bad}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if s := r.status(bad); s != board.Done {
		t.Errorf("then it is %s: %v", s, r.left())
	}
	r.audit(base)
}

// What waits for a file of the person's is not pushed either: the branch here would be behind.
func TestNothingIsPushedThatCannotLandHere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bare, _ := r.upstream()
	r.o.Policy.Push = true
	base := r.git("rev-parse", "main")
	r.write("a.txt", "mine\n")
	id := r.land("a.txt", "landed\n")
	if now := gittest.Git(t, bare, "rev-parse", "main"); now != base || r.status(id) == board.Done {
		t.Errorf("the remote is at %s, not %s; it is %s", now, base, r.status(id))
	}
}

// Killed at each point of a landing that is pushed: it is at the remote and here, once.
func TestKilledAtEachPointOfAPush(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"after verified", "files locked", "before sent", "after sent", "before ref", "after ref", "after files", "before landed", "after landed",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bare, _ := r.upstream()
			base := r.git("rev-parse", "main")
			q := r.queue()
			var ids []string
			for _, name := range []string{"x", "y"} {
				id, commit := r.task("Add "+name, base, name+".txt", name+"\n")
				r.add(q, id, commit, "Add "+name)
				ids = append(ids, id)
			}
			r.o.Travel = pushHere
			r.killed("", point)
			r.o.Travel, r.o.Policy.Push = "", true
			r.drain(r.queue())
			log := gittest.Git(t, bare, "log", "--first-parent", "--format=%(trailers:key=Pawl-Task,valueonly)", "main")
			for _, id := range ids {
				if n := strings.Count(log, id); n != 1 || r.status(id) != board.Done {
					t.Errorf("%s landed %d times at the remote, and is %s: %v", id, n, r.status(id), r.left())
				}
			}
			if here := r.git("rev-parse", "main"); here != gittest.Git(t, bare, "rev-parse", "main") || r.read("y.txt") != "y\n" {
				t.Error("the remote has something else")
			}
			if got := r.git("status", "--porcelain"); got != "" {
				t.Errorf("the checkout: %q", got)
			}
			r.audit(base)
		})
	}
}
