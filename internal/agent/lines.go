package agent

import (
	"bytes"
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

// LineCap is the longest line that a parser gets whole, in bytes.
const LineCap = 4 << 20

// Lines splits a stream of bytes into lines, in memory bounded by its cap
// whatever arrives: a line of 200 MB costs one cap, and its rest is dropped.
// It is fed by chunks and starts nothing; it is not safe for concurrent use.
type Lines struct {
	limit int
	line  func(b []byte, cut bool)
	rest  []byte // the start of a line whose end has not come yet
	cut   bool   // rest is at its limit and bytes of the line were dropped
}

// NewLines returns a splitter that calls line for every line, without its
// "\n" or "\r\n". A line longer than capBytes arrives as its first capBytes
// bytes, with cut set. The slice is valid until line returns. A cap below 1
// is [LineCap].
func NewLines(capBytes int, line func(b []byte, cut bool)) *Lines {
	if capBytes < 1 {
		capBytes = LineCap
	}
	return &Lines{limit: capBytes, line: line}
}

// Write takes the next bytes. It never fails and keeps no reference to p.
func (l *Lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		piece, behind, ended := bytes.Cut(rest, []byte{'\n'})
		l.hold(piece)
		if ended {
			l.end()
		}
		rest = behind
	}
	return len(p), nil
}

// Flush ends the stream: a last line without a newline is a line too.
func (l *Lines) Flush() {
	if len(l.rest) > 0 || l.cut {
		l.end()
	}
	l.rest = nil
}

// end hands on the line that is whole now. The buffer of a long line is given
// back, so that one of them does not cost its size for the rest of a run.
func (l *Lines) end() {
	whole, cut := l.rest, l.cut
	if !cut {
		whole = bytes.TrimSuffix(whole, []byte{'\r'})
	}
	if len(whole) > l.limit {
		whole, cut = whole[:l.limit], true
	}
	l.line(whole, cut)
	if l.cut = false; cap(l.rest) > 256<<10 {
		l.rest = nil
	}
	l.rest = l.rest[:0]
}

// hold keeps a piece of an unfinished line. One byte over the cap is kept, as
// it may be the "\r" of a line that fits exactly.
func (l *Lines) hold(piece []byte) {
	room := l.limit + 1 - len(l.rest)
	if len(piece) > room {
		piece, l.cut = piece[:room], true
	}
	l.rest = append(l.rest, piece...)
}

// How much of what a program says is kept, in bytes; see also [CommandCap] and
// [ResultCap].
const (
	maxName      = 200 // of a tool, a model, a session, a kind of error
	maxPath      = 4096
	maxFiles     = 100
	maxErrorText = 2000
)

// Bounded cuts what a program can make as long as it likes, and takes out
// numbers that cannot be.
func (e Event) Bounded() Event {
	for _, s := range []*string{&e.Session, &e.Model, &e.Tool, &e.Call} {
		*s = Clip(*s, maxName)
	}
	if e.Kind == Unknown {
		e.Text = Clip(e.Text, maxName)
	}
	e.Command = Clip(e.Command, CommandCap)
	e.Files = e.Files[:min(len(e.Files), maxFiles)]
	for i, path := range e.Files {
		e.Files[i] = Clip(path, maxPath)
	}
	e.Usage = e.Usage.Sane()
	if e.Error != nil {
		err := bounded(*e.Error)
		e.Error = &err
	}
	return e
}

func bounded(e failure.APIError) failure.APIError {
	e.Message, e.Type = Clip(e.Message, maxErrorText), Clip(e.Type, maxName)
	if e.Status < 100 || e.Status > 999 {
		e.Status = 0
	}
	e.RetryAfter = min(max(e.RetryAfter, 0), 366*24*time.Hour)
	return e
}

// Sane takes out negative and absurd counts.
func (u Usage) Sane() Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite} {
		if *n < 0 || *n > absurdTokens {
			*n = 0
		}
	}
	return u
}
