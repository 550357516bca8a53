package web

import "bytes"

// maxLine is the longest line of a file of events that is read whole; the rest
// of a longer one is passed over, and so is the event.
const maxLine = 8 << 20

// source is a stream that is read by offset: at is where what was read begins,
// later than asked where the stream's middle was left out.
type source interface {
	ReadAt(buf []byte, off int64) (n int, at int64, err error)
}

// lineReader reads whole lines of a stream from a place on. A last line without
// its end is not a line yet; one that was cut by what was left out is two halves.
// It never holds more than a line.
type lineReader struct {
	from source
	buf  []byte // read, and not yet given out
	pos  int64  // of the stream, after buf
	err  error  // of the last read

	line    []byte // the last one, without its end; valid until the next
	at, end int64  // where it begins, and where the next one does
}

func newLineReader(from source, at int64) *lineReader {
	return &lineReader{from: from, pos: at, end: at}
}

// next reads the next line; false when there is none yet. It can be asked again
// after the stream has grown.
func (l *lineReader) next() bool {
	for {
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			l.line, l.at = l.buf[:i], l.end
			l.end += int64(i) + 1
			l.buf = l.buf[i+1:]
			return true
		}
		if len(l.buf) > maxLine {
			l.end += int64(len(l.buf))
			l.buf = nil
		}
		more := make([]byte, 64<<10)
		n, at, err := l.from.ReadAt(more, l.pos)
		if l.err = err; n == 0 {
			return false
		}
		if at > l.pos { // the line at hand has lost its end
			l.buf, l.pos, l.end = nil, at, at
		}
		l.buf = append(l.buf, more[:n]...)
		l.pos += int64(n)
	}
}
