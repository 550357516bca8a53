package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// An agent that works in the user's repository can move and delete refs of pawl's. So
// a ref only keeps the objects of a snapshot from git's collection: which commit the
// snapshot is says a file of the run's private folder. Refs that say otherwise are put
// back, those of no snapshot are removed.

// KeptRefs is the file of a run's private folder that has its refs, a line "ref id"
// each. Runs of older versions of pawl have none: their refs are believed.
const KeptRefs = "refs"

// kept are the refs of a run as pawl made them; nil when they were not recorded.
func (c *Checkout) kept(run string) (map[string]string, error) {
	data, err := files.ReadBelow(c.runDir(run), KeptRefs, packedLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what the snapshots of run %s are: %w", run, err)
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, id, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			refs[name] = id
		}
	}
	return refs, nil
}

// change records refs of the run and then has them made; an empty id is one that goes.
// A full disk, or a kill, can come in between: such a ref is made later, and nobody is
// blamed for it. The same holds where the run's clone is gone: a new clone cannot make
// what it does not have.
func (r *session) change(ctx context.Context, makes func() error, pairs ...string) error {
	if err := r.keep(ctx, pairs...); err != nil {
		return err
	}
	var names []string
	for pair := range slices.Chunk(pairs, 2) {
		names = append(names, pair[0])
	}
	r.c.late(true, names...)
	if err := makes(); err != nil {
		return err
	}
	r.c.late(false, names...)
	return nil
}

// late notes which refs are recorded and not made yet.
func (c *Checkout) late(are bool, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unmade == nil {
		c.unmade = map[string]bool{}
	}
	for _, name := range names {
		c.unmade[name] = are
	}
}

func (c *Checkout) isLate(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unmade[name]
}

// keep records refs of the run.
func (r *session) keep(ctx context.Context, pairs ...string) error {
	refs, err := r.c.kept(r.run)
	if err != nil {
		return err
	}
	if refs == nil {
		if refs, err = r.c.believed(ctx, r.run, pairs[0]); err != nil {
			return err
		}
	}
	for pair := range slices.Chunk(pairs, 2) {
		if refs[pair[0]] = pair[1]; pair[1] == "" {
			delete(refs, pair[0])
		}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		text.WriteString(name + " " + refs[name] + "\n")
	}
	if err := files.Replace(filepath.Join(r.dir, KeptRefs), []byte(text.String()), 0o600, false); err != nil {
		return fmt.Errorf("cannot record the snapshots of run %s: %w", r.run, err)
	}
	return nil
}

// believed are the refs of a run that an older pawl began. A run that takes its first
// snapshot now has none, whatever the repository says.
func (c *Checkout) believed(ctx context.Context, run, first string) (map[string]string, error) {
	if first == runRef(run, 0, "") {
		return map[string]string{}, nil
	}
	own, err := c.Repo.RefIDs(ctx, runPrefix+run+"/")
	if err != nil {
		return nil, err
	}
	more, err := c.Repo.RefIDs(ctx, recoveryPrefix+run+"/")
	return refsIn(own + more), err
}

// setRef records a ref of the run and makes it.
func (c *Checkout) setRef(ctx context.Context, run, ref, commit string) error {
	r, err := c.open(ctx, run)
	if err != nil {
		return err
	}
	defer r.close()
	return r.change(ctx, func() error { return c.Repo.SetRefs(ctx, ref, commit) }, ref, commit)
}

