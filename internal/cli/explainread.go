package cli

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"unicode/utf16"
	"unicode/utf8"
)

// What is kept of a log: its beginning and its end, however long it is.
const (
	headBytes = 256 << 10
	tailBytes = 1 << 20
)

// inputLog is a log that is read, from a file or from stdin.
type inputLog struct {
	io.Reader
	name string
	file *os.File // nil for stdin
}

// Close closes a file; stdin stays open.
func (l *inputLog) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

func (a *app) openLog(name string) (*inputLog, error) {
	if name == "-" {
		return &inputLog{Reader: unicodeOf(a.stdin), name: "stdin"}, nil
	}
	f, err := os.Open(a.inDir(name))
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, cannotRead(name, err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return nil, cannotRead(name, errors.New("it is a folder"))
	}
	return &inputLog{Reader: unicodeOf(f), name: name, file: f}, nil
}

// copyLog reads all of in, until it ends or ctx does.
func copyLog(ctx context.Context, to io.Writer, in io.Reader) error {
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := in.Read(buf)
		if _, werr := to.Write(buf[:n]); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// readEnds reads a log to its end and returns what is kept of it.
func readEnds(ctx context.Context, in io.Reader) (string, error) {
	var e ends
	err := copyLog(ctx, &e, in)
	return e.text(), err
}

// ends keeps the first headBytes and the last tailBytes of what is written to it.
type ends struct {
	head []byte
	tail []byte // a ring once it is full
	at   int    // where the ring begins
	cut  bool   // bytes between head and tail were dropped
}

// Write never fails.
func (e *ends) Write(p []byte) (int, error) {
	e.add(p)
	return len(p), nil
}

func (e *ends) add(p []byte) {
	if room := headBytes - len(e.head); room > 0 {
		n := min(room, len(p))
		e.head = append(e.head, p[:n]...)
		p = p[n:]
	}
	if room := tailBytes - len(e.tail); room > 0 {
		n := min(room, len(p))
		e.tail = append(e.tail, p[:n]...)
		p = p[n:]
	}
	e.cut = e.cut || len(p) > 0
	for len(p) > 0 {
		n := copy(e.tail[e.at:], p)
		e.at = (e.at + n) % tailBytes
		p = p[n:]
	}
}

func (e *ends) text() string {
	s := string(e.head)
	if e.cut {
		s += "\n…\n"
	}
	return s + string(e.tail[e.at:]) + string(e.tail[:e.at])
}

// unicodeOf makes UTF-8 of UTF-16, which PowerShell writes: known by its mark,
// or by zeros at every other place. Everything else is left as it is.
func unicodeOf(in io.Reader) io.Reader {
	start := make([]byte, 64)
	n, err := io.ReadFull(in, start)
	start = start[:n]
	all := io.Reader(&startThen{start: start, rest: in, err: err})
	switch {
	case n >= 2 && start[0] == 0xff && start[1] == 0xfe, n >= 8 && zeros(start, 1):
		return &utf16Reader{in: all, order: binary.LittleEndian}
	case n >= 2 && start[0] == 0xfe && start[1] == 0xff, n >= 8 && zeros(start, 0):
		return &utf16Reader{in: all, order: binary.BigEndian}
	}
	return all
}

// zeros tells whether every other byte is zero, from the given one on, and no
// other is.
func zeros(b []byte, from int) bool {
	for i := range b {
		if (b[i] == 0) != (i%2 == from) {
			return false
		}
	}
	return true
}

// startThen gives what was read already, then the rest.
type startThen struct {
	start []byte
	rest  io.Reader
	err   error // of reading the start
}

// Read gives the start first.
func (s *startThen) Read(p []byte) (int, error) {
	if len(s.start) > 0 {
		n := copy(p, s.start)
		s.start = s.start[n:]
		return n, nil
	}
	if s.err != nil {
		if errors.Is(s.err, io.ErrUnexpectedEOF) {
			return 0, io.EOF
		}
		return 0, s.err
	}
	return s.rest.Read(p)
}

// utf16Reader reads UTF-16 as UTF-8.
type utf16Reader struct {
	in    io.Reader
	order binary.ByteOrder
	raw   []byte // read and not made into UTF-8 yet
	out   []byte
	err   error
}

// Read gives whole characters.
func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

func (u *utf16Reader) fill() {
	buf := make([]byte, 16<<10)
	n, err := u.in.Read(buf)
	u.err = err
	u.raw = append(u.raw, buf[:n]...)
	for len(u.raw) >= 2 {
		r, size := rune(u.order.Uint16(u.raw)), 2
		if utf16.IsSurrogate(r) {
			if len(u.raw) < 4 && u.err == nil {
				return // its other half has not come yet
			}
			if len(u.raw) >= 4 {
				r, size = utf16.DecodeRune(r, rune(u.order.Uint16(u.raw[2:]))), 4
			}
		}
		u.raw = u.raw[size:]
		if r != '\ufeff' {
			u.out = utf8.AppendRune(u.out, r)
		}
	}
}
