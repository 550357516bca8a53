package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/decide/lists"
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
	if err := p.playScenario(args[0], stdin); err != nil {
		fmt.Fprintf(stderr, "scripted agent: %v\n", err)
		return exitFailed
	}
	return p.code
}

// player is one turn on its way.
type player struct {
	scenario *Scenario
	out, err io.Writer
	env      []string
	prompt   string
	cost     float64 // USD so far
	code     int     // exit code
	over     bool    // no further step
	noEnd    bool    // no terminal event
}

func (p *player) playScenario(path string, stdin io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(stdin, maxPrompt))
	if err != nil {
		return fmt.Errorf("cannot read the prompt: %v", err)
	}
	p.prompt = string(b)
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	turns, scene := p.scenario.sceneFor(p.prompt, lists.Getenv(p.env, "PAWL_CASE"))
	if len(turns) == 0 {
		return errors.New("no scene fits this prompt, and there are no turns for all")
	}
	n, err := turnNumber(path, scene, p.env)
	if err != nil {
		return err
	}
	if err := p.printStart(n); err != nil {
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
	return p.putEvent("end", map[string]any{"ok": p.code == 0})
}

func (p *player) printStart(turn int) error {
	name, model := cmp.Or(p.scenario.Name, "script"), cmp.Or(p.scenario.Model, "scripted")
	id := fmt.Sprintf("%s-%d-%d", name, turn, os.Getpid())
	return p.putEvent("start", map[string]any{"session": id, "model": model})
}

func (p *player) putEvent(kind string, fields map[string]any) error {
	fields["type"] = kind
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(b, '\n'))
	return err
}

// printTool prints a call around the action itself.
func (p *player) printTool(name, command string, files []string, action func() error) error {
	call := map[string]any{"name": name}
	if command != "" {
		call["command"] = command
	}
	if len(files) > 0 {
		call["files"] = files
	}
	if err := p.putEvent("tool", call); err != nil {
		return err
	}
	err := action()
	end := map[string]any{"name": name}
	if err != nil {
		end["failed"] = true
	}
	return errors.Join(err, p.putEvent("tool_end", end))
}

// stateVar names the folder of the turn counters.
const stateVar = "PAWL_SCRIPT_STATE"

// turnNumber takes the next turn of the scene, counted from 1.
func turnNumber(scenario, scene string, env []string) (int, error) {
	dir := lists.Getenv(env, stateVar)
	if dir == "" {
		if n, err := strconv.Atoi(lists.Getenv(env, "PAWL_ITERATION")); err == nil && n > 0 {
			return n, nil
		}
		return 1, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("cannot keep the turn: %v", err)
	}
	h := fnv.New64a()
	h.Write([]byte(scenario + "\x00" + lists.Getenv(env, "PAWL_RUN")))
	return incrementFile(filepath.Join(dir, fmt.Sprintf("%016x.%s", h.Sum64(), scene)))
}

// incrementFile adds one to the number in a file and returns it. Processes that do so at once get
// different numbers.
func incrementFile(path string) (n int, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, fmt.Errorf("cannot keep the turn: %v", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("cannot keep the turn: %v", cerr)
		}
	}()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return 0, fmt.Errorf("cannot lock %s: %v", path, err)
	}
	b := make([]byte, 32)
	size, _ := f.ReadAt(b, 0) // an empty file is turn 0
	// The number only grows, so it never leaves a digit of an older one behind.
	n, err = strconv.Atoi(strings.TrimSpace(string(b[:size])))
	if err != nil && size > 0 {
		return 0, fmt.Errorf("cannot read the turn in %s: %v", path, err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(n+1)), 0); err != nil {
		return 0, fmt.Errorf("cannot keep the turn: %v", err)
	}
	return n + 1, nil
}
