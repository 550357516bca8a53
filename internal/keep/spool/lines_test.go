package spool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A line that never ends costs no more than the longest that is read.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lines")
	text := strings.Repeat("a", MaxLine+2<<20) + "\n" + `{"kind":"text","text":"after"}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewLines(opened(t, path), 0)
	if !l.Next() || len(l.Line) > MaxLine+1<<20 {
		t.Fatalf("the rest of the long line has %d bytes", len(l.Line))
	}
	if !l.Next() || string(l.Line) != `{"kind":"text","text":"after"}` || l.End != int64(len(text)) || l.Next() {
		t.Errorf("after it: %q, %d", l.Line, l.End)
	}
}
