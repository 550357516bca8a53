package engine

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/sandbox"
	"github.com/pawl-dev/pawl/internal/trust"
)

// exposed are the sources that an agent or a gate can write.
func (p *Plan) exposed() []trust.File {
	if p.Copy {
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

// keepSources keeps the sources as they are, before an agent can write them.
func (d *Driver) keepSources() error {
	if list := d.plan.exposed(); len(list) > 0 {
		return trust.Keep(d.o.StateDir, d.id, d.plan.Name, d.plan.Root, d.self, list)
	}
	return nil
}

// releaseSources forgets those that did not change, and notes which files that commands
// could be taken from the agents left in the project. Where nobody can tell, all that
// changed stays in doubt, as after a crash.
func (d *Driver) releaseSources(ctx context.Context) {
	seen, err := d.doubt(ctx)
	if seen && err == nil {
		err = trust.Release(d.o.StateDir, d.id, d.plan.project())
	}
	if err != nil {
		d.warn(err.Error())
	}
}

// doubt notes which files the run changed. Where they cannot be looked at, seen is false: all
// stays in doubt then, and the next start asks.
func (d *Driver) doubt(ctx context.Context) (seen bool, err error) {
	base := d.worker.trees.base
	inClone := d.plan.project() != d.plan.Root
	if d.o.Tree == nil || base == "" || d.plan.Copy || inClone {
		return true, nil
	}
	ctx, cancel := d.aftermath(context.WithoutCancel(ctx))
	defer cancel()
	tree, _, err := d.o.Tree.Look(ctx, d.id)
	if err != nil {
		return false, nil
	}
	changes, _, err := d.worker.changes(ctx, base, tree)
	if err != nil {
		return false, err
	}
	paths := slices.Clone(d.worker.trees.hidden)
	for _, c := range without(changes, d.worker.trees.lifted) {
		paths = append(paths, c.Path)
	}
	return true, trust.Doubt(d.o.StateDir, d.id, d.plan.Name, d.o.Tree.Repo.Top, paths)
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
