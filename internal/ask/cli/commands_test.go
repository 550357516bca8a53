package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	"github.com/pawl-dev/pawl/internal/test/gittest"
)

// The test binary is pawl too, when a run starts itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(cli.Main(nil, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	os.Exit(gittest.Run(m))
}

// shell is somebody at a prompt, in a repository.
type shell struct {
	t        *testing.T
	dir      string
	env      []string
	out, err bytes.Buffer
}

func newShell(t *testing.T, files map[string]string) *shell {
	t.Helper()
	home := t.TempDir()
	s := &shell{t: t, dir: filepath.Join(home, "repo")}
	s.env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(home, "state"), "XDG_CONFIG_HOME="+filepath.Join(home, "config"))
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gittest.Git(t, s.dir, "init", "-q")
	gittest.Git(t, s.dir, "add", "-A")
	gittest.Git(t, s.dir, "commit", "-q", "--allow-empty", "-m", "start")
	return s
}

// pawl runs a command line, in which _ stands for a space in a word, and
// returns its exit status.
func (s *shell) pawl(line string) int {
	s.t.Helper()
	words := []string{"-C", s.dir}
	for _, word := range strings.Fields(line) {
		words = append(words, strings.ReplaceAll(word, "_", " "))
	}
	s.out.Reset()
	s.err.Reset()
	return cli.Main(nil, words, strings.NewReader(""), &s.out, &s.err, s.env)
}

// fields are values of the JSON that a command printed, by their path.
func (s *shell) fields(paths ...string) (all []any) {
	s.t.Helper()
	var doc any
	if err := json.Unmarshal(s.out.Bytes(), &doc); err != nil {
		s.t.Fatalf("%v: %s", err, s.out.String())
	}
	for _, path := range paths {
		at := doc
		for _, key := range strings.Split(path, ".") {
			switch v := at.(type) {
			case map[string]any:
				at = v[key]
			case []any:
				n := 0
				if _, err := fmt.Sscan(key, &n); err != nil || n >= len(v) {
					s.t.Fatalf("%s: there is no %s in %s", path, key, s.out.String())
				}
				at = v[n]
			}
		}
		all = append(all, at)
	}
	return all
}

// What a run came to is the exit status; what cannot be done at all is 2.
func TestExitStatuses(t *testing.T) {
	t.Parallel()
	turns := func(text string) string { return "turns:\n  - - append: {path: work, content: x}\n" + text }
	for _, c := range []struct {
		name, turns, line string
		config            string // beside that of the agent
		status            int
		run               string // its status then; "" is no run
	}{
		{"completed", turns("    - say: <promise>COMPLETE</promise>"), "run work", "", 0, "completed"},
		{"the gates are red", turns("    - say: <promise>COMPLETE</promise>"), "run work", "verification: {commands: [{name: tests, command: 'false'}]}", 1, "aborted"},
		{"blocked", turns("    - say: '<promise>BLOCKED: no key</promise>'"), "run work", "", 4, "blocked"},
		{"a question", turns("    - say: '<promise>PENDING: which one?</promise>'"), "run work", "", 4, "pending"},
		{"the money is spent", turns("    - usage: {cost: 0.5}\n    - hang: true"), "run work --max-cost 0.1", "", 3, "timeout"},
		{"no such procedure", turns(""), "run nothing", "", 2, ""},
		{"no such flag", turns(""), "run work --nothing", "", 2, ""},
		{"a bad value", turns(""), "run work --max-cost much", "", 2, ""},
		{"a bad file", turns(""), "run work", "nothing: 1", 2, ""},
		{"what is only shown is not run", turns(""), "run work --dry-run", "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t, map[string]string{
				"agent.yaml": c.turns,
				"pawl.yaml": "agent: script\nagents: {script: {command: [agent.yaml]}}\nloop: {safety: permissive, failure_threshold: 2}\n" +
					"procedures: {work: {max_iterations: 3, act: [{content: Work.}]}}\n" + c.config + "\n",
			})
			if got := s.pawl(c.line); got != c.status {
				t.Errorf("the exit status is %d, want %d: %s", got, c.status, s.err.String())
			}
			if c.status != 0 && !strings.Contains(s.err.String(), ": ") {
				t.Errorf("nobody is told why: %q", s.err.String())
			}
			if s.pawl("show work --json"); c.run != "" && s.fields("status")[0] != c.run {
				t.Errorf("the run is %v, want %s", s.fields("status")[0], c.run)
			} else if c.run == "" && s.out.Len() > 0 {
				t.Errorf("there is a run: %s", s.out.String())
			}
		})
	}
}

// Each line is a command, its exit status, and a part of what it prints.
func TestABoardByCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t, nil)
	for _, c := range []struct {
		line   string
		status int
		prints string
	}{
		{"case add Parse_the_header --tag critical", 0, "task-001"},
		{"case add Write_the_body --needs task-1 --priority 2", 0, "task-002"},
		{"case add --operation Formats", 0, "op-001"},
		{"case add Read_it --parent op-1", 0, "task-003"},
		{"case list --ready --json", 0, `"task-001"`},
		{"case add x --needs task-77", 2, "task-77"},
		{"case edit 1 --needs 2", 2, "task-001 → task-002 → task-001"},
		{"case rm 1", 2, "task-002"},
		{"case block op-1 --why later", 0, "op-001"},
		{"case show 3 --json", 0, `"ready": false`},
		{"case retry 1", 2, "pending"},
		{"case unblock op-1", 0, "op-001"},
		{"case defer 3", 0, "task-003"},
		{"case undefer 3", 0, "task-003"},
		{"case edit 2 --unneed 1", 0, "task-002"},
		{"case rm 1", 0, "task-001"},
		{"case add x --priority high", 2, "--priority: write a whole number, not \"high\""},
		{"case add x --prioriti 1", 2, "did you mean --priority?"},
		{"case show 1", 2, "task-001"},
		{"case block 42", 2, "task-042"},
		{"case add", 2, ""},
		{"case nothing", 2, ""},
		{"nothing", 2, "nothing"},
		{"queue add 2", 2, "task-002"},
		{"stop nothing", 2, "nothing"},
		{"show nothing", 2, "nothing"},
		{"answer nothing yes", 2, "nothing"},
		{"ps --color sometimes", 2, "sometimes"},
		{"version", 0, ""},
	} {
		if got := s.pawl(c.line); got != c.status {
			t.Errorf("pawl %s: exit status %d, want %d: %s%s", c.line, got, c.status, s.out.String(), s.err.String())
		}
		if all := s.out.String() + s.err.String(); !strings.Contains(all, c.prints) {
			t.Errorf("pawl %s prints %q, without %q", c.line, all, c.prints)
		}
	}
	s.pawl("case list --ready --json")
	var ready []any
	for line := range strings.Lines(s.out.String()) {
		var c struct{ ID string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		ready = append(ready, c.ID)
	}
	if want := []any{"task-002", "task-003"}; !reflect.DeepEqual(ready, want) {
		t.Errorf("ready are %v, want %v, the higher priority first", ready, want)
	}
}
