package board

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// caseFields are the flags by which a case is added or edited.
type caseFields struct {
	title, description, parent string
	acceptance, needs, tags    []string
	verify, sealed             []string
	policy                     string
	control                    []string
	unneed, untag              []string
	priority                   int
	operation, update          bool
	file                       string
}

func caseAddCommand(a *command.App) *cobra.Command {
	var f caseFields
	cmd := &cobra.Command{
		Use: "add TITLE | -f FILE", Short: "Add a task, or all of a list, to the board",
		Args: command.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.file != "" {
				if len(args) > 0 || anyFlagGiven(cmd, caseFlags) {
					return command.Usage("-f takes everything from the file: no title and no other flags of the task")
				}
				return addCasesOfFile(cmd.Context(), a, f.file, f.update)
			}
			if f.update {
				return command.Usage("--update is for a list: pawl case add -f FILE --update")
			}
			if len(args) == 0 {
				return command.Usage("%s needs a title, or -f FILE", cmd.CommandPath()).Hint("pawl case add 'Parse the header'")
			}
			f.title = args[0]
			return addSingleCase(cmd.Context(), a, f)
		},
	}
	f.addCommonFlags(cmd)
	cmd.Flags().BoolVar(&f.operation, "operation", false, "add an operation, which groups tasks")
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "add all of `FILE`; - is stdin")
	cmd.Flags().BoolVar(&f.update, "update", false, "with -f: update tasks on the board, until work on them begins")
	return cmd
}

// caseFlags say something of a case.
var caseFlags = []string{
	"title", "description", "acceptance", "verify", "sealed", "needs", "unneed", "tag", "untag", "priority", "parent",
	"operation", "policy", "iteration-control",
}

// addCommonFlags adds the flags that add and edit share.
func (f *caseFields) addCommonFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.description, "description", "d", "", "what to do, as `TEXT`; - reads stdin")
	flags.StringArrayVar(&f.acceptance, "acceptance", nil, "an acceptance criterion, as `TEXT` (repeatable)")
	flags.StringArrayVar(&f.verify, "verify", nil,
		"a `CHECK` of this task: a command, or {\"command\": …, \"criterion\": …, \"files\": {…}} (repeatable)")
	flags.StringArrayVar(&f.sealed, "sealed", nil, "the same, a `CHECK` that no agent at work on it sees (repeatable)")
	flags.VarP(&names{list: &f.needs, what: "id"}, "needs", "n", "the `ID` of a task that must land first (repeatable)")
	flags.VarP(&names{list: &f.tags, what: "tag"}, "tag", "t", "a `TAG`; critical and quick-win go first (repeatable)")
	flags.IntVarP(&f.priority, "priority", "p", 0, "`N`: higher goes first, before any score")
	flags.StringVar(&f.parent, "parent", "", "the `ID` of the operation that it belongs to")
	flags.StringVar(&f.policy, "policy", "", "when work on it ends: task or controlled (`KIND`)")
	flags.StringArrayVar(&f.control, "iteration-control", nil,
		"`KEY=VALUE` of iteration_control for it alone, such as max_iterations=5 (repeatable)")
}

// names is a flag of one or more names with commas between. An empty one is an
// error: a script's variable that holds nothing must not mean "none".
type names struct {
	list *[]string
	what string
}

func (n *names) String() string { return "" }

func (n *names) Type() string { return "strings" }

// Set adds what one use of the flag says.
func (n *names) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return fmt.Errorf("there is no %s in %q", n.what, report.Line(text, 60))
		}
		*n.list = append(*n.list, name)
	}
	return nil
}

// anyFlagGiven is true when one of these flags was given.
func anyFlagGiven(cmd *cobra.Command, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return cmd.Flags().Changed(name) })
}

func addSingleCase(ctx context.Context, a *command.App, f caseFields) error {
	text, err := a.ReadText(f.description)
	if err != nil {
		return err
	}
	c := board.Case{
		Type: board.Task, Title: f.title, Description: text, Acceptance: f.acceptance, Needs: f.needs, Tags: f.tags,
		Priority: f.priority, Parent: f.parent,
	}
	if c.Verify, err = readChecks("verify", f.verify, false); err == nil {
		c.Sealed, err = readChecks("sealed", f.sealed, false)
	}
	if err != nil {
		return err
	}
	if f.operation {
		c.Type = board.Operation
	}
	if err := f.applyControls(&c); err != nil {
		return err
	}
	return addCases(ctx, a, []board.Draft{{Case: c}}, false)
}

// addCasesOfFile adds all of a file.
func addCasesOfFile(ctx context.Context, a *command.App, name string, update bool) error {
	text, err := readList(a, name)
	if err != nil {
		return err
	}
	list, err := board.Parse(text)
	if err != nil {
		return action.Explain(err)
	}
	for _, n := range list.Notes {
		a.Say("Note: %s", report.Line(n, 200))
	}
	if len(list.Drafts) == 0 {
		a.Say("Nothing to add.")
		return nil
	}
	if update {
		return updateList(ctx, a, list.Drafts)
	}
	return addCases(ctx, a, list.Drafts, true)
}

// updateList brings the board to a list, and prints the ids of what is new.
func updateList(ctx context.Context, a *command.App, drafts []board.Draft) error {
	return a.WithOperator(ctx, func(p *action.Operator) error {
		added, changed, left, err := p.UpdateList(ctx, drafts)
		if err != nil {
			return action.Explain(err)
		}
		for i := range added {
			if !a.JSON {
				a.Result("%s\n", added[i].ID)
			} else if err := a.JSONLine(command.CaseJSON(&added[i])); err != nil {
				return err
			}
		}
		a.Say("Added %s, changed %d.", fault.Numbered(len(added), "task"), changed)
		if left > 0 {
			a.Say("Left %s of the list unchanged: work on them has started.", fault.Numbered(left, "task"))
		}
		return nil
	})
}

