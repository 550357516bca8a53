package cli

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/fault"
)

// What is kept of a log: its beginning and its end, however long it is.
const (
	headBytes = 256 << 10
	tailBytes = 1 << 20
)

// openInput opens FILE, or stdin for "-" and "". name is what messages call it.
func (a *app) openInput(from string) (in io.ReadCloser, name string, err error) {
	if from == "" || from == "-" {
		return io.NopCloser(a.stdin), "stdin", nil
	}
	f, err := os.Open(a.inDir(from))
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	if err == nil {
		info, serr := f.Stat()
		if serr == nil && info.IsDir() {
			_ = f.Close()
			err = errors.New("it is a folder")
		}
	}
	if err != nil {
		return nil, from, cannotRead(from, err)
	}
	return f, from, nil
}

func cannotRead(name string, err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	return fault.Of(fault.Refused, fmt.Errorf("cannot read %s: %w", name, err))
}

// ends keeps the first headBytes and the last tailBytes of what is written to it.
type ends struct {
	head, tail []byte
	cut        bool // bytes between head and tail were dropped
}

// Write never fails.
func (e *ends) Write(p []byte) (int, error) {
	n := min(headBytes-len(e.head), len(p))
	e.head = append(e.head, p[:n]...)
	e.tail = append(e.tail, p[n:]...)
	if len(e.tail) > 2*tailBytes {
		e.shorten()
	}
	return len(p), nil
}

func (e *ends) shorten() {
	if over := len(e.tail) - tailBytes; over > 0 {
		e.tail, e.cut = append([]byte{}, e.tail[over:]...), true
	}
}

func (e *ends) text() string {
	e.shorten()
	if e.cut {
		return string(e.head) + "\n…\n" + string(e.tail)
	}
	return string(e.head) + string(e.tail)
}

// utf8Of makes UTF-8 of UTF-16, which PowerShell writes: known by its mark.
// Everything else is left as it is.
func utf8Of(in io.Reader) io.Reader {
	r := bufio.NewReader(in)
	mark, _ := r.Peek(2)
	switch string(mark) {
	case "\xff\xfe":
		return &utf16Reader{in: r, order: binary.LittleEndian}
	case "\xfe\xff":
		return &utf16Reader{in: r, order: binary.BigEndian}
	}
	return r
}

// utf16Reader reads UTF-16 as UTF-8.
type utf16Reader struct {
	in    io.Reader
	order binary.ByteOrder
}

// Read gives as many characters as surely fit: one of two bytes takes three in
// UTF-8, or it is half of one that takes four.
func (u *utf16Reader) Read(p []byte) (int, error) {
	units := make([]uint16, 0, len(p)/3)
	var unit uint16
	var err error
	for len(units)+1 < cap(units) && err == nil {
		if err = binary.Read(u.in, u.order, &unit); err == nil && unit != 0xfeff {
			units = append(units, unit)
		}
	}
	if n := len(units); n > 0 && utf16.IsSurrogate(rune(units[n-1])) && err == nil { // its other half
		if err = binary.Read(u.in, u.order, &unit); err == nil {
			units = append(units, unit)
		}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // half a unit at the end
		err = io.EOF
	}
	out := p[:0]
	for _, r := range utf16.Decode(units) {
		out = utf8.AppendRune(out, r)
	}
	return len(out), err
}
