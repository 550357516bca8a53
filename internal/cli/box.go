package cli

import (
	"context"

	"github.com/pawl-dev/pawl/internal/boxpolicy"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/web"
)

// box decides what the operating system holds the run to.
func (s *session) box(ctx context.Context, unsandboxed bool) error {
	v, err := s.a.judge(ctx, s.plan.Safety, unsandboxed, "the agent")
	if err != nil {
		return err
	}
	s.plan.Sandbox = s.plan.Safety + ": " + v.Enforced
	if v.Boxed {
		s.plan.Box = s.policies(ctx, v)
		s.plan.Copy = s.plan.Safety == sandbox.Paranoid
	}
	if s.plan.Copy && s.tree == nil {
		return usage("cannot run at the level paranoid outside of git: the agent works on a copy, and only git can tell what it changed").
			Hint("Make a repository: git init").Hint("Or run with --safety normal")
	}
	return nil
}

// judge asks the machine what it can enforce at a level, and says what it
// cannot. who is not confined where there is no sandbox; "" warns of nothing.
func (a *app) judge(ctx context.Context, level string, unsandboxed bool, who string) (sandbox.Verdict, error) {
	var offer sandbox.Offer
	if level != sandbox.Permissive && !unsandboxed {
		offer = sandbox.Probe(ctx)
	}
	v := sandbox.Judge(level, offer, unsandboxed)
	if v.Refused != "" {
		return v, usage("cannot run at the level %s: %s", level, v.Refused).
			Hint("See what this machine can enforce: pawl doctor").
			Hint("Run without a sandbox, which every report then says: --unsandboxed")
	}
	if unsandboxed && who != "" {
		a.say("Warning: no sandbox (--unsandboxed): what %s may touch is not confined.", who)
	}
	for _, gap := range v.Gaps {
		a.say("Note: safety level %s: %s.", level, gap)
	}
	return v, nil
}

// policies are the boxes of the run's agents and gates. Who reads the token of
// 'pawl serve' can answer for the person, so nobody does.
func (s *session) policies(ctx context.Context, v sandbox.Verdict) *engine.Box {
	boxes := boxpolicy.Make(ctx, boxpolicy.Options{
		Config: s.c, Plan: s.plan, StateDir: s.stateDir, Cache: s.cache, Tree: s.tree, Env: s.a.env, LookPath: s.a.lookPath,
		Write: s.a.writes, Hide: []string{web.SessionDir(s.stateDir)}, Say: s.a.say,
	}, v)
	s.agentPolicy = boxes.Agent
	return boxes.Run
}
