package queue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// lines are written with | between them.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "|")
}

func TestSettle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path         string
		base, ours, theirs string
		want               string // "no" is that no rule fits
	}{
		{"only the target re-indented", "a.go", "if x {|y()|}", "if x {|\ty()|}", "if x {|z()|}", "if x {|z()|}"},
		{"only the entry re-indented", "a.go", "a|b", "a|c", "a  ||  b", "a|c"},
		{"the same but for blanks", "a.go", "a", "b|c", "\tb||c ", "b|c"},
		{"blanks in the middle count", "a.go", "a b", "a  b", "a c", "no"},
		{"blanks have a meaning in Python", "a.py", "x|y", "  x|  y", "x|z", "no"},
		{"and in a Makefile", "sub/Makefile", "a:|\tb", "a:|  b", "a:|\tc", "no"},
		{"both added", "list.txt", "", "apple", "pear", "apple|pear"},
		{"both added functions", "a.go", "", "func A() {|}|", "func B() {|}|", "func A() {|}||func B() {|}|"},
		{"both added the same name", "a.go", "", "func A() {|}", "func A() { x }", "no"},
		{"both set one key", "a.json", "", `"v": 1,`, `"v": 2,`, "no"},
		{"one added, one deleted", "a.txt", "x", "", "x|y", "no"},
		{"both changed", "a.txt", "x", "y", "z", "no"},
		{"checksums", "go.sum", "a 1", "a 1|c 1", "a 1|b 1", "a 1|b 1|c 1"},
		{"a checksum that one side dropped", "go.sum", "a 1|b 1", "b 1|c 1", "a 1|b 1|d 1", "b 1|c 1|d 1"},
	} {
		f := queue.File{Path: tt.path, Kinds: []string{"contents"}, Hunks: []queue.Hunk{{Base: lines(tt.base), Ours: lines(tt.ours), Theirs: lines(tt.theirs)}}}
		got, ok := f.Resolve()
		if !ok {
			got = [][]string{{"no"}}
		}
		if want := strings.Split(tt.want, "|"); !slices.Equal(got[0], want) {
			t.Errorf("%s: %q, want %q", tt.name, got[0], want)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	hunk := func(n int) queue.Hunk {
		return queue.Hunk{Base: []string{"x"}, Ours: slices.Repeat([]string{"y"}, n), Theirs: []string{"z"}}
	}
	file := func(kinds string, hunks ...queue.Hunk) queue.File {
		return queue.File{Path: "f", Kinds: strings.Split(kinds, ","), Hunks: hunks}
	}
	added := queue.Hunk{Ours: []string{"a"}, Theirs: []string{"b"}}
	for _, tt := range []struct {
		name string
		c    queue.Conflict
		want queue.Class
	}{
		{"nothing known", queue.Conflict{}, queue.Complex},
		{"both added", queue.Conflict{Files: []queue.File{file("contents", added)}}, queue.Simple},
		{"long additions are simple too", queue.Conflict{Files: []queue.File{file("contents", queue.Hunk{Ours: slices.Repeat([]string{"a"}, 50), Theirs: []string{"b"}})}}, queue.Simple},
		{"few lines", queue.Conflict{Files: []queue.File{file("contents", hunk(19))}}, queue.Medium},
		{"many lines", queue.Conflict{Files: []queue.File{file("contents", hunk(20))}}, queue.Complex},
		{"many together", queue.Conflict{Files: []queue.File{file("contents", hunk(10)), file("contents", hunk(10))}}, queue.Complex},
		{"simple and medium", queue.Conflict{Files: []queue.File{file("contents", added), file("contents", hunk(3))}}, queue.Medium},
		{"few lines beside many that a rule settles", queue.Conflict{Files: []queue.File{
			file("contents", queue.Hunk{Ours: slices.Repeat([]string{"a"}, 50), Theirs: []string{"b"}}), file("contents", hunk(3)),
		}}, queue.Medium},
		{"renamed and deleted", queue.Conflict{Files: []queue.File{file("rename/delete", hunk(1))}}, queue.Complex},
		{"deleted", queue.Conflict{Files: []queue.File{file("modify/delete")}}, queue.Complex},
		{"binary", queue.Conflict{Files: []queue.File{{Path: "f", Kinds: []string{"contents"}, Binary: true}}}, queue.Complex},
		{"a link", queue.Conflict{Files: []queue.File{{Path: "f", Kinds: []string{"contents"}, Special: true, Hunks: []queue.Hunk{added}}}}, queue.Complex},
		{"a whole new file on both sides", queue.Conflict{Files: []queue.File{{Path: "f", Kinds: []string{"add/add"}, Created: true, Hunks: []queue.Hunk{added}}}}, queue.Medium},
		{"the same new file but for blanks", queue.Conflict{Files: []queue.File{{Path: "f", Kinds: []string{"add/add"}, Created: true, Hunks: []queue.Hunk{{Ours: []string{"a"}, Theirs: []string{"a "}}}}}}, queue.Simple},
		{"more files than are kept", queue.Conflict{More: 1, Files: []queue.File{file("contents", added)}}, queue.Complex},
	} {
		if got, why := queue.Classify(tt.c); got != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, got, why, tt.want)
		}
	}
}
