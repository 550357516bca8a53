package acp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// Adapter runs a user's command that speaks the protocol.
type Adapter struct {
	name string
	argv []string
	// executable finds the program that has [Command]: pawl itself.
	executable func() (string, error)
}

// New returns the agent that runs argv. {model} in it is the model's name.
func New(name string, argv []string, executable func() (string, error)) Adapter {
	return Adapter{name: name, argv: slices.Clone(argv), executable: executable}
}

// Name is the user's name for it.
func (a Adapter) Name() string { return a.name }

// Install says what is missing.
func (a Adapter) Install() string {
	if len(a.argv) == 0 {
		return "set agents." + a.name + ".command"
	}
	return "install " + a.argv[0] + ", or correct agents." + a.name + ".command"
}

// LiveUsage is false: tokens come with the end, if at all.
func (Adapter) LiveUsage() bool { return false }

// Structured is true: the bridge tells the end.
func (Adapter) Structured() bool { return true }

// Start makes the command line of the bridge.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	argv := a.argv
	if len(in.Command) > 0 {
		argv = in.Command
	}
	if len(argv) == 0 || argv[0] == "" {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: it has no command; set agents.%s.command", a.name, a.name)
	}
	if in.PromptSize > maxPrompt {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: the prompt is %d bytes and ACP programs take at most %d;"+
			" shorten the prompt, or name files in it instead of their content", a.name, in.PromptSize, maxPrompt)
	}
	all := strings.Join(argv[1:], "\x00")
	if strings.Contains(all, "{prompt}") || strings.Contains(all, "{prompt_file}") {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: with output: acp the prompt goes through the protocol; take {prompt} out of agents.%s.command", a.name, a.name)
	}
	self, err := a.executable()
	if err != nil {
		return agent.Start{}, errors.New("cannot find pawl's own program for an ACP agent: " + err.Error())
	}
	args := []string{self, Command}
	if in.ReadOnly {
		args = append(args, "--read-only")
	}
	if in.Model != "" && !strings.Contains(all, "{model}") {
		args = append(args, "--model", in.Model)
	}
	args = append(args, "--", argv[0])
	for _, arg := range argv[1:] {
		args = append(args, strings.ReplaceAll(arg, "{model}", in.Model))
	}
	return agent.Start{
		Args: args, Program: argv[0], Env: slices.Clone(in.Env), Stdin: in.PromptFile, Parser: "acp",
		Ask: usual.cancel + usual.end, Grace: 5 * time.Second,
	}, nil
}
