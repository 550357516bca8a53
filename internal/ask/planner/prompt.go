package planner

import (
	"bytes"
	"cmp"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"

	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// promptInput has all that stays the same from iteration to iteration.
func (d draft) promptInput(gates []gate.Spec) (prompt.Input, error) {
	in := prompt.Input{
		Procedure: d.name, Work: d.Flags.Work, Budget: d.Config.Prompt.TokenBudget, NoGates: len(gates) == 0,
		Observe: promptFragments(d.p.Observe), Orient: promptFragments(d.p.Orient), Decide: promptFragments(d.p.Decide),
		Act: promptFragments(d.p.Act),
	}
	for _, g := range gates {
		if g.Origin == loop.Sealed {
			in.Sealed++
			continue
		}
		name, command := g.Name, g.Command
		if g.Origin == loop.OfTask {
			name = cmp.Or(strings.TrimSuffix(strings.TrimSuffix(name, singleLine(command)), ": "), "of this task")
		}
		in.Gates = append(in.Gates, name)
		if !g.Required {
			command += " (not required)"
		}
		if g.Landing {
			command += " (when the work is to land)"
		}
		if g.Criterion != "" {
			command += " (it shows: " + g.Criterion + ")"
		}
		in.Commands = append(in.Commands, command)
	}
	for _, item := range d.Flags.Context {
		c, err := d.contextItem(item)
		if err != nil {
			return in, err
		}
		in.Context = append(in.Context, c)
	}
	return in, nil
}

// agentRules hold for the agent beside the gates.
func (d draft) agentRules(p *loop.Policy) []string {
	protect := d.buildProtection()
	var rules []string
	if len(protect.Patterns) > 0 {
		text := "Do not change these files, a change fails the iteration: " + strings.Join(protect.Patterns, ", ")
		if len(protect.Allow) > 0 {
			text += "; allowed here: " + strings.Join(protect.Allow, ", ")
		}
		if protect.New {
			text += "; do not add any that match, either"
		}
		rules = append(rules, text)
	}
	if most := d.iterationLimitTexts(p); len(most) > 0 {
		rules = append(rules, "One iteration may "+strings.Join(most, ", ")+".")
	}
	if own := d.filesOfChecks(); len(own) > 0 {
		rules = append(rules, "These files belong to checks: they are put in the place of yours when the checks run, "+
			"so do not write them: "+strings.Join(own, ", "))
	}
	level := "The safety level is " + d.safetyLevel() + "."
	if d.safetyLevel() == string(safety.Paranoid) {
		level += " The network is closed, but for your model and what a person allowed."
	}
	return append(rules, level)
}

func singleLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// filesOfChecks are the files of the checks that the agent is shown.
func (d draft) filesOfChecks() (names []string) {
	for _, g := range d.gateSpecs() {
		if g.Origin == loop.OfTask {
			names = slices.AppendSeq(names, maps.Keys(g.Files))
		}
	}
	return lists.Distinct(names)
}

// iterationLimitTexts are the limits of one iteration.
func (d draft) iterationLimitTexts(p *loop.Policy) []string {
	var most []string
	if p.IterationTimeout > 0 {
		most = append(most, "take "+loop.Duration(p.IterationTimeout))
	}
	if p.MaxIterationCost >= 0 {
		most = append(most, "cost "+p.MaxIterationCost.String())
	}
	if p.MaxIterationCalls >= 0 {
		most = append(most, fmt.Sprintf("make %d model calls", p.MaxIterationCalls))
	}
	if t := p.Tokens.Iteration; t != nil && d.Config.Limits.Tokens.PerIteration != nil { // the level's is far away
		most = append(most, fmt.Sprintf("use %d tokens", *t))
	}
	return most
}

// texts are the endings of names of files that people give as context.
var texts = map[string]bool{".md": true, ".txt": true, ".rst": true, ".adoc": true, ".log": true, ".json": true,
	".yaml": true, ".yml": true, ".toml": true, ".csv": true, ".html": true}

// contextItem is one --context: a file's content when there is such a file, else
// the text itself.
func (d draft) contextItem(item string) (prompt.Item, error) {
	if strings.TrimSpace(item) == "" {
		return prompt.Item{}, fault.Refuse("empty text is not allowed for --context: give a text or a file")
	}
	path := item
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.Dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return prompt.Item{}, fault.Refuse("--context %s: %v", item, err)
	}
	if !files.IsFile(path) {
		if named := strings.ToLower(filepath.Ext(item)); texts[named] && !strings.ContainsAny(item, " \t\n") {
			return prompt.Item{}, fault.Refuse("--context %s: there is no such file", item).
				Hint("If it is meant as a text, say it in more than one word")
		}
		return prompt.Item{Text: item}, nil
	}
	var data []byte
	top := repositoryOf(d.Config.Root)
	if name, below := files.Below(top, path); below { // an agent may have put a link there
		data, err = files.ReadBelow(top, name, maxContext)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return prompt.Item{}, fault.Refuse("--context %s: %v", item, err)
	}
	if !utf8.Valid(data) || bytes.ContainsRune(data, 0) {
		return prompt.Item{}, fault.Refuse("--context %s: it is not text", item)
	}
	return prompt.Item{Source: item, Text: string(data)}, nil
}

