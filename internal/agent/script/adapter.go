package script

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// Command is the hidden command of pawl that [Main] stands behind.
const Command = "__script-agent"

// Adapter starts the scripted agent. Its command is the scenario's file.
type Adapter struct {
	// Executable finds the program that has [Command]: pawl itself.
	Executable func() (string, error)
}

// Name is "script".
func (Adapter) Name() string { return "script" }

// Install says that there is nothing to get.
func (Adapter) Install() string {
	return "built in; give it a scenario: agents.script.command: [FILE.yaml]"
}

// LiveUsage is true: every call is told as it is made.
func (Adapter) LiveUsage() bool { return true }

// Structured is true.
func (Adapter) Structured() bool { return true }

// Start makes the command line. The scenario is in.Command; a relative path
// is one in the working folder.
func (a Adapter) Start(in agent.Invocation) (agent.Start, error) {
	if len(in.Command) != 1 {
		return agent.Start{}, errors.New("cannot start the scripted agent: it needs one scenario;" +
			" set agents.script.command: [FILE.yaml]")
	}
	self, err := a.Executable()
	if err != nil {
		return agent.Start{}, fmt.Errorf("cannot find pawl's own program for the scripted agent: %v", err)
	}
	file := in.Command[0]
	if !filepath.IsAbs(file) {
		file = filepath.Join(in.Dir, file)
	}
	var env []string
	if in.StateDir != "" {
		env = append(env, stateVar+"="+filepath.Join(in.StateDir, "script"))
	}
	return agent.Start{
		Args:   []string{self, Command, file},
		Env:    append(env, slices.Clone(in.Env)...),
		Stdin:  in.PromptFile,
		Parser: "script",
		Grace:  5 * time.Second,
	}, nil
}
