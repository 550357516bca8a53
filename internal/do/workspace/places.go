package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Git takes more from a git folder than its configuration: where the rest of it is
// (commondir, alternates, a .git that is a file, links anywhere), and the
// configuration of nested repositories that the index names. An agent works in
// that folder, so what it makes of these is found after it and undone before
// anybody runs git there.

const (
	placesLimit = 200000         // names in each folder of a git folder that are looked at
	textLimit   = 16 << 10       // bytes of a file that can be put back
	marksLimit  = 64 << 10       // bytes of names: with more the user has a sparse checkout, and they are left alone
	resolutions = "rr-cache"     // how conflicts are resolved: git does so where the folder is
	asideFolder = "pawl-aside"   // in the git folder: what was taken out of its place
	linkWord    = "a link to "   // what stands at a name: a symbolic link,
	textWord    = "a file with " // a file that can be put back,
	otherWord   = "something"    // anything else
	crowded     = "too many names"
)

// lead is one name that git is led by.
type lead struct{ root, name string }

func (p lead) path() string { return filepath.Join(p.root, p.name) }

// leading are names of files that lead git to other files, or from which it takes
// commands and places: everything of gitrepository-layout(5) that is not objects, refs,
// their logs, the index, a message, or what a fingerprint has. What other programs keep
// in a git folder, as some agents do, is not for git.
var leading = lazy.Regexp(`(^|/)(commondir|config\.worktree|info/attributes|info/grafts|objects/info/(http-)?alternates|` +
	`rebase-merge/git-rebase-todo)$` +
	`|^(modules/.*/)?(shallow$|info/sparse-checkout$|MERGE_RR$|(remotes|branches)/|` + unfinished + `)`)

// unfinished is what git keeps of an operation that goes on: commits to take, options,
// programs. It goes when the operation ends.
const unfinished = `(sequencer|rebase-merge|rebase-apply)/|BISECT_`

// ended is whether a file that went away is that of an operation which has ended.
var ended = lazy.Regexp(`(^|/)(` + unfinished + `)`)

// places are the names that lead git elsewhere, with what stands there. After an error
// some may be missing.
func (c *Checkout) places(ctx context.Context, settings []git.Setting) (found map[lead]string, err error) {
	found = map[lead]string{}
	var refs strings.Builder
	for _, root := range slices.Compact([]string{c.Repo.Common, c.Repo.Dir}) {
		if werr := c.placesBelow(ctx, root, found, &refs); werr != nil {
			err = errors.Join(err, fmt.Errorf("cannot look for what leads git elsewhere: %w", werr))
		}
	}
	top := lead{c.Repo.Top, ".git"}
	if info, err := os.Lstat(top.path()); err != nil || !info.IsDir() {
		found[top] = standsAt(top)
	}
	links, folders := c.indexed(ctx)
	committed, cerr := c.committed(ctx, refs.String())
	err = errors.Join(err, cerr)
	for _, name := range slices.Concat(links, committed) {
		p := lead{c.Repo.Top, filepath.Join(filepath.FromSlash(name), ".git")}
		found[p] = standsAt(p)
	}
	// Whoever runs git in a folder with files of the repository means that one, and
	// not what the folder itself says. One without .git says it by its own HEAD.
	for _, name := range folders {
		for _, lower := range []string{".git", "HEAD"} {
			p := lead{c.Repo.Top, filepath.Join(filepath.FromSlash(name), lower)}
			if what := standsAt(p); what != "" {
				found[p] = what
			}
		}
	}
	for _, path := range c.commands(settings) {
		if name, ok := files.Below(c.Repo.Top, path); ok {
			p := lead{c.Repo.Top, name}
			found[p] = standsAt(p)
		}
	}
	return found, err
}

// placesBelow finds those in a git folder, and notes the files of refs. A folder in it
// with too many names is one such place, whatever it has.
func (c *Checkout) placesBelow(ctx context.Context, root string, found map[lead]string, refs *strings.Builder) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	visit := func(name string, d fs.DirEntry) error {
		p := lead{root, name}
		if isRef(name) {
			refs.WriteString(name + " " + fileKey(p.path()) + "\n")
		}
		switch {
		case d.IsDir() && d.Name() == resolutions:
			found[p] = otherWord
			return fs.SkipDir
		case d.IsDir():
			return skipped(name)
		case !d.Type().IsRegular():
			found[p] = standsAt(p)
		case strings.HasPrefix(name, "modules/") && d.Name() == "config", leading().MatchString(name):
			found[p] = standsAt(p)
		}
		return ctx.Err()
	}
	for _, e := range entries { // first, since they are not many, and git reads them first
		if !e.IsDir() {
			if err := visit(e.Name(), e); err != nil {
				return err
			}
		}
	}
	for _, e := range entries {
		looked := 0
		walk := func(name string, d fs.DirEntry, err error) error {
			if looked++; looked > c.mostNames {
				found[lead{root, e.Name()}] = crowded
				return fs.SkipAll
			}
			if err != nil {
				return nil //nolint:nilerr // what just went, or cannot be read
			}
			return visit(name, d)
		}
		if !e.IsDir() {
			continue
		}
		if err := fs.WalkDir(os.DirFS(root), e.Name(), walk); err != nil {
			return err
		}
	}
	return nil
}

