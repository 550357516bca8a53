package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// memory is what a checkout remembers of a run between two calls. Losing it
// costs time only.
type memory struct {
	last   Snapshot // newest one made here; Commit is empty when there is none
	tree   string   // tree of the private index, if known
	key    string   // state of the private index file when that was so
	unread []string // tracked files that differ from the private index and could not be stored
	listed bool     // nested is known
	nested []string // submodules in the private index

	folders map[string]bool // that the private index has files in, at any depth
	rules   string          // the ignore rules when ignored was found; "" is not known
	ignored []string        // files of the private index that these rules ignore
}

// session is the exclusive use of a run's private state.
type session struct {
	c     *Checkout
	run   string
	dir   string
	lock  *os.File
	index *git.Index
	mem   *memory
	start *start

	near    string    // a commit of files much like those of now; "" is not known
	others  bool      // to list [git.Scan.Others], too
	scanned *git.Scan // how the files differ from the private index, as just seen
}

const nameRunes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// validName reports whether a run id or attempt can be part of a ref: at most
// 128 letters, digits, "_", "." and "-", the first a letter or digit.
func validName(s string) bool {
	if s == "" || len(s) > 128 || strings.TrimLeft(s, nameRunes+"_.-") != "" || !strings.Contains(nameRunes, s[:1]) {
		return false
	}
	return !strings.Contains(s, "..") && !strings.HasSuffix(s, ".lock") && !strings.HasSuffix(s, ".")
}

// openSession takes the run's state for one operation. The caller closes it.
func (c *Checkout) openSession(ctx context.Context, run string) (*session, error) {
	if !validName(run) {
		return nil, fmt.Errorf("cannot use the run id %q: it must be letters, digits, dots and dashes", run)
	}
	dir := c.runFolder(run)
	lock, err := files.Lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot keep the state of run %s: %w", run, err)
	}
	c.mu.Lock()
	mem := c.runs[run] // only the one with the file's lock has it
	c.mu.Unlock()
	r := &session{c: c, run: run, dir: dir, lock: lock, mem: &mem}
	r.index = c.shadow.Index(r.indexFile(), lock)
	if key := fileVersionKey(r.indexFile()); key != r.mem.key {
		r.mem.tree, r.mem.listed, r.mem.rules = "", false, "" // another process was here
	}
	// Git inherits the lock, so a lock file of git's that is still here has no owner.
	_ = os.Remove(r.indexFile() + ".lock")
	return r, nil
}

func (c *Checkout) runFolder(run string) string { return filepath.Join(c.stateDir, "runs", run) }

func (r *session) indexFile() string { return filepath.Join(r.dir, "index") }

func (r *session) closeSession() {
	r.mem.key = fileVersionKey(r.indexFile())
	r.c.mu.Lock()
	r.c.runs[r.run] = *r.mem
	r.c.mu.Unlock()
	_ = r.lock.Close() // nothing was written through it
}

// prepareIndex makes sure of the private index and of the rules of the run's start.
func (r *session) prepareIndex(ctx context.Context) error {
	if err := r.c.shadow.SetExclude(readRules(r.c.Repo.Exclude)); err != nil {
		return err
	}
	// After a start of the machine the index may be half, or speak of files that are.
	if info, err := os.Stat(r.indexFile()); err != nil || info.ModTime().Before(process.Booted()) {
		if err := r.rebuildIndex(ctx); err != nil {
			return err
		}
	}
	if r.start == nil {
		s, err := r.loadStart(ctx)
		if err != nil {
			return err
		}
		r.start = s
	}
	return nil
}

// fileVersionKey changes when a file is replaced or written, whatever time it is given.
func fileVersionKey(name string) string {
	info, err := os.Lstat(name)
	if err != nil {
		return "none"
	}
	var inode uint64
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = uint64(st.Ino) //nolint:unconvert // its width differs between systems
	}
	changed, _ := files.Changed(name) // without, its other times stand for it
	return fmt.Sprint(inode, info.Size(), info.ModTime().UnixNano(), changed.UnixNano())
}

