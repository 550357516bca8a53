package merge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
)

func TestOneTaskLands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	r.o.Gates = gates("test -f new.txt")
	id, commit := r.task("Add a file", base, "new.txt", "new\n")
	q := r.queue()
	r.add(q, id, commit, "Add a file")
	if s := r.status(id); s != board.Review {
		t.Errorf("a queued task is %s", s)
	}
	r.drain(q)
	if s := r.status(id); s != board.Done {
		t.Fatalf("it is %s; the queue: %v; said %v", s, r.left(), r.notes)
	}
	got := r.git("log", "-1", "--format=%s|%an|%P|%(trailers:key=Pawl-Task,valueonly,separator=%x2C)|%(trailers:key=Pawl-Run,valueonly,separator=%x2C)|%(trailers:key=Pawl-Batch,valueonly,separator=%x2C)", "main")
	if want := id + ": Add a file|Ann|" + base + " " + commit + "|" + id + "|r-" + id + "|1"; got != want {
		t.Errorf("the landing is\n%s\nwant\n%s", got, want)
	}
	if r.read("new.txt") != "new\n" || r.git("status", "--porcelain") != "" {
		t.Errorf("the checkout: %q", r.git("status", "--porcelain"))
	}
	r.audit(base)
}

// The loop of a task went on beside the queue, and comes with more when the
// task has landed: that is no second landing of it. One that is not on the
// target any more may land again.
func TestATaskLandsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	id, commit := r.task("Add a file", base, "new.txt", "new\n")
	q := r.queue()
	r.add(q, id, commit, "Add a file")
	r.drain(q)
	landed := r.git("rev-parse", "main")
	again := r.commit("More", landed, "more.txt", "more\n")
	r.add(q, id, again, "Add a file")
	r.drain(q)
	if now := r.git("rev-parse", "main"); now != landed {
		t.Errorf("%s landed a second time: %s", id, r.git("log", "--oneline", "main"))
	}
	if len(r.left()) > 0 || r.status(id) != board.Done {
		t.Errorf("left %v, %s is %s", r.left(), id, r.status(id))
	}
	r.git("reset", "-q", "--hard", base)
	r.add(q, id, again, "Add a file")
	r.drain(q) // stops: the target was rewritten
	if err := q.Ask(t.Context(), queue.Ask{Wish: queue.WishResume}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if r.read("more.txt") != "more\n" {
		t.Errorf("it did not land again; left %v, said %v", r.left(), r.notes)
	}
}

func TestABatchLandsAsOneVerifiedState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	r.o.Gates = gates("echo ran >> " + r.state + "/count")
	q := r.queue()
	var ids []string
	for _, name := range []string{"x", "y", "z"} {
		id, commit := r.task("Add "+name, base, name+".txt", name+"\n")
		r.add(q, id, commit, "Add "+name)
		ids = append(ids, id)
	}
	r.drain(q)
	for _, id := range ids {
		if s := r.status(id); s != board.Done {
			t.Errorf("%s is %s", id, s)
		}
	}
	if n := len(strings.Fields(r.git("rev-list", "--first-parent", "main", "^"+base))); n != 1 {
		t.Errorf("the target held %d values, want 1", n)
	}
	if n := len(strings.Fields(r.git("rev-list", "--merges", "main", "^"+base))); n != 4 {
		t.Errorf("%d merges, want one a task and one for the batch", n)
	}
	r.audit(base)
	if got := string(readFile(t, r.state+"/count")); got != "ran\n" {
		t.Errorf("the gates ran %q", got)
	}
}

func TestARedTaskIsFoundInItsBatch(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	r.o.Gates = gates("! test -f bad.txt")
	q := r.queue()
	var ids []string
	for _, name := range []string{"x", "y", "bad", "z"} {
		id, commit := r.task("Add "+name, base, name+".txt", name+"\n")
		r.add(q, id, commit, "Add "+name)
		ids = append(ids, id)
	}
	r.drain(q)
	equal(t, "left", r.left(), []string{ids[2] + " parked: it is red on main: ! test -f bad.txt: " + redSummary(r)})
	if s := r.status(ids[2]); s != board.Blocked {
		t.Errorf("the red one is %s", s)
	}
	if _, err := readFileErr(r.dir + "/bad.txt"); err == nil {
		t.Error("the red one landed")
	}
	r.audit(base)
}

func redSummary(r *rig) string {
	for _, s := range r.said(queue.NoteRed) {
		if _, after, ok := strings.Cut(s, "bad.txt: "); ok {
			return after
		}
	}
	return "?"
}

func TestARedTargetStopsTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	r.o.Gates = gates("test -f repaired.txt")
	q := r.queue()
	id, commit := r.task("Add x", base, "x.txt", "x\n")
	r.add(q, id, commit, "Add x")
	r.drain(q)
	if n := len(r.said(queue.NoteStopped)); n != 1 {
		t.Errorf("%d alarms: %v", n, r.said(queue.NoteStopped))
	}
	if s := r.status(id); s != board.Review {
		t.Errorf("the task is %s", s)
	}
	r.write("repaired.txt", "yes\n")
	r.git("add", "repaired.txt")
	r.git("commit", "-qm", "repair")
	repaired := r.git("rev-parse", "main")
	r.drain(q)
	if s := r.status(id); s != board.Done {
		t.Errorf("after the repair the task is %s: %v", s, r.left())
	}
	r.audit(repaired)
}

func TestAnEmptyChangeIsDone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	q := r.queue()
	id, _ := r.task("Nothing", base)
	r.add(q, id, base, "Nothing")
	same, commit := r.task("The same", base, "n.txt", "n\n")
	r.add(q, same, commit, "The same")
	again, second := r.task("The same again", base, "n.txt", "n\n")
	r.add(q, again, second, "The same again")
	r.drain(q)
	for _, one := range []string{id, same, again} {
		if s := r.status(one); s != board.Done {
			t.Errorf("%s is %s", one, s)
		}
	}
	if n := len(strings.Fields(r.git("rev-list", "--first-parent", "main", "^"+base))); n != 1 {
		t.Errorf("the target held %d values, want 1", n)
	}
	if len(r.said(queue.NoteEmpty)) == 0 {
		t.Error("nothing says VERIFICATION_EMPTY")
	}
	r.audit(base)
}

// A change that adds more files than anybody asks for without a word says so.
func TestManyNewFilesAreNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	base := r.git("rev-parse", "main")
	q := r.queue()
	names := []string{"x.txt", "x\n"}
	for i := range 250 {
		names = append(names, fmt.Sprintf("cache/%d.pom", i), "pom\n")
	}
	id, commit := r.task("Fix", base, names...)
	r.add(q, id, commit, "Fix")
	r.drain(q)
	const many = "251 new files, most of them in cache"
	equal(t, "told", r.said(queue.NoteMany), []string{id + " it adds " + many})
	if landed := r.said(queue.NoteLanded); len(landed) != 1 || !strings.HasSuffix(landed[0], ", with "+many) {
		t.Errorf("landed: %q", landed)
	}
}

func TestProtectedFilesComeFromTheTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a_test.go", "real\n")
	r.write("gone_test.go", "real\n")
	r.git("add", ".")
	r.git("commit", "-qm", "tests")
	base := r.git("rev-parse", "main")
	r.o.Protect.Patterns = []string{"**/*_test.go"}
	q := r.queue()
	id, commit := r.task("Cheat", base, "x.txt", "x\n", "a_test.go", "weak\n", "gone_test.go", "-", "new_test.go", "mine\n", "pawl.yaml", "verification: []\n")
	r.add(q, id, commit, "Cheat")
	r.drain(q)
	if got := r.read("a_test.go") + r.read("gone_test.go") + r.read("new_test.go") + r.read("x.txt"); got != "real\nreal\nmine\nx\n" {
		t.Errorf("got %q", got)
	}
	if _, err := readFileErr(r.dir + "/pawl.yaml"); err == nil {
		t.Error("pawl.yaml landed")
	}
	equal(t, "told", r.said(queue.NoteKept), []string{id + " protected files keep the version of the target: a_test.go, gone_test.go, pawl.yaml"})
	id, commit = r.task("Allowed", base, "a_test.go", "better\n")
	if err := q.Add(t.Context(), Entry{ID: id, Commit: commit, Title: "Allowed", Allow: []string{"a_test.go"}}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if got := r.read("a_test.go"); got != "better\n" {
		t.Errorf("a lifted file is %q", got)
	}
	r.audit(base)
}

