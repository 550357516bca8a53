package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/acp"
	"github.com/pawl-dev/pawl/internal/agent/agents"
	"github.com/pawl-dev/pawl/internal/agent/script"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// hidden runs the commands that pawl starts itself with. They are taken before
// the command line is set up, because a run waits for them.
func hidden(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) (int, bool) {
	if len(args) == 1 && args[0] == sandbox.Command {
		return sandbox.Main(nil, stderr, env), true
	}
	if len(args) < 2 {
		return 0, false
	}
	switch args[0] {
	case superviseCommand:
		if err := supervisor.Serve(context.Background(), args[1], parserFor); err != nil {
			_, _ = fmt.Fprintf(stderr, "pawl: %v\n", err)
			return exitFailed, true
		}
		return exitOK, true
	case acp.Command:
		return acp.Main(args[1:], stdin, stdout, stderr, env), true
	case script.Command:
		return script.Main(args[1:], stdin, stdout, stderr, env), true
	}
	return 0, false
}

const superviseCommand = "__supervise"

// parserFor makes the parser of a job's stream; a text parser needs to know
// the prompt, whose echo it cuts off.
func parserFor(name string, job supervisor.Job) (agent.Parser, error) {
	var o agents.ParserOptions
	if agents.ReadsPrompt(name) && job.Prompt != "" {
		data, err := os.ReadFile(job.Prompt)
		if err != nil {
			return nil, fmt.Errorf("cannot read the prompt to cut its echo off: %v", err)
		}
		o.Prompt = data
	}
	return agents.Parser(name, o)
}
