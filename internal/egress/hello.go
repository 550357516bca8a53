package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// maxHello is how much is read to find a ClientHello, in bytes.
const maxHello = 128 << 10

// errRead ends a handshake of which nothing but its beginning is wanted.
var errRead = errors.New("the ClientHello was read")

// readHello reads a whole ClientHello, over several records if need be, and
// returns the name of the server in it, as [hostName] writes it; "" is none.
// raw is everything that was read: it has to be passed on.
func readHello(r io.Reader) (raw []byte, name string, err error) {
	var read bytes.Buffer
	peer := listening{r: io.TeeReader(io.LimitReader(r, maxHello), &read)}
	config := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		return nil, errRead
	}}
	err = tls.Server(peer, config).HandshakeContext(context.Background()) // reading has its deadline
	raw = read.Bytes()
	switch {
	case errors.Is(err, errRead):
		name, err = serverName(name)
	case errors.As(err, new(tls.RecordHeaderError)):
		err = errors.New("what follows is not TLS")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isTimeout(err):
		err = fmt.Errorf("the ClientHello did not come: %w", err)
	default:
		err = fmt.Errorf("the ClientHello is malformed: %v", err)
	}
	return raw, name, err
}

// serverName brings a name in a ClientHello into its usual form.
func serverName(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	name, err := hostName(text)
	if err != nil || strings.HasSuffix(text, ".") {
		return "", errors.New("the ClientHello is malformed: its name is none")
	}
	return name, nil
}

// listening is a connection that is read and never answered.
type listening struct {
	net.Conn // nil: only what is here is used

	r io.Reader
}

func (l listening) Read(b []byte) (int, error)  { return l.r.Read(b) }
func (l listening) Write(b []byte) (int, error) { return len(b), nil }
func (l listening) Close() error                { return nil }
