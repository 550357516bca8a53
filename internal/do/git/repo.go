package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git/command"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// ErrNotRepository says that a folder is not inside the work tree of a git
// repository.
var ErrNotRepository = errors.New("not a git repository")

// ErrNoGit is returned when there is no git command on the path.
var ErrNoGit = command.ErrNoGit

// call is a command on one of the repositories here.
type call = command.Call

// Error is a git command that ended with a status other than 0.
type Error = command.Error

// machineSays are messages of git and the system about a machine that lacks a resource.
var machineSays = []string{
	"No space left on device", "Disk quota exceeded", "Out of diskspace", "File too large", "Input/output error",
	"Read-only file system", "Cannot allocate memory", "Out of memory", "out of memory", "Too many open files",
	"Resource temporarily unavailable",
}

// OfMachine reports whether an error of this package is the machine's: git was killed, or met a
// full disk or the like. The same may work later.
func OfMachine(err error) bool {
	if err == nil || command.WasKilled(err) {
		return err != nil
	}
	text := err.Error()
	return slices.ContainsFunc(machineSays, func(part string) bool { return strings.Contains(text, part) })
}

// NamesRepository reports whether a variable names the repository, index or objects that git works
// on, as git's hooks have it. It reaches no program that pawl starts.
func NamesRepository(variable string) bool { return slices.Contains(ofRepository, variable) }

var ofRepository = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_INDEX_VERSION", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE",
	"GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX",
}

// Repo is a git repository with a work tree: a plain checkout, a linked
// worktree or the checkout of a submodule. Its parts stand on each other: refs
// on the history that they lead to, and that on the folders where it is. What is
// left for Repo itself has to do with its files, with remotes and with clones.
type Repo struct{ RefStore }

// RefStore has the refs of a repository: they are listed, moved, synced, and mended
// after a power loss.
type RefStore struct{ History }

// History has the commits, trees and other objects of a repository. It is asked, and
// merged in; nothing that is there changes.
type History struct{ Folders }

// Folders are where a repository is, and what its configuration says. They are absolute
// and were read when it was opened; a later change of core.worktree moves nothing.
type Folders struct {
	Top     string // top level of the work tree
	Dir     string // git directory of this work tree
	Common  string // git directory that linked worktrees share
	Exclude string // info/exclude, which may not exist
	Index   string // the user's index, which may not exist
	Objects string // object store
	Format  string // hash of objects: "sha1" or "sha256"
	NoModes bool   // its file system keeps no modes or links, so their changes are none; [OpenShadow] finds out
}

// Open finds the repository that dir is in. It returns ErrNoGit without a git
// command and ErrNotRepository outside of a repository; a bare repository, a
// folder inside the git directory, one that another user owns and a git older
// than 2.38 are errors that say so.
func Open(ctx context.Context, dir string) (*Repo, error) { return openRepo(ctx, dir, false) }

// OpenStore opens a repository for its objects and refs, with a work tree or
// without one. Of a bare repository Top is the git directory.
func OpenStore(ctx context.Context, dir string) (*Repo, error) { return openRepo(ctx, dir, true) }

func openRepo(ctx context.Context, dir string, bareToo bool) (*Repo, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("cannot open the repository: %s is not a folder", dir)
	}
	if err := checkVersion(ctx, dir); err != nil {
		return nil, err
	}
	facts := []string{"--is-bare-repository", "--is-inside-work-tree", "--show-object-format"}
	out, err := command.Run(ctx, revParse(dir, slices.Concat(facts, slices.Concat(folders...))...))
	says := bytes.SplitN(out, []byte("\n"), 4)
	if len(says) != 4 {
		return nil, openError(dir, cmp.Or(err, fmt.Errorf("git rev-parse said %q", out)))
	}
	for _, said := range says[:2] {
		if said := string(said); said != "true" && said != "false" {
			return nil, fmt.Errorf("cannot use git: it answered %q where true or false was asked for; a program in "+
				"its place prints words of its own", said)
		}
	}
	bare := string(says[0]) == "true"
	if bare && !bareToo {
		return nil, fmt.Errorf("cannot work in %s: it is a bare repository, without files; use a clone of it", dir)
	}
	if !bare && string(says[1]) != "true" {
		return nil, fmt.Errorf("cannot work in %s: it is inside a git directory; start in the work tree", dir)
	}
	if !bare && err != nil {
		return nil, openError(dir, err)
	}
	r := unsharedRepoAt("", "", "", string(says[2]))
	if err := r.findFolders(ctx, dir, says[3], bare); err != nil {
		return nil, fmt.Errorf("cannot open the repository of %s: %w", dir, err)
	}
	return r, nil
}