// restoreRefs makes the refs below a prefix what was recorded of the run, and names
// those that somebody has changed.
func (c *Checkout) restoreRefs(ctx context.Context, prefix string, kept map[string]string) (undone []string,
	err error) {
	list, err := c.Repo.RefIDs(ctx, prefix)
	if err != nil {
		return nil, err
	}
	now := refsIn(list)
	for name := range kept {
		if _, there := now[name]; !there && strings.HasPrefix(name, prefix) {
			now[name] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if now[name] == kept[name] {
			continue
		}
		late := c.isLate(name)
		if !late {
			undone = append(undone, name)
		}
		perr := c.forceRef(ctx, name, kept[name])
		c.late(perr != nil, name) // it is tried again, told once, and the record holds meanwhile
		if !late && !git.OfMachine(perr) {
			err = errors.Join(err, perr)
		}
	}
	return undone, err
}

// forceRef makes a ref what it was, also where a folder or what is no ref is in its
// place.
func (c *Checkout) forceRef(ctx context.Context, name, id string) error {
	if c.Repo.PutRef(ctx, name, id) == nil {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(c.Repo.Common, name)); err == nil {
		if err := files.SetAside(c.Repo.Common, name, c.Repo.Common, asideFolder); err != nil {
			return err
		}
	}
	return c.Repo.PutRef(ctx, name, id)
}

// undoRefs puts the refs of the runs back that this checkout takes snapshots of.
func (c *Checkout) undoRefs(ctx context.Context) (undone []string, err error) {
	c.mu.Lock()
	runs := slices.Sorted(maps.Keys(c.runs))
	c.mu.Unlock()
	for _, run := range runs {
		kept, kerr := c.kept(run)
		if kerr != nil || kept == nil {
			err = errors.Join(err, kerr)
			continue
		}
		more, rerr := c.restoreRefs(ctx, runPrefix+run+"/", kept)
		undone, err = append(undone, more...), errors.Join(err, rerr)
	}
	return undone, err
}

// refs are those of a run below a prefix, as they were recorded.
func (c *Checkout) refs(ctx context.Context, run, prefix string) ([]git.Ref, error) {
	kept, err := c.kept(run)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		return c.Repo.Refs(ctx, prefix)
	}
	_, rerr := c.restoreRefs(ctx, prefix, kept)
	// Not before: git reads what they lead to, and an agent can make that of any size.
	all, err := c.Repo.Refs(ctx, prefix)
	if err != nil {
		return nil, errors.Join(err, rerr)
	}
	// One that could not be put back has lost its objects.
	return slices.DeleteFunc(all, func(ref git.Ref) bool { return kept[ref.Name] != ref.Commit }), nil
}

// A ref below refs/replace makes git read another object in the place of the one that
// is its name: the user's history is then what an agent says. Pawl's own git heeds
// none, and new ones are undone.

const (
	replaceRefs = "refs/replace/"
	replaceHead = "ref id\n" // the first line of their list: they were looked for
	packedLimit = 64 << 20   // bytes of the file with many refs
)

// replacing lists them, with what they are at. Git is asked only where there may be
// some.
func (c *Checkout) replacing(ctx context.Context) (string, error) {
	_, loose := os.Lstat(filepath.Join(c.Repo.Common, replaceRefs))
	_, tables := os.Lstat(filepath.Join(c.Repo.Common, "reftable"))
	packed, err := files.ReadBelow(c.Repo.Common, "packed-refs", packedLimit)
	known := err == nil || os.IsNotExist(err)
	if known && loose != nil && tables != nil && !bytes.Contains(packed, []byte(" "+replaceRefs)) {
		return replaceHead, nil
	}
	refs, err := c.Repo.RefIDs(ctx, replaceRefs)
	return replaceHead + refs, err
}

// undoReplacing makes these refs what they were, and names those that were not.
func (c *Checkout) undoReplacing(ctx context.Context, before string) (undone []string, err error) {
	now, err := c.replacing(ctx)
	if err != nil || now == before || before == "" {
		return nil, err
	}
	was, is := refsIn(before), refsIn(now)
	all := maps.Clone(is)
	maps.Copy(all, was)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] == is[name] {
			continue
		}
		if err := c.Repo.PutRef(ctx, name, was[name]); err != nil {
			return undone, err
		}
		undone = append(undone, c.shown(lead{c.Repo.Common, name}))
	}
	return undone, nil
}

func refsIn(text string) map[string]string {
	refs := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, replaceHead)) {
		name, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = id
	}
	return refs
}

// isRef is whether a file of a git folder says where a ref of the user's is.
func isRef(name string) bool {
	loose := strings.HasPrefix(name, "refs/") && !strings.HasPrefix(name, "refs/pawl")
	return loose || name == "HEAD" || name == "packed-refs"
}
