package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
)

// Ref is a ref that points to a commit, with what the commit says.
type Ref struct {
	Name    string
	Commit  string
	Tree    string
	Parents []string
	When    time.Time // committer's date, in whole seconds
	Message string
}

// Zero is the object id that stands for "does not exist".
func (r *Folders) Zero() string {
	if r.Format == "sha256" {
		return strings.Repeat("0", 64)
	}
	return strings.Repeat("0", 40)
}

// isObjectID reports whether text is a full object id other than zero.
func (r *Folders) isObjectID(text string) bool {
	return len(text) == len(r.Zero()) && text != r.Zero() && strings.Trim(text, "0123456789abcdef") == ""
}

// plainRef reports whether a name is one that git allows and that needs no
// thought as a path.
func plainRef(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.Contains(name, "..") && !strings.Contains(name, "@{") &&
		!strings.ContainsAny(name, " ~^:?*[\\\x7f") && strings.IndexFunc(name, func(c rune) bool { return c < ' ' }) < 0
}

// Refs lists the refs whose names are below the given prefixes, by name. A
// prefix is a whole name or ends at a slash.
func (r *RefStore) Refs(ctx context.Context, prefixes ...string) ([]Ref, error) {
	const format = "--format=%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(committerdate:unix)%00%(contents)%00"
	out, err := command.Run(ctx, r.NewCall(append([]string{"for-each-ref", format}, prefixes...)...))
	if err != nil {
		return nil, fmt.Errorf("cannot list refs: %w", err)
	}
	fields := strings.Split(string(out), "\x00")
	var refs []Ref
	for ; len(fields) > 6; fields = fields[6:] {
		secs, _ := strconv.ParseInt(fields[4], 10, 64)
		refs = append(refs, Ref{
			Name: strings.TrimPrefix(fields[0], "\n"), Commit: fields[1], Tree: fields[2],
			Parents: strings.Fields(fields[3]), When: time.Unix(secs, 0), Message: fields[5],
		})
	}
	return refs, nil
}

// UpdateRef points a ref to a commit. With a non-empty old it does so only if
// the ref is at old; old of [Folders.Zero] creates it only. Reason goes to the
// reflog, if the ref has one. The disk is not waited for.
func (r *RefStore) UpdateRef(ctx context.Context, name, commit, old, reason string) error {
	return r.runRefCommand(ctx, r.changeRefs(reason, updateLine(name, commit, old)))
}

// KeepRef is [RefStore.UpdateRef] for a ref that survives a power loss. What it leads
// to was synced by [History.SyncObjects].
func (r *RefStore) KeepRef(ctx context.Context, name, commit, old, reason string) error {
	return r.keepRefs(ctx, r.changeRefs(reason, updateLine(name, commit, old)), name)
}

// SetRefs points refs of pawl's own to commits, wherever they were. Pairs are
// names and ids in turn. The disk is not waited for.
func (r *RefStore) SetRefs(ctx context.Context, pairs ...string) error {
	return r.runRefCommand(ctx, r.changeRefs("pawl", updateLines(pairs)...))
}

// KeepRefs is [RefStore.SetRefs] in one transaction, for refs that survive a power loss. What they lead
// to was synced by [History.SyncObjects].
func (r *RefStore) KeepRefs(ctx context.Context, pairs ...string) error {
	var names []string
	for pair := range slices.Chunk(pairs, 2) {
		names = append(names, pair[0])
	}
	return r.keepRefs(ctx, r.changeRefs("pawl", updateLines(pairs)...), names...)
}

func (r *RefStore) keepRefs(ctx context.Context, c call, names ...string) error {
	c.Settings = []string{"-c", "core.fsync=reference"}
	if err := r.runRefCommand(ctx, c); err != nil {
		return err
	}
	return r.syncRefs(names...)
}

// changeRefs is a transaction of lines as update and DeleteRefs make them.
func (r *RefStore) changeRefs(reason string, lines ...string) call {
	c := r.NewCall("update-ref", "-z", "--stdin", "-m", reason)
	c.Stdin = strings.NewReader(strings.Join(lines, ""))
	return c
}

// updateLine is a line of a transaction.
func updateLine(name, commit, old string) string {
	return "update " + name + "\x00" + commit + "\x00" + old + "\x00"
}

func updateLines(pairs []string) []string {
	var lines []string
	for pair := range slices.Chunk(pairs, 2) {
		lines = append(lines, updateLine(pair[0], pair[1], ""))
	}
	return lines
}

// DeleteRef removes a ref if it is at old.
func (r *RefStore) DeleteRef(ctx context.Context, name, old, reason string) error {
	return r.runRefCommand(ctx, r.NewCall("update-ref", "-m", reason, "-d", name, old))
}

// DeleteRefs removes refs in one transaction, each only if it still is where
// it was read. No refs is no call.
func (r *RefStore) DeleteRefs(ctx context.Context, refs []Ref) error {
	if len(refs) == 0 {
		return nil
	}
	lines := lists.Each(refs, func(ref Ref) string { return "delete " + ref.Name + "\x00" + ref.Commit + "\x00" })
	if err := r.runRefCommand(ctx, r.changeRefs("pawl", lines...)); err != nil {
		return fmt.Errorf("cannot delete %d refs: %w", len(refs), err)
	}
	return nil
}

// DropRefs removes refs of pawl's own, wherever they are: of each name, and of all below a prefix
// that ends at a slash. No other process may move them meanwhile. It does not wait for the disk.
func (r *RefStore) DropRefs(ctx context.Context, prefixes ...string) error {
	if len(prefixes) == 0 {
		return nil
	}
	refs, err := r.Refs(ctx, prefixes...)
	if err != nil {
		return err
	}
	return r.DeleteRefs(ctx, refs)
}

// Count is the number of commits that can be reached from to and not from
// from. An empty id stands for no commits.
func (r *History) Count(ctx context.Context, from, to string) (int, error) {
	if to == "" || from == to {
		return 0, nil
	}
	out, err := command.Run(ctx, r.NewCall(walkSince(from, "rev-list", "--count", to)...))
	if err != nil {
		return 0, fmt.Errorf("cannot count commits: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// Resolve is the id of the commit that a name or an id stands for.
func (r *History) Resolve(ctx context.Context, name string) (string, error) {
	if strings.HasPrefix(name, "-") || name == "" {
		return "", fmt.Errorf("cannot find the commit %q: there is none of this name", name)
	}
	id, err := r.Find(ctx, name)
	if err != nil || id != "" {
		return id, err
	}
	if head, err := r.Head(ctx); err == nil && head.Commit == "" {
		return "", fmt.Errorf("cannot find the commit %q: the repository has no commit that is checked out yet; make "+
			"a first one", name)
	}
	return "", fmt.Errorf("cannot find the commit %q: there is none of this name", name)
}
