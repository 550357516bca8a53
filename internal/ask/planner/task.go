package planner

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// Task is the plan of a task of the board in its workspace. The zero task has
// none: its plan shows whether tasks can be worked on at all.
func (pl *Planner) Task(task autopilot.Task) (runplan.Plan, error) {
	p, name, err := pl.taskProcedure()
	if err != nil {
		return runplan.Plan{}, err
	}
	if task.Agent != "" {
		own, c := *pl, *pl.Config
		own.Flags.AgentCmd, c.Agent = "", task.Agent
		own.Config, pl = &c, &own
	}
	c := task.Case
	own := *pl
	own.task, pl = c, &own
	if level := pl.safetyLevelOfTask(draft{pl, name, p}, c); c.IsOutside() || task.Level == sandbox.Paranoid {
		held := *pl
		held.Config = pl.withSafety(StricterLevel(level, task.Level))
		pl, p.Safety = &held, held.Config.Loop.Safety
	}
	p.Agent = cmp.Or(task.Agent, c.Agent(), p.Agent)
	switch own := c.Policy(); own {
	case "":
	case string(loop.Task), string(loop.Controlled):
		p.Policy = own
	default:
		return runplan.Plan{}, fault.Refuse("%s has the tag %s%s: write policy:task or policy:controlled", c.ID,
			board.PolicyTag, own)
	}
	if own := c.Control; own != nil {
		set := draft{pl, name, p}.iterationControl()
		overrideIfSet(&set.MaxIterations, own.MaxIterations)
		overrideIfSet(&set.AutoRetryOnTestFail, own.RetryTestFail)
		overrideIfSet(&set.AutoRetryOnReviewReject, own.RetryReviewReject)
		overrideIfSet(&set.EscalationIncludesDiff, own.IncludeDiff)
		overrideIfSet(&set.FeedbackMaxLength, own.FeedbackMax)
		p.IterationControl, p.MaxIterations = &set, cmp.Or(own.MaxIterations, p.MaxIterations)
	}
	plan, err := draft{pl, name, p}.procedurePlan()
	if err != nil {
		return plan, err
	}
	plan.Kind, plan.Name = "task", task.RunName()
	if plan.Policy.Reviewer == loop.Person { // people review on the board, and no run waits for them
		plan.Policy.Review, plan.Policy.Reviewer, plan.Prompt.Reviewer = false, "", ""
	}
	if n := task.Limits.MaxIterations; n > 0 {
		plan.Policy.MaxIterations = n
	}
	if d := task.Limits.Timeout; d > 0 {
		plan.Policy.TaskTimeout = d
	}
	of := pl.Config.Limits
	plan.Policy.MaxTaskCost = of.PerTask
	plan.Policy.Tokens.Task, plan.Policy.Calls.Task = countLimit(of.Tokens.PerTask), countLimit(of.Calls.PerTask)
	if n := int64(task.Racers); n > 1 && plan.Policy.MaxCost != loop.NoLimit {
		plan.Policy.MaxCost /= loop.MicroUSD(n)
	}
	plan.Prompt.Procedure = c.ID
	plan.Prompt.Case = prompt.Case{
		ID: c.ID, Title: c.Title, Description: c.Description, Acceptance: c.Acceptance, Tags: c.Tags,
	}
	plan.Prompt.Context = append(slices.Clone(plan.Prompt.Context), task.Earlier...)
	if w := task.Workspace; w.Dir != "" {
		plan.Gates = append(plan.Gates, pl.signoffGates(w.Base)...)
		plan.Root, plan.Project, plan.Marks = w.Dir, pl.Config.Root, append(w.Env(), "PAWL_CASE="+c.ID)
		for name, ag := range plan.Agents {
			ag.Command = withAbsoluteFiles(ag.Command, pl.Config.Root, w.Dir)
			plan.Agents[name] = ag
		}
	}
	return plan, nil
}

// overrideIfSet sets a value of the task's own over the general one.
func overrideIfSet[T any](to, own *T) {
	if own != nil {
		*to = *own
	}
}

// withSafety is the configuration at a level.
func (pl *Planner) withSafety(level string) *config.Config {
	c := *pl.Config
	c.Loop.Safety = level
	return &c
}

// StricterLevel is the one of two levels that allows less.
func StricterLevel(a, b string) string {
	levels := []string{string(safety.Permissive), string(safety.Normal), string(safety.Paranoid)}
	return levels[max(slices.Index(levels, a), slices.Index(levels, b), 0)]
}

// taskProcedure is the procedure for tasks: the configured one, else the built-in
// one.
func (pl *Planner) taskProcedure() (p config.Procedure, name string, err error) {
	if name = pl.Config.Autopilot.Procedure; name == "" {
		name = "task"
		p = config.Procedure{Summary: "Do one task of the board"}
		for _, f := range []struct {
			to   *[]config.Fragment
			name string
		}{{&p.Observe, "observe/case"}, {&p.Observe, "observe/repository"}, {&p.Orient, "orient/compare"},
			{&p.Act, "act/edit-and-test"}} {
			text, _ := prompt.Builtin(f.name)
			*f.to = append(*f.to, config.Fragment{Name: "builtin:" + f.name, Text: text})
		}
	} else if p, err = Lookup(pl.Config, name); err != nil {
		return p, name, err
	}
	if p.Policy == "" || p.Policy == string(loop.Procedure) {
		p.Policy = string(loop.Task)
	}
	return p, name, nil
}

// withAbsoluteFiles makes files of the project that a workspace does not have absolute,
// in the words of a command.
func withAbsoluteFiles(command []string, root, dir string) []string {
	out := slices.Clone(command)
	for i, word := range out {
		if filepath.IsAbs(word) || strings.HasPrefix(word, "-") || isRegular(filepath.Join(dir, word)) {
			continue
		}
		if path := filepath.Join(root, word); isRegular(path) {
			out[i] = path
		}
	}
	return out
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Landing is the plan of what the merge queue runs: the level, the gates, what
// is protected, and what gates inherit. No agent is in it.
func (pl *Planner) Landing() (runplan.Plan, error) {
	d := draft{pl, "queue", config.Procedure{}}
	plan, err := d.basePlan("queue")
	if err != nil {
		return plan, err
	}
	err = d.applySafety(&plan)
	return plan, err
}

// Shell is the plan of a command that a person runs in a workspace, at the level of its agent.
func (pl *Planner) Shell(level string) (runplan.Plan, error) {
	own := *pl
	own.Config = pl.withSafety(level)
	return own.Landing()
}

// TaskLevel is the safety level of the agents of a task.
func (pl *Planner) TaskLevel(task board.Case) (string, error) {
	p, name, err := pl.taskProcedure()
	return pl.safetyLevelOfTask(draft{pl, name, p}, task), err
}

// safetyLevelOfTask is the safety level of a task. One from outside has the stricter of two.
func (pl *Planner) safetyLevelOfTask(d draft, task board.Case) string {
	if task.IsOutside() {
		return StricterLevel(d.safetyLevel(), pl.Config.Forge.Issues.Safety)
	}
	return d.safetyLevel()
}
