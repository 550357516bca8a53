package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The exit codes of its own, chosen so that no test uses them by chance.
const (
	exitUsage  = 2
	exitFailed = 97 // a step could not be done
)

// maxPrompt is how much of the prompt is looked at, in bytes.
const maxPrompt = 64 << 20

// Main is the scripted agent: it plays one turn of the scenario in args[0],
// with the prompt on stdin, and returns the exit code. env is its
// environment, K=V. It works in the process's working folder.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: pawl "+Command+" SCENARIO.yaml < PROMPT")
		return exitUsage
	}
	s, err := Load(args[0])
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	p := &player{scenario: s, out: stdout, err: stderr, env: env}
	if err := p.play(args[0], stdin); err != nil {
		fmt.Fprintf(stderr, "scripted agent: %v\n", err)
		return exitFailed
	}
	return p.code
}

// player is one turn on its way.
type player struct {
	scenario *Scenario
	out, err io.Writer
	env      environment
	prompt   string
	cost     float64 // USD so far
	code     int     // exit code
	over     bool    // no further step
	noEnd    bool    // no terminal event
}

func (p *player) play(path string, stdin io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(stdin, maxPrompt))
	if err != nil {
		return fmt.Errorf("cannot read the prompt: %v", err)
	}
	p.prompt = string(b)
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	turns, scene := p.scenario.scene(p.prompt, p.env.get("PAWL_CASE"))
	if len(turns) == 0 {
		return errors.New("no scene fits this prompt, and there are no turns for all")
	}
	n, err := turnNumber(path, scene, p.env)
	if err != nil {
		return err
	}
	if err := p.start(n); err != nil {
		return err
	}
	for _, s := range turns[min(n, len(turns))-1].steps {
		if err := s.do(p); err != nil {
			return fmt.Errorf("turn %d, line %d: %s: %v", n, s.line, s.verb, err)
		}
		if p.over {
			break
		}
	}
	if p.noEnd {
		return nil
	}
	return p.line("end", map[string]any{"ok": p.code == 0})
}

func (p *player) start(turn int) error {
	name := p.scenario.Name
	if name == "" {
		name = "script"
	}
	model := p.scenario.Model
	if model == "" {
		model = "scripted"
	}
	return p.line("start", map[string]any{"session": fmt.Sprintf("%s-%d-%d", name, turn, os.Getpid()), "model": model})
}

// line prints one event.
func (p *player) line(kind string, fields map[string]any) error {
	fields["type"] = kind
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(b, '\n'))
	return err
}

// tool prints a call around the action itself.
func (p *player) tool(name, command string, files []string, action func() error) error {
	call := map[string]any{"name": name}
	if command != "" {
		call["command"] = command
	}
	if len(files) > 0 {
		call["files"] = files
	}
	if err := p.line("tool", call); err != nil {
		return err
	}
	err := action()
	end := map[string]any{"name": name}
	if err != nil {
		end["failed"] = true
	}
	return errors.Join(err, p.line("tool_end", end))
}

// environment is K=V pairs, of which the last counts.
type environment []string

func (e environment) get(name string) string {
	value := ""
	for _, kv := range e {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			value = v
		}
	}
	return value
}
