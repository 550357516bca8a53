// Package command runs any program as an agent: the user's own command line,
// with the prompt on stdin or in its arguments.
//
//   - {prompt} in an argument is replaced by the prompt's text,
//   - {prompt_file} by the path of the file that holds it,
//   - {model} by the model, which may be empty.
//
// With one of the first two, stdin is the null device; else it is the prompt.
// The package starts nothing and looks at no output: output names a parser.
package command

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// maxArgument is the longest argument that Linux passes to a program, in
// bytes, with the NUL at its end.
const maxArgument = 128 << 10

// Adapter is a user-defined agent.
type Adapter struct {
	name   string
	argv   []string
	output string
	traits agent.Traits
}

// New returns the agent that runs argv. output names the parser of what it
// prints, traits are that parser's.
func New(name string, argv []string, output string, traits agent.Traits) Adapter {
	return Adapter{name: name, argv: slices.Clone(argv), output: output, traits: traits}
}

// About advises to set the command, or to install the program that it names.
func (a Adapter) About() agent.About {
	install := "set agents." + a.name + ".command"
	if len(a.argv) > 0 {
		install = "install " + a.argv[0] + ", or correct agents." + a.name + ".command"
	}
	return agent.About{Name: a.name, Install: install, Traits: a.traits}
}

// Argv is the command line as it is written: in.Command, else the one that the
// agent was made with.
func (a Adapter) Argv(in agent.Invocation) ([]string, error) {
	argv := a.argv
	if len(in.Command) > 0 {
		argv = in.Command
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("cannot start agent %s: it has no command; set agents.%s.command", a.name, a.name)
	}
	return argv, nil
}

// Start makes the command line. It reads the prompt file only when the
// prompt goes into an argument. in.Command, if set, is used instead of the
// command that the agent was made with.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	argv, err := a.Argv(in)
	if err != nil {
		return agent.Start{}, err
	}
	asText := strings.Contains(strings.Join(argv[1:], "\x00"), "{prompt}")
	asFile := strings.Contains(strings.Join(argv[1:], "\x00"), "{prompt_file}")
	prompt := ""
	if asText {
		if prompt, err = a.readPrompt(in); err != nil {
			return agent.Start{}, err
		}
	}
	// One pass: what a prompt says about {model} is not pawl's.
	fill := strings.NewReplacer("{prompt}", prompt, "{prompt_file}", in.PromptFile, "{model}", in.Model)
	args := []string{argv[0]}
	for _, arg := range argv[1:] {
		filled := fill.Replace(arg)
		if len(filled) >= maxArgument {
			return agent.Start{}, a.promptTooLong(int64(len(filled)))
		}
		args = append(args, filled)
	}
	start := agent.Start{Args: args, Env: slices.Clone(in.Env), Parser: a.output, Grace: 5 * time.Second}
	if !asText && !asFile {
		start.Stdin = in.PromptFile
	}
	return start, nil
}

// readPrompt reads the prompt if it can be an argument.
func (a Adapter) readPrompt(in agent.Invocation) (string, error) {
	if in.PromptSize >= maxArgument {
		return "", a.promptTooLong(in.PromptSize)
	}
	b, err := os.ReadFile(in.PromptFile)
	if err != nil {
		return "", fmt.Errorf("cannot read the prompt for agent %s: %v", a.name, err)
	}
	if bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("cannot start agent %s: the prompt contains a NUL byte, which an argument cannot;"+
			" use {prompt_file} in agents.%s.command instead of {prompt}", a.name, a.name)
	}
	return string(b), nil
}

func (a Adapter) promptTooLong(size int64) error {
	return fmt.Errorf("cannot start agent %s: the prompt makes an argument of %d bytes, and the system takes less"+
		" than %d; use {prompt_file} in agents.%s.command instead of {prompt}", a.name, size, maxArgument, a.name)
}
