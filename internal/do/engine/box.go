package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
)

// agentBox is the box of an agent: its own folder of state may be written, and
// its prompt read, although both are in pawl's folder. One that shall change
// nothing cannot write the workspace.
func (s *session) agentBox(name, state string, call agentCall) *sandbox.Policy {
	if s.plan.Box == nil {
		return nil
	}
	p := s.plan.Box.Agents[name]
	p.Write = append(slices.Clone(p.Write), state)
	p.Show = append(slices.Clone(p.Show), call.prompt)
	if call.tools != "" {
		p.Write = append(p.Write, call.tools)
	}
	if call.readOnly {
		p.Write = slices.DeleteFunc(p.Write, func(path string) bool { return path == s.plan.Root })
		p.Keep = append(slices.Clone(p.Keep), s.plan.Root)
		p.Binds = slices.Clone(p.Binds)
		for i := range p.Binds {
			p.Binds[i].ReadOnly = true
		}
	}
	return &p
}

// protectedBox is a gate's box in which the content of protected files stays: the gate runs
// what the agent wrote, which could change a test before it is read. What the box needs
// for that goes to the folder scratch. The files lie in the folder from; own are those of the
// gate itself, which are kept as well.
func (w *judge) protectedBox(ctx context.Context, p sandbox.Policy, scratch, from string, own ...string,
) (sandbox.Policy, error) {
	if w.o.Tree == nil || !p.Means.Mounts {
		return p, nil
	}
	top := from
	if at := slices.IndexFunc(p.Binds, func(b sandbox.Bind) bool { return b.From == from }); at >= 0 {
		top = p.Binds[at].To // the box shows a copy there
	}
	if from == w.o.Tree.Repo.Top {
		rules := filepath.Join(scratch, "git")
		isClone, isFolder, err := w.o.Tree.LayRules(ctx, rules)
		if err != nil {
			return p, err
		}
		if isClone {
			p = p.ShowRules(filepath.Join(from, ".git"), filepath.Join(top, ".git"), rules, isFolder)
		}
	}
	if len(w.plan.Protect.Patterns)+len(own) == 0 {
		return p, nil
	}
	names := own
	if len(w.plan.Protect.Patterns) > 0 {
		all, err := w.o.Tree.Names(ctx, w.id)
		if err != nil {
			return p, err
		}
		all = slices.AppendSeq(all, maps.Keys(w.protectedOutsideGit(ctx)))
		names = append(w.protected().Covers("", all), own...)
	}
	p, folders, err := p.KeepContent(from, top, filepath.Join(scratch, "protected"), names)
	for _, dir := range folders {
		// Any new name in such a folder is refused.
		if w.plan.Protect.New && w.protected().CoversOne(filepath.Join(dir, "new")) {
			p.Keep = append(p.Keep, filepath.Join(top, dir))
		}
	}
	return p, err
}

// dropCaches removes what gates wrote to their caches and to their folders for
// temporary files: code under test could write them, too, and it counts in no other
// verdict.
func (s *session) dropCaches(scratch string) {
	if err := files.RemoveAll(scratch); err != nil {
		s.warn(fmt.Sprintf("cannot remove what gates wrote to their caches and temporary files: %v", err))
	}
}

// keepEvidence adds to a record what a gate left in the folder dir, or the agent where name is "".
func (s *session) keepEvidence(r *loop.Record, name, dir string) {
	kept, left := outputs.KeepEvidence(dir, s.attempt(r.Number, r.Attempt).EvidenceFolder(), name)
	r.Evidence = append(r.Evidence, kept...)
	if len(left) > 0 {
		s.warn("evidence not kept of " + cmp.Or(name, r.Agent) + ": " + strings.Join(left, "; "))
	}
}

// toolCaches are the variables of the tools' caches of agents.
func (s *session) toolCaches() []string {
	if s.plan.Box == nil {
		return nil
	}
	return s.plan.Box.Caches
}

// keepSources keeps the sources as they are, before an agent can write them.
func (d *Driver) keepSources() error {
	if list := d.plan.ExposedSources(); len(list) > 0 {
		return trust.Keep(d.o.StateDir, d.id, d.plan.Name, d.plan.Root, d.self, list)
	}
	return nil
}