// addCases adds all drafts and prints their ids; sum says how many there are.
func addCases(ctx context.Context, a *command.App, drafts []board.Draft, sum bool) error {
	return a.WithOperator(ctx, func(p *action.Operator) error {
		added, err := p.Store.AddCases(ctx, drafts, board.Person, time.Now())
		if err != nil {
			return err
		}
		ready, operations := 0, 0
		for i := range added {
			c := &added[i]
			if c.IsReady() {
				ready++
			}
			if c.Type == board.Operation {
				operations++
			}
			if !a.JSON {
				a.Result("%s\n", c.ID)
			} else if err := a.JSONLine(command.CaseJSON(c)); err != nil {
				return err
			}
			warnOfRace(a, c)
		}
		if sum {
			what := fault.Numbered(len(added)-operations, "task")
			if operations > 0 {
				what += " and " + fault.Numbered(operations, "operation")
			}
			a.Say("Added %s; %d can be started now.", what, ready)
		}
		return nil
	})
}

func warnOfRace(a *command.App, c *board.Case) {
	if trouble := schedule.RaceTrouble(c.Tags); trouble != "" {
		a.Say("Warning: %s: %s", c.ID, trouble)
	}
}

func readList(a *command.App, from string) ([]byte, error) {
	in, name, err := a.OpenInput(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, board.MaxList+1))
	if err != nil {
		return nil, command.CannotRead(name, err)
	}
	return text, nil
}

func caseEditCommand(a *command.App) *cobra.Command {
	var f caseFields
	var cmd *cobra.Command
	cmd = newCaseCommand(a, "edit ID", "Change what a task says: title, texts, tags, needs, parent, priority",
		func(ctx context.Context, p *action.Operator, id string) (err error) {
			if !anyFlagGiven(cmd, caseFlags) {
				return command.Usage("say what to change; pawl case edit --help lists the flags")
			}
			if f.description, err = a.ReadText(f.description); err != nil {
				return err
			}
			c, err := p.Store.EditCase(ctx, id, board.Person, time.Now(), func(c *board.Case) error { return f.applyFlags(cmd, c) })
			warnOfRace(a, &c)
			return a.Done(action.Done{Case: c, Text: c.ID + " is changed."}, err)
		})
	f.addCommonFlags(cmd)
	cmd.Flags().StringVar(&f.title, "title", "", "a new `TITLE`")
	cmd.Flags().Var(&names{list: &f.unneed, what: "id"}, "unneed",
		"the `ID` of a task that it no longer needs (repeatable)")
	cmd.Flags().Var(&names{list: &f.untag, what: "tag"}, "untag", "a `TAG` to remove (repeatable)")
	return cmd
}

// applyFlags changes a case by the flags that were given.
func (f *caseFields) applyFlags(cmd *cobra.Command, c *board.Case) (err error) {
	needs := lists.Each(f.unneed, board.Normal)
	if c.Needs, err = removeNames(c.Needs, needs, c.ID+" does not need %s"); err != nil {
		return err
	}
	if c.Tags, err = removeNames(c.Tags, f.untag, c.ID+" has no tag %q"); err != nil {
		return err
	}
	c.Needs, c.Tags = append(c.Needs, f.needs...), append(c.Tags, f.tags...)
	if err := f.applyControls(c); err != nil {
		return err
	}
	changed := cmd.Flags().Changed
	if changed("title") {
		c.Title = f.title
	}
	if changed("description") {
		c.Description = f.description
	}
	if changed("acceptance") {
		c.Acceptance = f.acceptance
	}
	if changed("verify") {
		if c.Verify, err = readChecks("verify", f.verify, true); err != nil {
			return err
		}
	}
	if changed("sealed") {
		if c.Sealed, err = readChecks("sealed", f.sealed, true); err != nil {
			return err
		}
	}
	if changed("priority") {
		c.Priority = f.priority
	}
	if changed("parent") {
		c.Parent = f.parent
	}
	return nil
}

// readChecks reads the checks of a flag. One empty text takes all away, where that is allowed.
func readChecks(flag string, texts []string, mayClear bool) (list []board.TaskCheck, err error) {
	if mayClear && len(texts) == 1 && strings.TrimSpace(texts[0]) == "" {
		return nil, nil
	}
	for _, text := range texts {
		c, err := board.ReadTaskCheck(text)
		if err == nil && c.Command == "" {
			err = fmt.Errorf("there is no command in %q", report.Line(text, 60))
		}
		if err != nil {
			return nil, command.Usage("--%s: %v", flag, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// applyControls says how work on a case ends.
func (f *caseFields) applyControls(c *board.Case) (err error) {
	switch f.policy {
	case "":
	case string(loop.Task), string(loop.Controlled):
		c.Tags = slices.DeleteFunc(c.Tags, func(t string) bool { return strings.HasPrefix(t, board.PolicyTag) })
		c.Tags = append(c.Tags, board.PolicyTag+f.policy)
	default:
		return command.Usage("--policy must be task or controlled, not %q", report.Line(f.policy, 60))
	}
	for _, setting := range f.control {
		if c.Control, err = c.Control.With(setting); err != nil {
			return command.Usage("%v", err)
		}
	}
	return nil
}

// removeNames returns list without the names in away; all of these must be in it.
func removeNames(list, away []string, missing string) ([]string, error) {
	for _, name := range away {
		if !slices.Contains(list, name) {
			return nil, command.Usage(missing, report.Line(name, 60))
		}
		list = slices.DeleteFunc(list, func(n string) bool { return n == name })
	}
	return list, nil
}
