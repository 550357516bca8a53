package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

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
	out, err := run(ctx, s.call("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-ext-diff", "--no-textconv", "-M",
		"-l"+renameLimit, from, to))
	if err != nil {
		return nil, false, fmt.Errorf("cannot compare two trees: %w", err)
	}
	f := records(out)
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
