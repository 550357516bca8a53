package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
)

// layered is a configuration with something in every layer.
func layered(t *testing.T) (*Config, string) {
	t.Helper()
	dir := write(t, tempDir(t), map[string]string{
		"home/.config/pawl/config.yaml": `agent: codex
loop: {max_iterations: 1, lease: 40s, strategy: conservative}
agents:
  mine: {command: [./mine], env: {A: user, SECRET_WORD: hush}}
  theirs: {command: theirs}
  fallback: [codex, gemini]
safety: {write: [~/cache, /abs, rel]}
sprint: {target: {type: count, value: 10}}
verification: [make user]
`,
		"repo/pawl.yaml": `loop: {max_iterations: 2, failure_threshold: 4}
agents:
  mine: {command: [./project, --fast], env: {B: project}}
  fallback: [gemini]
sprint: {target: {type: duration, value: 2}}
verification:
  default_timeout: 30
  commands: [go test ./..., {name: lint, command: make lint, timeout: 60, required: false}]
notify: [{webhook: "https://hooks.example.com/services/T0/B0", headers: {X-Auth: abc}}, {webhook: "${CHAT_URL}"}]
iteration_control: {feedback_max_length: 900}
procedures:
  build:
    act: [prompts/act.md, builtin:act/edit-and-test, {content: Do it.}]
    iteration_control: {max_iterations: 5}
`,
		"repo/prompts/act.md":   "\xef\xbb\xbfEdit.\r\nTest.\r\n",
		"repo/sub/dir/.keep":    "",
		"elsewhere/pawl.yaml":   "",
		"home/cache/unused.txt": "",
	})
	o := testOptions(filepath.Join(dir, "repo", "sub", "dir"))
	o.Env = []string{"HOME=" + filepath.Join(dir, "home"), "PAWL_LOOP_MAX_ITERATIONS=3", "PAWL_LOOP_LEASE=50s",
		"PAWL_PROCEDURES_BUILD_MAX_ITERATIONS=7", "PAWL_AGENTS_MINE_ENV_API_KEY=sk-1", "PAWL_RUN=abc", "PAWL_LOP_LEASE=1s",
		"PAWL_LOOP_SAFETY=", "PAWL_AGENTS_FALLBACK=codex, claude"}
	o.Flags = map[string]string{"loop.max_iterations": "4", "loop.timeout": "90000"}
	c, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return c, dir
}

func TestLayers(t *testing.T) {
	t.Parallel()
	c, dir := layered(t)
	got := map[string]any{
		"flag":             c.Loop.MaxIterations,
		"milliseconds":     c.Loop.Timeout.String(),
		"environment":      c.Loop.Lease.String(),
		"project":          c.Loop.FailureThreshold,
		"user-wide":        c.Loop.Strategy,
		"built-in":         c.Loop.IterationTimeout.String(),
		"empty variable":   c.Loop.Safety,
		"agent":            c.Agent,
		"map merges":       c.Agents.Named["mine"].Env,
		"list replaced":    []string(c.Agents.Named["mine"].Command),
		"list of names":    c.Agents.Fallback,
		"other agent":      []string(c.Agents.Named["theirs"].Command),
		"paths":            c.Safety.Write,
		"target":           c.Sprint.Target,
		"seconds":          c.Verification.DefaultTimeout.String(),
		"gates":            c.Verification.Commands,
		"iterations":       *c.Procedures["build"].MaxIterations,
		"control":          *c.Procedures["build"].IterationControl,
		"names":            c.AgentNames(),
		"root":             c.Root,
		"limits":           c.Safety.Limits.Normal,
		"unset is general": c.Procedures["build"].Timeout == nil,
	}
	want := map[string]any{
		"flag":           4,
		"milliseconds":   "1m30s",
		"environment":    "50s",
		"project":        4,
		"user-wide":      "conservative",
		"built-in":       "30m",
		"empty variable": "normal",
		"agent":          "codex",
		"map merges":     map[string]string{"A": "user", "B": "project", "SECRET_WORD": "hush", "API_KEY": "sk-1"},
		"list replaced":  []string{filepath.Join(dir, "repo", "project"), "--fast"},
		"list of names":  []string{"codex", "claude"},
		"other agent":    []string{"theirs"},
		"paths":          []quantity.Path{quantity.Path(filepath.Join(dir, "home", "cache")), "/abs", quantity.Path(filepath.Join(dir, "home", ".config", "pawl", "rel"))},
		"target":         quantity.SprintTarget{Type: "duration", Value: "2", Duration: 7200e9},
		"seconds":        "30s",
		"gates": []Gate{
			{Name: "go test ./...", Command: "go test ./...", Timeout: 30e9, Required: true, When: "iteration"},
			{Name: "lint", Command: "make lint", Timeout: 60e9, When: "iteration"},
		},
		"iterations": 7,
		"control": IterationControl{MaxIterations: 5, AutoRetryOnTestFail: true, AutoRetryOnReviewReject: true,
			EscalationIncludesDiff: true, FeedbackMaxLength: 900},
		"names":            []string{"mine", "theirs"},
		"root":             filepath.Join(dir, "repo"),
		"limits":           Limit{5e6, 20e6, 300e9, 1800e9, 500, 2000, 25e6, 100e6},
		"unset is general": true,
	}
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s = %+v, want %+v", name, got[name], want[name])
		}
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "PAWL_LOP_LEASE") || !strings.Contains(c.Warnings[0], "PAWL_LOOP_LEASE?") {
		t.Errorf("warnings = %q", c.Warnings)
	}
}

