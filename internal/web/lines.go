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
	for searched := 0; ; {
		if i := bytes.IndexByte(l.buf[searched:], '\n'); i >= 0 {
			n := searched + i
			l.line, l.at = l.buf[:n], l.end
			l.end += int64(n) + 1
			l.buf = l.buf[n+1:]
			return true
		}
		searched = len(l.buf)
		if searched > maxLine {
			l.skip()
			searched = 0
		}
		had := l.end
		if !l.fill() {
			return false
		}
		if l.end != had {
			searched = 0
		}
	}
}

// fill reads more; false at the end of the stream as it is now.
func (l *lineReader) fill() bool {
	const chunk = 64 << 10
	if cap(l.buf)-len(l.buf) < chunk/4 {
		grown := make([]byte, len(l.buf), len(l.buf)+chunk)
		copy(grown, l.buf)
		l.buf = grown
	}
	n, at, err := l.from.ReadAt(l.buf[len(l.buf):cap(l.buf)], l.pos)
	l.err = err
	if n > 0 && at > l.pos { // the line at hand has lost its end
		l.buf, l.pos, l.end = l.buf[len(l.buf):], at, at
	}
	l.buf = l.buf[:len(l.buf)+n]
	l.pos += int64(n)
	return n > 0
}

// skip passes over what is held of a line that is too long.
func (l *lineReader) skip() {
	l.end += int64(len(l.buf))
	l.buf = l.buf[:0]
}
