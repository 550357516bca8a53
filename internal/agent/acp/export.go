package acp

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// OpenCode and Kilo tell at the end what the last model call used. Their command
// "export" prints the session, with what each call used.

const (
	exportTime = 20 * time.Second
	maxExport  = 64 << 20
)

// exporter is the command line that prints a session of a program, which was started
// for the protocol by its command "acp"; nil where there is none.
func exporter(name string, program []string, session string) []string {
	at := slices.Index(program, "acp")
	switch strings.ToLower(name) {
	case "opencode", "kilo":
		if at > 0 {
			return append(slices.Clone(program[:at]), "export", session)
		}
	}
	return nil
}

// exported is what all model calls of a session used; nothing where that cannot be had.
func (b *bridge) exported(o options, argv []string) (sum agent.Usage) {
	if argv == nil {
		return sum
	}
	ctx, stop := context.WithTimeout(context.Background(), exportTime)
	defer stop()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env, c.WaitDelay = o.dir, b.cmd.Env, 500*time.Millisecond
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		return sum
	}
	read := make(chan agent.Usage, 1)
	b.conn.works.Go(func() { read <- usageOf(io.LimitReader(out, maxExport)) })
	select {
	case sum = <-read:
	case <-b.signals:
		stop()
	}
	stop() // the session is read
	_ = c.Wait()
	return sum
}

// usageOf adds up what the messages of a session used.
func usageOf(session io.Reader) (sum agent.Usage) {
	var s struct {
		Messages []struct {
			Info struct {
				Tokens struct {
					Input, Output, Reasoning int64
					Cache                    struct{ Read, Write int64 }
				}
			}
		}
	}
	if json.NewDecoder(session).Decode(&s) != nil {
		return sum
	}
	for _, m := range s.Messages {
		t := m.Info.Tokens
		sum = sum.Plus(agent.Usage{
			Input: t.Input, Output: t.Output + t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write,
		}.Sane())
	}
	return sum
}
