package script

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// This file holds what agents should not do, and do.

// hangs is how long one that hangs stays, should nobody end it.
const hangs = 24 * time.Hour

func hang(*player) error {
	wait(hangs)
	return errors.New("nobody ended it for a day")
}

func ignoreTerm(*player) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return nil
}

func closeStdout(p *player) error {
	p.closed = true
	if c, ok := p.out.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// echoPrompt prints the prompt raw: in a stream of JSON it is no event.
func echoPrompt(p *player) error {
	if p.closed {
		return nil
	}
	_, err := io.WriteString(p.out, strings.TrimSuffix(p.prompt, "\n")+"\n")
	return err
}

func sleep(d duration, _ *player) error {
	wait(time.Duration(d))
	return nil
}

func wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// retry is a model call that the program tries again by itself.
type retry struct {
	Attempt int    `yaml:"attempt"`
	Status  int    `yaml:"status"`
	Type    string `yaml:"type"`
}

func (r *retry) do(p *player) error {
	return p.line("retry", map[string]any{"attempt": max(r.Attempt, 1), "status": r.Status, "error": r.Type})
}

// apiError is a failure of the model's provider. It ends the turn.
type apiError struct {
	kind       string   // of the line
	Status     int      `yaml:"status"`
	Type       string   `yaml:"type"`
	Message    string   `yaml:"message"`
	RetryAfter duration `yaml:"retry_after"`
	ResetIn    duration `yaml:"reset_in"`
}

func (e *apiError) do(p *player) error {
	fields := map[string]any{"status": e.Status, "error": e.Type, "message": e.Message}
	if e.RetryAfter > 0 {
		fields["retry_after"] = time.Duration(e.RetryAfter).String()
	}
	if e.ResetIn > 0 {
		fields["reset_at"] = time.Now().Add(time.Duration(e.ResetIn)).UTC().Format(time.RFC3339)
	}
	if err := p.line(e.kind, fields); err != nil {
		return err
	}
	if p.scenario.Format == "text" {
		fmt.Fprintf(p.err, "API error %d %s: %s\n", e.Status, e.Type, e.Message)
	}
	p.code, p.over = 1, true
	return nil
}

// exit ends the turn.
type exit struct{ code int }

func (e *exit) check() string {
	if e.code < 0 || e.code > 255 {
		return "an exit code is 0 to 255"
	}
	return ""
}

func (e *exit) do(p *player) error {
	p.code, p.over = e.code, true
	return nil
}

// spawn leaves a process behind.
type spawn struct {
	Command    string `yaml:"command"`
	Setsid     bool   `yaml:"setsid"`
	IgnoreTerm bool   `yaml:"ignore_term"`
	HoldOutput bool   `yaml:"hold_output"`
}

func (s *spawn) do(p *player) error {
	script := s.Command
	if s.IgnoreTerm {
		// An ignored signal stays ignored in what the shell starts.
		script = "trap '' TERM INT HUP; " + script
	}
	c := exec.CommandContext(context.Background(), "sh", "-c", script)
	c.Env = p.env
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: s.Setsid}
	if s.HoldOutput {
		c.Stdout, c.Stderr = p.out, p.err
	}
	if err := c.Start(); err != nil {
		return err
	}
	// It is left to itself on purpose: nobody waits for it.
	return c.Process.Release()
}

// noise is output that means nothing.
type noise struct {
	Bytes  size   `yaml:"bytes"`
	Line   size   `yaml:"line"`
	Binary bool   `yaml:"binary"`
	To     string `yaml:"to"`
}

func (o *noise) check() string {
	if o.Line < 1 {
		return "a line has at least 1 byte"
	}
	if o.To != "" && o.To != "stdout" && o.To != "stderr" {
		return "output goes to stdout or stderr"
	}
	return ""
}

func (o *noise) do(p *player) error {
	to := p.out
	if o.To == "stderr" {
		to = p.err
	}
	w := bufio.NewWriterSize(to, 64<<10)
	chunk := o.chunk()
	for left, column := int64(o.Bytes), int64(0); left > 0; {
		n := min(left, int64(len(chunk)), int64(o.Line)-column)
		if _, err := w.Write(chunk[:n]); err != nil {
			return err
		}
		left, column = left-n, column+n
		if column == int64(o.Line) || left == 0 {
			if err := w.WriteByte('\n'); err != nil {
				return err
			}
			column = 0
		}
	}
	return w.Flush()
}

// chunk is the same bytes in every run, without a line break.
func (o *noise) chunk() []byte {
	const length = 64 << 10
	if !o.Binary {
		return bytes.Repeat([]byte("noise "), length/6)
	}
	b := make([]byte, length)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		if b[i] = byte(x >> 24); b[i] == '\n' {
			b[i] = 0
		}
	}
	return b
}

// expectPrompt holds the prompt against what a test wants of it.
func expectPrompt(want texts, p *player) error {
	for _, text := range want {
		if !strings.Contains(p.prompt, text) {
			return fmt.Errorf("the prompt does not have the text %q", text)
		}
	}
	return nil
}

// expectEnv holds the environment against what a test wants of it.
func expectEnv(want map[string]string, p *player) error {
	for name, value := range want {
		if got := p.env.get(name); got != value {
			return fmt.Errorf("%s is %q, not %q", name, got, value)
		}
	}
	return nil
}
