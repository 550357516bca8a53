package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// This file reads the .git of a clone, which is an agent's. It is data: no git
// obeys it, and no link leads out of it.

// packedLimit is the size in bytes of a file with many refs.
const packedLimit = 8 << 20

// openGit opens the agent's .git. The slash has it be a folder: to open a pipe would
// wait for somebody who writes to it.
func (c *Clone) openGit() (*os.Root, error) { return os.OpenRoot(filepath.Join(c.Top, ".git") + "/") }

// Head reads what is checked out in the clone. A .git that is not as git makes it
// is [ErrBroken].
func (c *Clone) Head() (Head, error) {
	dir := filepath.Join(c.Top, ".git")
	for _, d := range []string{dir, filepath.Join(dir, "refs"), filepath.Join(dir, "objects")} {
		if info, err := os.Lstat(d); err != nil || !info.IsDir() {
			return Head{}, fmt.Errorf("%w: %s is not a folder", ErrBroken, d)
		}
	}
	root, err := c.openGit()
	if err != nil {
		return Head{}, fmt.Errorf("%w: %v", ErrBroken, err)
	}
	defer root.Close()
	unreadable := fmt.Errorf("%w: its HEAD cannot be read", ErrBroken)
	text := smallFile(root, "HEAD", refLimit)
	branch, symbolic := strings.CutPrefix(text, "ref: ")
	if !symbolic {
		if !c.Of.isObjectID(text) {
			return Head{}, unreadable
		}
		return Head{Commit: text}, nil
	}
	if !strings.HasPrefix(branch, "refs/heads/") || !plainRef(branch) {
		return Head{}, unreadable
	}
	commit := smallFile(root, branch, refLimit)
	if _, err := root.Lstat(branch); errors.Is(err, fs.ErrNotExist) {
		commit = packedRef(root, branch)
		if commit == "" {
			return Head{Branch: branch}, nil // before its first commit
		}
	}
	if !c.Of.isObjectID(commit) {
		return Head{}, unreadable
	}
	return Head{Commit: commit, Branch: branch}, nil
}

// packedRef is the id of a ref in the file with many refs; empty when it has none.
func packedRef(root *os.Root, name string) string {
	before, _, found := strings.Cut(smallFile(root, "packed-refs", packedLimit)+"\n", " "+name+"\n")
	if !found {
		return ""
	}
	return before[strings.LastIndexByte(before, '\n')+1:]
}

// Tips are the commits that the clone's branches, tags and stash are at, older
// entries of the stash too, without repetition and at most limit of them. Refs of
// pawl's own do not count. Files that cannot be read have none.
func (c *Clone) Tips(limit int) []string {
	root, err := c.openGit()
	if err != nil {
		return nil
	}
	defer root.Close()
	var tips []string
	add := func(id string) {
		if c.Of.isObjectID(id) && !slices.Contains(tips, id) && len(tips) < limit {
			tips = append(tips, id)
		}
	}
	for line := range strings.Lines(smallFile(root, "packed-refs", packedLimit)) {
		id, name, _ := strings.Cut(line, " ")
		if strings.HasPrefix(name, "refs/") && !strings.HasPrefix(name, "refs/pawl/") {
			add(id)
		}
	}
	loose := looseRefs(root, "refs", "refs/pawl", 10*limit)
	for _, name := range slices.Sorted(maps.Keys(loose)) {
		add(loose[name])
	}
	for line := range strings.Lines(smallFile(root, "logs/refs/stash", packedLimit)) {
		if f := strings.Fields(line); len(f) > 1 {
			add(f[1])
		}
	}
	return tips
}

// BranchesAndTags are the refs of the clone's branches and tags, at most limit of those
// that git did not pack: each with its id, or what else an agent has written there.
func (c *Clone) BranchesAndTags(limit int) map[string]string {
	root, err := c.openGit()
	if err != nil {
		return nil
	}
	defer root.Close()
	refs := map[string]string{}
	for line := range strings.Lines(smallFile(root, "packed-refs", packedLimit)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[name] = id
		}
	}
	for _, dir := range []string{"refs/heads", "refs/tags"} {
		maps.Copy(refs, looseRefs(root, dir, "", limit))
	}
	maps.DeleteFunc(refs, func(name, _ string) bool {
		return !plainRef(name) || !strings.HasPrefix(name, "refs/heads/") && !strings.HasPrefix(name, "refs/tags/")
	})
	return refs
}

// looseRefs are the texts of the refs below a folder that have files of their own, by name,
// but for those below without. At most limit files and folders are looked at.
func looseRefs(root *os.Root, dir, without string, limit int) map[string]string {
	texts := map[string]string{}
	looked := 0
	_ = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch looked++; {
		case looked > limit:
			return fs.SkipAll
		case name == without:
			return fs.SkipDir
		case err == nil && d.Type().IsRegular():
			texts[name] = smallFile(root, name, refLimit)
		}
		return nil // what cannot be read is no ref
	})
	return texts
}

// refLimit is the size in bytes of a file with one ref.
const refLimit = 4096

// smallFile is the text of a regular file up to a size, without the line's end;
// of any other it is empty.
func smallFile(root *os.Root, name string, limit int64) string {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return ""
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

// StagedModules are the submodules that the agent's own index has at another commit
// than what was staged here, or at none, in the order of their names. An index that
// cannot be read, and none, has none.
func (c *Clone) StagedModules(ctx context.Context) []string {
	mine, known := submodulesOf(ctx, c.index)
	file := filepath.Join(c.Own, "agents-index")
	defer os.Remove(file)
	err := c.withGitDir(func(root *os.Root) error {
		if info, err := root.Lstat("index"); err != nil || !info.Mode().IsRegular() || info.Size() > indexLimit {
			return errors.Join(err, fs.ErrInvalid)
		}
		data, err := root.ReadFile("index")
		if err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o600)
	})
	if err != nil || !known {
		return nil
	}
	agents, known := submodulesOf(ctx, c.shadow.Index(file, nil))
	if !known {
		return nil
	}
	moved := map[string]bool{}
	for name, commit := range agents {
		moved[name] = mine[name] != commit
	}
	for name := range mine {
		moved[name] = agents[name] != mine[name]
	}
	maps.DeleteFunc(moved, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(moved))
}

// indexLimit is the size in bytes of an agent's index that is read.
const indexLimit = 64 << 20

// submodulesOf returns the submodules of an index, with their commits. An index without entries is
// not known.
func submodulesOf(ctx context.Context, x *Index) (at map[string]string, known bool) {
	all, err := x.Entries(ctx)
	at = map[string]string{}
	for _, e := range all {
		if e.Mode == ModeNested {
			at[e.Path] = e.Object
		}
	}
	return at, err == nil && len(all) > 0
}
