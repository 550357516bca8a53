package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Names are the files of the newest snapshot or look of the run.
func (c *Checkout) Names(ctx context.Context, run string) ([]string, error) {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return nil, err
	}
	defer r.closeSession()
	return r.index.Names(ctx)
}

// Unread are the tracked files that newest snapshot or look of the run has as they were
// before: they are now too large, cannot be read, or are no files. Those of which this
// held at its start are not among them.
func (c *Checkout) Unread(ctx context.Context, run string) ([]string, error) {
	c.mu.Lock()
	unread := slices.Clone(c.runs[run].unread)
	c.mu.Unlock()
	if len(unread) == 0 {
		return nil, nil
	}
	snaps, err := c.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 || snaps[0].N != 0 {
		return unread, err
	}
	return slices.DeleteFunc(unread, func(p string) bool { return slices.Contains(snaps[0].Skipped, p) }), nil
}

// Hidden are the files that the newest snapshot of the run lacks although the ignore
// rules of its start take them in: rules that were made since hide them, they are
// too large, or they are in a nested repository that was not there at the start.
func (c *Checkout) Hidden(ctx context.Context, run string) ([]string, error) {
	r, err := c.openSession(ctx, run)
	if err != nil {
		return nil, err
	}
	defer r.closeSession()
	if r.start, err = r.loadStart(ctx); err != nil {
		return nil, err
	}
	all, err := r.index.UntrackedBy(ctx, r.start.file)
	if err != nil {
		return nil, err
	}
	var hidden []string
	for _, p := range all {
		name, isNested := strings.CutSuffix(p, "/")
		if r.start.wasIgnored(p) || isPawlsOwn(name) {
			continue
		}
		hidden = append(hidden, name)
		if !isNested {
			continue
		}
		files, err := c.filesOfNested(ctx, run, name)
		if err != nil {
			return nil, err
		}
		hidden = append(hidden, files...)
	}
	return hidden, nil
}

// filesOfNested are the files of a nested repository; none when it was there at the start of
// the run.
func (c *Checkout) filesOfNested(ctx context.Context, run, dir string) (names []string, err error) {
	snaps, err := c.Snapshots(ctx, run)
	if err != nil {
		return nil, err
	}
	if len(snaps) > 0 && snaps[0].N == 0 && slices.Contains(snaps[0].Skipped, dir) {
		return nil, nil
	}
	return c.filesBelowFolder(ctx, dir)
}

