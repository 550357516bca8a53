package engine

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/loop"
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
func (w *world) setup() (s setup) {
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
