package gateway

import "bytes"

// longestLine is how much of one line of an answer is read; a longer one passes
// unread.
const longestLine = 8 << 20

// lines splits an answer that comes in pieces.
type lines struct {
	rest []byte
	long bool // the line at hand is too long to be read
}

// feedLines calls line for each line that p ends.
func (l *lines) feedLines(p []byte, line func([]byte)) {
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		whole := p[:i]
		if len(l.rest) > 0 {
			whole = append(l.rest, whole...)
		}
		if !l.long {
			line(bytes.TrimSuffix(whole, []byte("\r")))
		}
		l.rest, l.long, p = l.rest[:0], false, p[i+1:]
	}
	if len(l.rest)+len(p) > longestLine {
		l.rest, l.long = nil, true
	}
	if !l.long {
		l.rest = append(l.rest, p...)
	}
}

// eventData of a line of a stream of server-sent events; nil for the other lines.
func eventData(line []byte) []byte {
	text, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return nil
	}
	return bytes.TrimSpace(text)
}
