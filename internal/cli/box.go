package cli

import (
	"context"

	"github.com/pawl-dev/pawl/internal/boxpolicy"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/web"
)

// box decides what the operating system holds the run to, and says what it
// cannot.
func (s *session) box(ctx context.Context, unsandboxed bool) error {
	var offer sandbox.Offer
	if s.plan.Safety != sandbox.Permissive && !unsandboxed {
		offer = sandbox.Probe(ctx)
	}
	v := sandbox.Judge(s.plan.Safety, offer, unsandboxed)
	if v.Refused != "" {
		return refusedLevel(s.plan.Safety, v)
	}
	s.plan.Sandbox = s.plan.Safety + ": " + v.Enforced
	if unsandboxed {
		s.a.say("Warning: no sandbox (--unsandboxed): what the agent may touch is not confined.")
	}
	for _, gap := range v.Gaps {
		s.a.say("Note: safety level %s: %s.", s.plan.Safety, gap)
	}
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

func refusedLevel(level string, v sandbox.Verdict) error {
	return usage("cannot run at the level %s: %s", level, v.Refused).
		Hint("See what this machine can enforce: pawl doctor").
		Hint("Run without a sandbox, which every report then says: --unsandboxed")
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
