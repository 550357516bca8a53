package planner

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
)

// Proposal is the name of the procedure that proposes tasks for a goal, and ProposalFile
// the file in the repository that its agent writes.
const (
	Proposal     = "pawl-plan"
	ProposalFile = "pawl-plan.jsonl"
)

// The agent of a proposal gets three tries, and one of them so long.
const (
	proposalTries = 3
	checkTime     = time.Minute
)

const proposalText = `Plan the work below. Do not do it: read the repository, and write the tasks that lead to it into the
file ` + ProposalFile + `. Change nothing else.

One JSON object a line, a task each, with these fields:
  "ref"          a short name, such as "parse-header"; unique in the list
  "title"        what is to be done, in a few words
  "description"  what an agent must know that sees this task and the repository, but not this plan: files, functions,
                 decisions, what is out of scope
  "acceptance"   a list of one to seven criteria, each of which a command or a test can show
  "needs"        a list of the refs of tasks that must have landed before this one can begin; leave it out when none
  "priority"     a number, higher first; leave it out for 0

- A task is what one agent finishes in a few iterations, and leaves the repository working. Split what is larger, and join
  what cannot be tested by itself. At most 50 tasks; mostly 3 to 12.
- Tasks without needs between them are worked on at the same time: let them touch different files where you can.
- Name real files and commands. Guess nothing: if the goal leaves something open that changes the plan, ask.`

// proposal is the plan of a run that proposes tasks: an ordinary run, whose agent may
// change one file only, and whose one gate is the check of that file.
func (pl *Planner) proposal() (engine.Plan, error) {
	exe, err := os.Executable()
	if err != nil {
		return engine.Plan{}, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	c, tries := *pl.Config, proposalTries
	if pl.Flags.Max != "" {
		tries = c.Loop.MaxIterations
	}
	c.Verification.Protect, c.Verification.ProtectNew = []string{"**"}, true
	c.Verification.Commands = []config.Gate{{Name: "plan", Required: true, Timeout: config.Duration(checkTime),
		Command: "'" + strings.ReplaceAll(exe, "'", `'\''`) + "' plan --check"}}
	c.Review.Mode = "skip"
	p := config.Procedure{Summary: "Propose tasks for a goal", MaxIterations: &tries, Allow: []string{ProposalFile},
		Act: []config.Fragment{{Content: proposalText}}}
	there := *pl
	there.Config = &c
	return draft{&there, Proposal, p}.procedure()
}
