package agents

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/acp"
	"github.com/pawl-dev/pawl/internal/agent/command"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Custom returns the agent of a user's own command line, whose output is
// read by the named parser; "" is text.
//
// A command that prints the format of a known program is that program behind
// another name: it gets the program's flags, unless it has them already.
func Custom(name string, argv []string, output string) (agent.Adapter, error) {
	if output == "" {
		output = "text"
	}
	f, ok := formats()[output]
	if !ok {
		return nil, unknownFormat(output)
	}
	if output == "acp" {
		return pointed(acp.New(name, argv, os.Executable), known()[Program(name, "", argv)]), nil
	}
	p, ok := printing(name, output)
	switch {
	case !ok:
		return command.New(name, argv, output, f.traits), nil
	case headless(p, argv):
		return pointed(command.New(name, argv, output, f.traits), p), nil
	}
	p.Name = name
	return adapter(p), nil
}

// printing is the program that prints a format: the one of the agent's name
// where it does, else the one that the format is named after.
func printing(name, format string) (program.Program, bool) {
	if p, ok := known()[name]; ok && p.Parser == format {
		return p, true
	}
	p, ok := known()[format]
	return p, ok && p.Own != nil
}

// headless is whether a command line makes the program work headless by itself:
// it has a place for the prompt or the model, or a word of pawl's own behind the
// program's name.
func headless(p program.Program, argv []string) bool {
	own := argv
	for i, word := range argv {
		if path.Base(word) == p.Binary {
			own = argv[i+1:]
		}
	}
	return slices.ContainsFunc(own, func(word string) bool {
		place := strings.Contains(word, "{prompt") || strings.Contains(word, "{model}")
		return place || slices.Contains(p.Args, word)
	})
}

// routed is a user's own command line that runs a known program: variables point
// it at the gateway as they point the program.
type routed struct {
	agent.Adapter

	program program.Adapter
}

// pointed is a with what points p by variables. Flags are not pawl's to add.
func pointed(a agent.Adapter, p program.Program) agent.Adapter {
	p.Doors = slices.DeleteFunc(slices.Clone(p.Doors), func(d program.Door) bool { return len(d.Args) > 0 })
	if len(p.Doors) == 0 {
		return a
	}
	return routed{a, adapter(p)}
}

// Routes are those of the program.
func (r routed) Routes(isolated bool, see func(string) string) (routes []agent.Route, can bool) {
	return r.program.Routes(isolated, see)
}

// Start makes the user's command line.
func (r routed) Start(in agent.Invocation) (agent.Start, error) {
	start, err := r.Adapter.Start(in)
	if err == nil {
		r.program.Point(&start, in)
	}
	return start, err
}
