package merge

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// locked is a repository whose needs.lock is made of needs/*: one line for each
// file, with what is pinned already kept.
func locked(t *testing.T) *rig {
	r := newRig(t)
	r.write("needs/a", "a\n")
	r.write("needs.lock", "a 1\n")
	r.git("add", ".")
	r.git("commit", "-qm", "needs")
	r.o.Gates = gates(`for f in needs/*; do grep -q "^$(cat $f) " needs.lock || exit 1; done`)
	return r
}

// relock keeps what is pinned, adds what is missing, and takes away the rest.
const relock = `for f in needs/*; do n=$(cat $f); grep -a "^$n " needs.lock || echo "$n 1"; done > new; mv new needs.lock; echo rubbish > other`

func regenerate(command string) []Regeneration {
	return []Regeneration{{Files: []string{"*.lock"}, Command: command, Timeout: time.Minute}}
}

func TestALockFileIsMadeAnew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second []string
		lock, other   string
	}{
		"both need more":        {[]string{"needs/b", "b\n", "needs.lock", "a 1\nb 7\n"}, []string{"needs/c", "c\n", "needs.lock", "a 1\nc 9\n"}, "a 1\nb 7\nc 1\n", ""},
		"beside a rule":         {[]string{"needs/b", "b\n", "needs.lock", "a 1\nb 7\n", "b.txt", "b\nx\n"}, []string{"needs/c", "c\n", "needs.lock", "a 1\nc 9\n", "b.txt", "b\ny\n"}, "a 1\nb 7\nc 1\n", "b\nx\ny\n"},
		"binary":                {[]string{"needs/b", "b\n", "needs.lock", "\x00\na 1\nb 7\n"}, []string{"needs/c", "c\n", "needs.lock", "\x00\na 1\nc 9\n"}, "a 1\nb 7\nc 1\n", ""},
		"long":                  {[]string{"needs/b", "b\n", "needs.lock", "a 1\nb 7\n" + strings.Repeat("x 1\n", 50)}, []string{"needs/c", "c\n", "needs.lock", "a 1\nc 9\n" + strings.Repeat("y 1\n", 50)}, "a 1\nb 7\nc 1\n", ""},
		"the target has it all": {[]string{"needs/b", "b\n", "needs/c", "c\n", "needs.lock", "a 1\nb 1\nc 1\n"}, []string{"needs/c", "c\n", "needs.lock", "a 1\nc 1\n", "x", "x\n"}, "a 1\nb 1\nc 1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := locked(t)
			base := r.git("rev-parse", "main")
			r.o.Regenerate = regenerate(relock)
			id := r.conflicting(tt.first, tt.second)
			if s := r.status(id); s != board.Done {
				t.Fatalf("it is %s: %v", s, r.left())
			}
			if got := r.read("needs.lock"); got != tt.lock {
				t.Errorf("the lock is %q, want %q", got, tt.lock)
			}
			if tt.other != "" && r.read("b.txt") != tt.other {
				t.Errorf("b.txt is %q", r.read("b.txt"))
			}
			if got := r.git("ls-files", "other"); got != "" {
				t.Error("a file that no rule has has landed")
			}
			equal(t, "told", r.said(queue.NoteMade), []string{id + " regenerated, verified: needs.lock (" + relock + ")"})
			r.audit(base)
		})
	}
}

