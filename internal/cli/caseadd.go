package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

// caseFields are the flags by which a case is added or edited.
type caseFields struct {
	title, description, parent string
	acceptance, needs, tags    []string
	unneed, untag              []string
	priority                   int
	operation                  bool
	file                       string
}

func (a *app) caseAddCommand() *cobra.Command {
	var f caseFields
	cmd := &cobra.Command{
		Use: "add TITLE | -f FILE", Short: "Add a task, or all of a list, to the board",
		Long: "Add a task and print its id; with --operation an operation, which groups.\n\n" +
			"With -f add all of a file, or nothing of it when something is wrong: a Markdown task list\n" +
			"(- [ ] title; items below an item make it an operation), one JSON object a line, or the JSONL export of beads.",
		Example: "  pawl case add 'Parse the header' --needs task-007 --tag critical --priority 1\n" +
			"  pawl case add -f plan.md\n  bd export | pawl case add -f -",
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.file != "" {
				if len(args) > 0 || cmd.Flags().NFlag() > given(cmd, "file", "directory", "json", "quiet", "verbose", "color", "config") {
					return usage("-f takes everything from the file: no title and no other flags of the case")
				}
				return a.addList(cmd.Context(), f.file)
			}
			if len(args) == 0 {
				return usage("%s needs a title, or -f FILE", cmd.CommandPath()).Hint("pawl case add 'Parse the header'")
			}
			f.title = args[0]
			return a.addOne(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	f.common(cmd)
	flags.BoolVar(&f.operation, "operation", false, "add an operation, which groups cases")
	flags.StringVarP(&f.file, "file", "f", "", "add all of `FILE`; - is stdin")
	return cmd
}

// common are the flags that add and edit share.
func (f *caseFields) common(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.description, "description", "d", "", "what is to be done, as `TEXT`; - reads stdin")
	flags.StringArrayVar(&f.acceptance, "acceptance", nil, "what must hold in the end, as `TEXT` (repeatable)")
	flags.VarP(&names{list: &f.needs, what: "id"}, "needs", "n", "the `ID` of a case that must land first (repeatable)")
	flags.VarP(&names{list: &f.tags, what: "tag"}, "tag", "t", "a `TAG`; critical and quick-win go first (repeatable)")
	flags.IntVarP(&f.priority, "priority", "p", 0, "`N`: higher goes first, before any score")
	flags.StringVar(&f.parent, "parent", "", "the `ID` of the operation that it belongs to")
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

// given is how many of these flags were given.
func given(cmd *cobra.Command, names ...string) int {
	n := 0
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			n++
		}
	}
	return n
}

func (a *app) addOne(ctx context.Context, f caseFields) error {
	text, err := a.readText(f.description)
	if err != nil {
		return err
	}
	c := board.Case{
		Type: board.Task, Title: f.title, Description: text, Acceptance: f.acceptance, Needs: f.needs, Tags: f.tags,
		Priority: f.priority, Parent: f.parent,
	}
	if f.operation {
		c.Type = board.Operation
	}
	return a.withBoard(ctx, func(store *sqlite.Store) error {
		added, err := store.AddCases(ctx, []board.Draft{{Case: c}}, board.Person, time.Now())
		if err != nil {
			return err
		}
		if a.json {
			return a.jsonLine(caseJSON(&added[0]))
		}
		a.result("%s\n", added[0].ID)
		return nil
	})
}

// addList adds all of a file.
func (a *app) addList(ctx context.Context, name string) error {
	text, err := a.readList(name)
	if err != nil {
		return err
	}
	list, err := board.Parse(text)
	if err != nil {
		return action.Explain(err)
	}
	for _, n := range list.Notes {
		a.say("Note: %s", report.Line(n, 200))
	}
	if len(list.Drafts) == 0 {
		a.say("There is nothing to add.")
		return nil
	}
	return a.withBoard(ctx, func(store *sqlite.Store) error {
		added, err := store.AddCases(ctx, list.Drafts, board.Person, time.Now())
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
			if a.json {
				if err := a.jsonLine(caseJSON(c)); err != nil {
					return err
				}
				continue
			}
			a.result("%s\n", c.ID)
		}
		a.say("Added %s and %s; %d can be started now.", count(len(added)-operations, "task"), count(operations, "operation"), ready)
		return nil
	})
}

func (a *app) readList(name string) ([]byte, error) {
	from := a.stdin
	if name != "-" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.dir, name)
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, usage("cannot read the list: %v", err)
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, board.MaxList+1))
	if err != nil {
		return nil, usage("cannot read the list: %v", err)
	}
	return text, nil
}

func (a *app) caseEditCommand() *cobra.Command {
	var f caseFields
	cmd := &cobra.Command{
		Use: "edit ID", Short: "Change what a case says: title, texts, tags, needs, parent, priority",
		Long: "Change a case. --needs and --tag add to what is there, --unneed and --untag take away; --acceptance\n" +
			"replaces all criteria; --parent '' takes a case out of its operation. A loop that works on it sees it in its next iteration.",
		Example: "  pawl case edit task-042 --title 'Parse the long header' --needs task-041\n  pawl case edit 42 --untag critical --priority -1",
		Args:    exactlyOne("the id of a case"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := action.CaseID(args[0])
			if err != nil {
				return err
			}
			if given(cmd, "title", "description", "acceptance", "needs", "unneed", "tag", "untag", "priority", "parent") == 0 {
				return usage("say what to change; pawl case edit --help lists the flags")
			}
			if f.description, err = a.readText(f.description); err != nil {
				return err
			}
			return a.withBoard(cmd.Context(), func(store *sqlite.Store) error {
				c, err := store.EditCase(cmd.Context(), id, board.Person, time.Now(), func(c *board.Case) error { return f.apply(cmd, c) })
				if err != nil {
					return err
				}
				return a.sayCase(&c, "%s is changed.", c.ID)
			})
		},
	}
	f.common(cmd)
	cmd.Flags().StringVar(&f.title, "title", "", "another `TITLE`")
	cmd.Flags().Var(&names{list: &f.unneed, what: "id"}, "unneed", "the `ID` of a case that it does not need any more (repeatable)")
	cmd.Flags().Var(&names{list: &f.untag, what: "tag"}, "untag", "a `TAG` to take away (repeatable)")
	return cmd
}

// apply changes a case by the flags that were given.
func (f *caseFields) apply(cmd *cobra.Command, c *board.Case) error {
	for _, u := range f.unneed {
		id := board.Normal(u)
		if !slices.Contains(c.Needs, id) {
			return usage("%s does not need %s", c.ID, report.Line(u, 60))
		}
		c.Needs = slices.DeleteFunc(c.Needs, func(n string) bool { return n == id })
	}
	for _, u := range f.untag {
		if !slices.Contains(c.Tags, u) {
			return usage("%s has no tag %q", c.ID, report.Line(u, 60))
		}
		c.Tags = slices.DeleteFunc(c.Tags, func(t string) bool { return t == u })
	}
	c.Needs, c.Tags = append(c.Needs, f.needs...), append(c.Tags, f.tags...)
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
	if changed("priority") {
		c.Priority = f.priority
	}
	if changed("parent") {
		c.Parent = f.parent
	}
	return nil
}

// count is a number of things in words.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
