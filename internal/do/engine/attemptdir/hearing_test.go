package attemptdir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// An attempt has told what its program took while it worked; what came too late is told later.
func TestMessagesOfAnAttempt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := Begun{Messages: []int64{1}, Said: []string{"one"}, Job: supervisor.Job{Files: filepath.Join(dir, "agent")}}
	var h Hearing
	pass := func(row int64, text string) {
		h.Pass(row, text, func(why string) { t.Error(why) })
	}
	pass(2, "nobody works")
	h.Open(b, filepath.Join(dir, "begun.json"))
	pass(1, "one")
	pass(3, "three")
	pass(3, "three")
	pass(4, "four")
	kept, _ := LoadBegun(filepath.Join(dir, "begun.json"))
	b = h.Close(b)
	pass(5, "it has ended")
	if want := []int64{1, 3, 4}; !slices.Equal(b.Messages, want) || !slices.Equal(kept.Messages, want) || kept.Later != 2 {
		t.Errorf("the attempt has %v, kept %+v", b.Messages, kept)
	}
	lines, _ := os.ReadFile(b.Job.Messages())
	if want := string(agent.UserLine("three")) + string(agent.UserLine("four")); string(lines) != want {
		t.Errorf("the program is to read %s", lines)
	}
	for told, want := range map[int]string{0: "one", 1: "one three", 2: "one three four"} {
		got := b.Told(supervisor.Result{Told: told})
		if strings.Join(got.Said, " ") != want || len(got.Messages) != len(got.Said) {
			t.Errorf("with %d told: %q", told, got.Said)
		}
	}
}
