package merge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
)

const (
	markerSize = 37      // of conflict markers: no text has them by chance
	conflictAt = 1 << 20 // bytes of a file in conflict that is looked into
)

// conflicts are the merges of entries with the target: what rules, commands and people make of
// the files that git could not merge.
type conflicts struct {
	*target
	checks *checks
	mu     sync.Mutex
	remade map[string]string // by commits that were merged: the tree with files that were made anew
}

// mergedTree is a merge with what could be resolved, or the conflict.
type mergedTree struct {
	tree     string
	settled  []string
	conflict *queue.Conflict

	// regenerated are the paths that commands are to make anew; until they did,
	// the tree has the target's. theirs are the entry's.
	regenerated, commands []string
	theirs                []git.Entry
	pending               *queue.Conflict
}

// mergeTrees merges an entry onto a commit, applies the rules for simple conflicts,
// and has commands make anew what is theirs to make.
func (cs *conflicts) mergeTrees(ctx context.Context, onto string, e *queue.Entry) (mergedTree, error) {
	m, err := cs.tryMerge(ctx, onto, e)
	if err != nil || len(m.regenerated) == 0 {
		return m, err
	}
	return cs.completeMerge(ctx, onto, e, m)
}

// tryMerge is mergeTrees without running any command.
func (cs *conflicts) tryMerge(ctx context.Context, onto string, e *queue.Entry) (mergedTree, error) {
	if err := cs.bringWork(ctx, e); err != nil {
		return mergedTree{}, err
	}
	m, err := cs.o.Repo.MergeTree(ctx, onto, e.Commit)
	if err != nil || m.Clean {
		return mergedTree{tree: m.Tree}, err
	}
	c, texts, err := cs.readConflict(ctx, m)
	if err != nil {
		return mergedTree{}, err
	}
	if !e.Plain {
		cs.markRegenerable(&c)
	}
	if class, _ := queue.Classify(c); class != queue.Simple || e.Plain {
		return mergedTree{conflict: &c}, nil
	}
	return cs.applyRules(ctx, m.Tree, &c, texts)
}

// applyRules makes a merged tree in which each file of a simple conflict is resolved
// by its rule, or is the target's where a command is to make it.
func (cs *conflicts) applyRules(ctx context.Context, tree string, c *queue.Conflict, texts []threeWay,
) (mergedTree, error) {
	out := mergedTree{pending: c}
	var put []git.Entry
	for i := range c.Files {
		f, t := &c.Files[i], &texts[i]
		if f.Regenerate != "" {
			put = append(put, treeEntryAt(f.Path, t.ours))
			out.theirs = append(out.theirs, treeEntryAt(f.Path, t.theirs))
			out.regenerated = append(out.regenerated, f.Path)
			out.commands = lists.Union(out.commands, f.Regenerate)
			continue
		}
		hunks, ok := f.Resolve()
		if !ok {
			return mergedTree{conflict: c}, nil
		}
		id, err := cs.shadow.Store(ctx, bytes.NewReader(t.fillHunks(hunks)))
		if err != nil {
			return mergedTree{}, err
		}
		put = append(put, git.Entry{Path: f.Path, Mode: t.ours.Mode, Object: id})
		out.settled = append(out.settled, f.Path)
	}
	var err error
	out.tree, err = cs.rewriteTree(ctx, tree, put)
	return out, err
}

// treeEntryAt is one side of a conflict as an entry of a tree.
func treeEntryAt(path string, side git.Entry) git.Entry {
	return git.Entry{Path: path, Mode: side.Mode, Object: side.Object}
}

// threeWay is a file in conflict: its text between the hunks.
type threeWay struct {
	base, ours, theirs git.Entry

	parts [][]byte // one more than hunks
}

// fillHunks is the text with each hunk replaced.
func (t *threeWay) fillHunks(hunks [][]string) []byte {
	var b bytes.Buffer
	for i, part := range t.parts {
		b.Write(part)
		if i < len(hunks) {
			for _, l := range hunks[i] {
				b.WriteString(l + "\n")
			}
		}
	}
	return b.Bytes()
}