// committed are the nested repositories that commits name to which refs were moved since
// the first call: a checkout of one makes git look into it. Refs is how the files of
// refs are now.
func (c *Checkout) committed(ctx context.Context, refs string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refs == c.refsKey {
		return c.moved, nil
	}
	list, err := c.Repo.RefIDs(ctx, "refs")
	if err != nil {
		return c.moved, ctx.Err() // a configuration that cannot be read: it is seen to be another
	}
	head, err := c.Repo.Head(ctx)
	if err != nil {
		head = git.Head{} // it is put back
	}
	first := c.seen == nil
	if first {
		c.seen, c.base = map[string]bool{"": true}, head.Commit
	}
	var fresh []string
	for line := range strings.Lines(list + " " + head.Commit + "\n") {
		name, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !c.seen[id] && !strings.HasPrefix(name, "refs/pawl/") {
			c.seen[id], fresh = true, append(fresh, id)
		}
	}
	c.noteRefs(ctx, refsIn(list), head.Branch)
	if !first && len(fresh) > 0 {
		more, err := c.Repo.Links(ctx, c.base, fresh)
		if err != nil {
			return c.moved, err
		}
		c.moved = slices.Concat(c.moved, more)
	}
	c.refsKey = refs
	return c.moved, nil
}

// noteRefs notes which refs of the person's are not where they were. That the branch
// which is checked out has more commits is what agents are for; that a remote's has more is
// seen by whoever fetches.
func (c *Checkout) noteRefs(ctx context.Context, now map[string]string, branch string) {
	for _, name := range slices.Sorted(maps.Keys(c.refsWere)) {
		was := c.refsWere[name]
		if now[name] == was || strings.HasPrefix(name, "refs/pawl/") {
			continue
		}
		what := "was deleted"
		if to := now[name]; to != "" {
			if more, err := c.Repo.IsAncestor(ctx, was, to); err == nil && more &&
				(name == branch || strings.HasPrefix(name, "refs/remotes/")) {
				continue
			}
			what = "is at " + to[:min(len(to), 12)]
		}
		c.refsTold = append(c.refsTold, fmt.Sprintf("%s %s; it was at %s, and git update-ref puts it back", name, what, was))
	}
	c.refsWere = now
}

// MovedRefs says of each ref of the person's that was moved or deleted since this was
// asked what became of it, and where it was.
func (c *Checkout) MovedRefs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.refsTold
	c.refsTold = nil
	return told
}

// skipped keeps out of folders with nothing but objects.
func skipped(name string) error {
	above, base := filepath.Base(filepath.Dir(name)), filepath.Base(name)
	objects := above == "objects" && base != "info" && base != "pack"
	if objects || name == asideFolder || name == "lfs" || name == "annex" {
		return fs.SkipDir
	}
	return nil
}

// standsAt is what is at a name; "" for nothing. A nested repository is its
// configuration.
func standsAt(p lead) string {
	info, err := os.Lstat(p.path())
	switch {
	case err != nil:
		return ""
	case info.Mode()&fs.ModeSymlink != 0:
		to, _ := os.Readlink(p.path())
		return linkWord + to
	case info.IsDir():
		return otherWord + " " + hashFiles(filepath.Join(p.path(), "config"), filepath.Join(p.path(), "commondir"))
	case info.Mode().IsRegular() && info.Size() <= textLimit && filepath.Base(p.name) != "config":
		if data, err := files.ReadBelow(p.root, p.name, textLimit); err == nil {
			return textWord + string(data)
		}
	}
	return otherWord + " " + hashFiles(p.path())
}

