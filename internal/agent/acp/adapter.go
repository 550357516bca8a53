package acp

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/command"
)

// Adapter runs a user's command that speaks the protocol.
type Adapter struct {
	command.Adapter

	// executable finds the program that has [Command]: pawl itself.
	executable func() (string, error)
}

// New returns the agent that runs argv. {model} in it is the model's name.
// Tokens come with the end, if at all, and the bridge tells the end.
func New(name string, argv []string, executable func() (string, error)) Adapter {
	return Adapter{command.New(name, argv, "acp", command.Traits{Structured: true}), executable}
}

// Start makes the command line of the bridge.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	argv, err := a.Argv(in)
	if err != nil {
		return agent.Start{}, err
	}
	if in.PromptSize > maxPrompt {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: the prompt is %d bytes and ACP programs take at most %d;"+
			" shorten the prompt, or name files in it instead of their content", a.Name(), in.PromptSize, maxPrompt)
	}
	all := strings.Join(argv[1:], "\x00")
	if strings.Contains(all, "{prompt}") || strings.Contains(all, "{prompt_file}") {
		return agent.Start{}, fmt.Errorf("cannot start agent %s: with output: acp the prompt goes through the protocol;"+
			" take {prompt} out of agents.%s.command", a.Name(), a.Name())
	}
	self, err := a.executable()
	if err != nil {
		return agent.Start{}, errors.New("cannot find pawl's own program for an ACP agent: " + err.Error())
	}
	args := []string{self, Command}
	if in.ReadOnly {
		args = append(args, "--read-only")
	}
	if len(in.Routes) == 0 {
		args = append(args, "--count")
	}
	if in.Model != "" && !strings.Contains(all, "{model}") {
		args = append(args, "--model", in.Model)
	}
	if in.Mode != "" {
		args = append(args, "--mode", in.Mode)
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
