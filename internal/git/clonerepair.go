package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AfterBoot puts the clone in order after a start of the machine before which it
// was used: objects that a power loss broke are taken away, and an agent's index
// that is not whole is made again. An error is that the clone cannot be worked in;
// its files are as they are.
func (c *Clone) AfterBoot(ctx context.Context, base string) error {
	dir := filepath.Join(c.Top, ".git")
	agents := &Repo{Top: c.Top, Dir: dir, Common: dir, Objects: filepath.Join(dir, "objects"), Format: c.Of.Format}
	for _, r := range []*Repo{agents, c.shadow.Repo} { // first: they are in the way of saving the files too
		if _, err := r.dropBroken(ctx, filepath.Join(c.Own, "after-power-loss")); err != nil {
			return err
		}
	}
	head, err := c.Head()
	if err != nil {
		return err
	}
	if head.Commit == "" {
		return fmt.Errorf("%w: what is checked out has no commit", ErrBroken)
	}
	if !c.whole(ctx, head.Commit, base) {
		return fmt.Errorf("%w: the history of %s is not whole", ErrBroken, head.Commit)
	}
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil || len(config) == 0 || bytes.IndexByte(config, 0) >= 0 {
		return fmt.Errorf("%w: its configuration is not whole", ErrBroken)
	}
	if _, err := c.RestoreAlternates(); err != nil {
		return err
	}
	if err := c.trust(); err != nil {
		return err
	}
	if c.Of.wholeIndex(filepath.Join(dir, "index")) {
		return nil
	}
	if err := c.ResetIndex(ctx, head.Commit); err != nil {
		return err
	}
	return c.giveIndex()
}

// whole reports whether all is there that a commit has and base does not have.
func (c *Clone) whole(ctx context.Context, commit, base string) bool {
	_, err := run(ctx, c.call("rev-list", "--objects", "--quiet", commit, "^"+base))
	return err == nil
}

// namesLimit is how many refs of a clone are looked at.
const namesLimit = 10_000

// LastWhole is the newest of the snapshots of iterations that is whole: the
// commit that was checked out, and the tree. They are empty when there is none.
func (c *Clone) LastWhole(ctx context.Context, base string) (head, tree string) {
	root, err := c.openGit()
	if err != nil {
		return "", ""
	}
	defer root.Close()
	ids := slices.DeleteFunc(looseRefs(root, "refs/pawl/runs", "", namesLimit),
		func(id string) bool { return !c.Of.isID(id) })
	if len(ids) == 0 {
		return "", ""
	}
	k := c.call("rev-list", "--no-walk=sorted", "--ignore-missing", "--format=%T %P", "--stdin")
	k.stdin = strings.NewReader(strings.Join(ids, "\n") + "\n")
	out, err := run(ctx, k)
	if err != nil {
		return "", ""
	}
	commit := ""
	for line := range strings.Lines(string(out)) {
		if id, ok := strings.CutPrefix(line, "commit "); ok {
			commit = strings.TrimSpace(id)
			continue
		}
		if f := strings.Fields(line); len(f) == 2 && c.whole(ctx, commit, base) {
			return f[1], f[0]
		}
	}
	return "", ""
}

// wholeIndex reports whether the sum at the end of an index is that of the file.
func (r *Repo) wholeIndex(path string) bool {
	data, err := os.ReadFile(path)
	h := r.newHash()
	if err != nil || len(data) < h.Size() {
		return false
	}
	body, sum := data[:len(data)-h.Size()], data[len(data)-h.Size():]
	h.Write(body)
	return bytes.Equal(h.Sum(nil), sum) || bytes.Equal(sum, make([]byte, h.Size())) // git may leave it out
}
