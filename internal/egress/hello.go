package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxHello  = 64 << 10 // of a ClientHello with its records, in bytes
	maxRecord = 16 << 10
)

// What a ClientHello is made of.
const (
	recordHandshake = 22
	clientHello     = 1
	extServerName   = 0
)

// errNotTLS is told of a tunnel in which something else than TLS is spoken.
var errNotTLS = errors.New("what follows is not TLS")

// readHello reads a whole ClientHello, over several records if need be. raw is
// everything that was read: it has to be passed on. It is never more than
// [maxHello] and one record.
func readHello(r io.Reader) (raw []byte, name string, err error) {
	var message []byte
	for len(raw) < maxHello {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return raw, "", fmt.Errorf("the ClientHello did not come: %w", err)
		}
		size := int(binary.BigEndian.Uint16(head[3:]))
		if head[0] != recordHandshake || head[1] != 3 || size == 0 || size > maxRecord {
			return raw, "", errNotTLS
		}
		raw = append(raw, head[:]...)
		start := len(raw)
		raw = append(raw, make([]byte, size)...)
		if _, err := io.ReadFull(r, raw[start:]); err != nil {
			return raw, "", fmt.Errorf("the ClientHello did not come: %w", err)
		}
		message = append(message, raw[start:]...)
		if message[0] != clientHello {
			return raw, "", errNotTLS
		}
		if len(message) < 4 {
			continue
		}
		if want := 4 + int(message[1])<<16 + int(message[2])<<8 + int(message[3]); len(message) >= want {
			name, err = parseHello(message[4:want])
			return raw, name, err
		}
	}
	return raw, "", fmt.Errorf("the ClientHello is longer than %d bytes", maxHello)
}

var errHello = errors.New("the ClientHello is malformed")

// parseHello returns the name of the server in the message's body, as
// [hostName] writes it; "" is none.
func parseHello(b []byte) (name string, err error) {
	f := fields{rest: b}
	f.take(2 + 32) // version, random
	f.vector(1)    // session
	f.vector(2)    // cipher suites
	f.vector(1)    // compression
	if f.empty() { // a hello without extensions names nobody
		return "", f.err()
	}
	list := fields{rest: f.vector(2)}
	if f.err() != nil || !f.empty() {
		return "", errHello
	}
	seen := false
	for !list.empty() {
		kind := list.number()
		body := list.vector(2)
		switch {
		case list.err() != nil:
			return "", errHello
		case kind == extServerName && seen:
			return "", errHello
		case kind == extServerName:
			seen = true
			if name, err = serverName(body); err != nil {
				return "", err
			}
		}
	}
	return name, nil
}

// serverName reads the extension, which holds one name.
func serverName(b []byte) (string, error) {
	f := fields{rest: b}
	entry := fields{rest: f.vector(2)}
	kind := entry.take(1)
	text := entry.vector(2)
	if f.err() != nil || entry.err() != nil || !f.empty() || !entry.empty() || kind[0] != 0 {
		return "", errHello
	}
	name, err := hostName(string(text))
	if err != nil || strings.HasSuffix(string(text), ".") {
		return "", errHello
	}
	return name, nil
}

// fields reads TLS's vectors. After a first failure everything is empty.
type fields struct {
	rest   []byte
	failed bool
}

func (f *fields) empty() bool { return len(f.rest) == 0 || f.failed }

func (f *fields) err() error {
	if f.failed {
		return errHello
	}
	return nil
}

func (f *fields) take(n int) []byte {
	if f.failed || len(f.rest) < n {
		f.failed = true
		return make([]byte, min(n, 64))
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) number() int { return int(binary.BigEndian.Uint16(f.take(2))) }

// vector reads bytes behind their length, which has size bytes.
func (f *fields) vector(size int) []byte {
	n := 0
	for _, b := range f.take(size) {
		n = n<<8 | int(b)
	}
	if f.failed || n > len(f.rest) {
		f.failed = true
		return nil
	}
	return f.take(n)
}
