package program

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

var sample = Program{
	Name: "mine", Binary: "mine-cli",
	Flags: Flags{
		Args: []string{"run", "--json"}, Allow: []string{"--yolo"}, Careful: []string{"--edits"}, ReadOnly: []string{"--plan"}, Model: "-m", MaxCost: "--budget",
	},
	Env: []string{"QUIET=1"}, Unset: []string{"NESTED"}, Grace: time.Second, Quiet: time.Minute, Parser: "text", Limit: 100, Install: "get it",
	State: State{Env: []string{"MINE_HOME={state}"}, Flag: "--data", Keys: []string{"MINE_KEY"}, WithKey: []string{"--auth", "key"}, Always: []string{"--log", "{state}/log"}},
	Facts: agent.Facts{Package: "p", Problems: []string{"one"}},
}

func with(change func(*Program)) Adapter {
	p := sample
	change(&p)
	return Adapter{Program: p}
}

func prompt(t *testing.T, text string) agent.Invocation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return agent.Invocation{PromptFile: path, PromptSize: int64(len(text))}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		in   agent.Invocation
		want string
		env  string
	}{
		{"bare", agent.Invocation{}, "mine-cli run --json --yolo", "QUIET=1"},
		{"a model", agent.Invocation{Model: "big"}, "mine-cli run --json --yolo -m big", "QUIET=1"},
		{"a budget", agent.Invocation{MaxCost: 2_500_000}, "mine-cli run --json --yolo --budget 2.5", "QUIET=1"},
		{"a small budget", agent.Invocation{MaxCost: 1}, "mine-cli run --json --yolo --budget 0.000001", "QUIET=1"},
		{"paranoid", agent.Invocation{Safety: "paranoid"}, "mine-cli run --json --edits", "QUIET=1"},
		{"a reviewer", agent.Invocation{Safety: "paranoid", ReadOnly: true}, "mine-cli run --json --plan", "QUIET=1"},
		{"normal", agent.Invocation{Safety: "normal"}, "mine-cli run --json --yolo", "QUIET=1"},
		{"the user's command", agent.Invocation{Command: []string{"/opt/m", "-v"}}, "/opt/m -v run --json --yolo", "QUIET=1"},
		{"a login", agent.Invocation{StateDir: "/s"}, "mine-cli run --json --yolo --log /s/log", "QUIET=1"},
		{"a key", agent.Invocation{StateDir: "/s", Env: []string{"MINE_KEY=k"}}, "mine-cli run --json --yolo --auth key --log /s/log --data /s", "QUIET=1 MINE_HOME=/s MINE_KEY=k"},
		{"a key and no folder", agent.Invocation{Env: []string{"MINE_KEY=k"}}, "mine-cli run --json --yolo --auth key", "QUIET=1 MINE_KEY=k"},
		{"isolated", agent.Invocation{StateDir: "/s", Isolate: true}, "mine-cli run --json --yolo --log /s/log --data /s", "QUIET=1 MINE_HOME=/s"},
		{"the user's addition is last", agent.Invocation{Env: []string{"QUIET=0"}}, "mine-cli run --json --yolo", "QUIET=1 QUIET=0"},
	} {
		got, err := Adapter{Program: sample}.Start(test.in)
		if err != nil || strings.Join(got.Args, " ") != test.want || strings.Join(got.Env, " ") != test.env {
			t.Errorf("%s: %q with %q, %v", test.name, got.Args, got.Env, err)
		}
		if got.Parser != "text" || got.Grace != time.Second || !slices.Equal(got.Unset, []string{"NESTED"}) {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	in := prompt(t, "Fix it.\n")
	dash := prompt(t, "- one\n- two")
	for _, test := range []struct {
		name    string
		adapter Adapter
		in      agent.Invocation
		last    string
		stdin   string
	}{
		{"stdin", with(func(*Program) {}), in, "--yolo", in.PromptFile},
		{"an argument", with(func(p *Program) { p.Prompt = Argument }), in, "Fix it.\n", ""},
		{"a list as an argument", with(func(p *Program) { p.Prompt = Argument }), dash, "\n- one\n- two", ""},
		{"a file", with(func(p *Program) { p.Prompt, p.PromptAt = File, "--from" }), in, in.PromptFile, ""},
	} {
		got, err := test.adapter.Start(test.in)
		if err != nil || got.Args[len(got.Args)-1] != test.last || got.Stdin != test.stdin {
			t.Errorf("%s: %q, stdin %q, %v", test.name, got.Args, got.Stdin, err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	argument := with(func(p *Program) { p.Prompt = Argument })
	grown := prompt(t, strings.Repeat("x", MaxArgument))
	grown.PromptSize = 5 // the file grew after it was measured
	for _, test := range []struct {
		name    string
		adapter Adapter
		in      agent.Invocation
		want    string
	}{
		{"over the program's limit", with(func(*Program) {}), agent.Invocation{PromptSize: 101}, "at most 100; shorten the prompt"},
		{"over the system's limit", argument, agent.Invocation{PromptSize: MaxArgument - 1}, "at most 131070"},
		{"over the system's limit after all", argument, grown, "the program takes at most 131070"},
		{"a NUL", argument, prompt(t, "a\x00b"), "NUL byte"},
		{"no file", argument, agent.Invocation{PromptFile: filepath.Join(t.TempDir(), "no")}, "cannot read the prompt for mine"},
		{"a model for none", with(func(p *Program) { p.Model = "" }), agent.Invocation{Model: "big"}, "remove model from agents.mine"},
	} {
		_, err := test.adapter.Start(test.in)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v", test.name, err)
		}
	}
	for name, a := range map[string]Adapter{"100": with(func(*Program) {}), "131070": argument} {
		in := prompt(t, strings.Repeat("x", 100))
		if name == "131070" {
			in = prompt(t, strings.Repeat("x", MaxArgument-2))
		}
		if _, err := a.Start(in); err != nil {
			t.Errorf("%s bytes: %v", name, err)
		}
	}
}

func TestFacts(t *testing.T) {
	t.Parallel()
	var a agent.Adapter = Adapter{Program: sample}
	facts := a.About()
	if facts.Program != "mine-cli" || facts.Format != "text" || facts.PromptLimit != 100 || facts.Package != "p" {
		t.Errorf("facts are %+v", facts)
	}
	facts.Problems[0] = "changed"
	if sample.Facts.Problems[0] != "one" {
		t.Error("facts are handed out by reference")
	}
	if facts.Idle != time.Minute || facts.Name != "mine" || facts.Install != "get it" {
		t.Errorf("it is patient for %v", facts.Idle)
	}
}

// The binary that a package brings along is found from its wrapper's place.
func TestBeside(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := func(mode os.FileMode, parts ...string) string {
		path := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	wrapper := file(0o755, "lib", "tool", "loader.js")
	link := filepath.Join(root, "tool")
	if err := os.Symlink(wrapper, link); err != nil {
		t.Fatal(err)
	}
	place, err := filepath.EvalSymlinks(filepath.Dir(wrapper))
	if err != nil {
		t.Fatal(err)
	}
	finds := func(string) (string, error) { return link, nil }
	const inner, outer = "node_modules/tool-os/tool", "../tool-os/tool"
	if got := Beside(finds, inner, outer)("tool"); got != "tool" {
		t.Errorf("without a binary it is %s", got)
	}
	file(0o644, "lib", "tool", "node_modules", "tool-os", "tool")
	if got := Beside(finds, inner)("tool"); got != "tool" {
		t.Errorf("a file that cannot be run is taken: %s", got)
	}
	file(0o755, "lib", "tool-os", "tool")
	if got, want := Beside(finds, inner, outer)("tool"), filepath.Join(filepath.Dir(place), "tool-os", "tool"); got != want {
		t.Errorf("the binary is %s, want %s", got, want)
	}
	none := func(string) (string, error) { return "", errors.New("not found") }
	if got := Beside(none, inner)("tool"); got != "tool" {
		t.Errorf("a program that does not exist is %s", got)
	}
	a := with(func(*Program) {})
	a.Native = func(name string) string { return "/native/" + name }
	if got, err := a.Start(agent.Invocation{}); err != nil || got.Args[0] != "/native/mine-cli" {
		t.Errorf("args are %q, %v", got.Args, err)
	}
	if got, err := a.Start(agent.Invocation{Command: []string{"own"}}); err != nil || got.Args[0] != "own" {
		t.Errorf("the user's own command is %q, %v", got.Args, err)
	}
}
