package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines passes on the messages of a client. A line that is none is answered with an
// error: the library would end the session at it. The end waits for the answers: the
// library would drop them.
type lines struct {
	in   *bufio.Reader
	out  *client
	over func() // all is said
	left []byte
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.left) == 0 {
		line, long, err := l.next()
		switch {
		case long:
			err = l.refuse(-32600, "a message has at most 4 MiB")
		case len(bytes.TrimSpace(line)) == 0: // between two
		case !json.Valid(line):
			err = l.refuse(-32700, "this is no JSON")
		case !l.take(line):
			err = l.refuse(-32600, `this is no message of JSON-RPC 2.0, which is one object with "jsonrpc": "2.0"`)
		default:
			l.left, err = line, nil
		}
		if err != nil {
			l.over()
			l.out.settle(lastAnswers)
			return 0, err
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// next is the next line. Of one that is too long nothing is kept.
func (l *lines) next() (line []byte, long bool, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// take is false for what is no message, as a batch, which the protocol has no more.
func (l *lines) take(line []byte) bool {
	m, err := jsonrpc.DecodeMessage(line)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		l.out.owe()
	}
	return err == nil && m != nil
}

func (l *lines) refuse(code int, why string) error {
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err == nil {
		_, err = l.out.Write(append(text, '\n'))
	}
	return err
}

// lastAnswers is how long a client that has said all is answered.
const lastAnswers = 5 * time.Second

// client is where answers go, which the session does not close. A message is one write.
type client struct {
	io.Writer
	turn sync.Mutex // to write
	mu   sync.Mutex // is never held while a client reads
	owed int
	paid chan struct{} // made by who waits until nothing is owed, and closed then
}

func (o *client) owe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed++
}

func (o *client) Write(p []byte) (int, error) {
	o.turn.Lock()
	n, err := o.Writer.Write(p)
	o.turn.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	m, _ := jsonrpc.DecodeMessage(p)
	if r, ok := m.(*jsonrpc.Response); ok && r.ID.IsValid() {
		o.owed--
	}
	if o.paid != nil && o.owed <= 0 {
		close(o.paid)
		o.paid = nil
	}
	return n, err
}

// settle waits until all that was asked is answered.
func (o *client) settle(most time.Duration) {
	o.mu.Lock()
	paid := make(chan struct{})
	if o.owed > 0 {
		o.paid = paid
	} else {
		close(paid)
	}
	o.mu.Unlock()
	select {
	case <-paid:
	case <-time.After(most):
	}
}

func (*client) Close() error { return nil }
