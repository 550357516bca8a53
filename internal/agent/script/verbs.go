package script

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// verbs makes the action of each step.
var verbs = map[string]func() action{
	"say":           func() action { return &say{kind: "text"} },
	"think":         func() action { return &say{kind: "thinking"} },
	"tool":          func() action { return &tool{} },
	"write":         func() action { return &write{} },
	"append":        func() action { return &write{more: true} },
	"edit":          func() action { return &edit{} },
	"delete":        func() action { return &remove{} },
	"run":           func() action { return &run{} },
	"usage":         func() action { return &usage{} },
	"retry":         func() action { return &retry{} },
	"rate_limit":    func() action { return &apiError{limit: true} },
	"api_error":     func() action { return &apiError{} },
	"exit":          func() action { return &exit{} },
	"no_end":        func() action { return &flag{deed: func(p *player) error { p.noEnd = true; return nil }} },
	"sleep":         func() action { return &pause{} },
	"hang":          func() action { return &flag{deed: hang} },
	"ignore_term":   func() action { return &flag{deed: ignoreTerm} },
	"spawn":         func() action { return &spawn{} },
	"output":        func() action { return &noise{} },
	"close_stdout":  func() action { return &flag{deed: closeStdout} },
	"echo_prompt":   func() action { return &flag{deed: echoPrompt} },
	"expect_prompt": func() action { return &expectPrompt{} },
	"expect_env":    func() action { return &expectEnv{} },
}

var verbNames = func() []string {
	names := []string{"repeat"}
	for name := range verbs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// say is a message of the agent's own.
type say struct {
	kind   string
	Text   texts    `yaml:"text"`
	Chunks int      `yaml:"chunks"`
	Pause  duration `yaml:"pause"`
}

func (s *say) decode(n ast.Node) error { return into(n, s, &s.Text) }

func (s *say) do(p *player) error {
	for _, text := range s.Text {
		if s.Chunks < 2 || s.kind != "text" {
			if err := p.say(s.kind, text); err != nil {
				return err
			}
			continue
		}
		if err := s.stream(p, text); err != nil {
			return err
		}
	}
	return nil
}

// stream tells the message in pieces, cut where they happen to end. An empty
// thought ends the message, so that the next one is another.
func (s *say) stream(p *player, text string) error {
	runes := []rune(text)
	each := max(1, (len(runes)+s.Chunks-1)/s.Chunks)
	for piece := range slices.Chunk(runes, each) {
		if err := p.say("delta", string(piece)); err != nil {
			return err
		}
		wait(time.Duration(s.Pause))
	}
	if p.scenario.Format == "text" {
		return p.say("delta", "\n")
	}
	return p.say("thinking", "")
}

// tool is a call that is only told.
type tool struct {
	Name    string   `yaml:"name"`
	Command string   `yaml:"command"`
	Files   []string `yaml:"files"`
	Failed  bool     `yaml:"failed"`
	Output  string   `yaml:"output"`
}

func (t *tool) decode(n ast.Node) error { return into(n, t, &t.Name) }

func (t *tool) do(p *player) error {
	if err := p.line("tool", map[string]any{"name": t.Name, "command": t.Command, "files": t.Files}); err != nil {
		return err
	}
	end := map[string]any{"name": t.Name, "failed": t.Failed}
	if t.Output != "" {
		end["output"] = t.Output
	}
	return p.line("tool_end", end)
}

// write makes or extends a file.
type write struct {
	more    bool
	Path    string `yaml:"path"`
	Content string `yaml:"content"`
	Mode    string `yaml:"mode"`
}

func (w *write) decode(n ast.Node) error {
	if err := into(n, w, nil); err != nil {
		return err
	}
	if w.Path == "" {
		return invalid(n.GetToken(), "it needs a path")
	}
	if _, err := w.mode(); err != nil {
		return invalid(n.GetToken(), "a mode is octal: 755")
	}
	return nil
}

func (w *write) mode() (os.FileMode, error) {
	if w.Mode == "" {
		return 0o644, nil
	}
	m, err := strconv.ParseUint(w.Mode, 8, 12)
	return os.FileMode(m), err
}

func (w *write) do(p *player) error {
	return p.tool("write", "", []string{w.Path}, func() error {
		if err := os.MkdirAll(filepath.Dir(w.Path), 0o755); err != nil {
			return err
		}
		mode, err := w.mode()
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

func (e *edit) decode(n ast.Node) error {
	if err := into(n, e, nil); err != nil {
		return err
	}
	if e.Path == "" || e.Old == "" {
		return invalid(n.GetToken(), "it needs a path and the old text")
	}
	return nil
}

func (e *edit) do(p *player) error {
	return p.tool("edit", "", []string{e.Path}, func() error {
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

// remove deletes files and folders.
type remove struct{ paths texts }

func (r *remove) decode(n ast.Node) error { return into(n, nil, &r.paths) }

func (r *remove) do(p *player) error {
	return p.tool("delete", "", r.paths, func() error {
		var errs []error
		for _, path := range r.paths {
			errs = append(errs, os.RemoveAll(path))
		}
		return errors.Join(errs...)
	})
}

// run is a shell command. Its output is a tool's and goes nowhere.
type run struct {
	Command string `yaml:"command"`
	Must    bool   `yaml:"must"`
}

func (r *run) decode(n ast.Node) error { return into(n, r, &r.Command) }

func (r *run) do(p *player) error {
	err := p.tool("run", r.Command, nil, func() error {
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

// usage is what a model call used.
type usage struct {
	Input      int64   `yaml:"input"`
	Output     int64   `yaml:"output"`
	CacheRead  int64   `yaml:"cache_read"`
	CacheWrite int64   `yaml:"cache_write"`
	Cost       float64 `yaml:"cost"`
	Calls      *int    `yaml:"calls"`
}

func (u *usage) decode(n ast.Node) error { return into(n, u, nil) }

func (u *usage) do(p *player) error {
	calls := 1
	if u.Calls != nil {
		calls = *u.Calls
	}
	if err := p.line("usage", map[string]any{"input": u.Input, "output": u.Output,
		"cache_read": u.CacheRead, "cache_write": u.CacheWrite, "calls": calls}); err != nil {
		return err
	}
	if u.Cost == 0 {
		return nil
	}
	p.cost += u.Cost
	return p.line("cost", map[string]any{"usd": p.cost})
}
