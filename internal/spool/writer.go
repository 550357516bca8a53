package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DefaultLimit is kept of a stream where nothing else is said.
const DefaultLimit = 64 << 20

// endParts is how many parts the end of a stream is kept in.
const endParts = 8

// Writer keeps a stream. It holds nothing in memory, and makes no file for an
// empty stream. It is not safe for concurrent use.
type Writer struct {
	path  string
	limit int64
	file  *os.File // that is written to
	end   int64    // where that is full
	first int64    // where the oldest part begins; 0 is none
	total int64
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
		w.fails(w.keep(p))
	}
	w.total += int64(n)
	return n, nil
}

// Size is how many bytes were written in all.
func (w *Writer) Size() int64 { return w.total }

// Truncated reports whether not all of them were kept.
func (w *Writer) Truncated() bool { return w.first > w.limit/2 || w.err != nil }

// fails keeps the first problem.
func (w *Writer) fails(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("cannot keep output: %v", err)
	}
}

func (w *Writer) keep(p []byte) error {
	for at := w.total; len(p) > 0; {
		if at == w.end {
			if err := w.turn(at); err != nil {
				return err
			}
		}
		n, err := w.file.Write(p[:min(int64(len(p)), w.end-at)])
		if err != nil {
			return err
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// turn begins the file for what comes at an offset, and lets go of parts that are
// not needed any more.
func (w *Writer) turn(at int64) (err error) {
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			return err
		}
	}
	if at == 0 {
		if err := discard(w.path); err != nil {
			return err
		}
		w.file, err = create(w.path)
		w.end = w.limit / 2
		return err
	}
	if w.first == 0 {
		w.first = at
	}
	room := w.limit - w.limit/2 // is kept of the end at least
	part := max(1, room/endParts)
	w.end = at + part
	if w.file, err = create(partName(w.path, at)); err != nil {
		return err
	}
	for ; w.first+part <= at-room; w.first += part {
		_ = os.Remove(partName(w.path, w.first)) // one that stays goes with the stream
	}
	return nil
}

// Close returns the first problem that there was.
func (w *Writer) Close() error {
	if w.file != nil {
		w.fails(w.file.Close())
		w.file = nil
	}
	return w.err
}

// discard removes the parts of an earlier stream, and one that is packed.
func discard(path string) error {
	parts, err := partsOf(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if rerr := os.Remove(path + packed); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	for _, at := range parts {
		err = errors.Join(err, os.Remove(partName(path, at)))
	}
	return err
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
