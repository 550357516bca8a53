package workspace

import "context"

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
