package workspace

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"

	"github.com/pawl-dev/pawl/internal/git"
)

// untouched is the state of files that were just checked out ([Options].Clean):
// that of their commit, without a look at them. It is not ok where that is not
// certain, and at every look after the first one of the checkout.
func (r *session) untouched(ctx context.Context) (state, bool) {
	c := r.c
	c.mu.Lock()
	commit := c.clean
	c.clean = ""
	c.mu.Unlock()
	if commit == "" {
		return state{}, false
	}
	if _, err := os.Lstat(r.indexFile()); err == nil {
		return state{}, false // the run is not at its start
	}
	s, err := r.believe(ctx, commit)
	if err != nil { // the look at the files says more
		_ = os.Remove(r.indexFile())
		*r.mem, r.start = memory{}, nil
	}
	return s, err == nil
}

var errNotClean = errors.New("the files are not those of the commit, byte for byte")

// believe makes the private state of a run that starts from a commit's files.
func (r *session) believe(ctx context.Context, commit string) (state, error) {
	c := r.c
	head, err := c.Repo.Head(ctx)
	if err != nil || head.Commit != commit {
		return state{}, errors.Join(err, errNotClean)
	}
	if kept, err := r.newest(ctx); err != nil || kept != "" {
		return state{}, errors.Join(err, errNotClean)
	}
	if err := c.shadow.SetExclude(readRules(c.Repo.Exclude)); err != nil {
		return state{}, err
	}
	if err := copyIndex(c.Repo.Index, r.indexFile()); err != nil {
		return state{}, err
	}
	all, err := r.index.Entries(ctx)
	if err != nil {
		return state{}, err
	}
	if err := r.asStored(ctx, all); err != nil {
		return state{}, err
	}
	r.noteUser(all, fileKey(c.Repo.Index))
	r.noteKept(all)
	tree, err := c.Repo.TreeOf(ctx, commit)
	if err != nil {
		return state{}, err
	}
	if err := r.startClean(ctx, all); err != nil {
		return state{}, err
	}
	r.mem.tree = tree
	return state{tree: tree, head: head}, nil
}

// asStored is an error unless each file is certain to be the stored object.
func (r *session) asStored(ctx context.Context, all []git.Entry) error {
	settings, err := r.c.Repo.Config(ctx)
	if err != nil {
		return err
	}
	plain := true
	for _, s := range settings {
		switch s.Key {
		case "core.autocrlf":
			plain = plain && s.Value == "false"
		case "core.filemode", "core.symlinks":
			plain = plain && s.Value == "true"
		case "core.eol":
			plain = false
		}
	}
	for _, e := range all {
		if e.Stage != 0 || e.Sparse || e.Assumed || ours(e.Path) {
			return errNotClean
		}
		plain = plain && path.Base(e.Path) != ".gitattributes"
	}
	if plain {
		return nil
	}
	doubt, drop, err := r.doubtful(ctx, all)
	if len(doubt)+len(drop) > 0 {
		err = errors.Join(err, errNotClean)
	}
	return err
}

// startClean keeps the rules of a start at which nothing is there that git does
// not track. The disk is not waited for: after a power loss the run is not gone on with.
func (r *session) startClean(ctx context.Context, all []git.Entry) error {
	global, err := r.c.globalIgnore(ctx)
	if err != nil {
		return err
	}
	now := r.rulesNow(global)
	rules, sums, err := r.c.composeRules(ctx, ignoreFiles(all, nil))
	if err != nil {
		return err
	}
	var pinned []string
	if strings.Trim(strings.ReplaceAll(string(rules), ".pawl/", ""), "/\n") != "" { // there are rules but pawl's own
		if pinned, err = r.index.IgnoredTracked(ctx); err != nil {
			return err
		}
	}
	r.mem.ignored, r.mem.rules = pinned, now
	if err := r.keepStart(nil, pinned, sums, rules, false); err != nil {
		return err
	}
	r.start, err = r.loadStart(ctx)
	return err
}
