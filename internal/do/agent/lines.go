package agent

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
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
		l.holdPiece(piece)
		if ended {
			l.finishLine()
		}
		rest = behind
	}
	return len(p), nil
}

// Flush ends the stream: a last line without a newline is a line too.
func (l *Lines) Flush() {
	if len(l.rest) > 0 || l.cut {
		l.finishLine()
	}
	l.rest = nil
}

// finishLine hands on the line that is whole now. The buffer of a long line is given back, so that one
// of them does not cost its size for the rest of a run.
func (l *Lines) finishLine() {
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

// holdPiece keeps a piece of an unfinished line. One byte over the cap is kept, as it may be the
// "\r" of a line that fits exactly.
func (l *Lines) holdPiece(piece []byte) {
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
		err := boundError(*e.Error)
		e.Error = &err
	}
	return e
}

func boundError(e failure.APIError) failure.APIError {
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

// statusWords find the HTTP status in an error's text: at its start, after one
// word of the program's own ("[API Error: 429 …"), or named as one.
var statusWords = lazy.Regexp(
	`(?i)^\W*(?:(?:api )?error:? )?([45]\d\d)\b|\b(?:http|status(?: code)?)[ :=]{1,3}([45]\d\d)\b`)

// StatusIn is the HTTP status that an error's text begins with, or names as
// such ("HTTP 401", "status code: 503"); 0 when it has none. Other numbers in
// it mean something else. Only its first 300 bytes are looked at.
func StatusIn(text string) int {
	if len(text) > 300 {
		text = text[:300]
	}
	m := statusWords().FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1] + m[2])
	return n
}

// typeWords are what programs write for errors that they give no type, first match first: a plan
// that is used up is reported as a rate limit too.
var typeWords = []struct {
	kind  string
	words []string
}{
	{"usage_limit_reached", []string{"usage limit", "quota", "credit balance", "out of credits", "insufficient credits",
		"billing"}},
	{"rate_limit", []string{"rate limit", "rate-limit", "ratelimit", "too many requests"}},
	{"overloaded", []string{"overloaded", "high demand", "at capacity"}},
	{"context_length_exceeded", []string{"context window", "context length", "maximum context", "prompt is too long",
		"prompt as too long", "context is too large", "context_length_exceeded"}},
	{"max_output_tokens", []string{"max_output_tokens"}},
	{"content_filter", []string{"content_filter"}},
	{"authentication_error", []string{"api key", "api-key", "unauthorized", "not authenticated",
		"authentication failed"}},
	{"connection_error", []string{"connection error", "could not connect", "cannot connect", "fetch failed", "socket",
		"econn", "connection closed", "connection reset", "connection failed", "stream disconnected", "network error",
		"unexpected eof", "received message_start for message"}},
	{"server_error", []string{"no usable output", "non-sse response", "without a finish reason",
		"without sending any chunks", "malformed", "invalid json", "unexpected token"}},
}

// TypeIn returns the type of error in a text, in the words that providers use; "" when it has none.
// It is for programs that pass on a provider's text without its type. Only its first 2,000 bytes
// are looked at.
func TypeIn(text string) string {
	text = strings.ToLower(text[:min(len(text), 2000)])
	for _, t := range typeWords {
		for _, w := range t.words {
			if strings.Contains(text, w) {
				return t.kind
			}
		}
	}
	return ""
}
