package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// Merge is git's merge of two commits, without a checkout.
type Merge struct {
	Tree  string // with conflict markers where it is not clean
	Clean bool
	// Stages has, of each path in conflict, what the base (1), ours (2) and
	// theirs (3) have there.
	Stages   []Entry
	Messages []MergeMessage
}

// MergeMessage is one remark of git's about paths.
type MergeMessage struct {
	Paths []string
	Kind  string // in git's stable words, such as "CONFLICT (contents)" or "Auto-merging"
}

// MergeTree merges theirs into ours and stores the tree. Attributes of the
// work tree are not read, so that no merge driver is chosen by what is merged.
func (r *History) MergeTree(ctx context.Context, ours, theirs string) (Merge, error) {
	c := r.NewCall("merge-tree", "--write-tree", "-z", "--messages", ours, theirs)
	c.Dir = r.Dir
	c.Env = append(c.Env, "GIT_WORK_TREE="+r.Dir, "GIT_INDEX_FILE="+filepath.Join(r.Dir, "pawl-none"))
	out, err := command.Run(ctx, c)
	conflict := command.ExitCode(err) == 1 && len(out) > 0 // a name that it does not know is 1 too
	if err != nil && !conflict {
		return Merge{}, fmt.Errorf("cannot merge %s into %s: %w", theirs, ours, err)
	}
	return readMerge(out, err == nil)
}

// readMerge reads the tree, the stages up to an empty record, and messages of
// (number of paths, paths, kind, text).
func readMerge(out []byte, clean bool) (Merge, error) {
	odd := errors.New("cannot merge: git merge-tree gave an answer that pawl cannot read")
	f := strings.Split(string(out), "\x00")
	m := Merge{Tree: f[0], Clean: clean}
	if len(m.Tree) < 40 {
		return m, odd
	}
	f = f[1:]
	for len(f) > 0 && f[0] != "" {
		meta, path, _ := strings.Cut(f[0], "\t")
		w := strings.Fields(meta)
		if len(w) != 3 {
			return m, odd
		}
		stage, _ := strconv.Atoi(w[2])
		m.Stages = append(m.Stages, Entry{Mode: w[0], Object: w[1], Stage: stage, Path: path})
		f = f[1:]
	}
	for f = f[min(1, len(f)):]; len(f) > 2; {
		n, err := strconv.Atoi(strings.TrimSpace(f[0]))
		if err != nil || n < 0 || len(f) < n+3 {
			return m, odd
		}
		m.Messages = append(m.Messages, MergeMessage{Paths: f[1 : 1+n], Kind: f[1+n]})
		f = f[n+3:]
	}
	return m, nil
}

// MergeFile merges three texts and returns the result, with both sides and the
// base between lines of markers, which are marker characters long. The files
// are made in the folder dir, which is the caller's to remove.
func MergeFile(ctx context.Context, dir string, ours, base, theirs []byte, marker int) ([]byte, error) {
	names := []string{"ours", "base", "theirs"}
	for i, data := range [][]byte{ours, base, theirs} {
		name := filepath.Join(dir, names[i])
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, fmt.Errorf("cannot merge a file: %v", err)
		}
	}
	args := []string{"merge-file", "-p", "-q", "--diff3", "--marker-size=" + strconv.Itoa(marker),
		"-L", "ours", "-L", "base", "-L", "theirs"}
	out, err := command.Run(ctx, call{Dir: dir, Args: append(args, names...)})
	conflicts := command.ExitCode(err) > 0 && command.ExitCode(err) < 128
	if err != nil && !conflicts {
		return nil, fmt.Errorf("cannot merge a file: %w", err)
	}
	return out, nil
}
