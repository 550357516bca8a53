package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Reader reads a stream by its offsets, also while it is written. It holds one
// file open, and is not safe for concurrent use.
type Reader struct {
	root *os.Root
	name string
	head *os.File
	info fs.FileInfo // of head
}

// Span is a stretch of a stream: From is its first byte, To the one after the last.
type Span struct{ From, To int64 }

// Open opens a stream in a folder, which must stay open; an error that is
// [fs.ErrNotExist] while it is empty.
func Open(root *os.Root, name string) (*Reader, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &Reader{root: root, name: name, head: f, info: info}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.head.Close() }

// File is the stream as one file, to be read only; while the stream is written it is its beginning.
func (r *Reader) File() *os.File { return r.head }

// tries is how often a stream is looked at that changes its layout meanwhile,
// which it does a few times in its life.
const tries = 100

// steady does something with the layout, again while that changes under it.
func (r *Reader) steady(do func(layout) error) error {
	for range tries {
		before, err := r.layout()
		if err != nil {
			return err
		}
		problem := do(before)
		after, err := r.layout()
		if err != nil {
			return err
		}
		if before == after {
			return problem
		}
	}
	return fmt.Errorf("cannot read %s: it changes all the time", r.name)
}

// layout fails with fs.ErrNotExist when another stream has taken the place.
func (r *Reader) layout() (layout, error) {
	now, err := r.root.Stat(r.name)
	if err != nil {
		return layout{}, err
	}
	if !os.SameFile(now, r.info) {
		return layout{}, fmt.Errorf("%s is another stream now: %w", r.name, fs.ErrNotExist)
	}
	return loadLayout(r.root.FS(), r.name)
}

// Spans is what can be read as of now: one stretch, or two with what was left
// out between them.
func (r *Reader) Spans() (spans []Span, err error) {
	err = r.steady(func(l layout) error {
		spans, err = r.spans(l)
		return err
	})
	return spans, err
}

func (r *Reader) spans(l layout) ([]Span, error) {
	info, err := r.head.Stat()
	if err != nil {
		return nil, err
	}
	if l == (layout{}) {
		return []Span{{0, info.Size()}}, nil
	}
	end := l.First + info.Size() - l.Head - l.Note
	if l.Part > 0 {
		part, err := r.root.Stat(partName(r.name, l.Last))
		if err != nil {
			return nil, err
		}
		end = l.Last + part.Size()
	}
	if l.First == l.Head {
		return []Span{{0, end}}, nil
	}
	return []Span{{0, l.Head}, {l.First, end}}, nil
}

// Size is the length of the stream as of now, with what was left out.
func (r *Reader) Size() (int64, error) {
	spans, err := r.Spans()
	if err != nil {
		return 0, err
	}
	return spans[len(spans)-1].To, nil
}

// ReadAt fills buf with what is at an offset and after it, and says where what
// it read begins: later than asked where that was left out. It reads nothing at
// the end, less than there is room for only before what was left out or at the
// end, and never across what was left out.
func (r *Reader) ReadAt(buf []byte, off int64) (n int, at int64, err error) {
	err = r.steady(func(l layout) error {
		n, at = 0, off
		for n < len(buf) {
			some, from, err := r.some(l, buf[n:], at+int64(n))
			if err != nil {
				return err
			}
			if n > 0 && from > at+int64(n) || some == 0 {
				return nil
			}
			if n == 0 {
				at = from
			}
			n += some
		}
		return nil
	})
	return n, at, err
}

// some reads from one file.
func (r *Reader) some(l layout, buf []byte, off int64) (n int, at int64, err error) {
	if l == (layout{}) || off < l.Head {
		if l.Head > 0 {
			buf = buf[:min(int64(len(buf)), l.Head-off)]
		}
		n, err = r.head.ReadAt(buf, off)
		return n, off, notEOF(err)
	}
	off = max(off, l.First)
	if l.Part == 0 {
		n, err = r.head.ReadAt(buf, l.Head+l.Note+off-l.First)
		return n, off, notEOF(err)
	}
	begin := l.First + (off-l.First)/l.Part*l.Part
	if begin > l.Last {
		return 0, off, nil
	}
	f, err := r.root.Open(partName(r.name, begin))
	if err != nil {
		return 0, off, err
	}
	defer func() { _ = f.Close() }()
	n, err = f.ReadAt(buf, off-begin)
	return n, off, notEOF(err)
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
