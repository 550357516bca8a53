package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/console"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/schedule"
)

// mostSprints is how many are listed.
const mostSprints = 1000

func (a *app) sprintListCommand() *cobra.Command {
	return leaf("list", "List the sprints, the last one first", atMost(0), func(ctx context.Context, _ []string) error {
		return a.withSprints(ctx, a.listSprints)
	})
}

// withSprints reads the sprints of the repository, and which of them goes on.
func (a *app) withSprints(ctx context.Context, do func(live string, list []schedule.SprintStats) error) error {
	return a.withOperator(ctx, func(p *action.Operator) error {
		rows, err := p.Store.Sprints(ctx, mostSprints)
		if err != nil {
			return err
		}
		list := make([]schedule.SprintStats, len(rows))
		for i, row := range rows {
			if err := json.Unmarshal(row.Stats, &list[i]); err != nil {
				return fmt.Errorf("cannot read the statistics of sprint %s: %v", row.ID, err)
			}
		}
		pilot, _, err := p.Store.Autopilot(ctx)
		if err != nil {
			return err
		}
		live := ""
		if engine.Alive(pilot.Owner) {
			live = pilot.Sprint
		}
		return do(live, list)
	})
}

func (a *app) listSprints(live string, list []schedule.SprintStats) error {
	return listing(a, list, "No sprints yet. Start one with: pawl sprint --count 10",
		"SPRINT\tSTARTED\tTOOK\tTARGET\tTASKS\tCOMPLETE\tFAILED\tREVIEWING", func(s schedule.SprintStats) row {
			return row{s, []any{
				s.ID, minute(time.UnixMilli(s.StartedAt)), took(s, live), targetWords(s.Target),
				s.TotalTasks, s.CompletedTasks, s.FailedTasks, s.ReviewingTasks,
			}}
		})
}

// took is how long a sprint took. The one that goes on is live; another without
// an end was cut off, until the next start of the autopilot writes it.
func took(s schedule.SprintStats, live string) string {
	switch {
	case s.EndedAt == nil && s.ID == live:
		return "runs"
	case s.EndedAt == nil:
		return "cut off"
	}
	return loop.Duration(time.Duration(*s.EndedAt-s.StartedAt) * time.Millisecond)
}

func targetWords(t schedule.SprintTarget) string {
	return strings.TrimSpace(t.Type + " " + strings.Trim(string(t.Value), `"`))
}

func (a *app) sprintShowCommand() *cobra.Command {
	return leaf("show [ID]", "Show a sprint, task by task; the last one without an id", atMost(1), func(ctx context.Context, args []string) error {
		return a.withSprints(ctx, func(live string, list []schedule.SprintStats) error {
			for _, s := range list {
				if len(args) == 0 || s.ID == args[0] {
					return a.showSprint(live, s)
				}
			}
			return usage("there is no such sprint").Hint("List them: pawl sprint list")
		})
	})
}

func (a *app) showSprint(live string, s schedule.SprintStats) error {
	if a.json {
		return a.document(s)
	}
	how := took(s, live)
	if s.EndedAt != nil {
		how = "took " + how
	}
	a.result("Sprint %s, %s, %s, target %s\n", s.ID, minute(time.UnixMilli(s.StartedAt)), how, targetWords(s.Target))
	a.result("%s: %d complete, %d failed, %d wait for your review\n", console.Count(s.TotalTasks, "task"), s.CompletedTasks, s.FailedTasks, s.ReviewingTasks)
	var rows [][]any
	for _, t := range s.TaskStats {
		done, verified := "-", "no"
		if s.EndedAt == nil && s.ID == live {
			done = "runs"
		}
		if t.CompletedAt > 0 {
			done = loop.Duration(time.Duration(t.CompletedAt-t.StartedAt) * time.Millisecond)
		}
		if t.VerificationPassed {
			verified = "yes"
		}
		rows = append(rows, []any{t.TaskID, t.Iterations, done, verified, t.ReviewDecision})
	}
	if len(rows) > 0 {
		a.table("TASK\tITERATIONS\tTOOK\tVERIFIED\tREVIEW", rows, 0)
	}
	return nil
}
