package pool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// The note is that of another git directory after a copy, and a damaged one is no permission.
func TestNoteOfTheBoard(t *testing.T) {
	t.Parallel()
	p := newRig(t).open()
	if err := p.ClaimBoard(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.repo.Common, boardFile)
	var note boardNote
	if err := files.ReadJSON(path, &note); err != nil || note.ID == "" || note.State != p.o.StateDir {
		t.Fatalf("%+v, %v", note, err)
	}
	other := note
	other.ID = "another"
	for what, c := range map[string]struct {
		note    boardNote
		refused bool
	}{
		"its own": {note, false}, "another's": {other, true}, "of a copy": {boardNote{ID: "another", Git: "elsewhere"}, false},
	} {
		if err := files.ReplaceJSON(path, c.note, false); err != nil {
			t.Fatal(err)
		}
		err := p.ClaimBoard()
		if c.refused != (err != nil && strings.Contains(err.Error(), "already has a board")) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.ClaimBoard(); err == nil {
		t.Error("a damaged note lets any board work")
	}
}
