package merge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// movedBy are the two ways in which a target moves: a task lands, and what the remote
// has is taken over.
var movedBy = map[string]func(r *rig, files ...string){
	"a landing": func(r *rig, files ...string) {
		q := r.queue()
		id, commit := r.task("Change", r.git("rev-parse", "main"), files...)
		r.add(q, id, commit, "Change")
	},
	"a fetch": func(r *rig, files ...string) {
		bare, _ := r.upstream()
		commit := r.commit("theirs", "main", files...)
		gittest.Git(r.t, r.dir, "push", "-q", bare, commit+":refs/heads/main")
	},
}

// A pawl that is killed right after the target moved has all files still to move. The
// next one finishes that, whatever became of the files and of the target meanwhile.
func TestTheNextPawlFinishesAMovement(t *testing.T) {
	t.Parallel()
	long := noise("long", 3*4096+100)
	meanwhile := map[string]struct {
		do     func(r *rig)
		status string // that git shows in the end
	}{
		"nothing":        {do: func(*rig) {}},
		"half written":   {do: func(r *rig) { r.write("a.txt", long[:4096]) }},
		"not yet there":  {do: func(r *rig) { _ = os.Remove(filepath.Join(r.dir, "a.txt")) }},
		"only created":   {do: func(r *rig) { r.write("new.txt", "") }},
		"mine":           {do: func(r *rig) { r.write("a.txt", "one\ntwo\n") }, status: " M a.txt"},
		"new and mine":   {do: func(r *rig) { r.write("new.txt", long[:4097]) }, status: " M new.txt"},
		"staged":         {do: func(r *rig) { r.stage("a.txt", "mine\n") }, status: "M  a.txt"},
		"a commit":       {do: func(r *rig) { r.stage("c.txt", "c\n"); r.git("commit", "-qm", "mine", "--", "c.txt") }},
		"taken back":     {do: func(r *rig) { r.git("commit", "-qm", "mine", "-a") }},
		"another branch": {do: func(r *rig) { r.git("symbolic-ref", "HEAD", "refs/heads/other") }, status: "A  a.txt\nA  b.txt"},
		"rewritten": {do: func(r *rig) {
			r.git("reset", "-q", "--hard", "HEAD~1")
			r.git("reflog", "expire", "--expire=now", "--all")
		}},
	}
	for by, move := range movedBy {
		for name, m := range meanwhile {
			t.Run(by+", "+name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				move(r, "a.txt", long, "new.txt", long, "b.txt", "-")
				r.killed("", "after ref")
				if err := os.Remove(filepath.Join(r.dir, ".git", "index.lock")); err != nil {
					t.Fatal(err) // the person takes it for a dead git's
				}
				m.do(r)
				if name == "rewritten" {
					r.o.Local = true // else the same is fetched again
				}
				r.drain(r.queue())
				if got := r.git("status", "--porcelain"); got != m.status {
					t.Errorf("the checkout:\n%s\n%v", got, r.notes)
				}
				if m.status != "" && name != "another branch" && len(r.said(queue.NoteWarning)) != 1 {
					t.Errorf("told %q", r.said(queue.NoteWarning))
				}
				if text, err := os.ReadFile(filepath.Join(r.o.Dir, "checkout.lock")); err != nil || len(text) > 0 {
					t.Errorf("%q is left, %v", text, err)
				}
				r.git("fsck", "--strict")
			})
		}
	}
}

func (r *rig) stage(name, text string) { r.t.Helper(); r.write(name, text); r.git("add", name) }

// The disk is full from the moment that the target has moved. The files stay locked
// until they are moved: a commit of all that differs would take the landing back.
func TestTheDiskIsFullWhenTheTargetHasMoved(t *testing.T) {
	t.Parallel()
	for by, move := range movedBy {
		for _, room := range []int{0, 40 << 10} {
			t.Run(by, func(t *testing.T) {
				t.Parallel()
				small := smallDisk(t)
				r := newRigIn(t, filepath.Join(small, "repo"))
				files := []string{"a.txt", noise("a", 100<<10), "b.txt", "-", "new/one", noise("one", 100<<10)}
				move(r, files...)
				filler, full := filepath.Join(small, "filler"), false
				r.o.point = func(name string) {
					if name == "after ref" && !full {
						full = true
						fillBut(t, small, room)
					}
				}
				r.o.Notify = func(n queue.Note) {
					r.note(n)
					if n.Kind == queue.NoteTrouble {
						_ = os.Remove(filler)
						if r.tryGit("commit", "-qam", "all that differs") == nil {
							t.Error("a person could commit what is half moved")
						}
					}
				}
				r.drain(r.queue())
				if n := r.said(queue.NoteTrouble); len(n) == 0 || !strings.Contains(n[0], "is full, make room: cannot move the files") {
					t.Errorf("said %q", n)
				}
				if got := r.git("status", "--porcelain"); got != "" || r.read("a.txt") != files[1] || r.read("new/one") != files[5] {
					t.Errorf("the checkout:\n%s", got)
				}
				if left := r.left(); len(left) > 0 {
					t.Errorf("left %q", left)
				}
				r.git("fsck", "--strict")
			})
		}
	}
}
