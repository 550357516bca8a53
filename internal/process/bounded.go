package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Bounded writes a stream of any length to a file of at most about limit
// bytes: its first half as it comes, the last half of the limit in a ring
// beside it, put together by Close with a line that says how much was left
// out. It holds nothing in memory. No file is made for an empty stream.
//
// A Bounded is not safe for concurrent use.
type Bounded struct {
	path  string
	limit int64
	head  *os.File
	ring  *os.File
	total int64
	err   error
}

// DefaultLimit is kept of a stream where nothing else is said.
const DefaultLimit = 64 << 20

// NewBounded prepares a writer; limit 0 is [DefaultLimit]. An existing file is
// replaced with the first byte.
func NewBounded(path string, limit int64) *Bounded {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = max(limit, 2) // a head and a tail
	return &Bounded{path: path, limit: limit}
}

// Write counts p and keeps what fits. It never fails: the reader of a pipe
// must go on when the disk is full. The problem is returned by Close.
func (b *Bounded) Write(p []byte) (int, error) {
	n := len(p)
	if b.err == nil {
		b.err = b.keep(p)
	}
	b.total += int64(n)
	return n, nil
}

// Size is how many bytes were written in all.
func (b *Bounded) Size() int64 { return b.total }

// Truncated reports whether the file has less than that.
func (b *Bounded) Truncated() bool { return b.total > b.limit || b.err != nil }

// Err is the first problem with the file so far.
func (b *Bounded) Err() error { return b.err }

func (b *Bounded) keep(p []byte) error {
	at := b.total
	half := b.limit / 2
	if at < half {
		if b.head == nil {
			f, err := create(b.path)
			if err != nil {
				return fmt.Errorf("cannot keep output: %v", err)
			}
			b.head = f
		}
		part := p[:min(int64(len(p)), half-at)]
		if _, err := b.head.Write(part); err != nil {
			return fmt.Errorf("cannot keep output: %v", err)
		}
		p = p[len(part):]
		at += int64(len(part))
	}
	if len(p) == 0 {
		return nil
	}
	return b.keepTail(p, at-half)
}

// keepTail writes p, which starts at offset at after the head, to the ring.
func (b *Bounded) keepTail(p []byte, at int64) error {
	size := b.ringSize()
	if b.ring == nil {
		f, err := create(b.path + ".tail")
		if err != nil {
			return fmt.Errorf("cannot keep output: %v", err)
		}
		b.ring = f
	}
	if skip := int64(len(p)) - size; skip > 0 {
		p = p[skip:]
		at += skip
	}
	for len(p) > 0 {
		pos := at % size
		part := p[:min(int64(len(p)), size-pos)]
		if _, err := b.ring.WriteAt(part, pos); err != nil {
			return fmt.Errorf("cannot keep output: %v", err)
		}
		p = p[len(part):]
		at += int64(len(part))
	}
	return nil
}

func (b *Bounded) ringSize() int64 { return b.limit - b.limit/2 }

// Close puts the file together and returns the first problem that there was
// with it.
func (b *Bounded) Close() error {
	if b.ring != nil {
		if err := b.join(); err != nil && b.err == nil {
			b.err = err
		}
		_ = b.ring.Close()
		_ = os.Remove(b.path + ".tail")
		b.ring = nil
	}
	if b.head != nil {
		if err := b.head.Close(); err != nil && b.err == nil {
			b.err = fmt.Errorf("cannot keep output: %v", err)
		}
		b.head = nil
	}
	return b.err
}

// join appends the ring to the head, oldest byte first.
func (b *Bounded) join() error {
	size := b.ringSize()
	tail := b.total - b.limit/2
	if tail > size {
		if _, err := fmt.Fprintf(b.head, "\n… %s left out …\n", amount(tail-size)); err != nil {
			return fmt.Errorf("cannot keep output: %v", err)
		}
		if err := b.append(tail%size, size-tail%size); err != nil {
			return err
		}
		return b.append(0, tail%size)
	}
	return b.append(0, tail)
}

// append copies n bytes of the ring from offset at; the system does it
// without a detour through this process where it can.
func (b *Bounded) append(at, n int64) error {
	if n == 0 {
		return nil
	}
	if _, err := b.ring.Seek(at, io.SeekStart); err != nil {
		return fmt.Errorf("cannot keep output: %v", err)
	}
	if _, err := io.CopyN(b.head, b.ring, n); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot keep output: %v", err)
	}
	return nil
}

// create makes a file, and its folder when somebody took that away.
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