// folders are the questions for those of a repository. A bare one fails at the last.
var folders = [][]string{
	{"--absolute-git-dir"}, {"--git-common-dir"},
	{"--git-path", "info/exclude"}, {"--git-path", "index"}, {"--git-path", "objects"}, {"--show-toplevel"},
}

func revParse(dir string, what ...string) call {
	return call{Dir: dir, Args: append([]string{"rev-parse", "--path-format=absolute"}, what...)}
}

// findFolders fills in the folders. A path may hold a line break: then the lines of one answer are
// ambiguous, and every path is asked for alone.
func (r *Folders) findFolders(ctx context.Context, dir string, paths []byte, bare bool) (err error) {
	asks := folders
	if bare {
		asks = folders[:len(folders)-1]
	}
	answers := bytes.Split(bytes.TrimSuffix(paths, []byte("\n")), []byte("\n"))
	if len(answers) != len(asks) {
		alone := lists.Each(asks, func(what []string) call { return revParse(dir, what...) })
		if answers, err = command.RunAll(ctx, alone...); err != nil {
			return err
		}
	}
	into := []*string{&r.Dir, &r.Common, &r.Exclude, &r.Index, &r.Objects, &r.Top}
	for i, answer := range answers {
		*into[i] = filepath.Clean(strings.TrimSuffix(string(answer), "\n"))
	}
	if bare {
		r.Top = r.Dir
	}
	if _, err := os.Stat(r.Top); err != nil {
		return fmt.Errorf("git answered %q; a program in its place prints words of its own", r.Top)
	}
	return nil
}

func openError(dir string, err error) error {
	var e *command.Error
	if !errors.As(err, &e) {
		return err
	}
	if strings.Contains(e.Stderr, "not a git repository") {
		return fmt.Errorf("%w: %s", ErrNotRepository, dir)
	}
	if strings.Contains(e.Stderr, "dubious ownership") {
		return fmt.Errorf("cannot use the repository of %s: another user owns it; allow it with: git config --global "+
			"--add safe.directory %s", dir, strconv.Quote(dir))
	}
	return fmt.Errorf("cannot open the repository of %s: %w", dir, err)
}

// fit are the git programs, by path, that were found to be new enough, and the error of those that
// do not answer, so that they are waited for once.
var fit sync.Map

const answersWithin = 20 * time.Second

func checkVersion(ctx context.Context, dir string) error {
	c := call{Dir: dir, Args: []string{"version"}}
	_, path := c.ProgramPath()
	if was, known := fit.Load(path); known {
		err, _ := was.(error)
		return err
	}
	short, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	out, err := command.Run(short, c)
	switch {
	case ctx.Err() == nil && short.Err() != nil:
		err = fmt.Errorf("cannot use git: it did not say its version within %s", answersWithin)
		fit.Store(path, err)
	case err == nil && !isRecentVersion(string(out)):
		err = fmt.Errorf("cannot use %s: pawl needs git 2.38 or newer", strings.TrimSpace(string(out)))
	case err == nil:
		fit.Store(path, nil)
	}
	return err
}

// isRecentVersion reports whether "git version 2.39.5 (vendor)" is 2.38 or newer. A version that cannot be
// read is taken for recent.
func isRecentVersion(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "git version %d.%d", &major, &minor)
	return err != nil || major*1000+minor >= 2038
}

// NewCall makes a call on the user's repository. It is for the rooms of git alone.
func (r *Folders) NewCall(args ...string) command.Call {
	return call{Dir: r.Top, Args: args, Trees: r.Trees(), Env: []string{
		"GIT_DIR=" + r.Dir, "GIT_WORK_TREE=" + r.Top, "GIT_COMMON_DIR=" + r.Common,
	}}
}

