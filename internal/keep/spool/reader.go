package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Reader reads a stream, also while it is written: by its offsets, or as an
// [io.Reader] all that is kept, with a line where something was left out. It
// holds one file open, and is not safe for concurrent use.
type Reader struct {
	root  *os.Root
	close func() error // of root, if it is the reader's own
	name  string
	head  head
	info  fs.FileInfo // of the file
	next  int64       // where Read continues
	note  string      // what Read is to say first
}

// head is the beginning of a stream, or all of one that is packed.
type head interface {
	io.ReaderAt
	io.ReadSeeker
	io.Closer
}

// Span is a stretch of a stream: From is its first byte, To the one after the last.
type Span struct{ From, To int64 }

// Open opens a stream in a folder, which must stay open; an error that is
// [fs.ErrNotExist] while it is empty.
func Open(root *os.Root, name string) (*Reader, error) {
	var h head
	h, info, err := openRegular(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		h, info, err = openPacked(root, name)
	}
	if err != nil {
		return nil, err
	}
	return &Reader{root: root, close: func() error { return nil }, name: name, head: h, info: info}, nil
}

// openRegular opens a file. A pipe without a writer would hold it up.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	if err != nil {
		_ = f.Close()
	}
	return f, info, err
}

// OpenFile is [Open] with the path of the stream.
func OpenFile(path string) (*Reader, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	r, err := Open(root, filepath.Base(path))
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	r.close = root.Close
	return r, nil
}

// ReadEnd returns the last bytes of a file, as many as it has; "" when it cannot be read.
func ReadEnd(path string, limit int64) string {
	f, err := OpenFile(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(size, limit))
	n, _, _ := f.ReadAt(buf, size-int64(len(buf)))
	return string(buf[:n])
}

// Close closes what the reader has opened.
func (r *Reader) Close() error { return errors.Join(r.head.Close(), r.close()) }

// File is the beginning of the stream, to be read only, and when it was changed; all
// says that there is no more of it now.
func (r *Reader) File() (f io.ReadSeeker, changed time.Time, all bool) {
	parts, err := r.partsNow()
	return r.head, r.info.ModTime(), err == nil && len(parts) == 0
}

// tries is how often a stream is looked at whose parts go meanwhile.
const tries = 100

// retryWithParts does something with where the parts begin, again when one has gone
// meanwhile.
func (r *Reader) retryWithParts(do func(parts []int64) error) error {
	for try := 1; ; try++ {
		parts, err := r.partsNow()
		if err != nil {
			return err
		}
		if err = do(parts); !errors.Is(err, fs.ErrNotExist) || try == tries {
			return err
		}
	}
}

// partsNow fails with fs.ErrNotExist when another stream has taken the place. One that is
// packed has none.
func (r *Reader) partsNow() ([]int64, error) {
	now, err := r.root.Stat(r.name)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = r.root.Stat(r.name + packed)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if !os.SameFile(now, r.info) {
		return nil, fmt.Errorf("%s is another stream now: %w", r.name, fs.ErrNotExist)
	}
	return partOffsetsOf(r.root.FS(), r.name)
}

func partName(path string, at int64) string { return path + "." + strconv.FormatInt(at, 10) }

// partOffsetsOf a stream are the offsets at which they begin, in order.
func partOffsetsOf(dir fs.FS, name string) ([]int64, error) {
	names, err := fs.Glob(dir, name+".[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("cannot look for the parts of %s: %v", name, err)
	}
	parts := make([]int64, 0, len(names))
	for _, n := range names {
		if at, err := strconv.ParseInt(strings.TrimPrefix(n, name+"."), 10, 64); err == nil {
			parts = append(parts, at)
		}
	}
	slices.Sort(parts)
	return parts, nil
}

