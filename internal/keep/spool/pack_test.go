package spool

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pack packs the stream at a path.
func pack(t *testing.T, path string) {
	t.Helper()
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := Pack(root, filepath.Base(path)); err != nil {
		t.Fatal(err)
	}
}

// A stream that is packed reads as before, for who comes then and for who reads it
// already, also where a crash has left both files; another one takes its place.
func TestAPackedStreamReadsAsBefore(t *testing.T) {
	t.Parallel()
	const limit, total = 20_000, 9_000
	path := filepath.Join(t.TempDir(), "out")
	w := NewWriter(path, limit)
	_, _ = w.Write(stretch(0, total))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	before := opened(t, path)
	check(t, before, total, limit)
	pack(t, path)
	for name, r := range map[string]*Reader{"before": before, "after": opened(t, path)} {
		check(t, r, total, limit)
		if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, stretch(0, total)) {
			t.Errorf("%s: all of it is %d bytes, %v", name, len(text), err)
		}
		f, changed, all := r.File()
		if text, err := io.ReadAll(f); !all || changed.IsZero() || err != nil && len(text) != total {
			t.Errorf("%s: its file has %d bytes, %v, %v, all %t", name, len(text), err, changed, all)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the plain file is there: %v", err)
	}

	if err := os.WriteFile(path, stretch(0, total), 0o600); err != nil { // killed before it was removed
		t.Fatal(err)
	}
	check(t, opened(t, path), total, limit)
	pack(t, path)
	check(t, opened(t, path), total, limit)

	w = NewWriter(path, limit)
	_, _ = w.Write(stretch(0, 20))
	files(t, path, 1)
	check(t, opened(t, path), 20, limit)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSmallAndLargeStreamsStay(t *testing.T) {
	t.Parallel()
	for total, limit := range map[int64]int64{leastPacked - 1: 100_000, mostPacked + 1: 4 * mostPacked, 9_000: 10_000} {
		path := filepath.Join(t.TempDir(), "out")
		w := NewWriter(path, limit)
		_, _ = w.Write(stretch(0, total))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		pack(t, path)
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%d bytes of at most %d: %v", total, limit, err)
		}
	}
}

// What others have put there costs no memory and no sense.
func TestHostilePacks(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 2 * mostPacked >> 20 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	_ = z.Close()
	for name, data := range map[string][]byte{"a bomb": bomb.Bytes(), "rubbish": []byte("rubbish"), "half": bomb.Bytes()[:5000], "nothing": nil} {
		path := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(path+packed, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := OpenFile(path); r != nil || err == nil || !strings.Contains(err.Error(), "cannot unpack") {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}
