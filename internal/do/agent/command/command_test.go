package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

func promptFile(t *testing.T, text string) agent.Invocation {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return agent.Invocation{PromptFile: path, PromptSize: int64(len(text)), Model: "big", Env: []string{"A=1"}}
}

func TestStart(t *testing.T) {
	t.Parallel()
	in := promptFile(t, "Do {model} and {prompt_file}.")
	for _, test := range []struct {
		argv, want []string
		stdin      string
	}{
		{[]string{"./a.sh", "--fast"}, []string{"./a.sh", "--fast"}, in.PromptFile},
		{[]string{"a", "-p", "{prompt}"}, []string{"a", "-p", "Do {model} and {prompt_file}."}, ""},
		{[]string{"a", "--file={prompt_file}"}, []string{"a", "--file=" + in.PromptFile}, ""},
		{[]string{"a", "-m", "{model}"}, []string{"a", "-m", "big"}, in.PromptFile},
		{[]string{"{prompt}"}, []string{"{prompt}"}, in.PromptFile},
	} {
		got, err := New("mine", test.argv, "text", agent.Traits{}).Start(in)
		if err != nil || !slices.Equal(got.Args, test.want) || got.Stdin != test.stdin {
			t.Errorf("%q: args %q, stdin %q, %v", test.argv, got.Args, got.Stdin, err)
		}
		if got.Parser != "text" || !slices.Equal(got.Env, in.Env) {
			t.Errorf("%q: start is %+v", test.argv, got)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	long := promptFile(t, strings.Repeat("x", maxArgument))
	gone := agent.Invocation{PromptFile: filepath.Join(t.TempDir(), "no"), PromptSize: 1}
	for _, test := range []struct {
		name string
		argv []string
		in   agent.Invocation
		want string
	}{
		{"no command", nil, long, "set agents.mine.command"},
		{"over the limit", []string{"a", "{prompt}"}, long, "use {prompt_file}"},
		{"over the limit with what is around it", []string{"a", "--prompt={prompt}"}, promptFile(t, strings.Repeat("x", maxArgument-5)), "use {prompt_file}"},
		{"a NUL", []string{"a", "{prompt}"}, promptFile(t, "a\x00b"), "NUL byte"},
		{"no file", []string{"a", "{prompt}"}, gone, "cannot read the prompt"},
	} {
		_, err := New("mine", test.argv, "text", agent.Traits{}).Start(test.in)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v", test.name, err)
		}
	}
	if _, err := New("mine", []string{"a", "{prompt_file}"}, "text", agent.Traits{}).Start(long); err != nil {
		t.Errorf("a long prompt as a file: %v", err)
	}
}
