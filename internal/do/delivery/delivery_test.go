package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// deliverCommand makes the test binary deliver, and kill itself at a point.
const deliverCommand = "__deliver"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == deliverCommand {
		os.Exit(deliverAndDie(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(gittest.Run(m))
}

func deliverAndDie(dir, point, iteration string) int {
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(dir, "state", "pawl.db"))
	n, _ := strconv.Atoi(iteration)
	if err == nil {
		var w *Workspace
		if w, err = take(ctx, dir, db, func(at string) {
			if at == point {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}); err == nil {
			if err = w.Continue(ctx, "r1"); err == nil {
				_, err = w.Deliver(ctx, Verdict{Iteration: n, Green: true})
			}
		}
	}
	fmt.Fprintln(os.Stderr, "not killed:", err)
	return 1
}

func take(ctx context.Context, dir string, db *store.Store, point func(string)) (*Workspace, error) {
	root, state := filepath.Join(dir, "repo"), filepath.Join(dir, "state")
	person, err := workspace.Open(ctx, root, workspace.Options{StateDir: state})
	if err != nil {
		return nil, err
	}
	clones, err := pool.Open(ctx, pool.Options{Root: root, StateDir: state, Store: db, Retention: time.Hour})
	if err != nil {
		return nil, err
	}
	return Take(ctx, Options{
		Person: person, Pool: clones, ID: pool.RunPrefix + "build", StateDir: state, When: deliver.Each, Confirm: []string{".envrc"}, point: point,
	})
}

// desk is a person's repository, and the workspace of a run in it.
type desk struct {
	t   *testing.T
	dir string
	db  *store.Store
	w   *Workspace
	n   int // iterations
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: dir}
	d.put("repo/a.txt", "1\n2\n3\n")
	d.put("repo/mine.txt", "mine\n")
	d.git("init", "-q", "-b", "main")
	d.git("add", "-A")
	d.git("commit", "-qm", "first")
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if d.db, err = store.Open(t.Context(), filepath.Join(dir, "state", "pawl.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.db.Close() })
	d.take()
	if err := d.w.Begin(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) take() {
	d.t.Helper()
	w, err := take(d.t.Context(), d.dir, d.db, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.w = w
}

func (d *desk) release() {
	d.t.Helper()
	if err := d.w.Release(d.t.Context(), "a test"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) git(args ...string) string {
	d.t.Helper()
	return gittest.Git(d.t, filepath.Join(d.dir, "repo"), args...)
}

// put writes a file; "-" removes it.
func (d *desk) put(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if text == "-" {
		err = os.Remove(path)
	} else if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(d.dir, name))
	return string(data)
}

// agent works for one iteration: files are names and texts in turn, those of a commit first.
func (d *desk) agent(commit []string, files ...string) {
	d.t.Helper()
	top := d.w.Place().Top
	put := func(files []string) {
		for i := 0; i+1 < len(files); i += 2 {
			d.put(strings.TrimPrefix(filepath.Join(top, files[i]), d.dir+"/"), files[i+1])
		}
	}
	d.n++
	if put(commit); len(commit) > 0 {
		gittest.Git(d.t, top, "add", "-A")
		gittest.Git(d.t, top, "commit", "-qm", fmt.Sprint("work ", d.n))
	}
	put(files)
	if _, err := d.w.Tree().Snapshot(d.t.Context(), "r1", d.n, workspace.SnapshotOptions{}); err != nil {
		d.t.Fatal(err)
	}
}

// deliver delivers the last iteration.
func (d *desk) deliver() Delivered {
	d.t.Helper()
	got, err := d.w.Deliver(d.t.Context(), Verdict{Iteration: d.n, Green: true})
	if err != nil {
		d.t.Fatal(err)
	}
	return got
}

func (d *desk) subjects() string {
	d.t.Helper()
	return strings.ReplaceAll(d.git("log", "--format=%s", "main"), "\n", ", ")
}

// A delivery that is cut off anywhere is finished at the next start, or had moved nothing
// and is made then; what the person has stays as it is, and nothing is delivered twice.
func TestADeliveryIsKilled(t *testing.T) {
	t.Parallel()
	for point, finished := range map[string]bool{"intended": false, "branch": true, "files": true, "index": true, "agreed": true} {
		for _, edits := range []bool{false, true} {
			t.Run(fmt.Sprint(point, edits), func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				d.put("repo/mine.txt", "edited\n")
				d.agent([]string{"a.txt", "1\n2\n3\n4\n", "new/b.txt", "b\n"}, "c.txt", "c\n")
				d.release()
				c := exec.CommandContext(t.Context(), os.Args[0], deliverCommand, d.dir, point, "1")
				if out, err := c.CombinedOutput(); err == nil || c.ProcessState.ExitCode() != -1 {
					t.Fatalf("it was not killed: %v\n%s", err, out)
				}
				want, left := "c\n", 0
				if edits && point == "branch" { // before it was written
					d.put("repo/c.txt", "my own\n")
					want, left = "my own\n", 1
				}
				d.take()
				run, done, ok := d.w.Finished()
				if ok != finished || ok && (run != "r1" || len(done.Left) != left || done.Commits != 1) {
					t.Errorf("finished: %t, run %s, %+v", ok, run, done)
				}
				if err := d.w.Continue(t.Context(), "r1"); err != nil {
					t.Fatal(err)
				}
				kind := deliver.Nothing
				if !finished {
					kind = deliver.Deliver
				} else if left > 0 {
					kind = deliver.Combine // with what the person wrote in its place
				}
				if got := d.deliver(); got.Kind != kind {
					t.Errorf("then: %s (%s)", got.Kind, got.Why)
				}
				if got := d.subjects(); got != "work 1, first" {
					t.Errorf("the branch has %q", got)
				}
				if got := d.git("status", "--porcelain"); got != " M mine.txt\n?? c.txt" {
					t.Errorf("git status says\n%s", got)
				}
				if a, b, c, mine := d.read("repo/a.txt"), d.read("repo/new/b.txt"), d.read("repo/c.txt"), d.read("repo/mine.txt"); a != "1\n2\n3\n4\n" || b != "b\n" || c != want || mine != "edited\n" {
					t.Errorf("the files are %q, %q, %q, %q", a, b, c, mine)
				}
				if locks, _ := filepath.Glob(filepath.Join(d.dir, "repo", ".git", "*.lock")); len(locks) > 0 {
					t.Errorf("left are %q", locks)
				}
			})
		}
	}
}

// Files and commits that were delivered are taken back, by path: what the person did
// since, and what never was delivered, is no matter.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var steps []Step
	var all []Delivered
	work := func(deliver bool, commit []string, files ...string) {
		t.Helper()
		before, err := d.w.Tree().See(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		d.agent(commit, files...)
		after, err := d.w.Tree().See(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, Step{before.Tree, after.Tree})
		if deliver {
			all = append(all, d.deliver())
		}
	}
	work(true, []string{"a.txt", "one\n"}, "b.txt", "b1\n", "c.txt", "c1\n")
	work(true, []string{"d.txt", "d\n"}, "b.txt", "b2\n")
	work(false, nil, "b.txt", "red\n", "e.txt", "red\n")
	d.put("repo/c.txt", "mine now\n")
	if got := all[1].Iteration; got != 2 {
		t.Errorf("it is of iteration %d", got)
	}
	back := func(n int) TakenBack {
		t.Helper()
		person := d.w.Person()
		if err := person.Renew(t.Context(), "by-hand"); err != nil {
			t.Fatal(err)
		}
		if _, err := person.See(t.Context(), "by-hand"); err != nil {
			t.Fatal(err)
		}
		b, err := TakeBack(t.Context(), person, BackOptions{Key: "by-hand", Steps: steps[n:], Deliveries: all[min(n, len(all)):], Hold: filepath.Join(d.dir, "state", "queue", "checkout.lock")})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	state := func() string {
		return fmt.Sprintf("%q %q %q %q %s", d.read("repo/a.txt"), d.read("repo/b.txt"), d.read("repo/c.txt"), d.read("repo/d.txt"), d.subjects())
	}
	if b := back(1); state() != `"one\n" "b1\n" "mine now\n" "" work 1, first` || len(b.Left) != 0 || b.BranchTo == "" {
		t.Errorf("back to 1: %s, %+v", state(), b)
	}
	if b := back(0); state() != `"1\n2\n3\n" "" "mine now\n" "" first` || len(b.Left) != 1 || b.Left[0].Path != "c.txt" || b.WhyNot != "" {
		t.Errorf("back to 0: %s, %+v", state(), b)
	}
	if b := back(0); len(b.Written)+len(b.Removed) != 0 || b.BranchTo != "" || b.WhyNot != "" {
		t.Errorf("once more: %+v", b)
	}
}

// What a person applies has the number of its snapshot, so that it can be taken back.
func TestTheNewestIsApplied(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent(nil, "b.txt", "b\n", ".envrc", "x\n")
	if got := d.deliver(); got.Kind != deliver.Ask || len(got.Paths) != 1 || d.read("repo/b.txt") != "" {
		t.Errorf("what runs by itself goes unasked: %+v", got)
	}
	got, err := d.w.Deliver(t.Context(), Verdict{Iteration: -1, Requested: true})
	if err != nil || got.Kind != deliver.Deliver || got.Iteration != 1 || d.read("repo/b.txt") != "b\n" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Branches and tags of an agent stay in the workspace, and are named.
func TestOwnRefs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.git("branch", "kept")
	d.git("tag", "v1")
	if err := d.w.Begin(t.Context(), "r2"); err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		if got, err := d.w.OwnRefs(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("they are %q, %v", got, err)
		}
	}
	expect()
	top := d.w.Place().Top
	d.agent([]string{"b.txt", "b\n"})
	gittest.Git(t, top, "branch", "wip/one")
	gittest.Git(t, top, "tag", "-am", "second", "v2")
	gittest.Git(t, top, "branch", "-f", "kept")
	expect("branch kept", "branch wip/one", "tag v2")
	gittest.Git(t, top, "pack-refs", "--all")
	expect("branch kept", "branch wip/one", "tag v2")
	d.put(strings.TrimPrefix(filepath.Join(top, ".git", "refs", "heads", "a b"), d.dir+"/"), "rubbish")
	expect("branch kept", "branch wip/one", "tag v2")
	if d.deliver(); strings.Contains(d.git("for-each-ref"), "wip") {
		t.Error("a branch of the agent's was delivered")
	}
}

// What is chosen holds for the lines in conflict: all others stay, whose they are.
func TestSettleKeepsOtherLines(t *testing.T) {
	t.Parallel()
	for choice, want := range map[Choice]string{
		Mine:   "1\nmine 2\n3\n4\nagent 5\n6\n7\nmine 8\n9\n",
		Agents: "1\nagent 2\n3\n4\nagent 5\n6\n7\nmine 8\n9\n",
	} {
		t.Run(string(choice), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put("repo/a.txt", lines())
			if err := d.w.Begin(t.Context(), "r1"); err != nil {
				t.Fatal(err)
			}
			d.agent(nil, "a.txt", "1\nagent 2\n3\n4\nagent 5\n6\n7\n8\n9\n")
			d.put("repo/a.txt", "1\nmine 2\n3\n4\n5\n6\n7\nmine 8\n9\n")
			if in, err := d.w.BringIn(t.Context(), 1); err != nil || len(in.Conflicts) != 1 {
				t.Fatalf("%+v, %v", in, err)
			}
			if _, err := d.w.Settle(t.Context(), "a.txt", choice, nil); err != nil {
				t.Fatal(err)
			}
			if in, err := d.w.BringIn(t.Context(), 1); err != nil || len(in.Conflicts) != 0 {
				t.Fatalf("%+v, %v", in, err)
			}
			got, err := d.w.Deliver(t.Context(), Verdict{Iteration: 1, Green: true, Together: true})
			if err != nil || got.Kind != deliver.Deliver || d.read("repo/a.txt") != want {
				t.Errorf("%s (%s), %v: %q", got.Kind, got.Why, err, d.read("repo/a.txt"))
			}
		})
	}
}

// What is no text on both sides is chosen as a whole: a link, and what a side removed. The
// mode of a file is that of the side that was chosen.
func TestSettleWhole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for choice, want := range map[Choice]string{Mine: "link, -rwx------, mine\n", Agents: "1, -rw-------, none"} {
		t.Run(string(choice), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.put("repo/run", "1\n2\n3\n")
			d.put("repo/gone", "old\n")
			d.put("repo/linked", "1\n")
			repo := filepath.Join(d.dir, "repo")
			gittest.Git(t, repo, "add", "-A")
			gittest.Git(t, repo, "commit", "-qm", "files")
			if err := d.w.Begin(ctx, "r1"); err != nil {
				t.Fatal(err)
			}
			d.agent(nil, "run", "1\nagent\n3\n", "gone", "-", "linked", "1\nagent\n")
			d.put("repo/run", "1\nmine\n3\n")
			d.put("repo/gone", "mine\n")
			err := errors.Join(os.Chmod(filepath.Join(repo, "run"), 0o700), os.Remove(filepath.Join(repo, "linked")),
				os.Symlink("1", filepath.Join(repo, "linked")))
			if err != nil {
				t.Fatal(err)
			}
			in, err := d.w.BringIn(ctx, 1)
			if err != nil || len(in.Conflicts) != 3 {
				t.Fatalf("%+v, %v", in, err)
			}
			for _, c := range in.Conflicts {
				if _, err := d.w.Settle(ctx, c.Path, choice, nil); err != nil {
					t.Fatal(err)
				}
			}
			if in, err = d.w.BringIn(ctx, 1); err != nil || len(in.Conflicts) != 0 {
				t.Fatalf("%+v, %v", in, err)
			}
			if _, err := d.w.Deliver(ctx, Verdict{Iteration: 1, Green: true, Together: true}); err != nil {
				t.Fatal(err)
			}
			linked, gone := strings.TrimSpace(strings.Split(d.read("repo/linked"), "\n")[0]), d.read("repo/gone")
			if to, err := os.Readlink(filepath.Join(repo, "linked")); err == nil && to == "1" {
				linked = "link"
			}
			run, err := os.Stat(filepath.Join(repo, "run"))
			if got := fmt.Sprintf("%s, %s, %s", linked, run.Mode(), cmp.Or(gone, "none")); err != nil || got != want {
				t.Errorf("%q, %v; want %q", got, err, want)
			}
		})
	}
}

// A conflict stays until a person chose: then the file is what they chose, in both places.
func TestSettle(t *testing.T) {
	t.Parallel()
	for choice, want := range map[Choice]string{
		Mine: "1\nmine\n3\n", Agents: "1\nagent\n3\n", Both: "1\nmine\nagent\n3\n", Edited: "edited\n",
	} {
		t.Run(string(choice), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.agent(nil, "a.txt", "1\nagent\n3\n")
			d.put("repo/a.txt", "1\nmine\n3\n")
			if got := d.deliver(); got.Kind != deliver.Combine {
				t.Errorf("it goes over what the person wrote: %+v", got)
			}
			in, err := d.w.BringIn(t.Context(), 1)
			if err != nil || len(in.Conflicts) != 1 || in.Conflicts[0].Path != "a.txt" {
				t.Fatalf("%+v, %v", in, err)
			}
			if left, err := d.w.Settle(t.Context(), "a.txt", choice, []byte("edited\n")); err != nil || left != 0 {
				t.Fatalf("%d are left, %v", left, err)
			}
			if in, err = d.w.BringIn(t.Context(), 1); err != nil || len(in.Conflicts) != 0 {
				t.Fatalf("%+v, %v", in, err)
			}
			kind := deliver.Deliver
			if choice == Mine {
				kind = deliver.Nothing // it is there
			}
			if got := d.deliver(); choice != Mine && got.Kind != deliver.Combine {
				t.Errorf("it is delivered by the verdict from before: %+v", got)
			}
			got, err := d.w.Deliver(t.Context(), Verdict{Iteration: d.n, Green: true, Together: true})
			if err != nil || got.Kind != kind || d.read("repo/a.txt") != want {
				t.Errorf("%s (%s): %q", got.Kind, got.Why, d.read("repo/a.txt"))
			}
		})
	}
}

