package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lines passes on the messages of a client. A line that is none is answered with an
// error: the library would end the session at it.
type lines struct {
	in   *bufio.Reader
	out  io.Writer
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
		case !isMessage(line):
			err = l.refuse(-32600, `this is no message of JSON-RPC 2.0, which is one object with "jsonrpc": "2.0"`)
		default:
			l.left, err = line, nil
		}
		if err != nil {
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

// isMessage is false for a batch too, which the protocol has no more.
func isMessage(line []byte) bool {
	m, err := jsonrpc.DecodeMessage(line)
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

// client is where answers go, which the session does not close. A message is one write.
type client struct {
	io.Writer
	mu sync.Mutex
}

func (o *client) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Writer.Write(p)
}

func (*client) Close() error { return nil }
