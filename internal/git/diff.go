package git

import (
	"context"
	"fmt"
	"strings"
)

// Change is one path that differs between two trees.
type Change struct {
	// Status is A added, M modified, D deleted, T changed in kind, R renamed.
	Status byte
	Path   string
	From   string // the old path of a rename
	// OldMode, OldObject, NewMode and NewObject say what was and is there.
	// They are empty on the side where nothing is.
	OldMode, OldObject string
	NewMode, NewObject string
}

// renameLimit is the number of paths over which git stops looking for renames
// that are not exact.
const renameLimit = "1000"

// Changes lists how tree to differs from tree from, by path, at most limit
// of them (0: all), and whether there are more. With renames, a file that moved
// is one change.
func (s *Shadow) Changes(ctx context.Context, from, to string, renames bool, limit int) ([]Change, bool, error) {
	return s.Repo.changes(ctx, s.call(), from, to, renames, limit)
}

func (r *Repo) changes(ctx context.Context, c call, from, to string, renames bool, limit int) ([]Change, bool, error) {
	if from == to {
		return nil, false, nil
	}
	detect := "--no-renames"
	if renames {
		detect = "-M"
	}
	c.args = []string{"diff-tree", "-r", "-z", "--raw", "--no-ext-diff", detect, "-l" + renameLimit, from, to}
	out, err := run(ctx, c)
	if err != nil {
		return nil, false, fmt.Errorf("cannot compare two trees: %w", err)
	}
	return r.readChanges(records(out), limit)
}

func (r *Repo) readChanges(f []string, limit int) ([]Change, bool, error) {
	zero := r.Zero()
	var all []Change
	for i := 0; i+1 < len(f); {
		meta := strings.Fields(strings.TrimPrefix(f[i], ":"))
		if len(meta) != 5 {
			return nil, false, fmt.Errorf("cannot compare two trees: git diff-tree said %q", f[i])
		}
		c := Change{Status: meta[4][0], Path: f[i+1], OldMode: meta[0], NewMode: meta[1], OldObject: meta[2],
			NewObject: meta[3]}
		i += 2
		if c.Status == 'R' && i < len(f) {
			c.From, c.Path = c.Path, f[i]
			i++
		}
		if c.OldObject == zero {
			c.OldMode, c.OldObject = "", ""
		}
		if c.NewObject == zero {
			c.NewMode, c.NewObject = "", ""
		}
		if limit > 0 && len(all) == limit {
			return all, true, nil
		}
		all = append(all, c)
	}
	return all, false, nil
}

// Diff is the patch between two trees, of some paths or of all, at most limit
// bytes of it, and whether it was cut. A binary file is one line.
func (s *Shadow) Diff(ctx context.Context, from, to string, limit int, paths ...string) (string, bool, error) {
	if from == to || limit <= 0 {
		return "", from != to, nil
	}
	args := []string{"diff-tree", "-p", "-r", "-M", "-l" + renameLimit, "--no-ext-diff", "--no-textconv", "--no-color",
		from, to, "--"}
	c := s.call(append(args, paths...)...)
	c.env = append(c.env, "GIT_LITERAL_PATHSPECS=1")
	c.max, c.cut = int64(limit), true
	p, err := start(ctx, c)
	if err != nil {
		return "", false, err
	}
	out, cut, err := p.wait(ctx, true)
	if err != nil {
		return "", false, fmt.Errorf("cannot compare two trees: %w", err)
	}
	return string(out), cut, nil
}

// Stat is the size of a difference.
type Stat struct {
	Files, Binary  int // Binary of the files are binary; they have no lines
	Added, Deleted int // lines
}

// DiffStat counts the difference between two trees.
func (s *Shadow) DiffStat(ctx context.Context, from, to string) (Stat, error) {
	if from == to {
		return Stat{}, nil
	}
	out, err := run(ctx, s.call("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv",
		from, to))
	if err != nil {
		return Stat{}, fmt.Errorf("cannot compare two trees: %w", err)
	}
	var st Stat
	for _, n := range readCounts(records(out)) {
		st.Files++
		st.Added += n.added
		st.Deleted += n.deleted
		if n.binary {
			st.Binary++
		}
	}
	return st, nil
}
