package supervisor

import (
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/spool"
)

const (
	headSize  = 8 << 10
	tailSize  = 64 << 10
	chunkSize = 64 << 10
)

// buffers are used by one job after the other.
type buffers struct {
	out, err []byte
}

// capture keeps one output stream: all of it (within the bound) in a file, its
// head and tail for the result.
type capture struct {
	file  *spool.Writer
	seen  *atomic.Int64 // when output came last, in Unix nanoseconds
	also  func([]byte)  // nil, or who else gets the bytes
	bytes int64
	head  []byte
	tail  []byte // a ring once it is full
	at    int
}

// pump reads r to its end.
func (c *capture) pump(r *os.File, buf []byte) {
	process.Drain(r, buf, c.take)
}

func (c *capture) take(p []byte) {
	c.seen.Store(time.Now().UnixNano())
	_, _ = c.file.Write(p)
	c.bytes += int64(len(p))
	if room := headSize - len(c.head); room > 0 {
		c.head = append(c.head, p[:min(room, len(p))]...)
	}
	c.keepTail(p)
	if c.also != nil {
		c.also(p)
	}
}

func (c *capture) keepTail(p []byte) {
	if len(p) > tailSize {
		p = p[len(p)-tailSize:]
	}
	if room := tailSize - len(c.tail); room > 0 {
		if c.tail == nil {
			c.tail = make([]byte, 0, tailSize) // the system's until it is written to
		}
		n := min(room, len(p))
		c.tail = append(c.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.at:], p)
		c.at = (c.at + n) % tailSize
		p = p[n:]
	}
}

// finish closes the file and says what is known of the stream.
func (c *capture) finish() Stream {
	s := Stream{Bytes: c.bytes, Head: valid(c.head)}
	if err := c.file.Close(); err != nil {
		s.Note = err.Error()
	}
	s.Truncated = c.file.Truncated()
	if c.bytes > headSize {
		s.Tail = valid(c.tail[c.at:]) + valid(c.tail[:c.at])
	}
	return s
}

// valid makes bytes fit for JSON; what is no UTF-8 is replaced.
func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