// Trees are the work trees that are known: its own, and the first of its repository.
func (r *Folders) Trees() []string { return []string{r.Top, strings.TrimSuffix(r.Common, "/.git")} }

// Head is the commit and the branch that are checked out.
type Head struct {
	Commit string // empty before the first commit
	Branch string // full name, such as refs/heads/main; empty when detached
}

// Head reads what is checked out.
func (r *History) Head(ctx context.Context) (Head, error) {
	out, err := command.Run(ctx, r.NewCall("rev-parse", "HEAD", "--symbolic-full-name", "HEAD"))
	commit, branch, two := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	if err == nil && two {
		if branch == "HEAD" {
			branch = ""
		}
		return Head{Commit: commit, Branch: branch}, nil
	}
	if err != nil && command.ExitCode(err) == 0 {
		return Head{}, err
	}
	out, err = command.Run(ctx, r.NewCall("symbolic-ref", "-q", "HEAD"))
	if err != nil {
		return Head{}, fmt.Errorf("cannot read HEAD: %w", err)
	}
	return Head{Branch: strings.TrimSuffix(string(out), "\n")}, nil
}

// Busy names the operation that is half done in the work tree, such as a
// merge or a rebase; it is empty when there is none.
func (r *Folders) Busy() string {
	for _, b := range []struct{ file, name string }{
		{"MERGE_HEAD", "merge"}, {"rebase-merge", "rebase"}, {"rebase-apply", "rebase"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(r.Dir, b.file)); err == nil {
			return b.name
		}
	}
	return ""
}

// Init makes a repository of a folder that has none, and commits all that is
// in it. It is for scratch repositories of pawl's own, e.g. the demo's; it
// needs no identity in the user's configuration.
func Init(ctx context.Context, dir, message string) error {
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "commit.gpgSign=false", "commit", "--quiet", "--no-verify", "--message=" + message},
	} {
		if _, err := command.Run(ctx, call{Dir: dir, Env: pawl.commitEnvironment(), Args: args}); err != nil {
			return fmt.Errorf("cannot make a repository of %s: %w", dir, err)
		}
	}
	return nil
}

// Checkouts opens the work trees of a repository, linked ones too, in which a
// branch is checked out, or in which something is going on that will come back
// to it. One whose folder is gone is left out.
func (r *Repo) Checkouts(ctx context.Context, branch string) ([]*Repo, error) {
	out, err := command.Run(ctx, r.NewCall("worktree", "list", "--porcelain", "-z"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the work trees: %w", err)
	}
	var found []*Repo
	for block := range strings.SplitSeq(string(out), "\x00\x00") {
		path, on, bare := "", "", false
		for line := range strings.SplitSeq(block, "\x00") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "worktree":
				path = value
			case "branch":
				on = value
			case "bare":
				bare = true
			}
		}
		if _, err := os.Stat(path); path == "" || bare || err != nil {
			continue
		}
		w := r
		switch isFirst := path == strings.TrimSuffix(r.Common, "/.git"); {
		case path == r.Top, isFirst && r.Dir == r.Common:
		case isFirst && path == r.Common:
			continue // its git folder is elsewhere, and git does not know where its files are
		default:
			w, err = Open(ctx, path)
		}
		if errors.Is(err, ErrNotRepository) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if on == branch || w.comesBackTo() == branch {
			found = append(found, w)
		}
	}
	isListed := slices.ContainsFunc(found, func(w *Repo) bool { return w.Dir == r.Dir })
	if isListed || r.Top == r.Dir {
		return found, nil
	}
	head, err := r.Head(ctx)
	if err == nil && head.Branch == branch { // a linked work tree that was moved without git's knowledge
		found = append(found, r)
	}
	return found, err
}

// comesBackTo is the branch that a rebase or bisect in the work tree began on.
func (r *Folders) comesBackTo() string {
	for _, f := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		data, err := files.ReadBelow(r.Dir, f, refLimit)
		if err != nil {
			continue
		}
		name := strings.TrimSpace(string(data))
		if f == "BISECT_START" && !strings.HasPrefix(name, "refs/") {
			name = "refs/heads/" + name
		}
		return name
	}
	return ""
}