// Conflicts are those of the run that has the workspace: a later run begins without any.
func TestConflictsEndWithTheirRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.agent(nil, "a.txt", "1\nagent\n3\n")
	d.put("repo/a.txt", "1\nmine\n3\n")
	if _, err := d.w.BringIn(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	// One that is resolved can be chosen again.
	if left, err := d.w.Settle(t.Context(), "a.txt", Mine, nil); err != nil || left != 0 {
		t.Fatal(left, err)
	}
	for run, want := range map[string]bool{"r1": true, "r2": false} {
		if got, err := InConflict(d.w.Place().Own, filepath.Join(d.dir, "state"), run); err != nil || got != want {
			t.Errorf("run %s has conflicts: %v, %v", run, got, err)
		}
	}
	if err := d.w.Begin(t.Context(), "r2"); err != nil {
		t.Fatal(err)
	}
	if all, err := d.w.Conflicts(); err != nil || len(all) != 0 {
		t.Errorf("the next run has %+v, %v", all, err)
	}
}

// Where git does not look at modes, as on exFAT, all files may be executable: what is
// delivered is not taken for a change of the person's, nor for work that is left.
func TestModesThatNobodyKeeps(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.git("config", "core.fileMode", "false")
	d.release()
	d.take()
	if err := d.w.Begin(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	d.agent([]string{"new.txt", "1\n"})
	if got := d.deliver(); got.Kind != deliver.Deliver {
		t.Fatalf("%+v", got)
	}
	for _, name := range []string{"new.txt", "a.txt"} {
		if err := os.Chmod(filepath.Join(d.dir, "repo", name), 0o755); err != nil { //nolint:gosec // as the mount has it
			t.Fatal(err)
		}
	}
	if in, err := d.w.BringIn(t.Context(), 1); err != nil || in.Files != 0 {
		t.Errorf("a mode comes in: %+v, %v", in, err)
	}
	d.agent([]string{"new.txt", "2\n"})
	got := d.deliver()
	if got.Kind != deliver.Deliver || got.Files != 1 || got.Commits != 1 || d.read("repo/new.txt") != "2\n" {
		t.Errorf("%+v", got)
	}
	if status := d.git("status", "--porcelain"); status != "" {
		t.Errorf("left: %s", status)
	}
}
