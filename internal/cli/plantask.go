package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/autopilot"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/workspace"
)

// taskPlanner makes the plans of tasks. It has judged the machine and said
// what there is to say, once; plans are made in silence.
type taskPlanner struct {
	a        *app
	c        *config.Config
	flags    runFlags
	stateDir string
	verdict  sandbox.Verdict
	unboxed  bool
}

// newTaskPlanner checks that tasks can be worked on at all: agents, gates,
// sandbox. The plan is that of a task in the root itself.
func (a *app) newTaskPlanner(ctx context.Context, c *config.Config, stateDir string, f runFlags) (*taskPlanner, engine.Plan, error) {
	t := &taskPlanner{a: a, c: c, flags: f, stateDir: stateDir, unboxed: f.Unsandboxed}
	plan, err := t.build(autopilot.Task{})
	if err != nil {
		return nil, plan, err
	}
	var offer sandbox.Offer
	if plan.Safety != sandbox.Permissive && !t.unboxed {
		offer = sandbox.Probe(ctx)
	}
	t.verdict = sandbox.Judge(plan.Safety, offer, t.unboxed)
	if t.verdict.Refused != "" {
		return nil, plan, refusedLevel(plan.Safety, t.verdict)
	}
	if t.unboxed {
		a.say("Warning: no sandbox (--unsandboxed): what the agents may touch is not confined.")
	}
	for _, gap := range t.verdict.Gaps {
		a.say("Note: safety level %s: %s.", plan.Safety, gap)
	}
	quiet := *a
	quiet.quiet = true
	t.a = &quiet
	return t, plan, nil
}

// plan is the plan of a task in its workspace, and its tree.
func (t *taskPlanner) plan(ctx context.Context, task autopilot.Task) (engine.Plan, *workspace.Checkout, error) {
	plan, err := t.build(task)
	if err != nil {
		return plan, nil, err
	}
	w := task.Workspace
	plan.Root, plan.Project, plan.Marks = w.Dir, t.c.Root, append(w.Env(), "PAWL_CASE="+task.Case.ID)
	for name, ag := range plan.Agents {
		ag.Command = inPlace(ag.Command, t.c.Root, w.Dir)
		plan.Agents[name] = ag
	}
	tree, err := workspace.Open(ctx, w.Dir, workspace.Options{StateDir: autopilot.TreeDir(t.stateDir, task.Case.ID), MaxFile: plan.SnapshotMaxFile})
	if err != nil {
		return plan, nil, err
	}
	if err := tree.Exclude(ctx); err != nil {
		return plan, nil, err
	}
	plan.Sandbox = plan.Safety + ": " + t.verdict.Enforced
	if t.verdict.Boxed {
		s := &session{a: t.a, c: t.c, plan: plan, stateDir: t.stateDir, tree: tree}
		plan.Box = s.policies(ctx, t.verdict)
	}
	return plan, tree, nil
}

// build is what is the same wherever a task is worked on.
func (t *taskPlanner) build(task autopilot.Task) (engine.Plan, error) {
	p, name, err := t.procedure()
	if err != nil {
		return engine.Plan{}, err
	}
	pl := planner{t.a, t.c, name, p, t.flags}
	plan, err := pl.build()
	if err != nil {
		return plan, err
	}
	plan.Kind, plan.Name = "task", task.Case.ID
	if plan.Policy.Reviewer == loop.Person { // people review on the board, and no run waits for them
		plan.Policy.Review, plan.Policy.Reviewer, plan.Prompt.Reviewer = false, "", ""
	}
	if n := task.Limits.MaxIterations; n > 0 {
		plan.Policy.MaxIterations = n
	}
	if d := task.Limits.Timeout; d > 0 {
		plan.Policy.TaskTimeout = d
	}
	c := task.Case
	plan.Prompt.Procedure = c.ID
	plan.Prompt.Case = prompt.Case{ID: c.ID, Title: c.Title, Description: c.Description, Acceptance: c.Acceptance, Tags: c.Tags}
	plan.Prompt.Context = append(slices.Clone(plan.Prompt.Context), task.Told...)
	return plan, nil
}

// procedure is what tasks are worked on with: the configured one, else what
// pawl brings.
func (t *taskPlanner) procedure() (config.Procedure, string, error) {
	name := t.c.Autopilot.Procedure
	p, ok := t.c.Procedures[name]
	switch {
	case name == "":
		name = "task"
		p = config.Procedure{Summary: "Do one task of the board"}
		for _, f := range []struct {
			to   *[]config.Fragment
			name string
		}{{&p.Observe, "observe/case"}, {&p.Observe, "observe/repository"}, {&p.Orient, "orient/compare"}, {&p.Act, "act/edit-and-test"}} {
			text, _ := prompt.Builtin(f.name)
			*f.to = append(*f.to, config.Fragment{Name: "builtin:" + f.name, Text: text})
		}
	case !ok:
		return p, name, unknownProcedure(t.c, name)
	}
	if p.Policy == "" || p.Policy == string(loop.Procedure) {
		p.Policy = string(loop.Task)
	}
	return p, name, nil
}

// inPlace makes files of the project that a workspace does not have absolute,
// in the words of a command.
func inPlace(command []string, root, dir string) []string {
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
