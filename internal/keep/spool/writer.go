package spool

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		w.keepError(w.keepBytes(p))
	}
	w.total += int64(n)
	return n, nil
}

// Size is how many bytes were written in all.
func (w *Writer) Size() int64 { return w.total }

// Truncated reports whether not all of them were kept.
func (w *Writer) Truncated() bool { return w.first > w.limit/2 || w.err != nil }

// keepError keeps the first problem.
func (w *Writer) keepError(err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("cannot keep output: %v", err)
	}
}

func (w *Writer) keepBytes(p []byte) error {
	for at := w.total; len(p) > 0; {
		if at == w.end {
			if err := w.beginFile(at); err != nil {
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

// beginFile begins the file for what comes at an offset, and lets go of parts that are
// not needed any more.
func (w *Writer) beginFile(at int64) (err error) {
	if w.file != nil {
		if err := w.file.Close(); err != nil {
			return err
		}
	}
	if at == 0 {
		if err := discardParts(w.path); err != nil {
			return err
		}
		w.file, err = createFile(w.path)
		w.end = w.limit / 2
		return err
	}
	w.first = cmp.Or(w.first, at)
	room := w.limit - w.limit/2 // is kept of the end at least
	part := max(1, room/endParts)
	w.end = at + part
	if w.file, err = createFile(partName(w.path, at)); err != nil {
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
		w.keepError(w.file.Close())
		w.file = nil
	}
	return w.err
}

// discardParts removes the parts of an earlier stream, and one that is packed.
func discardParts(path string) error {
	parts, err := partOffsetsOf(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if rerr := os.Remove(path + packed); !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	for _, at := range parts {
		err = errors.Join(err, os.Remove(partName(path, at)))
	}
	return err
}

func createFile(path string) (*os.File, error) {
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

// packed is the suffix of a stream that is compressed.
const packed = ".gz"

// Streams of these sizes are packed: less is a block of the disk anyway, and more is
// not to be in memory at once.
const (
	leastPacked = 4 << 10
	mostPacked  = 8 << 20
)

// Pack compresses a stream that is complete, where that is worth it. At
// any time one of both files is whole.
func Pack(root *os.Root, name string) (err error) {
	parts, err := partOffsetsOf(root.FS(), name)
	if err != nil || len(parts) > 0 {
		return err
	}
	in, info, err := openRegular(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	if n := info.Size(); n < leastPacked || n > mostPacked {
		return nil
	}
	temp := name + packed + ".new"
	out, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Sync(), out.Close()); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	if err := root.Rename(temp, name+packed); err != nil {
		return err
	}
	return root.Remove(name)
}

// NameOf is the name of the stream that a file has, packed or not.
func NameOf(file string) string { return strings.TrimSuffix(file, packed) }

// unpacked is a stream that was compressed.
type unpacked struct{ *bytes.Reader }

func (unpacked) Close() error { return nil }

// openPacked opens a stream that [Pack] has compressed.
func openPacked(root *os.Root, name string) (head, fs.FileInfo, error) {
	f, info, err := openRegular(root, name+packed)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot unpack %s: %v", name, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, mostPacked+1))
	if err == nil && len(text) > mostPacked {
		err = errors.New("it is larger than what pawl packs")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot unpack %s: %v", name, err)
	}
	return unpacked{bytes.NewReader(text)}, info, nil
}
