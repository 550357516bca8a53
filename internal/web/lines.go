package web

import (
	"bytes"
	"io"
)

// maxLine is the longest line of a file of events that is read whole; the rest
// of a longer one is passed over, and so is the event.
const maxLine = 8 << 20

// lineReader reads whole lines of a file from a place on. A last line without
// its end is not a line yet. It never holds more than a line.
type lineReader struct {
	from io.ReaderAt
	buf  []byte // read, and not yet given out
	pos  int64  // of the file, after buf

	line    []byte // the last one, without its end; valid until the next
	at, end int64  // where it begins, and where the next one does
}

func newLineReader(from io.ReaderAt, at int64) *lineReader {
	return &lineReader{from: from, pos: at, end: at}
}

// next reads the next line; false when there is none yet. It can be asked again
// after the file has grown.
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
		if !l.fill() {
			return false
		}
	}
}

// fill reads more; false at the end of the file as it is now.
func (l *lineReader) fill() bool {
	const chunk = 64 << 10
	grown := make([]byte, len(l.buf)+chunk)
	kept := copy(grown, l.buf)
	n, _ := l.from.ReadAt(grown[kept:], l.pos) // an error reads nothing: the next time tells
	l.buf = grown[:kept+n]
	l.pos += int64(n)
	return n > 0
}

// skip passes over what is held of a line that is too long.
func (l *lineReader) skip() {
	l.end += int64(len(l.buf))
	l.buf = l.buf[:0]
}
