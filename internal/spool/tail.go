package spool

import "os"

// Tail reads the lines of a spool while they come. It may begin before the spool is there.
type Tail struct {
	Root *os.Root
	Name string

	// Of the spool, once Open has found it.
	Reader *Reader
	Lines  *Lines
}

// Open opens the spool, once it is there; until then it is an error.
func (t *Tail) Open() error {
	if t.Reader != nil {
		return nil
	}
	f, err := Open(t.Root, t.Name)
	if err == nil {
		t.Reader, t.Lines = f, NewLines(f, 0)
	}
	return err
}

// Close closes what Open opened.
func (t *Tail) Close() {
	if t.Reader != nil {
		_ = t.Reader.Close() // it was read only
	}
}
