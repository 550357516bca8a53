package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultLimit is kept of a stream where nothing else is said.
const DefaultLimit = 64 << 20

// partsOf is how many parts the end of a stream is kept in.
const partsOf = 8

// Writer keeps a stream. It holds nothing in memory, and makes no file for an
// empty stream. It is not safe for concurrent use.
type Writer struct {
	path  string
	limit int64
	head  *os.File
	part  *os.File
	lay   layout
	total int64
	kept  int64 // offset after the last byte that is on the disk
	err   error
}

// NewWriter prepares a writer that keeps about limit bytes: the first half of
// them, and the last. Limit 0 is [DefaultLimit]. A stream that was kept at the
// path before is replaced with the first byte.
func NewWriter(path string, limit int64) *Writer {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = max(limit, 2) // a beginning and an end
	return &Writer{path: path, limit: limit}
}

// Write counts p and keeps what fits. It never fails: the reader of a pipe
// must go on when the disk is full. The problem is returned by Close.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	if w.err == nil {
		if err := w.keep(p); err != nil {
			w.err = cannot(err)
		}
	}
	w.total += int64(n)
	return n, nil
}

// Size is how many bytes were written in all.
func (w *Writer) Size() int64 { return w.total }

// Truncated reports whether not all of them were kept.
func (w *Writer) Truncated() bool { return w.total > w.limit || w.err != nil }

func cannot(err error) error { return fmt.Errorf("cannot keep output: %v", err) }

// room is how much of the end is kept at least.
func (w *Writer) room() int64 { return w.limit - w.limit/2 }

func (w *Writer) keep(p []byte) error {
	at := w.total
	if half := w.limit / 2; at < half {
		if err := w.begin(); err != nil {
			return err
		}
		n, err := w.put(w.head, p[:min(int64(len(p)), half-at)])
		if err != nil {
			return err
		}
		p, at = p[n:], at+int64(n)
	}
	for len(p) > 0 {
		if w.part == nil || at == w.lay.Last+w.lay.Part {
			if err := w.turn(at); err != nil {
				return err
			}
		}
		n, err := w.put(w.part, p[:min(int64(len(p)), w.lay.Last+w.lay.Part-at)])
		if err != nil {
			return err
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

func (w *Writer) put(f *os.File, p []byte) (int, error) {
	n, err := f.Write(p)
	w.kept += int64(n)
	return n, err
}

// begin makes the file, and its folder when somebody took that away.
func (w *Writer) begin() error {
	if w.head != nil {
		return nil
	}
	if err := discard(w.path); err != nil {
		return err
	}
	f, err := create(w.path)
	w.head = f
	return err
}

// turn begins a part at an offset, and lets go of those that are not needed
// any more. The layout names a part when it is there, and never one that is gone.
func (w *Writer) turn(at int64) error {
	next := layout{Head: w.limit / 2, Part: max(1, w.room()/partsOf), First: at, Last: at}
	if w.part != nil {
		next.First = w.lay.First
		if err := w.part.Close(); err != nil {
			return err
		}
	}
	f, err := create(partName(w.path, at))
	if err != nil {
		return err
	}
	for next.First+next.Part <= at-w.room() {
		next.First += next.Part
	}
	old := w.lay
	w.part, w.lay = f, next
	if err := storeLayout(w.path, next); err != nil {
		return err
	}
	for gone := old.First; old.Part > 0 && gone < next.First; gone += old.Part {
		_ = os.Remove(partName(w.path, gone)) // one that stays is found by who replaces the stream
	}
	return nil
}

// Close makes one file of it and returns the first problem that there was.
func (w *Writer) Close() error {
	if w.part != nil {
		if err := w.part.Close(); err != nil && w.err == nil {
			w.err = cannot(err)
		}
		w.part = nil
		if err := join(w.path, w.head, w.lay, w.kept, w.room()); err != nil && w.err == nil {
			w.err = cannot(err)
		}
	}
	if w.head != nil {
		if err := w.head.Close(); err != nil && w.err == nil {
			w.err = cannot(err)
		}
		w.head = nil
	}
	return w.err
}

// Mend makes one file of a stream whose writer died; all parts that are there
// are kept. The caller knows that nobody writes any more.
func Mend(path string) error {
	l, err := loadLayout(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil || l.Part == 0 {
		return err
	}
	info, err := os.Stat(partName(path, l.Last))
	if err != nil {
		return cannot(err)
	}
	head, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return cannot(err)
	}
	total := l.Last + info.Size()
	if err := errors.Join(join(path, head, l, total, total-l.First), head.Close()); err != nil {
		return cannot(err)
	}
	return nil
}

// join appends what is kept of the end to the beginning. Until that is done
// the layout says that the parts have it.
func join(path string, head *os.File, l layout, total, room int64) error {
	from := max(l.First, total-room)
	end := layout{Head: l.Head, First: from}
	// What a join that did not come to its end left is written over.
	if err := head.Truncate(l.Head); err != nil {
		return err
	}
	if _, err := head.Seek(l.Head, io.SeekStart); err != nil {
		return err
	}
	if from > l.Head {
		n, err := fmt.Fprintf(head, "\n… %s left out …\n", amount(from-l.Head))
		if err != nil {
			return err
		}
		end.Note = int64(n)
	}
	for at := l.First; at <= l.Last; at += l.Part {
		if err := appendPart(head, partName(path, at), from-at); err != nil {
			return err
		}
	}
	var err error
	if from > l.Head {
		err = storeLayout(path, end)
	} else {
		err = os.Remove(layoutName(path))
	}
	for at := l.First; err == nil && at <= l.Last; at += l.Part {
		_ = os.Remove(partName(path, at)) // like turn
	}
	return err
}

// appendPart copies a part without its first bytes; the system does it without
// a detour through this process where it can.
func appendPart(head *os.File, name string, skip int64) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if skip > 0 {
		if _, err := f.Seek(skip, io.SeekStart); err != nil {
			return err
		}
	}
	_, err = io.Copy(head, f)
	return err
}

// discard removes what an earlier stream left beside its file.
func discard(path string) error {
	l, err := loadLayout(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err == nil && l == (layout{}) {
		return nil
	}
	if err := os.Remove(layoutName(path)); err != nil {
		return err
	}
	for at := l.First; l.Part > 0 && at <= l.Last; at += l.Part {
		_ = os.Remove(partName(path, at))
	}
	return nil
}

func create(path string) (*os.File, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_TRUNC
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, flags, 0o600)
	}
	return f, err
}

// amount is a number of bytes for people.
func amount(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