// filesBelowFolder are the files below a folder of the work tree, but for those of git's own.
func (c *Checkout) filesBelowFolder(ctx context.Context, dir string) (names []string, err error) {
	top := os.DirFS(c.Repo.Top)
	err = fs.WalkDir(top, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(names) > filesLimit:
			return fmt.Errorf("%s has over %d files", dir, filesLimit)
		case err != nil && d == nil:
			return nil // what just went
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.IsDir():
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

const (
	filesLimit  = 100_000  // files of one repository that are listed
	nestedLimit = 10_000   // files of other repositories that are watched
	nestedSize  = 64 << 20 // bytes of one that count

	beyondFile = "beyond.json" // what [Checkout.Beyond] found first, in the folder of the run
	untracked  = "-"           // in it, for a file that is there and may change
)

// Beyond are the files that no snapshot has, of those in the work tree when this is first
// called in a run, and whether they have changed since: what covers names in other
// repositories, submodules among them, and ignored files in named.
func (c *Checkout) Beyond(ctx context.Context, run string, covers func(name string) bool, named []string,
) (map[string]bool, error) {
	was, err := c.earlierBeyond(run)
	if errors.Is(err, fs.ErrNotExist) {
		if was, err = c.protectedBeyondGit(ctx, run, covers, named); err == nil && len(was) > 0 {
			data, _ := json.Marshal(was) //nolint:errchkjson // texts
			err = files.Replace(filepath.Join(c.runFolder(run), beyondFile), data, 0o600, true)
		}
	}
	changed := map[string]bool{}
	for name, content := range was {
		if content != untracked && !strings.HasSuffix(name, "/") {
			changed[name] = c.fileFingerprint(name) != content
		}
	}
	return changed, err
}

// earlierBeyond returns what [Checkout.Beyond] found first: the content of files, and the
// ignore rules of repositories, whose names end with a slash.
func (c *Checkout) earlierBeyond(run string) (was map[string]string, err error) {
	data, err := files.ReadBelow(c.runFolder(run), beyondFile, nestedLimit<<12)
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	return was, err
}

// Added are the files that covers names and that came to be in other repositories since
// [Checkout.Beyond] was first called in the run. Ignored ones do not count, unless the
// ignore rules have changed since, too.
func (c *Checkout) Added(ctx context.Context, run string, covers func(name string) bool) (added []string, err error) {
	was, err := c.earlierBeyond(run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for key, rules := range was {
		dir, isDir := strings.CutSuffix(key, "/")
		if !isDir || rules == "" {
			continue
		}
		all, err := c.filesBelowFolder(ctx, dir)
		if err != nil {
			return added, err
		}
		old := func(name string) bool { return was[name] != "" || !covers(name) }
		found := slices.DeleteFunc(slices.Clone(all), old)
		if len(found) > 0 && c.ignoreRulesFingerprint(ctx, dir, all) == rules {
			ignored := c.ignoredIn(ctx, dir)
			found = slices.DeleteFunc(found, func(name string) bool { return ignored[name] })
		}
		added = append(added, found...)
	}
	return added, err
}

func (c *Checkout) protectedBeyondGit(ctx context.Context, run string, covers func(string) bool, named []string,
) (map[string]string, error) {
	snaps, err := c.Snapshots(ctx, run)
	if err != nil || len(snaps) == 0 || snaps[0].N != 0 {
		return nil, err
	}
	found := map[string]string{}
	for _, dir := range snaps[0].Skipped {
		if err := c.beyondIn(ctx, dir, covers, found); err != nil {
			return nil, err
		}
	}
	known, err := c.Names(ctx, run)
	for _, name := range named {
		name = strings.Trim(path.Clean(name), "/")
		info, err := os.Lstat(filepath.Join(c.Repo.Top, filepath.FromSlash(name)))
		if err == nil && !info.IsDir() && !slices.Contains(known, name) {
			found[name] = c.fileFingerprint(name)
		}
	}
	return found, err
}

// beyondIn finds the files of one repository. Of one with too many, new files are not
// looked for.
func (c *Checkout) beyondIn(ctx context.Context, dir string, covers func(string) bool, found map[string]string) error {
	names, err := c.trackedIn(ctx, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if len(found) < nestedLimit && covers(name) {
			found[name] = c.fileFingerprint(name)
		}
	}
	all, err := c.filesBelowFolder(ctx, dir)
	if err != nil || slices.Equal(all, []string{dir}) { // it is a file
		return ctx.Err()
	}
	for _, name := range all {
		if len(found) >= nestedLimit {
			return nil
		}
		if covers(name) && found[name] == "" {
			found[name] = untracked
		}
	}
	found[dir+"/"] = c.ignoreRulesFingerprint(ctx, dir, all)
	return nil
}

// ignoreRulesFingerprint changes when the ignore rules of a repository with these files
// do.
func (c *Checkout) ignoreRulesFingerprint(ctx context.Context, dir string, all []string) string {
	sum := sha256.New()
	for _, name := range all {
		if path.Base(name) == ".gitignore" {
			fmt.Fprintf(sum, "%q %q\n", name, c.fileFingerprint(name))
		}
	}
	if repo, err := c.nestedRepoOfUser(ctx, dir); err == nil {
		data, err := files.ReadBelow(repo.Common, "info/exclude", rulesLimit)
		fmt.Fprintf(sum, "%t %x\n", err == nil, sha256.Sum256(data))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// ignoredIn are the files that a repository in the work tree ignores.
func (c *Checkout) ignoredIn(ctx context.Context, dir string) map[string]bool {
	ignored := map[string]bool{}
	repo, err := c.nestedRepoOfUser(ctx, dir)
	if err != nil {
		return ignored
	}
	repo.Top = filepath.Join(c.Repo.Top, filepath.FromSlash(dir)) // the files are those of the work tree
	names, _, _ := repo.Untracked(ctx, repo.Top, []string{"**"})  // what cannot be asked counts as not ignored
	for _, name := range names {
		ignored[path.Join(dir, name)] = true
	}
	return ignored
}

var errNoRepository = errors.New("it is not a repository")

// nestedRepoOfUser is a nested repository in the user's own files: that of a workspace is the
// agent's to write, and is not asked.
func (c *Checkout) nestedRepoOfUser(ctx context.Context, dir string) (*git.Repo, error) {
	repo, err := git.Open(ctx, filepath.Join(c.of.Top, filepath.FromSlash(dir)))
	if err != nil {
		return nil, err
	}
	if repo.Top == c.of.Top {
		return nil, errNoRepository
	}
	return repo, nil
}

// trackedIn are the files that a repository in the work tree has by its index, or all
// where it has lost its git folder, as in a copy.
func (c *Checkout) trackedIn(ctx context.Context, dir string) (names []string, err error) {
	repo, err := c.nestedRepoOfUser(ctx, dir)
	if err != nil {
		return c.filesBelowFolder(ctx, dir)
	}
	entries, err := repo.IndexEntries(ctx)
	names = append(names, lists.Each(entries, func(e git.Entry) string { return path.Join(dir, e.Path) })...)
	return names, err
}

// fileFingerprint changes when the file does: its mode, size, link target or content. It
// is "" where there is none.
func (c *Checkout) fileFingerprint(name string) string {
	file := filepath.Join(c.Repo.Top, filepath.FromSlash(name))
	info, err := os.Lstat(file)
	if err != nil {
		return ""
	}
	to, _ := os.Readlink(file)
	data, err := files.ReadBelow(c.Repo.Top, name, nestedSize)
	return fmt.Sprintf("%v %d %q %t %x", info.Mode(), info.Size(), to, err == nil, sha256.Sum256(data))
}
