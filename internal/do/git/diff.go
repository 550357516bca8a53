package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
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

// IsLink reports whether what is there now is a symbolic link.
func (c Change) IsLink() bool { return c.NewMode == ModeSymlink }

// Added are the paths at which changes put something where nothing was.
func Added(changes []Change) []string {
	return lists.Pick(changes, func(c Change) (string, bool) { return c.Path, c.Status == 'A' })
}

// renameLimit is the number of paths over which git stops looking for renames
// that are not exact.
const renameLimit = "1000"

// Changes lists how tree to differs from tree from, by path, at most limit
// of them (0: all), and whether there are more. With renames, a file that moved
// is one change.
func (s *Shadow) Changes(ctx context.Context, from, to string, renames bool, limit int) ([]Change, bool, error) {
	all, more, err := s.Repo.diffTree(ctx, s.newCall(), from, to, renames, limit)
	if s.Repo.NoModes {
		all = slices.DeleteFunc(all, func(c Change) bool { return c.From == "" && c.OldObject == c.NewObject })
	}
	return all, more, err
}

func (r *History) diffTree(ctx context.Context, c call, from, to string, renames bool, limit int,
) ([]Change, bool, error) {
	if from == to {
		return nil, false, nil
	}
	detect := "--no-renames"
	if renames {
		detect = "-M"
	}
	c.Args = []string{"diff-tree", "-r", "-z", "--raw", "--no-ext-diff", detect, "-l" + renameLimit, from, to}
	out, err := command.Run(ctx, c)
	if err != nil {
		return nil, false, fmt.Errorf("cannot compare two trees: %w", err)
	}
	return r.readChanges(command.SplitRecords(out), limit)
}

func (r *History) readChanges(f []string, limit int) ([]Change, bool, error) {
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
	return s.DiffAround(ctx, from, to, limit, 3, paths...)
}

// DiffAround is Diff with so many unchanged lines around each change.
func (s *Shadow) DiffAround(ctx context.Context, from, to string, limit, around int, paths ...string,
) (patch string, cut bool, err error) {
	if from == to || limit <= 0 {
		return "", from != to, nil
	}
	args := []string{"diff-tree", "-p", "-r", "-M", "-l" + renameLimit, "--no-ext-diff", "--no-textconv", "--no-color",
		"-U" + strconv.Itoa(around), from, to, "--"}
	c := s.newCall(append(args, paths...)...)
	c.Env = append(c.Env, "GIT_LITERAL_PATHSPECS=1")
	c.Max = int64(limit)
	out, cut, err := command.RunOnce(ctx, c)
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
	return diffStat(ctx, s.newCall, from, to)
}

// DiffStat is [Shadow.DiffStat] of trees or commits that the repository itself has.
func (r *History) DiffStat(ctx context.Context, from, to string) (Stat, error) {
	return diffStat(ctx, r.NewCall, from, to)
}

func diffStat(ctx context.Context, call func(args ...string) call, from, to string) (Stat, error) {
	if from == to {
		return Stat{}, nil
	}
	out, err := command.Run(ctx, call("diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff",
		"--no-textconv", from, to))
	if err != nil {
		return Stat{}, fmt.Errorf("cannot compare two trees: %w", err)
	}
	var st Stat
	for _, n := range readCounts(command.SplitRecords(out)) {
		st.Files++
		st.Added += n.added
		st.Deleted += n.deleted
		if n.binary {
			st.Binary++
		}
	}
	return st, nil
}

// FileChange is one path that differs, with how much of it does.
type FileChange struct {
	Change
	Added, Deleted int // lines; 0 for a binary file
	Binary         bool
}

// FileChanges lists how tree to differs from tree from, by path with renames
// found and lines counted, at most limit of them, and whether there are more.
func (s *Shadow) FileChanges(ctx context.Context, from, to string, limit int) ([]FileChange, bool, error) {
	if from == to {
		return nil, false, nil
	}
	out, err := command.Run(ctx, s.newCall("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-ext-diff",
		"--no-textconv", "-M", "-l"+renameLimit, from, to))
	if err != nil {
		return nil, false, fmt.Errorf("cannot compare two trees: %w", err)
	}
	f := command.SplitRecords(out)
	counts := 0 // where the lines of --numstat begin: those of --raw have a colon
	for counts < len(f) && strings.HasPrefix(f[counts], ":") {
		meta := strings.Fields(f[counts])
		counts += 2
		if len(meta) == 5 && meta[4][0] == 'R' {
			counts++
		}
	}
	changes, more, err := s.Repo.readChanges(f[:min(counts, len(f))], limit)
	if err != nil {
		return nil, false, err
	}
	lines := readCounts(f[min(counts, len(f)):])
	all := make([]FileChange, len(changes))
	for i, c := range changes {
		n := lines[c.Path]
		all[i] = FileChange{Change: c, Added: n.added, Deleted: n.deleted, Binary: n.binary}
	}
	return all, more, nil
}

type lineCount struct {
	added, deleted int
	binary         bool
}

// readCounts reads --numstat -z: a rename is an empty path, and then both.
func readCounts(f []string) map[string]lineCount {
	counts := make(map[string]lineCount, len(f))
	for i := 0; i < len(f); i++ {
		parts := strings.SplitN(f[i], "\t", 3)
		if len(parts) != 3 {
			continue
		}
		path := parts[2]
		if path == "" && i+2 < len(f) {
			path = f[i+2]
			i += 2
		}
		added, err := strconv.Atoi(parts[0])
		deleted, _ := strconv.Atoi(parts[1])
		counts[path] = lineCount{added, deleted, err != nil}
	}
	return counts
}