func TestFragments(t *testing.T) {
	t.Parallel()
	c, dir := layered(t)
	p := c.Procedures["build"]
	var got []string
	for _, f := range p.Act {
		got = append(got, fmt.Sprintf("%s from %s: %q", f.Name, strings.ReplaceAll(f.Source, dir, ""), f.Text))
	}
	want := []string{
		`prompts/act.md from /repo/prompts/act.md: "Edit.\nTest.\n"`,
		`builtin:act/edit-and-test from builtin: "# act/edit-and-test"`,
		`content from ../../pawl.yaml:13: "Do it."`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("fragments:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// testdata/entries.txt shows every effective value and its source.
func TestEntries(t *testing.T) {
	t.Parallel()
	c, dir := layered(t)
	var b strings.Builder
	for _, e := range c.Entries() {
		fmt.Fprintf(&b, "%s = %s   (%s)\n", e.Path, strings.ReplaceAll(e.Value, dir, "DIR"), strings.ReplaceAll(e.Source, dir, "DIR"))
	}
	golden(t, "testdata/entries.txt", b.String())
	for _, secret := range []string{"hush", "sk-1", "T0"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("the secret %q shows", secret)
		}
	}
}

func TestProvenance(t *testing.T) {
	t.Parallel()
	c, _ := layered(t)
	for path, want := range map[string][2]bool{
		"loop.max_iterations":    {true, true},
		"loop.lease":             {true, false},
		"loop.idle_timeout":      {false, false},
		"verification.protect":   {false, false},
		"no.such.key":            {false, false},
		"agents.mine.env.B":      {true, false},
		"loop.failure_threshold": {true, false},
	} {
		if got := [2]bool{c.IsSet(path), c.IsFlag(path)}; got != want {
			t.Errorf("%s: set, flag = %v, want %v", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"agents.fallback[1]":              "PAWL_AGENTS_FALLBACK: no",
		"verification.commands[1]":        "../../pawl.yaml:8:29: no\n   8 |   commands: [go test ./..., {name: lint, command: make lint, timeout: 60, required: false}]\n     |                             ^",
		"loop.max_iterations":             "--max-iterations: no",
		"procedures.build.act[9].path":    "",
		"server.address":                  "pawl.yaml: no",
		"loop.strategy":                   "~/.config/pawl/config.yaml:2:49: no\n   2 | loop: {max_iterations: 1, lease: 40s, strategy: conservative}\n     |                                                 ^",
		`agents."no such".command[0].end`: "",
	} {
		got := c.ErrorAt(path, "", "no").Error()
		if want != "" && got != want {
			t.Errorf("%s: %s\nwant: %s", path, got, want)
		}
	}
}

func TestBadVariablesAndFlags(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{statedir.FileName: "agents: {my-own: {command: x}}\n"})
	tests := []struct{ env, flag, value, want string }{
		{env: "PAWL_LOOP_MAX_ITERATIONS=many", want: `PAWL_LOOP_MAX_ITERATIONS: loop.max_iterations must be a whole number, not "many"`},
		{env: "PAWL_LOOP_SAFETY=norml", want: `PAWL_LOOP_SAFETY: loop.safety must be permissive, normal or paranoid, not "norml" (did you mean "normal"?)`},
		{env: "PAWL_AGENTS_MY_OWN_IDLE_TIMEOUT=5", want: "PAWL_AGENTS_MY_OWN_IDLE_TIMEOUT: agents.my-own.idle_timeout needs a unit: write 5m or 5s"},
		{env: "PAWL_AGENTS_FALLBACK=[claude", want: "PAWL_AGENTS_FALLBACK:1:1: sequence end token ']' not found\n   1 | [claude\n     | ^"},
		{env: "PAWL_AGENTS_STRONGER=me", want: `PAWL_AGENTS_STRONGER: agents.stronger names the unknown agent "me"; there are claude, codex, gemini, my-own`},
		{flag: "loop.timeout", value: "30", want: "--timeout: loop.timeout would be 30 ms: write 30s"},
		{flag: "loop.timeout", value: "-1", want: "--timeout: loop.timeout cannot be negative (-1)"},
		{flag: "loop.iteration_timeout", value: "1800", want: "--iteration-timeout: loop.iteration_timeout needs a unit: write 1800s"},
		{flag: "loop.max_cost", value: "much", want: `--max-cost: loop.max_cost is not an amount in US dollars: "much"; write e.g. 20 or 0.25`},
		{flag: "loop", value: "x", want: `flags: no key has the path "loop"`},
		{flag: "loop..x", value: "x", want: `flags: no key has the path "loop..x"`},
		{flag: "loop.lease.x", value: "x", want: `flags: no key has the path "loop.lease.x"`},
	}
	for _, tt := range tests {
		o := testOptions(dir)
		o.Env = append(o.Env, tt.env)
		if tt.flag != "" {
			o.Flags = map[string]string{tt.flag: tt.value}
		}
		if _, err := Load(o); errorText(err) != tt.want {
			t.Errorf("%s %s: %v\nwant: %s", tt.env, tt.flag, err, tt.want)
		}
	}
}

// A fault in a lower layer shows even where a higher one hides it.
func TestHiddenFault(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{statedir.FileName: "loop: {lease: 5}\n"})
	o := testOptions(dir)
	o.Flags = map[string]string{"loop.lease": "30s"}
	if _, err := Load(o); err == nil || !strings.HasPrefix(err.Error(), "pawl.yaml:1:15: loop.lease needs a unit") {
		t.Errorf("error = %v", err)
	}
}

// Every variable that the schema knows can be read back to its key.
func TestEveryVariable(t *testing.T) {
	t.Parallel()
	known := &variableList{agents: []string{"codex"}}
	known.addBelow(schema(), "PAWL", nil, reflect.Value{})
	if len(known.all) < 60 {
		t.Fatalf("only %d variables", len(known.all))
	}
	seen := map[string]string{}
	for _, one := range known.all {
		name := one.name
		if strings.HasSuffix(name, "_") { // a key of the user's own follows
			name += "API_KEY"
		}
		v, ok := known.findVariable(name)
		path := strings.Join(v.keys, ".")
		if !ok || !strings.EqualFold(strings.ReplaceAll(path, ".", "_"), strings.TrimPrefix(name, envPrefix)) {
			t.Errorf("%s is read as %q", name, path)
		}
		if other, ok := seen[path]; ok {
			t.Errorf("%s and %s are both %s", name, other, path)
		}
		if slices.Contains(childVariables, name) {
			t.Errorf("%s is a key and never configuration", name)
		}
		seen[path] = name
	}
	if seen["agents.codex.env.API_KEY"] == "" || seen["agents.codex.model"] == "" {
		t.Error("nothing sets a built-in agent that no file has")
	}
}

func TestFindRoot(t *testing.T) {
	t.Parallel()
	dir := write(t, tempDir(t), map[string]string{
		"a/.git/HEAD":       "",
		"a/b/c/x":           "",
		"a/tree/.git":       "gitdir: elsewhere",
		"a/tree/d/x":        "",
		"conf/pawl.yaml":    "",
		"conf/.git/HEAD":    "",
		"conf/in/.git/HEAD": "",
		"plain/x":           "",
	})
	if err := os.Symlink(filepath.Join(dir, "a", "b"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for start, want := range map[string]string{"a/b/c": "a", "a": "a", "a/tree/d": "a/tree", "conf/in": "conf", "plain": "plain", "link/c": "a"} {
		got, err := statedir.FindRoot(filepath.Join(dir, start))
		if err != nil || got != filepath.Join(dir, want) {
			t.Errorf("FindRoot(%s) = %s, %v; want %s", start, got, err, want)
		}
	}
	if got, err := statedir.FindRoot(filepath.Join(dir, "missing")); err == nil {
		t.Errorf("FindRoot of a missing folder = %s", got)
	}
}

func TestStateDir(t *testing.T) {
	t.Parallel()
	tests := []struct {
		root string
		env  []string
		want string
	}{
		{"/src/pawl", []string{"HOME=/h"}, "/h/.local/state/pawl/pawl-98dda732"},
		{"/src/pawl", []string{"HOME=/h", "XDG_STATE_HOME=/s"}, "/s/pawl/pawl-98dda732"},
		{"/src/pawl", []string{"HOME=/h", "XDG_STATE_HOME=relative"}, "/h/.local/state/pawl/pawl-98dda732"},
		{"/", []string{"HOME=/h"}, "/h/.local/state/pawl/root-8a5edab2"},
	}
	for _, tt := range tests {
		if got := statedir.Of(tt.root, tt.env); got != tt.want {
			t.Errorf("StateDir(%s, %v) = %s, want %s", tt.root, tt.env, got, tt.want)
		}
	}
	if statedir.Of("/a/x", nil) == statedir.Of("/b/x", nil) {
		t.Error("two roots of one name share a folder")
	}
}

func TestEntriesGoThroughJSON(t *testing.T) {
	t.Parallel()
	c, _ := layered(t)
	data, err := json.Marshal(c.Entries()[0])
	if err != nil || !strings.HasPrefix(string(data), `{"path":"agent","value":"codex","source":"user-wide ~/.config`) {
		t.Errorf("%s, %v", data, err)
	}
}
