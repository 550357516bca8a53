package agent

import (
	"time"

	"github.com/pawl-dev/pawl/internal/failure"
)

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
