package agents

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/codex"
	"github.com/pawl-dev/pawl/internal/do/agent/copilot"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

// Only Claude Code as it is installed reads lines of JSON; what else has its name reads
// the prompt.
func TestOnlyAnInstalledProgramIsTalkedTo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		found   string
		command []string
		want    bool
	}{
		{found: "/usr/lib/node_modules/@anthropic-ai/claude-code/cli.js", want: true},
		{found: "/home/ada/.local/share/claude/versions/2.1.197", want: true},
		{found: "/home/ada/.local/share/claude/versions/2.1.197", command: []string{"/home/ada/.local/bin/claude"}, want: true},
		{found: "/home/ada/.local/share/claude/versions/2.1.197", command: []string{"npx", "claude"}},
		{found: "/home/ada/bin/claude"},
		{found: ""},
	} {
		a := program.Adapter{Program: claude.Program(false), Found: func(string) string { return c.found }}
		got, err := a.Start(agent.Invocation{Command: c.command, PromptFile: "/run/prompt.md"})
		if err != nil || got.Talks != c.want || slices.Contains(got.Args, "--input-format") != c.want {
			t.Errorf("%s by %q: %+v, %v", c.found, c.command, got, err)
		}
	}
}

// Only Copilot as it is installed is told to write down what it used, and not where the
// gateway counts.
func TestOnlyAnInstalledProgramWritesItsUsage(t *testing.T) {
	t.Parallel()
	const npm = "/usr/lib/node_modules/@github/copilot/npm-loader.js"
	for _, c := range []struct {
		found  string
		routes []agent.Route
		want   bool
	}{
		{found: npm, want: true},
		{found: npm, routes: []agent.Route{{}}},
		{found: "/home/ada/bin/copilot"},
	} {
		a := program.Adapter{Program: copilot.Program(), Found: func(string) string { return c.found }}
		got, err := a.Start(agent.Invocation{StateDir: "/state", Routes: c.routes, PromptFile: "/run/prompt.md", Now: time.Unix(0, 7)})
		told := slices.Contains(got.Args, "--usage-output-file") && slices.Contains(got.Args, "/state/usage-7.json")
		if err != nil || told != c.want || (got.Usage != nil) != c.want || got.Talks {
			t.Errorf("%s with %d routes: %+v, %v", c.found, len(c.routes), got, err)
		}
	}
}

// The npm package's command is a script that stays between pawl and the
// program, which is in another package beside it.
func TestCodexIsStartedWithoutItsWrapper(t *testing.T) {
	t.Parallel()
	for _, where := range codex.Program().Wrapped {
		dir := filepath.Join(t.TempDir(), "node_modules", "@openai", "codex", "bin")
		wrapper, native := filepath.Join(dir, "codex.js"), filepath.Join(dir, where)
		for _, path := range []string{wrapper, native} {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
		}
		a := program.Adapter{Program: codex.Program(), Native: program.Beside(func(string) (string, error) { return wrapper, nil }, codex.Program().Wrapped...)}
		for want, in := range map[string]agent.Invocation{native: {}, "mine": {Command: []string{"mine"}}} {
			if got, err := a.Start(in); err != nil || got.Args[0] != want {
				t.Errorf("it starts %q, %v; want %s", got.Args, err, want)
			}
		}
	}
}