// Spans can be read as of now: one stretch, or two with what was left out between
// them.
func (r *Reader) Spans() (spans []Span, err error) {
	err = r.retryWithParts(func(parts []int64) error {
		size, err := r.head.Seek(0, io.SeekEnd) // after the parts: where there are some it is full
		if err != nil {
			return err
		}
		spans = []Span{{0, size}}
		if len(parts) == 0 {
			return nil
		}
		last := parts[len(parts)-1]
		info, err := r.root.Stat(partName(r.name, last))
		if err != nil {
			return err
		}
		end := last + info.Size()
		if parts[0] > spans[0].To {
			spans = append(spans, Span{parts[0], end})
			return nil
		}
		spans[0].To = end
		return nil
	})
	return spans, err
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
	err = r.retryWithParts(func(parts []int64) error {
		n, at = 0, off
		for n < len(buf) {
			some, from, err := r.readFromPart(parts, buf[n:], at+int64(n))
			if err != nil {
				return err
			}
			if n == 0 {
				at = from
			}
			if some == 0 || from > at+int64(n) {
				return nil
			}
			n += some
		}
		return nil
	})
	return n, at, err
}

// readFromPart reads from one file.
func (r *Reader) readFromPart(parts []int64, buf []byte, off int64) (n int, at int64, err error) {
	n, err = r.head.ReadAt(buf, off)
	if n > 0 || len(parts) == 0 {
		return n, off, nilForEOF(err)
	}
	off = max(off, parts[0])
	i, found := slices.BinarySearch(parts, off)
	if !found {
		i--
	}
	f, err := r.root.Open(partName(r.name, parts[i]))
	if err != nil {
		return 0, off, err
	}
	defer func() { _ = f.Close() }()
	n, err = f.ReadAt(buf, off-parts[i])
	return n, off, nilForEOF(err)
}

func nilForEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	if r.note != "" {
		n := copy(p, r.note)
		r.note = r.note[n:]
		return n, nil
	}
	n, at, err := r.ReadAt(p, r.next)
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	case at > r.next:
		r.note, r.next = "\n… "+sizeText(at-r.next)+" left out …\n", at
		return r.Read(p)
	}
	r.next = at + int64(n)
	return n, nil
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// MaxLine is the longest line of a file of events that is read whole; the rest
// of a longer one is passed over, and so is the event.
const MaxLine = 8 << 20

// source is a stream that is read by offset: at is where what was read begins,
// later than asked where the stream's middle was left out.
type source interface {
	ReadAt(buf []byte, off int64) (n int, at int64, err error)
}

// Lines reads whole lines of a stream from a place on. A last line without
// its end is not a line yet; one that was cut by what was left out is two halves.
// It never holds more than a line.
type Lines struct {
	from source
	buf  []byte // read, and not yet given out
	pos  int64  // of the stream, after buf

	Line    []byte // the last one, without its end; valid until the next
	At, End int64  // where it begins, and where the next one does
}

// NewLines reads from an offset of the stream on.
func NewLines(from source, at int64) *Lines { return &Lines{from: from, pos: at, End: at} }

// Next reads the next line; false when there is none yet. It can be asked again
// after the stream has grown.
func (l *Lines) Next() bool {
	for {
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			l.Line, l.At = l.buf[:i], l.End
			l.End += int64(i) + 1
			l.buf = l.buf[i+1:]
			return true
		}
		if len(l.buf) > MaxLine {
			l.End += int64(len(l.buf))
			l.buf = nil
		}
		more := make([]byte, 64<<10)
		n, at, _ := l.from.ReadAt(more, l.pos) // what fails now may be there at the next call
		if n == 0 {
			return false
		}
		if at > l.pos { // the line at hand has lost its end
			l.buf, l.pos, l.End = nil, at, at
		}
		l.buf = append(l.buf, more[:n]...)
		l.pos += int64(n)
	}
}

// Tail reads the lines of a spool while they come. It may begin before the spool is there.
type Tail struct {
	Root *os.Root
	Name string

	// Of the spool, once Open has found it.
	Reader *Reader
	Lines  *Lines
}

// Open opens the spool, once it is there; until then it is an error.
func (t *Tail) Open() error {
	if t.Reader != nil {
		return nil
	}
	f, err := Open(t.Root, t.Name)
	if err == nil {
		t.Reader, t.Lines = f, NewLines(f, 0)
	}
	return err
}

// Close closes what Open opened.
func (t *Tail) Close() {
	if t.Reader != nil {
		_ = t.Reader.Close() // it was read only
	}
}
