package planner

import (
	_ "embed"
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

//go:embed proposal.md
var proposalText string

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
		Act: []config.Fragment{{Name: Proposal, Text: proposalText}}}
	there := *pl
	there.Config = &c
	return draft{&there, Proposal, p}.procedure()
}
