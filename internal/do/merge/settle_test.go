package merge

import (
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// settling is a conflict that waits for a person, and the queue that it is in.
func settling(t *testing.T, first, second []string, gate string) (*rig, *Queue, Sides) {
	t.Helper()
	r := newRig(t)
	r.o.Gates = gates(gate)
	id := r.conflicting(first, second)
	q := r.queue()
	s, err := q.Sides(t.Context(), id)
	if err != nil {
		t.Fatalf("%v: %v", err, r.left())
	}
	return r, q, s
}

// What a person made of a conflict lands when the gates are green, with what landed
// meanwhile. Until then no checkout is touched.
func TestAPersonSettlesAConflict(t *testing.T) {
	t.Parallel()
	r, q, s := settling(t, []string{"a.txt", "one\nTWO\nthree\nfour\nfive\nsix\nseven\n"},
		[]string{"a.txt", "one\n2\nthree\nfour\nfive\nsix\nseven\n", "new.txt", "new\n"}, "true")
	base := s.Tip
	h := s.Files[0].Hunks[0]
	equal(t, "before", h.Before, []string{"one"})
	equal(t, "base", h.Base, []string{"two"})
	equal(t, "ours", h.Ours, []string{"TWO"})
	equal(t, "theirs", h.Theirs, []string{"2"})
	equal(t, "after", h.After, []string{"three", "four", "five", "six", "seven"})
	for _, odd := range [][]Choice{nil, {{}}, {{Hunks: [][]string{{"x"}, {"y"}}}}, {{Take: "ours"}, {Take: "ours"}}} {
		if err := q.Settle(t.Context(), s.Task, s.Commit, s.Tip, odd); err == nil {
			t.Errorf("%+v settles it", odd)
		}
	}
	other, commit := r.task("Meanwhile", s.Tip, "b.txt", "meanwhile\n")
	r.add(q, other, commit, "Meanwhile")
	r.drain(q)
	r.write("b.txt", "of the user\n")

	if err := q.Settle(t.Context(), s.Task, s.Commit, s.Tip, []Choice{{Hunks: [][]string{{"both", "2"}}}}); err != nil {
		t.Fatal(err)
	}
	if got := r.read("a.txt"); got != "one\nTWO\nthree\nfour\nfive\nsix\nseven\n" {
		t.Errorf("a.txt of the checkout is %q", got)
	}
	r.drain(q)
	if st := r.status(s.Task); st != board.Done {
		t.Fatalf("it is %s: %v", st, r.left())
	}
	if got := r.read("a.txt"); got != "one\nboth\n2\nthree\nfour\nfive\nsix\nseven\n" {
		t.Errorf("a.txt is %q", got)
	}
	if got := r.git("show", "main:b.txt"); got != "meanwhile" || r.read("b.txt") != "of the user\n" {
		t.Errorf("b.txt is %q on main, and %q in the checkout", got, r.read("b.txt"))
	}
	r.audit(base)
}

// What a person made is judged as an agent's work is: red work does not land.
func TestWhatAPersonSettledIsVerified(t *testing.T) {
	t.Parallel()
	r, q, s := settling(t, []string{"a.txt", "TWO\n"}, []string{"a.txt", "2\n"}, "! grep -q wrong a.txt")
	if err := q.Settle(t.Context(), s.Task, s.Commit, s.Tip, []Choice{{Hunks: [][]string{{"wrong"}}}}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if st, left := r.status(s.Task), r.left(); st != board.Blocked || !strings.Contains(left[0], "red on main") {
		t.Errorf("it is %s: %v", st, left)
	}
	if _, err := q.Sides(t.Context(), s.Task); err == nil || !strings.Contains(err.Error(), "no conflict") {
		t.Errorf("work that is red shows a conflict: %v", err)
	}
}

// Whole sides settle what has no lines, and lines keep their ends.
func TestWholeSidesAndOddTexts(t *testing.T) {
	t.Parallel()
	lines := func(l ...string) []Choice { return []Choice{{Hunks: [][]string{l}}} }
	for name, tt := range map[string]struct {
		first, second []string
		hunks         int
		choices       []Choice
		want          string // of a.txt on main; "-" for no file
	}{
		"ours":       {[]string{"a.txt", "x\n"}, []string{"a.txt", "y\n"}, 1, []Choice{{Take: "ours"}}, "x\n"},
		"theirs":     {[]string{"a.txt", "x\n"}, []string{"a.txt", "y\n"}, 1, []Choice{{Take: "theirs"}}, "y\n"},
		"nothing":    {[]string{"a.txt", "x\n"}, []string{"a.txt", "y\n"}, 1, lines(), ""},
		"binary":     {[]string{"a.txt", "\x00x"}, []string{"a.txt", "\x00y"}, 0, []Choice{{Take: "theirs"}}, "\x00y"},
		"not UTF-8":  {[]string{"a.txt", "\xffx\n"}, []string{"a.txt", "\xffy\n"}, 0, []Choice{{Take: "theirs"}}, "\xffy\n"},
		"deleted":    {[]string{"a.txt", "-"}, []string{"a.txt", "y\n"}, 0, []Choice{{Take: "theirs"}}, "y\n"},
		"kept away":  {[]string{"a.txt", "-"}, []string{"a.txt", "y\n"}, 0, []Choice{{Take: "ours"}}, "-"},
		"Windows":    {[]string{"a.txt", "x\r\n"}, []string{"a.txt", "y\r\n"}, 1, lines("x\r", "y\r"), "x\r\ny\r\n"},
		"no newline": {[]string{"a.txt", "x"}, []string{"a.txt", "y"}, 1, lines("z"), "z\n"},
		"both made":  {[]string{"a.txt", "-", "n", "x\n"}, []string{"a.txt", "-", "n", "y\n"}, 1, lines("z"), "-"},
		"a folder":   {[]string{"a.txt", "-", "a.txt/in", "x\n"}, []string{"a.txt", "y\n"}, 0, []Choice{{Take: "ours"}}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, q, s := settling(t, tt.first, tt.second, "true")
			if n := len(s.Files[0].Hunks); len(s.Files) != 1 || n != tt.hunks || (n == 0) == (s.Files[0].Why == "") {
				t.Fatalf("the sides are %+v", s.Files)
			}
			if err := q.Settle(t.Context(), s.Task, s.Commit, s.Tip, tt.choices); err != nil {
				t.Fatal(err)
			}
			r.drain(q)
			if st := r.status(s.Task); st != board.Done {
				t.Fatalf("it is %s: %v", st, r.left())
			}
			got, err := try(r.dir, "cat-file", "blob", "main:a.txt")
			if err != nil {
				got = "-"
			}
			if got != tt.want {
				t.Errorf("a.txt is %q, want %q", got, tt.want)
			}
		})
	}
}

// Of two pages that settle one conflict the first counts, also when nobody has taken
// it in yet; so with a page that is older than the entry or the target.
func TestAStalePageSettlesNothing(t *testing.T) {
	t.Parallel()
	r, q, s := settling(t, []string{"a.txt", "x\n"}, []string{"a.txt", "y\n"}, "true")
	settle := func(commit, tip, line string) error {
		return q.Settle(t.Context(), s.Task, commit, tip, []Choice{{Hunks: [][]string{{line}}}})
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "has changed since") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a target that was never there", settle(s.Commit, strings.Repeat("1", 40), "z"))
	refused("a commit beside the target", settle(s.Commit, s.Commit, "z"))
	refused("another commit", settle(s.Tip, s.Tip, "z"))
	if err := settle(s.Commit, s.Tip, "first"); err != nil {
		t.Fatal(err)
	}
	refused("a second page", settle(s.Commit, s.Tip, "second"))
	late := queue.Ask{Wish: queue.WishSettle, ID: s.Task, From: s.Commit, Commit: s.Commit}
	if err := q.Ask(t.Context(), late); err != nil { // as one that came between looking and asking
		t.Fatal(err)
	}
	r.drain(q)
	if got := r.read("a.txt"); got != "first\n" {
		t.Errorf("a.txt is %q", got)
	}
	equal(t, "refused", r.said(queue.NoteRefused), []string{s.Task + " its conflict has changed since it was settled"})
}

// A pawl that is killed after it made the commit and before it asked leaves a conflict
// that can be settled.
func TestKilledWhileItIsSettled(t *testing.T) {
	t.Parallel()
	r, q, s := settling(t, []string{"a.txt", "x\n"}, []string{"a.txt", "y\n"}, "true")
	made := r.commit("half", s.Tip, "a.txt", "half\n")
	r.git("update-ref", queuedTaskRef(s.Task), made)
	if err := q.Settle(t.Context(), s.Task, s.Commit, s.Tip, []Choice{{Take: "theirs"}}); err != nil {
		t.Fatal(err)
	}
	r.drain(q)
	if got := r.read("a.txt"); got != "y\n" {
		t.Errorf("a.txt is %q: %v", got, r.left())
	}
}
