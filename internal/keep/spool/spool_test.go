package spool

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
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

// All that is kept can be read in one go: the beginning, what was left out, the end.
func TestAStreamIsReadInOneGo(t *testing.T) {
	t.Parallel()
	const limit = 160 // parts of 10
	for _, total := range []int64{0, 1, 79, 80, 81, 159, 160, 161, 166, 170, 171, 250, 1000} {
		for _, chunk := range []int64{7, 50, 64, 5000} {
			path := filepath.Join(t.TempDir(), "out")
			w := NewWriter(path, limit)
			for at := int64(0); at < total; at += chunk {
				_, _ = w.Write(stretch(at, min(total, at+chunk)))
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if w.Size() != total || w.Truncated() != (total > limit+10) {
				t.Errorf("total %d: size %d, truncated %v", total, w.Size(), w.Truncated())
			}
			if total == 0 {
				files(t, path, 0)
				continue
			}
			r, want := opened(t, path), string(stretch(0, total))
			if spans := check(t, r, total, limit); len(spans) == 2 {
				from := spans[1].From
				want = string(stretch(0, 80)) + "\n… " + sizeText(from-80) + " left out …\n" + string(stretch(from, total))
			}
			if got, err := io.ReadAll(iotest.OneByteReader(r)); err != nil || string(got) != want {
				t.Errorf("total %d, chunk %d: got %q, %v, want %q", total, chunk, got, err, want)
			}
			if _, _, all := r.File(); all != (total <= 80) {
				t.Errorf("total %d: all of it is in its file: %t", total, all)
			}
			files(t, path, 1+endParts+1)
		}
	}
}

// files fails when a stream has more than so many files.
func files(t *testing.T, path string, most int) {
	t.Helper()
	list, err := filepath.Glob(path + "*")
	if err != nil || len(list) > most {
		t.Errorf("%d files, %v: %v", len(list), err, list)
	}
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
			if spans := check(t, r, w.Size(), limit); len(spans) != 2 || spans[1].From < w.Size()-limit/2-limit/2/endParts {
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

// Of a writer that died all is there. The one that is written anew leaves nothing of
// it.
func TestAnewAfterACrash(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	_, _ = NewWriter(path, 100).Write(stretch(0, 480))
	check(t, opened(t, path), 480, 100)
	w := NewWriter(path, 100)
	_, _ = w.Write(stretch(0, 20))
	files(t, path, 1)
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
