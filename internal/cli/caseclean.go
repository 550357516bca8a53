package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

func (a *app) caseCleanCommand() *cobra.Command {
	var dry, recoveries bool
	cmd := leaf("clean [ID...]", "Remove workspaces that are of no use any more; what is in them is kept on a ref", nil,
		func(ctx context.Context, args []string) error {
			ids, err := caseIDs(args)
			if err != nil {
				return err
			}
			return a.withPool(ctx, func(p *action.Operator, clones *pool.Pool) error {
				if recoveries {
					return a.cleanRecoveries(ctx, clones, ids, dry)
				}
				return a.cleanCases(ctx, p, clones, ids, dry)
			})
		})
	cmd.Long = "Remove the workspaces of tasks that landed or were kept for workspace.retention, and those that wait for\n" +
		"a task. With ids: the workspaces of these tasks, whatever became of them. Commits and files that are not\n" +
		"ignored go to refs/pawl/recovery/ID/N first. Nothing is removed in which a process works.\n" +
		"With --recoveries: these refs, if they are older than workspace.retention; with ids all of these tasks."
	cmd.Example = "  pawl case clean --dry-run\n  pawl case clean task-007\n  pawl case clean --recoveries"
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed, and what would stay and why")
	cmd.Flags().BoolVar(&recoveries, "recoveries", false, "remove what was kept of workspaces, and no workspace")
	return cmd
}

// removedRef is a line of `case clean --recoveries --json`.
type removedRef struct {
	Task    string    `json:"id"`
	Ref     string    `json:"ref"`
	Commit  string    `json:"commit"`
	At      time.Time `json:"at"`
	Removed bool      `json:"removed"`
}

// cleanRecoveries deletes the refs that keep what was in workspaces.
func (a *app) cleanRecoveries(ctx context.Context, p *pool.Pool, ids []string, dry bool) error {
	list, err := p.Recoveries(ctx, "")
	if err != nil {
		return err
	}
	all, now := len(list), time.Now()
	list = slices.DeleteFunc(list, func(r pool.Recovery) bool {
		if len(ids) > 0 {
			return !slices.Contains(ids, r.Task)
		}
		return !p.Outdated(r, now)
	})
	if !dry {
		if err := p.DropRecoveries(ctx, list); err != nil {
			return err
		}
	}
	went := map[bool]string{true: "would go", false: "removed"}[dry]
	for _, r := range list {
		if a.json {
			if err := a.jsonLine(removedRef{r.Task, r.Ref, r.Commit, r.When.UTC(), !dry}); err != nil {
				return err
			}
			continue
		}
		a.result("%s  %s  %s  %s\n", r.Ref, went, minute(r.When), r.Commit)
	}
	a.say("%d of %d recovery refs %s.", len(list), all, went)
	return nil
}

func (a *app) cleanCases(ctx context.Context, p *action.Operator, clones *pool.Pool, ids []string, dry bool) error {
	all, err := p.Clean(ctx, clones, ids, dry)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(all, func(v pool.Verdict) bool { return v.ID == id }) {
			a.say("%s has no workspace.", id)
		}
	}
	stuck := 0
	var freed, stay int64
	for _, v := range all {
		if v.Remove {
			freed += v.Bytes
		} else {
			stay += v.Bytes
			if len(ids) > 0 {
				stuck++
			}
		}
		if err := a.sayVerdict(v, dry); err != nil {
			return err
		}
	}
	if len(ids) == 0 && len(all) == 0 {
		a.say("There are no workspaces.")
	} else if len(all) > 0 {
		a.say("%s %s; %s stay.", map[bool]string{true: "Would free", false: "Freed"}[dry], megabytes(freed), megabytes(stay))
	}
	if stuck > 0 {
		return fmt.Errorf("%s not removed", map[bool]string{true: "1 workspace was", false: fmt.Sprintf("%d workspaces were", stuck)}[stuck == 1])
	}
	return nil
}

// sayVerdict prints what is done with one workspace, and why.
func (a *app) sayVerdict(v pool.Verdict, dry bool) error {
	if a.json {
		return a.jsonLine(v)
	}
	what, lost := "removed", "went with it"
	if dry {
		what, lost = "would go", "would go with it"
	}
	if !v.Remove {
		what = "stays"
	}
	a.result("%-16s  %-8s  %8s  %s\n", v.ID, what, megabytes(v.Bytes), report.Line(v.Reason, 400))
	if v.Ref != "" {
		a.result("  its work is kept: %s\n", v.Ref)
	}
	if len(v.Lost) > 0 {
		a.result("  %s, being ignored by git or too large: %s\n", lost, report.Line(someOf(v.Lost), 900))
	}
	return nil
}

// megabytes is a size for a person.
func megabytes(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	case n > 0:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", max(float64(n)/1e6, 0.1)), ".0") + " MB"
	}
	return "0 MB"
}