// readConflict reads what git could not merge, and the texts of the files.
func (cs *conflicts) readConflict(ctx context.Context, m git.Merge) (queue.Conflict, []threeWay, error) {
	var c queue.Conflict
	var texts []threeWay
	for _, path := range conflictPathsOf(m) {
		if len(c.Files) == queue.MaxFiles {
			c.More++
			continue
		}
		f, t, err := cs.inspectFile(ctx, m, path)
		if err != nil {
			return c, nil, err
		}
		c.Files, texts = append(c.Files, f), append(texts, t)
	}
	return c, texts, nil
}

// conflictPathsOf are the paths in conflict, each once, in order.
func conflictPathsOf(m git.Merge) []string {
	paths := lists.Each(m.Stages, func(s git.Entry) string { return s.Path })
	for _, msg := range m.Messages {
		if conflictKind(msg) != "" && len(msg.Paths) > 0 {
			paths = append(paths, msg.Paths[0])
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// conflictKind is e.g. "rename/delete"; "" for another message.
func conflictKind(m git.MergeMessage) string {
	k, ok := strings.CutPrefix(m.Kind, "CONFLICT (")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(k, ")")
}

func (cs *conflicts) inspectFile(ctx context.Context, m git.Merge, path string) (queue.File, threeWay, error) {
	f := queue.File{Path: path}
	for _, msg := range m.Messages {
		if k := conflictKind(msg); k != "" && slices.Contains(msg.Paths, path) {
			if k == "binary" {
				f.Binary = true
			} else if !slices.Contains(f.Kinds, k) {
				f.Kinds = append(f.Kinds, k)
			}
		}
	}
	var sides [4]git.Entry
	for _, s := range m.Stages {
		if s.Path == path && s.Stage > 0 && s.Stage < 4 {
			sides[s.Stage] = s
		}
	}
	base, ours, theirs := sides[1], sides[2], sides[3]
	t := threeWay{base: base, ours: ours, theirs: theirs}
	f.Created = base.Object == ""
	for _, s := range []git.Entry{ours, theirs} {
		if s.Mode != "" && s.Mode != git.ModeFile && s.Mode != git.ModeExec {
			f.Special = true
		}
	}
	differ := ours.Mode != "" && theirs.Mode != "" && ours.Mode != theirs.Mode
	f.Special = f.Special || differ
	if f.Binary || f.Special || ours.Object == "" || theirs.Object == "" {
		return f, t, nil
	}
	text, ok, err := cs.threeTexts(ctx, ours.Object, base.Object, theirs.Object)
	if err != nil || !ok {
		f.Binary = f.Binary || !ok
		return f, t, err
	}
	f.Hunks, t.parts = queue.ReadHunks(text, markerSize)
	return f, t, nil
}

// threeTexts is the merge of three blobs with markers; ok is false for a text
// that is too long, or no text.
func (cs *conflicts) threeTexts(ctx context.Context, ours, base, theirs string) (text []byte, ok bool, err error) {
	ids := []string{ours, theirs}
	if base != "" {
		ids = append(ids, base)
	}
	texts := make([][]byte, 3)
	err = cs.shadow.Blobs(ctx, ids, func(i int, size int64, r io.Reader) error {
		if size > conflictAt {
			ids = nil
			return nil
		}
		texts[i], err = io.ReadAll(r)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	if ids == nil || slices.ContainsFunc(texts, func(t []byte) bool { return bytes.IndexByte(t, 0) >= 0 }) {
		return nil, false, nil
	}
	dir, err := os.MkdirTemp(cs.o.Dir, "merge-*")
	if err != nil {
		return nil, false, fmt.Errorf("cannot merge a file: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	text, err = git.MergeFile(ctx, dir, texts[0], texts[2], texts[1], markerSize)
	return text, err == nil, err
}

// scratchIndex is the name of an index of the queue's own that does not exist.
func (t *target) scratchIndex() (path string, done func(), err error) {
	dir, err := os.MkdirTemp(t.o.Dir, "index-*")
	if err != nil {
		return "", nil, fmt.Errorf("cannot create a folder for the merge queue: %v", err)
	}
	return filepath.Join(dir, "index"), func() { _ = os.RemoveAll(dir) }, nil
}
