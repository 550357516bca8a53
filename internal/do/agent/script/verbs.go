package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// verbs are the steps.
var verbs = map[string]verb{
	"say":    newTextVerb("text"),
	"think":  newTextVerb("thinking"),
	"tool":   newVerb(tool{}, func(t *tool) any { return &t.Name }, (*tool).performStep),
	"write":  newVerb(write{}, mappingOnly, (*write).performStep),
	"append": newVerb(write{more: true}, mappingOnly, (*write).performStep),
	"edit":   newVerb(edit{}, mappingOnly, (*edit).performStep),
	"delete": plainVerb(removeFiles),
	"run":    newVerb(run{}, func(r *run) any { return &r.Command }, (*run).performStep),
	"usage":  newVerb(usage{}, mappingOnly, (*usage).performStep),
	"rate_limit": newVerb(apiError{kind: "rate_limit", Status: 429, Type: "rate_limit", Message: "rate limit reached"},
		mappingOnly, (*apiError).performStep),
	"api_error":     newVerb(apiError{kind: "error"}, mappingOnly, (*apiError).performStep),
	"exit":          newVerb(exit{}, func(e *exit) any { return &e.code }, (*exit).performStep),
	"no_end":        flagVerb(func(p *player) error { p.noEnd = true; return nil }),
	"sleep":         plainVerb(sleepFor),
	"hang":          flagVerb(hangForADay),
	"ignore_term":   flagVerb(ignoreTerm),
	"raw":           plainVerb(runRawCommand),
	"expect_prompt": plainVerb(expectPrompt),
}

// newTextVerb prints messages of the agent's own, or its thoughts.
func newTextVerb(kind string) verb {
	return plainVerb(func(all texts, p *player) error {
		for _, text := range all {
			if err := p.putEvent(kind, map[string]any{"text": text}); err != nil {
				return err
			}
		}
		return nil
	})
}

// tool is a call that is only reported.
type tool struct {
	Name    string   `yaml:"name"`
	Command string   `yaml:"command"`
	Files   []string `yaml:"files"`
	Failed  bool     `yaml:"failed"`
	Output  string   `yaml:"output"`
}

func (t *tool) performStep(p *player) error {
	if err := p.putEvent("tool", map[string]any{"name": t.Name, "command": t.Command, "files": t.Files}); err != nil {
		return err
	}
	end := map[string]any{"name": t.Name, "failed": t.Failed}
	if t.Output != "" {
		end["output"] = t.Output
	}
	return p.putEvent("tool_end", end)
}

// write makes or extends a file.
type write struct {
	more    bool
	Path    string `yaml:"path"`
	Content string `yaml:"content"`
	Mode    string `yaml:"mode"`
}

func (w *write) reasonInvalid() string {
	if w.Path == "" {
		return "it needs a path"
	}
	if _, err := w.fileMode(); err != nil {
		return "a mode is octal: 755"
	}
	return ""
}

func (w *write) fileMode() (os.FileMode, error) {
	if w.Mode == "" {
		return 0o644, nil
	}
	m, err := strconv.ParseUint(w.Mode, 8, 12)
	return os.FileMode(m), err
}

func (w *write) performStep(p *player) error {
	return p.printTool("write", "", []string{w.Path}, func() error {
		if err := os.MkdirAll(filepath.Dir(w.Path), 0o755); err != nil {
			return err
		}
		mode, err := w.fileMode()
		if err != nil {
			return err
		}
		how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
		if w.more {
			how = os.O_WRONLY | os.O_CREATE | os.O_APPEND
		}
		f, err := os.OpenFile(w.Path, how, mode)
		if err != nil {
			return err
		}
		_, err = f.WriteString(w.Content)
		return errors.Join(err, f.Close())
	})
}

// edit replaces text in a file.
type edit struct {
	Path string `yaml:"path"`
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
}

func (e *edit) reasonInvalid() string {
	if e.Path == "" || e.Old == "" {
		return "it needs a path and the old text"
	}
	return ""
}

func (e *edit) performStep(p *player) error {
	return p.printTool("edit", "", []string{e.Path}, func() error {
		b, err := os.ReadFile(e.Path)
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(e.Old)) {
			return fmt.Errorf("%s does not have the text %q", e.Path, e.Old)
		}
		info, err := os.Stat(e.Path)
		if err != nil {
			return err
		}
		return os.WriteFile(e.Path, bytes.ReplaceAll(b, []byte(e.Old), []byte(e.New)), info.Mode())
	})
}

func removeFiles(paths texts, p *player) error {
	return p.printTool("delete", "", paths, func() error {
		errs := lists.Each(paths, os.RemoveAll)
		return errors.Join(errs...)
	})
}

// run is a shell command. Its output is a tool's and goes nowhere.
type run struct {
	Command string `yaml:"command"`
	Must    bool   `yaml:"must"`
}

func (r *run) performStep(p *player) error {
	err := p.printTool("run", r.Command, nil, func() error {
		c := exec.CommandContext(context.Background(), "sh", "-c", r.Command)
		c.Env = p.env
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %v: %s", r.Command, err, strings.TrimSpace(string(out[:min(len(out), 2000)])))
		}
		return nil
	})
	if r.Must {
		return err
	}
	return nil
}

// usage is the use of a model call.
type usage struct {
	Input      int64   `yaml:"input"`
	Output     int64   `yaml:"output"`
	CacheRead  int64   `yaml:"cache_read"`
	CacheWrite int64   `yaml:"cache_write"`
	Cost       float64 `yaml:"cost"`
	Calls      *int    `yaml:"calls"`
}

func (u *usage) performStep(p *player) error {
	calls := 1
	if u.Calls != nil {
		calls = *u.Calls
	}
	if err := p.putEvent("usage", map[string]any{"input": u.Input, "output": u.Output,
		"cache_read": u.CacheRead, "cache_write": u.CacheWrite, "calls": calls}); err != nil {
		return err
	}
	if u.Cost == 0 {
		return nil
	}
	p.cost += u.Cost
	return p.putEvent("cost", map[string]any{"usd": p.cost})
}

// The verbs below do what agents should not do, and do.

// hangs is how long a hanging agent stays, if it is not ended before.
const hangs = 24 * time.Hour

func sleepFor(d duration, _ *player) error {
	<-time.After(time.Duration(d))
	return nil
}

func hangForADay(*player) error {
	<-time.After(hangs)
	return errors.New("nobody ended it for a day")
}

func ignoreTerm(*player) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return nil
}

// runRawCommand runs a shell command whose output is the agent's own, whatever it is: noise, the prompt,
// which is on its stdin, or what a process prints that it leaves behind.
func runRawCommand(command string, p *player) error {
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

func (e *apiError) performStep(p *player) error {
	fields := map[string]any{"status": e.Status, "error": e.Type, "message": e.Message}
	if e.RetryAfter > 0 {
		fields["retry_after"] = time.Duration(e.RetryAfter).String()
	}
	if e.ResetIn > 0 {
		fields["reset_at"] = time.Now().Add(time.Duration(e.ResetIn)).UTC().Format(time.RFC3339)
	}
	if err := p.putEvent(e.kind, fields); err != nil {
		return err
	}
	p.code, p.over = 1, true
	return nil
}

// exit ends the turn.
type exit struct{ code int }

func (e *exit) reasonInvalid() string {
	if e.code < 0 || e.code > 255 {
		return "an exit code is 0 to 255"
	}
	return ""
}

func (e *exit) performStep(p *player) error {
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
