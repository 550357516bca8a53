package board

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/autopilot/overview"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

func caseShowCommand(a *command.App) *cobra.Command {
	return newCaseCommand(a, "show ID", "Show a task: what it says, what it waits for, its history",
		func(ctx context.Context, p *action.Operator, id string) error { return showCase(ctx, a, p, id) })
}

// shownCase is `case show --json`.
type shownCase struct {
	command.CaseDocument
	Dependents []string      `json:"dependents"`
	Workspace  *shownSpace   `json:"workspace,omitempty"`
	Landed     string        `json:"landed,omitempty"` // where its work is
	History    []board.Entry `json:"history"`
}

func showCase(ctx context.Context, a *command.App, p *action.Operator, id string) error {
	db := p.Store
	history, err := db.CaseHistory(ctx, id)
	if err != nil {
		return err
	}
	c, err := db.Case(ctx, id)
	if n := len(history); errors.Is(err, store.ErrNoCase) && n > 0 && history[n-1].Action == board.Remove {
		last := history[n-1]
		return command.Usage("%s was removed on %s: %s", id, command.Minute(last.At), report.Line(last.Why, 200)).
			Hint("List the board: pawl case list --all")
	}
	if err != nil {
		return err
	}
	dependents, err := db.Dependents(ctx, id)
	if err != nil {
		return err
	}
	space, err := caseSpace(ctx, p, id)
	if err != nil {
		return err
	}
	landed, err := findLanding(ctx, db, id)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.Document(shownCase{command.CaseJSON(&c), append([]string{}, dependents...), space, landed, history})
	}
	needs := make([]string, len(c.Needs))
	for i, need := range c.Needs {
		n, err := db.Case(ctx, need)
		if err != nil {
			return err
		}
		needs[i] = fmt.Sprintf("%s (%s)", need, n.Status)
	}
	printCase(a, &c, needs, dependents)
	if action.WaitsForReview(ctx, db, id) {
		a.Result("  review      pawl case approve %[1]s, pawl case redo %[1]s --feedback TEXT, "+
			"or pawl case reject %[1]s\n", id)
	}
	idle, err := overview.IdleOf(ctx, db)
	if err != nil {
		return err
	}
	for _, line := range idle.LinesOf(id) {
		a.Result("  waits       %s\n", report.Line(line, 300))
	}
	if landed != "" {
		a.Result("  landed      %s\n", report.Line(landed, 300))
	}
	printSpace(a, space)
	printTexts(a, &c)
	printHistory(a, history, db.BoardName() != "")
	return nil
}

// findLanding returns a description of where the work of a task has landed: on this
// machine only, or pushed. It is "" if the task has not landed.
func findLanding(ctx context.Context, db *store.Store, id string) (string, error) {
	targets, err := db.QueueTargets(ctx)
	if err != nil {
		return "", err
	}
	for _, target := range targets {
		list, err := db.Landings(ctx, target, id, 1)
		if err != nil {
			return "", err
		}
		if len(list) == 0 {
			continue
		}
		if list[0].Revert {
			return fmt.Sprintf("taken back by %.10s on %s", list[0].Commit, command.BranchName(target)), nil
		}
		row, _, err := db.Queue(ctx, target)
		if err != nil {
			return "", err
		}
		where := fmt.Sprintf("%.10s on %s", list[0].Commit, command.BranchName(target))
		switch u := row.State.Unpushed; {
		case row.State.Policy.Propose:
			return where, nil
		case !row.State.Policy.Push:
			return where + ", here", nil
		case u != nil && slices.Contains(u.IDs, id):
			return strings.TrimSuffix(where+", not pushed: "+u.Why, ": "), nil
		}
		return where + ", pushed", nil
	}
	return "", nil
}

func printCase(a *command.App, c *board.Case, needs, dependents []string) {
	a.Result("%s  %s\n", c.ID, report.Line(c.Title, board.MaxTitle))
	a.Result("  status      %s", action.State(c))
	if c.Why != "" {
		a.Result(" (%s)", report.Line(c.Why, 300))
	}
	a.Result("\n")
	row := func(name, value string) {
		if value != "" {
			a.Result("  %-10s  %s\n", name, value)
		}
	}
	if c.Status == board.Pending && c.Type == board.Task {
		row("waits", c.NotReady())
	}
	if c.Type == board.Operation {
		row("holds", fmt.Sprintf("%s, %d done", fault.Numbered(c.Children, "task"), c.ChildrenDone))
	} else {
		score, parts := board.Score(c)
		row("score", fmt.Sprintf("%d%s", score, board.Because(parts)))
	}
	row("priority", fmt.Sprint(c.Priority))
	row("parent", c.Parent)
	row("needs", report.Some(needs, shownIDs))
	row("needed by", report.Some(dependents, shownIDs))
	row("tags", report.Line(strings.Join(c.Tags, ", "), 1000))
	row("controlled", c.Control.String())
	row("ref", report.Line(c.Ref, board.MaxRef))
	if c.Retries > 0 {
		row("retries", fmt.Sprint(c.Retries))
	}
	row("added", command.Minute(c.CreatedAt))
}

