package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestBoundedKeepsHeadAndTail(t *testing.T) {
	const limit = 100
	for _, total := range []int{0, 1, 49, 50, 51, 99, 100, 101, 149, 150, 151, 1000, 12345} {
		for _, chunk := range []int{1, 7, 50, 64, 5000} {
			stream := make([]byte, total)
			for i := range stream {
				stream[i] = byte('a' + i%23)
			}
			path := filepath.Join(t.TempDir(), "out")
			b := NewBounded(path, limit)
			for rest := stream; len(rest) > 0; {
				n := min(chunk, len(rest))
				_, _ = b.Write(rest[:n])
				rest = rest[n:]
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			want := string(stream)
			if total > limit {
				want = string(stream[:50]) + "\n… " + amount(int64(total-limit)) + " left out …\n" + string(stream[total-50:])
			}
			got, err := os.ReadFile(path)
			if total == 0 && err == nil {
				t.Error("an empty stream made a file")
			}
			if string(got) != want {
				t.Errorf("total %d, chunk %d: got %q, want %q", total, chunk, got, want)
			}
			if b.Size() != int64(total) || b.Truncated() != (total > limit) {
				t.Errorf("total %d: size %d, truncated %v", total, b.Size(), b.Truncated())
			}
			if _, err := os.Stat(path + ".tail"); err == nil {
				t.Error("the ring is left behind")
			}
		}
	}
}

func TestBoundedGoesOnWhenTheDiskIsFull(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	path := filepath.Join(t.TempDir(), "out")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	b := NewBounded(path, 100)
	for range 10 {
		if n, err := b.Write(bytes.Repeat([]byte("x"), 30)); n != 30 || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	err := b.Close()
	if err == nil || !strings.Contains(err.Error(), "no space left") || b.Size() != 300 || !b.Truncated() {
		t.Errorf("Close: %v, size %d; want a full disk and 300", err, b.Size())
	}
}

func TestBoundedMakesItsFolderAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gone", "out")
	b := NewBounded(path, 0)
	_, _ = b.Write([]byte("text"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "text" {
		t.Errorf("got %q", got)
	}
}

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