// indexed are the nested repositories that the user's index names, into which git
// looks when it is asked about the whole, and the folders that it has files in. What
// an agent takes off the index stays in them. An index that cannot be read adds none.
func (c *Checkout) indexed(ctx context.Context) (links, folders []string) {
	info, err := os.Lstat(c.Repo.Index)
	key := c.indexKey()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || !info.Mode().IsRegular() || key == c.linksKey {
		return c.links, c.folded
	}
	all, err := c.Repo.IndexEntries(ctx)
	if err != nil {
		return c.links, c.folded
	}
	c.linksKey, c.marks, c.unsafe = key, "", false
	known := lists.Set(slices.Concat(c.links, c.folded))
	for _, e := range all {
		if e.Unsafe() {
			c.unsafe = true
			continue
		}
		hidden := e.Sparse || e.Assumed
		if hidden && len(c.marks) < marksLimit {
			c.marks += markOf(e)
		}
		if e.Mode == git.ModeNested && !known[e.Path] {
			c.links = append(c.links, e.Path)
		}
		for dir := path.Dir(e.Path); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			c.folded = append(c.folded, dir)
		}
	}
	return c.links, c.folded
}

// markOf is a line for an entry whose file git does not look at.
func markOf(e git.Entry) string { return fmt.Sprintf("%t %t %q\n", e.Sparse, e.Assumed, e.Path) }

// mendIndex makes the user's index anew, and keeps the other one aside, when it has
// paths that a checkout would write outside of the work tree, or git no longer looks at
// files that it looked at before.
func (c *Checkout) mendIndex(ctx context.Context, marks string) (mended []string, err error) {
	c.indexed(ctx)
	c.mu.Lock()
	unsafe, hides := c.unsafe, false
	for mark := range strings.Lines(c.marks) {
		hides = hides || !strings.Contains(marks, mark)
	}
	c.mu.Unlock()
	if hides = hides && len(marks) < marksLimit; !hides && !unsafe {
		return nil, nil
	}
	all, err := c.Repo.IndexEntries(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, git.Entry.Unsafe)
	for i := range all {
		if e := &all[i]; hides && !strings.Contains(marks, markOf(*e)) {
			e.Sparse, e.Assumed = false, false
		}
	}
	p := lead{c.Repo.Dir, "index"}
	if err := files.SetAside(p.root, p.name, c.Repo.Common, asideFolder); err != nil {
		return nil, err
	}
	return []string{c.shown(p)}, c.Repo.RemakeIndex(ctx, all)
}

// packPlaces is places as one comparable text, which packed reads.
func packPlaces(found map[lead]string) string {
	flat := make(map[string]string, len(found))
	for p, what := range found {
		flat[p.root+"\x00"+p.name] = what
	}
	data, _ := json.Marshal(flat) //nolint:errchkjson // of texts alone
	return string(data)
}

func unpackPlaces(text string) map[lead]string {
	var flat map[string]string
	if json.Unmarshal([]byte(text), &flat) != nil {
		return nil
	}
	found := make(map[lead]string, len(flat))
	for at, what := range flat {
		root, name, _ := strings.Cut(at, "\x00")
		found[lead{root, name}] = what
	}
	return found
}

// PutBack undoes what was made of the places that lead git elsewhere since they were
// fingerprinted: what is new is set aside in the git folder, what was changed is put
// back, and a HEAD that is none gets the text that it had. It returns what it
// undid, for a person.
func (c *Checkout) PutBack(ctx context.Context, before Fingerprint) (undone []string, err error) {
	was := unpackPlaces(before.Places)
	if was == nil {
		return nil, nil // nobody looked
	}
	top := lead{c.Repo.Top, ".git"}
	if info, err := os.Lstat(top.path()); err == nil && !info.IsDir() && was[top] == "" {
		// The git folder was moved away, and nothing can be kept in it.
		if err := files.RemoveBelow(top.root, top.name); err != nil {
			return nil, err
		}
		undone = append(undone, top.name)
	}
	mended, err := c.mendHead(before.Head)
	if mended != "" {
		undone = append(undone, mended)
	}
	// An agent can make each of these fail: the others are done all the same.
	replaced, rerr := c.undoReplacing(ctx, before.Replace)
	led, lerr := c.undoPlaces(ctx, was)
	remade, ierr := c.mendIndex(ctx, before.Marks)
	if ierr != nil {
		ierr = fmt.Errorf("cannot put the index in order: %w", ierr)
	}
	moved, merr := c.undoRefs(ctx)
	return slices.Concat(undone, replaced, led, remade, moved), errors.Join(err, rerr, lerr, ierr, merr)
}