// newPresenceTest returns a test for whether something is at a path of the work tree.
func (c *Checkout) newPresenceTest() func(string) bool {
	folder := c.newFolderTest()
	return func(p string) bool {
		if !folder(filepath.Dir(p)) {
			return false
		}
		_, err := os.Lstat(filepath.Join(c.Repo.Top, p))
		return err == nil
	}
}

// newFolderTest returns a test for whether a path is a folder that no link leads
// to. It asks once for each.
func (c *Checkout) newFolderTest() func(string) bool {
	known := map[string]bool{".": true}
	var is func(string) bool
	is = func(dir string) bool {
		answer, ok := known[dir]
		if !ok {
			if answer = is(filepath.Dir(dir)); answer {
				info, err := os.Lstat(filepath.Join(c.Repo.Top, dir))
				answer = err == nil && info.IsDir()
			}
			known[dir] = answer
		}
		return answer
	}
	return is
}

// isPawlsOwn reports whether a path is in a folder of pawl's own.
func isPawlsOwn(p string) bool {
	return strings.Contains("/"+p+"/", "/.pawl/")
}

// rebuildIndex makes the private index anew: from the newest snapshot of the run,
// or at the run's start from the user's index.
func (r *session) rebuildIndex(ctx context.Context) error {
	_ = os.Remove(r.indexFile()) // it is not there or not readable
	*r.mem = memory{last: r.mem.last}
	newest, err := r.newestTree(ctx)
	if err != nil {
		return err
	}
	if newest != "" {
		err = r.index.ReadTree(ctx, newest)
	} else {
		err = r.seedIndex(ctx)
	}
	if err != nil {
		_ = os.Remove(r.indexFile()) // half made
		return fmt.Errorf("cannot make the private index: %w", err)
	}
	return nil
}

// newestTree is the tree of the run's newest snapshot, or "".
func (r *session) newestTree(ctx context.Context) (string, error) {
	all, err := r.c.Snapshots(ctx, r.run)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return all[len(all)-1].Tree, nil
}

// seedIndex enters what git tracks, so that a file which is tracked although it is ignored
// counts as tracked. The next scan reads each file. What a sparse checkout leaves out is
// left out.
func (r *session) seedIndex(ctx context.Context) error {
	if r.c.clone != nil {
		return r.seedFromCommit(ctx)
	}
	all, err := r.c.Repo.IndexEntries(ctx)
	if err != nil { // it is broken: the commit stands in
		return r.seedFromCommit(ctx)
	}
	there := r.c.newPresenceTest()
	all = slices.DeleteFunc(all, func(e git.Entry) bool {
		leftOut := e.Sparse && !there(e.Path)
		return leftOut || isPawlsOwn(e.Path)
	})
	if len(all) == 0 {
		return r.index.ReadTree(ctx, "")
	}
	return r.index.Set(ctx, all)
}

// seedFromCommit enters what the commit has that is checked out.
func (r *session) seedFromCommit(ctx context.Context) error {
	head, err := r.c.Head(ctx)
	if err != nil {
		return err
	}
	return r.index.ReadTree(ctx, head.Commit)
}

// trackedFiles are the files that git tracks now.
func (c *Checkout) trackedFiles(ctx context.Context) ([]string, error) {
	if c.clone != nil {
		head, err := c.Head(ctx)
		if err != nil || head.Commit == "" {
			return nil, err
		}
		return c.Store.FilesOf(ctx, head.Commit)
	}
	all, err := c.Repo.IndexEntries(ctx)
	return lists.Each(all, func(e git.Entry) string { return e.Path }), err
}

// knowNested lists the submodules of the private index, which does not change them.
func (r *session) knowNested(ctx context.Context) error {
	if r.mem.listed {
		return nil
	}
	all, err := r.index.Entries(ctx)
	if err == nil {
		r.noteNested(all)
	}
	return err
}

func (r *session) noteNested(all []git.Entry) {
	r.mem.listed, r.mem.nested, r.mem.folders = true, nil, map[string]bool{}
	r.noteFolders(lists.Each(all, func(e git.Entry) string { return e.Path }))
	for _, e := range all {
		if e.Mode == git.ModeNested {
			r.mem.nested = append(r.mem.nested, e.Path)
		}
	}
}
