package process

import (
	"strings"
	"testing"
	"time"
)

// A writer that nobody knows of keeps the pipe open: what is in it arrives,
// and the reading ends.
func TestDrainEndsAtItsDeadline(t *testing.T) {
	r, w, err := Pipe(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	text := strings.Repeat("x", 50_000)
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	var got []byte
	Drain(r, make([]byte, 1000), func(p []byte) { got = append(got, p...) })
	if string(got) != text {
		t.Errorf("got %d bytes, want %d", len(got), len(text))
	}
}
