package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Loose counts the objects that are files of their own.
func (r *Repo) Loose(ctx context.Context) (int, error) {
	out, err := run(ctx, r.call("count-objects"))
	if err != nil {
		return 0, fmt.Errorf("cannot count loose objects: %w", err)
	}
	number, _, _ := strings.Cut(string(out), " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0, fmt.Errorf("cannot count loose objects: git says %q", out)
	}
	return n, nil
}

// PackLoose puts loose objects into packs, whether anything leads to them or not,
// so that nothing is lost that somebody works with. The files go when git finds
// them in a pack, which is at the next call.
func (r *Repo) PackLoose(ctx context.Context) error {
	if _, err := run(ctx, r.call("maintenance", "run", "--task=loose-objects", "--quiet")); err != nil {
		return fmt.Errorf("cannot pack loose objects: %w", err)
	}
	return nil
}
