package action

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
)

// Lack is missing before work can start, or be verified.
type Lack struct {
	What string   `json:"what" doc:"A sentence."`
	Do   []string `json:"do" nullable:"false" doc:"What helps, a line each; some name a command."`
}

// Lacks returns what a first start lacks. A configuration that cannot be read is said elsewhere.
func (p *Operator) Lacks() []Lack {
	out := []Lack{}
	pl, err := p.Planner(p.Root, planner.Flags{})
	if err != nil {
		return out
	}
	c := pl.Config
	switch {
	case c.File == "":
		out = append(out, Lack{"This repository has no pawl.yaml, which says how work is verified.",
			[]string{"Propose one: pawl init"}})
	case len(c.Verification.Gates()) == 0:
		out = append(out, Lack{"No check verifies what agents do.",
			[]string{"Look for checks: pawl init",
				"Or write them into " + filepath.Base(c.File) + ": verification.commands"}})
	}
	if _, err := pl.Task(autopilot.Task{Case: board.Case{Title: "?"}}); err != nil {
		known, _ := errors.AsType[*fault.Error](err)
		return append(out, Lack{"No task can start: " + err.Error() + ".", hintsOfError(known)})
	}
	own := c.Agents.Named[c.Agent]
	name := agents.Program(c.Agent, own.Output, own.Command)
	if sign, isKnown := LoggedIn(p.Env, name); isKnown && sign == "" && len(own.Env) == 0 {
		keys := cmp.Or(strings.Join(agents.Keys(name), " or "), "its key")
		out = append(out, Lack{"No login of " + c.Agent + " was found.",
			[]string{"Start " + name + " in a terminal and log in, or set " + keys + " in the environment of pawl"}})
	}
	return out
}

func hintsOfError(e *fault.Error) []string {
	if e == nil || len(e.Hints) == 0 {
		return []string{"See what is wrong: pawl doctor"}
	}
	return append([]string{}, e.Hints...)
}

// LoggedIn returns the sign of a program's login, by an environment K=V; "" is none. known: pawl knows the program.
func LoggedIn(env []string, program string) (sign string, known bool) {
	return agents.LoggedIn(program, lists.Getenv(env, "HOME"), env, func(path string) bool {
		if entries, err := os.ReadDir(path); err == nil {
			return len(entries) > 0 // a run makes the folders, too
		}
		_, err := os.Stat(path)
		return err == nil
	})
}
