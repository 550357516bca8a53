package spool

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// byteAt is what the streams of these tests have at an offset.
func byteAt(off int64) byte { return "abcdefghijklmnopqrstuvw"[(off+off/1000)%23] }

func stretch(from, to int64) []byte {
	b := make([]byte, 0, to-from)
	for ; from < to; from++ {
		b = append(b, byteAt(from))
	}
	return b
}

func opened(t *testing.T, path string) *Reader {
	t.Helper()
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(root, filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), root.Close() })
	return r
}

// What is left is one file: the beginning, what was left out, the end.
func TestAStreamBecomesOneFile(t *testing.T) {
	t.Parallel()
	const limit = 100
	for _, total := range []int64{0, 1, 49, 50, 51, 99, 100, 101, 106, 149, 150, 151, 1000} {
		for _, chunk := range []int64{7, 50, 64, 5000} {
			path := filepath.Join(t.TempDir(), "out")
			w := NewWriter(path, limit)
			for at := int64(0); at < total; at += chunk {
				_, _ = w.Write(stretch(at, min(total, at+chunk)))
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			want := string(stretch(0, total))
			if total > limit {
				want = string(stretch(0, 50)) + "\n… " + amount(total-limit) + " left out …\n" + string(stretch(total-50, total))
			}
			got, err := os.ReadFile(path)
			if total == 0 && err == nil {
				t.Error("an empty stream made a file")
			}
			if string(got) != want {
				t.Errorf("total %d, chunk %d: got %q, want %q", total, chunk, got, want)
			}
			if w.Size() != total || w.Truncated() != (total > limit) {
				t.Errorf("total %d: size %d, truncated %v", total, w.Size(), w.Truncated())
			}
			alone(t, path, total > limit)
		}
	}
}

// alone fails when something is left beside a stream's file but its layout.
func alone(t *testing.T, path string, withLayout bool) {
	t.Helper()
	beside, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	if withLayout && len(beside) == 1 && beside[0] == layoutName(path) || !withLayout && len(beside) == 0 {
		return
	}
	t.Errorf("left behind: %v", beside)
}

// check reads at many places and compares; it returns what can be read.
func check(t *testing.T, r *Reader, total, limit int64) []Span {
	t.Helper()
	spans, err := r.Spans()
	if err != nil {
		t.Fatal(err)
	}
	last := spans[len(spans)-1]
	if spans[0].From != 0 || last.To != total || len(spans) > 2 {
		t.Fatalf("of %d bytes there are %v", total, spans)
	}
	kept := spans[0].To - spans[0].From
	if len(spans) == 2 {
		kept += last.To - last.From
	}
	if kept < min(total, limit) {
		t.Fatalf("%d of %d bytes are kept: %v", kept, total, spans)
	}
	buf := make([]byte, 40)
	for off := int64(0); off <= total; off += 1 + total/41 {
		n, at, err := r.ReadAt(buf, off)
		want := off
		end := last.To
		if len(spans) == 2 && off < last.From {
			if end = spans[0].To; off >= end {
				want, end = last.From, last.To
			}
		}
		if err != nil || at != want || int64(n) != min(int64(len(buf)), end-want) || !bytes.Equal(buf[:n], stretch(at, at+int64(n))) {
			t.Fatalf("at %d of %d with %v: %q from %d, %v", off, total, spans, buf[:n], at, err)
		}
	}
	return spans
}

// Every place that is kept is read by its offset, while the stream is written
// and when it has ended, by one who came first and by one who comes then.
func TestEveryPlaceIsReadByItsOffset(t *testing.T) {
	t.Parallel()
	const limit = 400
	for _, chunk := range []int64{17, 24, 25, 26, 399, 1100} {
		path := filepath.Join(t.TempDir(), "out")
		w := NewWriter(path, limit)
		var first *Reader
		for at := int64(0); at < 2000; at += chunk {
			_, _ = w.Write(stretch(at, at+chunk))
			if first == nil {
				first = opened(t, path)
			}
			check(t, first, at+chunk, limit)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Reader{first, opened(t, path)} {
			if spans := check(t, r, w.Size(), limit); len(spans) != 2 || spans[1].From != w.Size()-limit/2 {
				t.Errorf("at the end there is %v of %d", spans, w.Size())
			}
		}
	}
}

// Who follows a stream gets every byte that is kept, and never a wrong one.
func TestFollowingWhileItIsWritten(t *testing.T) {
	t.Parallel()
	const limit, total = 10_000, 150_000
	path := filepath.Join(t.TempDir(), "out")
	w := NewWriter(path, limit)
	_, _ = w.Write(stretch(0, 1))
	var writing sync.WaitGroup
	writing.Go(func() {
		order := rand.New(rand.NewPCG(1, 2))
		for at := int64(1); at < total; {
			n := min(total-at, 1+order.Int64N(3000))
			_, _ = w.Write(stretch(at, at+n))
			at += n
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	r, buf := opened(t, path), make([]byte, 700)
	for next := int64(0); next < total; {
		n, at, err := r.ReadAt(buf, next)
		if err != nil || at < next || !bytes.Equal(buf[:n], stretch(at, at+int64(n))) {
			t.Fatalf("from %d: %d bytes at %d, %v", next, n, at, err)
		}
		if at > next && at < limit/2 {
			t.Fatalf("from %d: the beginning was left out up to %d", next, at)
		}
		next = at + int64(n)
	}
	writing.Wait()
	check(t, r, total, limit)
}

// Of a writer that died its parts are there, and are made one file.
func TestMend(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{30, 50, 70, 100, 480} {
		path := filepath.Join(t.TempDir(), "out")
		w := NewWriter(path, 100)
		_, _ = w.Write(stretch(0, total))
		r := opened(t, path)
		before := check(t, r, total, 100)
		for range 2 {
			if err := Mend(path); err != nil {
				t.Fatal(err)
			}
		}
		after := check(t, r, total, 100)
		if len(before) != len(after) || before[0] != after[0] {
			t.Errorf("%d: %v became %v", total, before, after)
		}
		alone(t, path, total > 110)
		// The next attempt begins anew.
		again := NewWriter(path, 100)
		_, _ = again.Write([]byte("anew"))
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); string(got) != "anew" {
			t.Errorf("%q, %v", got, err)
		}
		alone(t, path, false)
	}
	if err := Mend(filepath.Join(t.TempDir(), "out")); err != nil {
		t.Errorf("an empty stream: %v", err)
	}
}

// A crashed stream that is written anew leaves nothing of the old one.
func TestAnewAfterACrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	_, _ = NewWriter(path, 100).Write(stretch(0, 480))
	w := NewWriter(path, 100)
	_, _ = w.Write(stretch(0, 20))
	alone(t, path, false)
	check(t, opened(t, path), 20, 100)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A place that another stream has taken is not read on.
func TestAnotherStream(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	w := NewWriter(path, 100)
	_, _ = w.Write(stretch(0, 20))
	r := opened(t, path)
	if err := os.Rename(path, path+"-aside"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Size(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.ReadAt(make([]byte, 10), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with another: %v", err)
	}
}

func TestAWriterGoesOnWhenTheDiskIsFull(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	path := filepath.Join(t.TempDir(), "out")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(path, 100)
	for range 10 {
		if n, err := w.Write(bytes.Repeat([]byte("x"), 30)); n != 30 || err != nil {
			t.Fatalf("Write: %d, %v", n, err)
		}
	}
	err := w.Close()
	if err == nil || !strings.Contains(err.Error(), "no space left") || w.Size() != 300 || !w.Truncated() {
		t.Errorf("Close: %v, size %d; want a full disk and 300", err, w.Size())
	}
}

func TestAWriterMakesItsFolderAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gone", "out")
	w := NewWriter(path, 0)
	_, _ = w.Write([]byte("text"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "text" {
		t.Errorf("got %q", got)
	}
}
