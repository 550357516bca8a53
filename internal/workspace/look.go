package workspace

import (
	"context"
	"strings"
)

// Look is the tree of the work tree as it is, by the rules of the run, and the
// commit that is checked out; head is empty before the first commit. It makes no
// ref, so git may collect the tree after some weeks.
func (c *Checkout) Look(ctx context.Context, run string) (tree, head string, err error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return "", "", err
	}
	defer r.close()
	s, err := r.scan(ctx)
	return s.tree, s.head.Commit, err
}

// Hidden are the files that the newest snapshot of the run lacks although the ignore
// rules of its start take them in: rules that were made since hide them, they are
// too large, or they are in a nested repository, which is named itself.
func (c *Checkout) Hidden(ctx context.Context, run string) ([]string, error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.start, err = r.loadStart(ctx); err != nil {
		return nil, err
	}
	all, err := r.index.UntrackedBy(ctx, r.start.file)
	var hidden []string
	for _, p := range all {
		if name := strings.TrimSuffix(p, "/"); !r.start.covers(p) && !ours(name) {
			hidden = append(hidden, name)
		}
	}
	return hidden, err
}