// A gate runs code of the task's. What it does to protected files is seen before the next
// one judges by them, and puts them back.
func TestAGateChangesATestForTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("a_test.sh", "grep -q good x.txt\n")
	r.write("crlf_test.sh", "grep -q good x.txt\n")
	r.write(".gitattributes", "crlf_test.sh text eol=crlf\n")
	r.write("build.sh", "true\n")
	r.write("x.txt", "good\n")
	r.git("add", ".")
	r.git("commit", "-qm", "tests")
	base := r.git("rev-parse", "main")
	r.o.Protect.Patterns = []string{"**/*_test.sh"}
	r.o.Gates = []gate.Spec{{Command: "sh build.sh", Required: true}, {Command: "sh a_test.sh", Required: true}}
	q := r.queue()
	swap := "cp a_test.sh ../real\necho 'cp ../real a_test.sh' >a_test.sh\n"
	bad, commit := r.task("Cheat", base, "build.sh", swap, "x.txt", "bad\n")
	r.add(q, bad, commit, "Cheat")
	r.drain(q)
	good, commit := r.task("Work", base, "build.sh", "echo x >built\n", "y.txt", "good\n")
	r.add(q, good, commit, "Work")
	r.drain(q)
	if got := r.read("x.txt") + r.read("y.txt"); got != "good\ngood\n" {
		t.Errorf("got %q", got)
	}
	if why := strings.Join(r.said(queue.NoteRed), ""); !strings.Contains(why, "a_test.sh (it was changed while gate sh build.sh ran") {
		t.Errorf("told %q", why)
	}
	r.audit(base)
}

// What a gate does to files is undone before the next one judges: each begins with the tree
// that lands. New files beside, and what git ignores, are no reason to be red.
func TestEachGateJudgesTheTreeThatLands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		build, x string // what the task makes of build.sh and x.txt; "" is gone
		lands    bool
	}{
		"changes a file":      {"echo good >x.txt", "bad", false},
		"removes a file":      {"rm x.txt", "bad", false},
		"makes a file":        {"echo good >x.txt", "", false},
		"puts a folder there": {"rm x.txt; mkdir x.txt; echo good >x.txt/x", "bad", false},
		"puts a pipe there":   {"rm x.txt; mkfifo x.txt", "bad", false},
		"commits":             {"echo good >x.txt; git commit -qam x", "bad", false},
		"changes line ends":   {"echo good >crlf.txt; exit 1", "bad", false},
		"writes a report":     {"echo x >report; mkdir -p cache; echo x >cache/x", "good", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("crlf.txt", "one\n")
			r.write(".gitattributes", "crlf.txt text eol=crlf\n")
			r.write(".gitignore", "cache/\n")
			r.write("build.sh", "true\n")
			r.write("x.txt", "good\n")
			r.git("add", ".")
			r.git("commit", "-qm", "tests")
			base := r.git("rev-parse", "main")
			r.o.Gates = []gate.Spec{{Name: "build", Command: "sh build.sh"},
				{Command: "test ! -d x.txt && test ! -p x.txt && grep -q one crlf.txt && grep -q good x.txt", Required: true}}
			work := []string{"build.sh", tt.build + "\n"}
			if tt.x != "" {
				work = append(work, "x.txt", tt.x+"\n")
			}
			id, commit := r.task("Work", base, work...)
			if tt.x == "" {
				r.git("checkout", "-q", "--detach", commit)
				r.git("rm", "-q", "x.txt")
				r.git("commit", "-q", "--amend", "--no-edit")
				commit = r.git("rev-parse", "HEAD")
				r.git("checkout", "-q", "main")
			}
			q := r.queue()
			r.add(q, id, commit, "Work")
			r.drain(q)
			if landed := r.git("rev-parse", "main") != base; landed != tt.lands {
				t.Errorf("landed: %v; said %v", landed, r.notes)
			}
			if names := r.git("ls-tree", "-r", "--name-only", "main"); strings.Contains(names, "report") {
				t.Errorf("what a gate wrote has landed: %s", names)
			}
			r.audit(base)
		})
	}
}

// While there are no gates, what waits lands together: one wait for the disk
// serves all. Whoever wants each task alone gets that.
func TestWithoutGatesWhatWaitsLandsTogether(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		batch int
		gates []gate.Spec
		want  int // commits on the target's own line
	}{
		"no gates": {4, nil, 2}, // 4, then 6
		"gates":    {4, gates("true"), 3},
		"alone":    {1, nil, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			base := r.git("rev-parse", "main")
			r.o.Policy.Batch, r.o.Gates = tt.batch, tt.gates
			q := r.queue()
			for i, commit := range r.many(10) {
				id, _ := r.task(fmt.Sprintf("Task %d", i), base)
				r.add(q, id, commit, "Task")
			}
			r.drain(q)
			if left := r.left(); len(left) > 0 {
				t.Fatalf("left: %q", left)
			}
			if got := r.git("rev-list", "--count", "--first-parent", base+"..main"); got != fmt.Sprint(tt.want) {
				t.Errorf("the target moved %s times, want %d", got, tt.want)
			}
			if got := r.git("ls-files", "d*"); len(strings.Fields(got)) != 10 {
				t.Errorf("files: %s", got)
			}
			r.audit(base)
		})
	}
}
