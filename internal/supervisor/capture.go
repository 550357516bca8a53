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

// capture keeps one output stream in a file, within the bound. What the result tells of
// it is read from there.
type capture struct {
	file *spool.Writer
	path string
	seen *atomic.Int64 // when output came last, in Unix nanoseconds
	also func([]byte)  // nil, or who else gets the bytes
}

// pump reads r to its end.
func (c *capture) pump(r *os.File, buf []byte) {
	process.Drain(r, buf, c.take)
}

func (c *capture) take(p []byte) {
	c.seen.Store(time.Now().UnixNano())
	_, _ = c.file.Write(p)
	if c.also != nil {
		c.also(p)
	}
}

// finish closes the file and says what is known of the stream.
func (c *capture) finish() Stream {
	err := c.file.Close()
	s := Stream{}
	if c.file.Size() > 0 { // else what an earlier job left may be there
		s = remains(c.path)
	}
	s.Bytes, s.Truncated = c.file.Size(), c.file.Truncated()
	if err != nil {
		s.Note = err.Error()
	}
	return s
}

// valid makes bytes fit for JSON; what is no UTF-8 is replaced.
func valid(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
