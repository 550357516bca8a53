package script

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// This file holds what agents should not do, and do.

// hangs is how long one that hangs stays, should nobody end it.
const hangs = 24 * time.Hour

func sleep(d duration, _ *player) error {
	<-time.After(time.Duration(d))
	return nil
}

func hang(*player) error {
	<-time.After(hangs)
	return errors.New("nobody ended it for a day")
}

func ignoreTerm(*player) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return nil
}

// raw is a shell command whose output is the agent's own, whatever it is: noise,
// the prompt, which is on its stdin, or what a process prints that it leaves behind.
func raw(command string, p *player) error {
	c := exec.CommandContext(context.Background(), "sh", "-c", command)
	c.Env, c.Stdout, c.Stderr = p.env, p.out, p.err
	c.Stdin = strings.NewReader(p.prompt)
	return c.Run()
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

// expectPrompt holds the prompt against what a test wants of it.
func expectPrompt(want texts, p *player) error {
	for _, text := range want {
		if !strings.Contains(p.prompt, text) {
			return fmt.Errorf("the prompt does not have the text %q", text)
		}
	}
	return nil
}
