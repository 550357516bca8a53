package workspace

import "context"

// Look is what [Checkout.Now] is, with the commit that is checked out; head is
// empty before the first commit.
func (c *Checkout) Look(ctx context.Context, run string) (tree, head string, err error) {
	r, err := c.open(ctx, run)
	if err != nil {
		return "", "", err
	}
	defer r.close()
	s, err := r.scan(ctx)
	return s.tree, s.head.Commit, err
}