// repositoryOf is the nearest folder above dir, or itself, that git keeps; dir if there is none.
func repositoryOf(dir string) string {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return dir
}

// maxContext is the size in bytes over which a file of the work tree is not read.
const maxContext = 64 << 20

func promptFragments(list []config.Fragment) []prompt.Fragment {
	return lists.Each(list, func(f config.Fragment) prompt.Fragment {
		return prompt.Fragment{Name: f.Name, Text: f.Text}
	})
}

// Proposal is the name of the procedure that proposes tasks for a goal, and ProposalFile
// the file in the repository that its agent writes. Sealing and SealFile are the same for
// sealed checks of a task, Describing and DescribeFile for the words of a task.
const (
	Proposal     = "pawl-plan"
	ProposalFile = "pawl-plan.jsonl"
	Sealing      = "pawl-seal"
	SealFile     = "pawl-seal.json"
	Describing   = "pawl-describe"
	DescribeFile = "task.md"
)

// Trial is the name of the procedure that works on a task of the history. It is an ordinary one, with the gates and
// limits of the configuration, and without a maximum of iterations with that of tasks.
const Trial = "pawl-trial"

func trialProcedure(c *config.Config) config.Procedure {
	const fragment = "act/edit-and-test"
	text, _ := prompt.Builtin(fragment) // it is there
	most := cmp.Or(c.Loop.MaxIterations, c.Autopilot.MaxIterations)
	return config.Procedure{Summary: "Work on a task of the history", Policy: string(loop.Procedure),
		MaxIterations: &most,
		Act:           []config.Fragment{{Name: "builtin:" + fragment, Text: text}}}
}

// Such an agent gets three tries, and one of them so long.
const (
	proposalTries = 3
	checkTime     = time.Minute
)

//go:embed proposal.md
var proposalText string

//go:embed seal.md
var sealText string

const describeText = `The text above is the message of a commit. Write it anew as a task for somebody who has the repository as it was
before that commit, and who has seen nothing else, into the file task.md: first a line that says what is to be
done, then what it has to do or be. Leave out what only tells how it was done. Add nothing that the message does
not say.
`

// ownProcedures write one file, which a command checks.
var ownProcedures = map[string]struct{ summary, file, check, text string }{
	Proposal:   {"Propose tasks for a goal", ProposalFile, "pawl plan --check", proposalText},
	Sealing:    {"Write sealed checks of a task", SealFile, "pawl seal --check", sealText},
	Describing: {"Write a task of a commit's message", DescribeFile, "test -s " + DescribeFile, describeText},
}

// isBuiltInProcedure reports whether a procedure is pawl's own, which the configuration does not have.
func (pl *Planner) isBuiltInProcedure(name string) bool {
	_, configured := pl.Config.Procedures[name]
	return ownProcedures[name].file != "" && !configured
}

// planBuiltInProcedure is the plan of such a procedure: an ordinary run, whose agent may change one file
// only, and whose one gate is the check of that file.
func (pl *Planner) planBuiltInProcedure(name string) (runplan.Plan, error) {
	exe, err := os.Executable()
	if err != nil {
		return runplan.Plan{}, fmt.Errorf("cannot find pawl's own program: %v", err)
	}
	c, tries, own := *pl.Config, proposalTries, ownProcedures[name]
	if pl.Flags.Max != "" {
		tries = c.Loop.MaxIterations
	}
	c.Verification.Protect, c.Verification.ProtectNew = []string{"**"}, true
	check, isPawl := strings.CutPrefix(own.check, "pawl ")
	command := check
	if isPawl {
		command = fault.QuoteShell(exe) + " " + check
	}
	c.Verification.Commands = []config.Gate{{Name: check, Required: true, Timeout: quantity.Duration(checkTime),
		Command: command}}
	c.Review.Mode = "skip"
	p := config.Procedure{Summary: own.summary, MaxIterations: &tries, Allow: []string{own.file},
		Act: []config.Fragment{{Name: name, Text: own.text}}}
	there := *pl
	there.Config = &c
	return draft{&there, name, p}.procedurePlan()
}