// undoPlaces puts the places back that are not as they were.
func (c *Checkout) undoPlaces(ctx context.Context, was map[lead]string) (undone []string, err error) {
	settings, _ := c.Repo.Config(ctx)   // what was found before counts all the same
	now, err := c.places(ctx, settings) // what was found is undone also after an error
	all := maps.Clone(now)
	for p := range was {
		if _, known := now[p]; !known {
			now[p] = standsAt(p)
		}
		all[p] = ""
	}
	inOrder := func(a, b lead) int { // the folder for what is set aside comes first
		switch {
		case a.name == b.name:
		case a.name == asideFolder:
			return -1
		case b.name == asideFolder:
			return 1
		}
		return strings.Compare(a.path(), b.path())
	}
	for _, p := range slices.SortedFunc(maps.Keys(all), inOrder) {
		watched := p.root != c.Repo.Top && slices.Contains([]string{"config", "hooks", "HEAD"}, p.name)
		over := now[p] == "" && ended().MatchString(p.name) // the agent finished it
		// Without such a file the history is not whole, and this one is too large to be put back.
		cut := p.name == "shallow" && strings.HasPrefix(was[p], otherWord)
		if now[p] == was[p] || watched || over || cut || was[p] == crowded {
			continue
		}
		if now[p] == crowded && slices.Contains(personal, p.name) {
			err = errors.Join(err, fmt.Errorf("%s has over %d names", p.path(), c.mostNames))
			continue
		}
		if perr := c.putBack(p, was[p], now[p]); perr != nil {
			err = errors.Join(err, fmt.Errorf("cannot put %s back: %w", p.path(), perr))
			continue
		}
		undone = append(undone, c.shown(p))
		if now[p] != "" && ended().MatchString(p.name) && filepath.Dir(p.name) != "." {
			_ = os.Remove(filepath.Dir(p.path())) // with an empty one git begins no operation; most are not empty yet
		}
	}
	return undone, err
}

// personal are folders of a git folder that have a person's work, and stay where they are
// however many names an agent puts there.
var personal = []string{"refs", "logs", "objects", "modules", "worktrees"}

func (c *Checkout) putBack(p lead, was, now string) error {
	if p.name == asideFolder {
		return files.RemoveBelow(p.root, p.name) // it is a link: nothing can be kept there
	}
	if now != "" {
		if err := files.SetAside(p.root, p.name, c.Repo.Common, asideFolder); err != nil {
			return err
		}
	}
	if text, ok := strings.CutPrefix(was, textWord); ok {
		return files.ReplaceBelow(p.root, p.name, []byte(text), 0o644, false)
	}
	if p.name == "refs" || p.name == "objects" { // without them it is no repository
		return os.Mkdir(p.path(), 0o755) //nolint:gosec // git's own mode
	}
	return nil
}

// DropLocks takes locks away that an agent left since a time, and names them. They are
// kept in the git folder: there may be work in that of an index.
func (c *Checkout) DropLocks(since time.Time) (dropped []string, err error) {
	for _, path := range c.Repo.LeftLocks(since) {
		root := c.Repo.Common
		if strings.HasPrefix(path, c.Repo.Dir+"/") {
			root = c.Repo.Dir
		}
		p := lead{root, strings.TrimPrefix(path, root+"/")}
		if err := files.SetAside(p.root, p.name, c.Repo.Common, asideFolder); err != nil {
			return dropped, fmt.Errorf("cannot take a lock away that was left: %w", err)
		}
		dropped = append(dropped, c.shown(p))
	}
	return dropped, nil
}

// shown is a place as seen from the top level.
func (c *Checkout) shown(p lead) string {
	if rel, err := filepath.Rel(c.Repo.Top, p.path()); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return p.path()
}

// head is the text of HEAD; "" when it is none.
func (c *Checkout) head() string {
	data, err := files.ReadBelow(c.Repo.Dir, "HEAD", textLimit)
	if err != nil || !validHead().Match(data) {
		return ""
	}
	return string(data)
}

var validHead = lazy.Regexp(`^(ref: refs/[^\x00-\x20~^:?*\[\\]+|[0-9a-f]{40}|[0-9a-f]{64})\n?$`)

// mendHead puts a HEAD back that git could not read.
func (c *Checkout) mendHead(text string) (mended string, err error) {
	if text == "" || c.head() != "" {
		return "", nil
	}
	if err := files.ReplaceBelow(c.Repo.Dir, "HEAD", []byte(text), 0o644, false); err != nil {
		return "", err
	}
	return c.shown(lead{c.Repo.Dir, "HEAD"}), nil
}