func printTexts(a *command.App, c *board.Case) {
	if c.Description != "" {
		a.Result("\n")
		for line := range strings.SplitSeq(c.Description, "\n") {
			blanks := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			a.Result("  %s%s\n", strings.ReplaceAll(blanks, "\t", "    "), report.Line(line, 4000))
		}
	}
	if len(c.Acceptance) > 0 {
		a.Result("\n  Done when\n")
	}
	for _, item := range c.Acceptance {
		a.Result("  - %s\n", report.Line(item, 2000))
	}
	printChecks(a, "Checked by", c.Verify)
	printChecks(a, "Sealed checks, which no agent at work on it sees", c.Sealed)
}

// printChecks prints the checks of a task, with what they show.
func printChecks(a *command.App, heading string, list []board.TaskCheck) {
	if len(list) == 0 {
		return
	}
	a.Result("\n  %s\n", heading)
	for _, c := range list {
		text := c.Label()
		if c.Name != "" {
			text += ": " + c.Command
		}
		if c.Criterion != "" {
			text += " (shows: " + c.Criterion + ")"
		}
		if names := slices.Sorted(maps.Keys(c.Files)); len(names) > 0 {
			text += " (with " + strings.Join(names, ", ") + ")"
		}
		a.Result("  - %s\n", report.Line(text, 2000))
	}
}

func printHistory(a *command.App, history []board.Entry, shared bool) {
	a.Result("\n  History\n")
	wide := 6
	for _, e := range history {
		wide = max(wide, utf8.RuneCountInString(report.Line(e.Who(shared), 60)))
	}
	for _, e := range history {
		what := string(e.Action)
		if e.To != "" && e.To != e.From {
			what += " → " + string(e.To)
		}
		a.Result("  %s  %-18s  %-*s  %s\n", command.Minute(e.At), what, wide, report.Line(e.Who(shared), 60),
			report.Line(e.Why, 300))
	}
}

// shownIDs is how many of a list of cases or files are named.
const shownIDs = 8

// shownSpace is the workspace of a task in `case show --json`.
type shownSpace struct {
	Dir       string    `json:"dir"`
	State     string    `json:"state"`
	Branch    string    `json:"branch"`
	Base      string    `json:"base"`
	Commit    string    `json:"commit,omitempty"` // what was collected last
	PortBase  int       `json:"port_base,omitempty"`
	Why       string    `json:"why,omitempty"`
	Process   int       `json:"process,omitempty"` // the live process that works in it
	Host      string    `json:"host,omitempty"`    // the machine of that process, or of the workspace
	KeepUntil time.Time `json:"keep_until,omitzero"`
	Gone      bool      `json:"gone,omitempty"` // somebody removed its folder
}

// caseSpace is the workspace of a task; nil when it has none.
func caseSpace(ctx context.Context, p *action.Operator, id string) (*shownSpace, error) {
	r, ok, err := p.Store.Workspace(ctx, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		last, host, err := p.TaskElsewhere(ctx, id)
		if err != nil || host == "" {
			return nil, err
		}
		return &shownSpace{Dir: action.PlaceOf(last), Host: host}, nil
	}
	s := &shownSpace{Dir: r.Dir, State: r.State, Branch: r.Branch, Base: r.Base, Commit: r.Head, PortBase: r.Ports,
		Why: r.Why}
	_, err = os.Lstat(r.Dir)
	s.Gone = errors.Is(err, os.ErrNotExist)
	if storedrun.Alive(r.Owner) {
		s.Process, s.Host = r.Owner.PID, r.Owner.Host
	} else {
		s.KeepUntil = r.KeepUntil
	}
	return s, nil
}

func printSpace(a *command.App, s *shownSpace) {
	if s == nil {
		return
	}
	if s.State == "" {
		a.Result("  workspace   %s on %s\n", report.Line(s.Dir, 1000), s.Host)
		return
	}
	a.Result("  workspace   %s\n", report.Line(s.Dir, 1000))
	what := s.State
	switch {
	case s.Gone:
		what = "its folder no longer exists"
	case s.Process != 0:
		what = fmt.Sprintf("used by process %d", s.Process)
	case s.Why != "":
		what += ": " + report.Line(s.Why, 300)
	}
	if !s.KeepUntil.IsZero() && !s.Gone {
		what += ", until " + command.Minute(s.KeepUntil)
	}
	a.Result("              %s\n", what)
	a.Result("              branch %s from %.12s", s.Branch, s.Base)
	if s.PortBase > 0 {
		a.Result(", ports %d to %d", s.PortBase, s.PortBase+pool.PortsIn-1)
	}
	a.Result("\n")
}