func TestALockFileThatIsNotMadeAnewIsAConflict(t *testing.T) {
	t.Parallel()
	first, second := []string{"needs/b", "b\n", "needs.lock", "a 1\nb 7\n"}, []string{"needs/c", "c\n", "needs.lock", "a 1\nc 9\n"}
	for name, tt := range map[string]struct {
		command string
		second  []string
		why     string
	}{
		"it fails":               {"echo 'no network' >&2; exit 3", second, "needs.lock was not regenerated: echo 'no network' >&2; exit 3: "},
		"it hangs":               {"sleep 1000", second, "needs.lock was not regenerated: sleep 1000: timed out after 1s"},
		"it removes the file":    {"rm needs.lock", second, "needs.lock was not regenerated: rm needs.lock left no file there"},
		"it makes a link":        {"ln -sf /etc/passwd needs.lock", second, "left no file there"},
		"it does nothing":        {"true", second, "true leaves it as on main, and the changes to it would be lost"},
		"only the lock changed":  {relock, []string{"needs.lock", "a 2\n"}, "leaves it as on main, and the changes to it would be lost"},
		"one side has no lock":   {relock, []string{"needs.lock", "-"}, "a modify/delete conflict"},
		"another file conflicts": {relock, append([]string{"needs/b", "B\n"}, second...), "2 files, 1 line (needs.lock, needs/b)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := locked(t)
			base := r.git("rev-parse", "main")
			r.o.Regenerate = regenerate(tt.command)
			if tt.command == "sleep 1000" {
				r.o.Regenerate[0].Timeout = time.Second
			}
			id := r.conflicting(first, tt.second)
			left := r.left()
			if len(left) != 1 || !strings.HasPrefix(left[0], id+" parked: it conflicts with main: ") || !strings.Contains(left[0], tt.why) {
				t.Errorf("left %q, want %q", left, tt.why)
			}
			if got := r.git("show", "main:needs.lock"); got != "a 1\nb 7" {
				t.Errorf("the target has %q", got)
			}
			r.audit(base)
		})
	}
}

// What was made anew and is red goes to an agent, who is not told to make it anew.
func TestALockFileThatIsRedGoesToAnAgent(t *testing.T) {
	t.Parallel()
	r := locked(t)
	r.o.Regenerate = regenerate("echo 'a 1' > needs.lock")
	a := &resolver{make: func(Problem, int) (string, error) { return "", nil }}
	r.o.Resolve = a.resolve
	id := r.conflicting([]string{"needs/b", "b\n", "needs.lock", "a 1\nb 7\n"}, []string{"needs/c", "c\n", "needs.lock", "a 1\nc 9\n"})
	if s := r.status(id); s != board.Blocked {
		t.Errorf("it is %s", s)
	}
	if len(a.asked) == 0 || a.asked[0].Problem.Conflict == nil || a.asked[0].Problem.Conflict.Files[0].Regenerate != "" {
		t.Errorf("the agent was told %+v", a.asked)
	}
	if n := r.said(queue.NoteRed); len(n) != 1 || !strings.Contains(n[0], "what was settled by rule in needs.lock goes to an agent") {
		t.Errorf("told %q", n)
	}
}

// No command runs for a conflict that is only foreseen, and one that was made
// in this pawl is not made again.
func TestCommandsRunOnceAndNotOnTrial(t *testing.T) {
	t.Parallel()
	r := locked(t)
	ran := filepath.Join(folder(t), "ran")
	r.o.Regenerate = regenerate("echo x >> " + ran + "; " + relock)
	base := r.git("rev-parse", "main")
	q := r.queue()
	first, commit := r.task("First", base, "needs/b", "b\n", "needs.lock", "a 1\nb 7\n")
	second, other := r.task("Second", base, "needs/c", "c\n", "needs.lock", "a 1\nc 9\n")
	r.add(q, first, commit, "First")
	if err := q.Add(t.Context(), Entry{ID: second, Commit: other, Title: "Second", Needs: []string{"task-099"}}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command ran on trial")
	}
	if n := r.said(queue.NoteAhead); len(n) != 0 {
		t.Errorf("told %q", n)
	}
	e := queue.Entry{ID: second, Commit: other}
	for range 2 {
		m, err := q.conflicts.mergeTrees(context.WithoutCancel(t.Context()), r.git("rev-parse", "main"), &e)
		if err != nil || m.conflict != nil {
			t.Fatal(m, err)
		}
	}
	if got, _ := os.ReadFile(ran); string(got) != "x\n" {
		t.Errorf("the command ran %d times", len(got)/2)
	}
}
