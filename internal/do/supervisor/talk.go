package supervisor

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

// talkEvery is how soon a message reaches a program that takes messages.
const talkEvery = 250 * time.Millisecond

// talk is the stdin of a program that takes messages while it works: the prompt, then
// each message that comes, until the program has said that it is done.
type talk struct {
	in     *os.File
	over   chan struct{}
	once   sync.Once
	writer sync.WaitGroup
	told   int // messages that were written; read after end
}

// newTalk returns the pipe's end for the program.
func newTalk(prompt *os.File, messages string) (*talk, *os.File, error) {
	defer func() { _ = prompt.Close() }()
	text, err := io.ReadAll(prompt)
	if err != nil {
		return nil, nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	_ = syscall.SetNonblock(int(theirs.Fd()), false)
	k := &talk{in: ours, over: make(chan struct{})}
	k.writer.Go(func() {
		defer func() { _ = ours.Close() }()
		if _, err := ours.Write(agent.UserLine(string(text))); err == nil {
			k.followMessages(messages)
		}
	})
	return k, theirs, nil
}

// followMessages writes what is added to the file of messages.
func (k *talk) followMessages(path string) {
	next := time.NewTicker(talkEvery)
	defer next.Stop()
	for {
		select {
		case <-k.over:
			return
		case <-next.C:
		}
		all, _ := os.ReadFile(path) // it is not there until there is a message
		lines := bytes.SplitAfter(all, []byte("\n"))
		for _, line := range lines[min(k.told, len(lines)-1) : len(lines)-1] {
			if _, err := k.in.Write(line); err != nil {
				return
			}
			k.told++
		}
	}
}

// hangUp closes the program's input: nothing more comes.
func (k *talk) hangUp() {
	if k == nil {
		return
	}
	k.once.Do(func() {
		close(k.over)
		_ = k.in.SetWriteDeadline(time.Now()) // it may not read at all
	})
}

// endTalk returns how many messages the program has read.
func (k *talk) endTalk() int {
	if k == nil {
		return 0
	}
	k.hangUp()
	k.writer.Wait()
	return k.told
}

const (
	headSize  = 8 << 10
	tailSize  = 64 << 10
	chunkSize = 64 << 10
)

// buffers are used by one job after the other.
type buffers struct {
	out, err []byte
}

// capture keeps one output stream in a file, within the bound. The result reads its part
// from there.
type capture struct {
	file *spool.Writer
	path string
	seen *atomic.Int64 // when output came last, in Unix nanoseconds
	also func([]byte)  // nil, or who else gets the bytes
}

// pumpOutput reads r to its end.
func (c *capture) pumpOutput(r *os.File, buf []byte) { process.Drain(r, buf, c.takeOutput) }

func (c *capture) takeOutput(p []byte) {
	c.seen.Store(time.Now().UnixNano())
	_, _ = c.file.Write(p)
	if c.also != nil {
		c.also(p)
	}
}

// finishCapture closes the file and says what is known of the stream.
func (c *capture) finishCapture() Stream {
	err := c.file.Close()
	s := Stream{}
	if c.file.Size() > 0 { // else what an earlier job left may be there
		s = streamOf(c.path)
	}
	s.Bytes, s.Truncated = c.file.Size(), c.file.Truncated()
	if err != nil {
		s.Note = err.Error()
	}
	return s
}

// validUTF8 makes bytes fit for JSON; what is no UTF-8 is replaced.
func validUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
