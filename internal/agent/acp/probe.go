package acp

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"
)

// Info is what a program says of itself.
type Info struct {
	Name, Version string   // "" when it does not tell
	Login         []string // the ways to log in that it offers, which may not be needed
}

// Probe starts a program in dir, agrees on the protocol with it, and ends it:
// no session is opened, no model called. The error says why it cannot be
// talked to; a done ctx ends it too.
func Probe(ctx context.Context, dir string, argv, env []string) (Info, error) {
	signals := make(chan os.Signal, 1)
	stop := context.AfterFunc(ctx, func() { signals <- syscall.SIGTERM })
	defer stop()
	out := &printer{w: io.Discard}
	b := &bridge{bounds: bounds{start: 30 * time.Second, end: time.Second}, out: out, stderr: io.Discard,
		signals: signals, session: newSession(out, true)}
	if err := b.start(options{program: argv, dir: dir}, env); err != nil {
		return Info{}, err
	}
	info, err := b.initialize()
	b.finish(err == nil)
	return info, err
}
