package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/schedule"
)

// mostSprints is how many are listed.
const mostSprints = 1000

func (a *app) sprintListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the sprints, the last one first", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withSprints(cmd.Context(), func(live string, list []schedule.SprintStats) error { return a.listSprints(live, list) })
		},
	}
}

// withSprints reads the sprints of the repository, and which of them goes on.
func (a *app) withSprints(ctx context.Context, do func(live string, list []schedule.SprintStats) error) error {
	store, _, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	rows, err := store.Sprints(ctx, mostSprints)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	list := make([]schedule.SprintStats, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.Stats, &list[i]); err != nil {
			return fault.Of(fault.Failed, fmt.Errorf("cannot read the statistics of sprint %s: %v", row.ID, err))
		}
	}
	pilot, _, err := store.Autopilot(ctx)
	if err != nil {
		return fault.Of(fault.Failed, err)
	}
	live := ""
	if engine.Alive(pilot.Owner) {
		live = pilot.Sprint
	}
	return do(live, list)
}

func (a *app) listSprints(live string, list []schedule.SprintStats) error {
	if a.json {
		for _, s := range list {
			if err := a.jsonLine(s); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		a.say("No sprints yet. Start one with: pawl sprint --count 10")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SPRINT\tSTARTED\tTOOK\tTARGET\tTASKS\tCOMPLETE\tFAILED\tREVIEWING")
	for _, s := range list {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", s.ID, minute(time.UnixMilli(s.StartedAt)), took(s, live), targetWords(s.Target),
			s.TotalTasks, s.CompletedTasks, s.FailedTasks, s.ReviewingTasks)
	}
	return w.Flush()
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
	return &cobra.Command{
		Use: "show [ID]", Short: "Show a sprint, task by task; the last one without an id", Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withSprints(cmd.Context(), func(live string, list []schedule.SprintStats) error {
				for _, s := range list {
					if len(args) == 0 || s.ID == args[0] {
						return a.showSprint(live, s)
					}
				}
				return usage("there is no such sprint").Hint("List them: pawl sprint list")
			})
		},
	}
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
	a.result("%s: %d complete, %d failed, %d wait for your review\n", counted(s.TotalTasks, "task"), s.CompletedTasks, s.FailedTasks, s.ReviewingTasks)
	if len(s.TaskStats) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "TASK\tITERATIONS\tTOOK\tVERIFIED\tREVIEW")
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
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", t.TaskID, t.Iterations, done, verified, t.ReviewDecision)
	}
	return w.Flush()
}
