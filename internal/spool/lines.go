package spool

import "bytes"

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

	Err     error  // of the last read
	Line    []byte // the last one, without its end; valid until the next
	At, End int64  // where it begins, and where the next one does
}

// NewLines reads from an offset of the stream on.
func NewLines(from source, at int64) *Lines {
	return &Lines{from: from, pos: at, End: at}
}

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
		n, at, err := l.from.ReadAt(more, l.pos)
		if l.Err = err; n == 0 {
			return false
		}
		if at > l.pos { // the line at hand has lost its end
			l.buf, l.pos, l.End = nil, at, at
		}
		l.buf = append(l.buf, more[:n]...)
		l.pos += int64(n)
	}
}
