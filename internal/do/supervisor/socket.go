package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/spool"
)

const socketName = "supervisor.sock"

// secretName is the file with the secret of the run's supervisor.
const secretName = "supervisor.secret"

// errForeign: the other end belongs to another user, or is in a sandbox or a container.
var errForeign = errors.New("cannot talk to the supervisor: the other end belongs to another user, or to another " +
	"namespace")

// makeSecret leaves a new secret in the run's folder, which is its owner's
// alone. The caller has the folder's lock.
func makeSecret(runDir string) (string, error) {
	secret := rand.Text()
	path := filepath.Join(runDir, secretName)
	err := os.Remove(path)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, err = f.WriteString(secret)
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot leave the run's secret: %v", err)
	}
	return secret, nil
}

// readSecret is the secret of the supervisor of a run; "" when there is none.
func readSecret(runDir string) string {
	data, _ := os.ReadFile(filepath.Join(runDir, secretName)) // without it the supervisor says no
	return string(data)
}

// listenAt opens the socket of a run. The folder is for its owner alone.
func listenAt(runDir string) (*net.UnixListener, func(), error) {
	address, release, err := socketAddress(runDir, true)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
		release()
		return nil, nil, fmt.Errorf("cannot open the supervisor's socket: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("cannot open the supervisor's socket in %s: %v", runDir, err)
	}
	return l, func() { _ = l.Close(); release() }, nil
}

// dialSupervisor connects to the supervisor of a run; ErrGone when there is none.
func dialSupervisor(ctx context.Context, runDir string) (*net.UnixConn, error) {
	address, release, err := socketAddress(runDir, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	defer release()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", address)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrGone
	case err != nil:
		return nil, fmt.Errorf("cannot reach the supervisor: %v", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errForeign
	}
	if err := checkPeer(conn); err != nil {
		_ = c.Close()
		return nil, err
	}
	return conn, nil
}

// ending is how long a process may take from the end of what it had open to its own.
const ending = 100 * time.Millisecond

// checkPeer checks the other end: ErrGone when it ended after it was reached, as a
// supervisor does when another pawl had it leave.
func checkPeer(conn *net.UnixConn) error {
	switch {
	case isOwnUnboxedPeer(conn):
		return nil
	case !isPeerAlive(conn, ending):
		return ErrGone
	}
	return errForeign
}

// socketPair makes two connected sockets: ours, and the file for the child.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := process.SocketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a socket: %v", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "supervisor")
	ours, err := connectionOfFile(os.NewFile(uintptr(fds[0]), "client"))
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// connectionOfFile turns an open socket into a connection and closes f.
func connectionOfFile(f *os.File) (*net.UnixConn, error) {
	defer func() { _ = f.Close() }()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("cannot use the socket: %v", err)
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("cannot use the socket: it is not a unix socket")
	}
	return conn, nil
}

// flushBound is how long a leaving supervisor tries to write to its client.
const flushBound = time.Second

// Bounds of what waits for a slow client.
const (
	maxAnswers = 1024
	maxLive    = 2 << 20 // bytes of events; the oldest go first
)

// link is the supervisor's end of a connection. Messages wait in it for a
// client that may be slow; the supervisor never does.
type link struct {
	conn   *net.UnixConn
	reader *bufio.Reader
	kick   chan struct{}
	closed chan struct{} // no more messages will come
	ended  chan struct{} // the writer has ended
	once   sync.Once

	mu      sync.Mutex
	answers [][]byte
	events  [][]byte
	bytes   int // of events
}

func newClientLink(conn *net.UnixConn) *link {
	l := &link{
		conn: conn, reader: bufio.NewReaderSize(conn, 4096),
		kick: make(chan struct{}, 1), closed: make(chan struct{}), ended: make(chan struct{}),
	}
	go l.writeQueued()
	return l
}

// sendReply queues a message. Events may be dropped for later ones; the number of
// answers is bounded by what the protocol asks.
func (l *link) sendReply(r reply) {
	data := encodeMessage(r)
	l.mu.Lock()
	switch {
	case r.Op == opEvents:
		l.events = append(l.events, data)
		for l.bytes += len(data); l.bytes > maxLive && len(l.events) > 1; l.events = l.events[1:] {
			l.bytes -= len(l.events[0])
		}
	case len(l.answers) < maxAnswers:
		l.answers = append(l.answers, data)
	}
	l.mu.Unlock()
	l.wakeWriter()
}

func (l *link) wakeWriter() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// closeLink writes what is queued, within a bound, and closes the connection.
func (l *link) closeLink() {
	l.once.Do(func() {
		_ = l.conn.SetWriteDeadline(time.Now().Add(flushBound))
		close(l.closed)
	})
	<-l.ended
}

func (l *link) writeQueued() {
	defer close(l.ended)
	defer func() { _ = l.conn.Close() }()
	for {
		leaving := false
		select {
		case <-l.kick:
		case <-l.closed:
			leaving = true
		}
		for _, message := range l.takeQueued() {
			if _, err := l.conn.Write(message); err != nil {
				// The reader of this link sees the end too; nothing else is to do.
				return
			}
		}
		if leaving {
			return
		}
	}
}

// takeQueued messages: events before answers, as a result comes after its events.
func (l *link) takeQueued() [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	messages := slices.Concat(l.events, l.answers)
	l.events, l.answers, l.bytes = nil, nil, 0
	return messages
}

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

// newPromptTalk returns the pipe's end for the program.
func newPromptTalk(prompt *os.File, messages string) (*talk, *os.File, error) {
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

// closeInput closes the program's input: nothing more comes.
func (k *talk) closeInput() {
	if k == nil {
		return
	}
	k.once.Do(func() {
		close(k.over)
		_ = k.in.SetWriteDeadline(time.Now()) // it may not read at all
	})
}

// endAndCountRead returns how many messages the program has read.
func (k *talk) endAndCountRead() int {
	if k == nil {
		return 0
	}
	k.closeInput()
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
		s = unfinishedStream(c.path)
	}
	s.Bytes, s.Truncated = c.file.Size(), c.file.Truncated()
	if err != nil {
		s.Note = err.Error()
	}
	return s
}

// validUTF8 makes bytes fit for JSON; what is no UTF-8 is replaced.
func validUTF8(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
