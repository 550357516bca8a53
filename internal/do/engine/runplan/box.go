package runplan

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/trust"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Box is what the operating system holds the run's processes to.
type Box struct {
	// Gates is that of what judges. It shares no cache with an agent: see GateCaches.
	Gates  sandbox.Policy
	Agents map[string]sandbox.Policy
	// Setup is that of commands that judge nothing: a workspace's set-up, hooks.
	Setup sandbox.Policy
	// Caches are the variables that keep the tools' caches of agents and of Setup
	// where these may write them, K=V.
	Caches []string
	// GateCaches are the tools' caches of gates, and GateEnv further variables.
	GateCaches []sandbox.Cache
	GateEnv    []string
}

// OfVerdict is the box of the gates of one verdict, with the variables of its caches: what is written to these goes
// to the folder scratch. It is nil where there is no box.
func (b *Box) OfVerdict(scratch string) (*sandbox.Policy, []string) {
	if b == nil {
		return nil, nil
	}
	p, env := b.Gates.WithCaches(b.GateCaches, scratch)
	return &p, slices.Concat(env, b.GateEnv)
}

// BeganCold reports whether the gates of the verdict whose caches wrote to scratch found them empty.
func (b *Box) BeganCold(scratch string) bool {
	return b != nil && sandbox.BeganCold(b.GateCaches, scratch)
}

// ExposedSources are the sources that an agent or a gate can write.
func (p *Plan) ExposedSources() []trust.File {
	if p.Project != "" { // agents work elsewhere
		return nil
	}
	if p.Box == nil {
		return p.Sources
	}
	boxes := []sandbox.Policy{p.Box.Gates}
	for _, one := range p.Box.Agents {
		boxes = append(boxes, one)
	}
	return slices.DeleteFunc(slices.Clone(p.Sources), func(f trust.File) bool {
		return !slices.ContainsFunc(boxes, func(box sandbox.Policy) bool {
			return slices.ContainsFunc(box.Write, func(dir string) bool {
				_, below := files.Below(dir, f.Path)
				return below || dir == f.Path
			})
		})
	})
}

// SourceNames are the sources as seen from the top level of a work tree at root, of
// those that lie in the project.
func SourceNames(top, root, project string, list []trust.File) []string {
	var names []string
	for _, f := range list {
		name, ok := files.Below(project, f.Path)
		if ok {
			name, ok = files.Below(top, filepath.Join(root, name))
		}
		if ok {
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}

// InWorkspace is a plan that is carried out in a private workspace. A box shows it in
// the place of the person's files, so that paths hold; without mounts it has a path of
// its own.
func InWorkspace(plan Plan, w *delivery.Workspace) Plan {
	top, at := w.Person().Repo.Top, w.Place()
	plan.Project = cmp.Or(plan.Project, plan.Root)
	plan.Marks = append(slices.Clone(plan.Marks), at.Env()...)
	mounted := plan.Box != nil && plan.Box.Gates.Means.Mounts
	if !mounted {
		plan.Root = at.Dir
	}
	if plan.Box == nil {
		return plan
	}
	box := *plan.Box
	into := func(p sandbox.Policy) sandbox.Policy { return intoWorkspace(p, w, top, mounted) }
	box.Gates, box.Setup = into(box.Gates), into(box.Setup)
	box.Agents = maps.Clone(box.Agents)
	for name, p := range box.Agents {
		box.Agents[name] = into(p)
	}
	plan.Box = &box
	return plan
}

// intoWorkspace is a box in which the workspace is writable and the person's files are
// out of reach. The objects that the workspace borrows can be read.
func intoWorkspace(p sandbox.Policy, w *delivery.Workspace, top string, mounted bool) sandbox.Policy {
	at, repo := w.Place(), w.Person().Repo
	inPerson := func(path string) bool {
		_, below := files.Below(top, path)
		return below || path == top || path == repo.Dir || path == repo.Common
	}
	p.Write = slices.DeleteFunc(slices.Clone(p.Write), inPerson)
	p.Show = slices.DeleteFunc(slices.Clone(p.Show), func(path string) bool { return path == repo.Objects })
	if !mounted {
		p.Write = append(p.Write, at.Top)
		p.Show = append(p.Show, at.Lent, repo.Objects)
		return p
	}
	p.Keep = slices.DeleteFunc(slices.Clone(p.Keep),
		func(path string) bool { return path == repo.Dir || path == repo.Common })
	for _, dir := range []string{repo.Dir, repo.Common} {
		if _, below := files.Below(top, dir); !below {
			p.Hide = append(slices.Clone(p.Hide), dir)
		}
	}
	p.Binds = append(slices.Clone(p.Binds),
		sandbox.Bind{From: at.Top, To: top}, sandbox.Bind{From: repo.Objects, To: at.Lent, ReadOnly: true})
	return p
}
