package pool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawl-dev/pawl/internal/do/boxnet"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/checkout"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Kinds and states of a row.
const (
	kindTask        = "task"
	kindIntegration = "integration"
	kindWarm        = "warm"

	making   = "making"
	leased   = "held"
	kept     = "kept"
	warm     = "warm"
	removing = "removing"
)

const (
	defaultMaxFile = 50 << 20
	defaultWarm    = 4
	branchPrefix   = "pawl/"
	basePrefix     = "refs/pawl/base/"
	taskPrefix     = "refs/pawl/tasks/"
	recoveryPrefix = "refs/pawl/recovery/"
)

// What callers branch on, with errors.Is.
var (
	// ErrTaken: a live process works in the task's workspace.
	ErrTaken = errors.New("the workspace is in use")
	// ErrDisk: there is too little room on the disk to start anything.
	ErrDisk = errors.New("the disk is nearly full")
	// ErrRefused: the work cannot be taken over as it is. The message says what
	// has to be changed in the workspace, and fits an agent too.
	ErrRefused = errors.New("cannot be collected")
)

// Options say whose clones, and how they are made.
type Options struct {
	Root     string       // folder of pawl.yaml, in the user's repository
	Repo     *git.Repo    // that repository, if the caller has opened it
	StateDir string       // pawl's folder for the repository; outside of it
	Dir      string       // where workspaces are; empty is StateDir/workspaces
	Ports    string       // the file in which all repositories of the user share ports; empty is beside StateDir
	Store    *store.Store // of the repository
	Copy     []string     // patterns of ignored files in Root to copy
	Setup    []string     // commands that the caller runs in a new workspace, as jobs
	// Retention is how long a workspace is kept that nobody works in; 0 keeps
	// none longer than until the next sweep.
	Retention     time.Duration
	KeepOnSuccess bool  // a landed one stays for the retention too
	SignOff       bool  // commits of what an agent did not commit are signed off
	MaxFile       int64 // bytes over which a new file is not collected; 0 is 50 MB
	Warm          int   // clones that wait for use; 0 is 4, below 0 is none
	// Free returns the free bytes of the disk that a folder is on; nil asks the system.
	Free func(dir string) (uint64, error)
}

// Pool is the clones of one repository: they are taken, given back, looked after and
// removed. Its methods may be called from several goroutines and processes. Its parts stand
// on each other: work on the clones that it is in, and these on their rows.
type Pool struct {
	works
	notes []string // what a start of the machine made necessary
}

// works are what was done in the clones: collected as the work of a task, saved under recovery
// refs, and put back to a point of it.
type works struct{ clones }

// clones are the folders, with what belongs to one: its repository, ports, files that are copied
// into it, and what it borrows.
type clones struct{ rows }

// rows are the clones as the database has them, and so who works in which.
type rows struct {
	o    Options
	repo *git.Repo
	me   store.Owner
	step func(name string) // tests end the process here

	// held are the rows of what this process has in use, by id, as it stored them last. A shared
	// database that crashes, or whose copy takes its place, may have lost them.
	held sync.Map
	// unowned are the ids of workspaces whose rows name this process, and that it could not
	// release, since the database or the disk was full: nobody works in them.
	unowned sync.Map
}

// isInUse is true while the owner of a row works in it, or may do so.
func (p *rows) isInUse(r store.Workspace) bool {
	_, left := p.unowned.Load(r.ID)
	left = left && r.Owner == p.me
	return isOwnerAlive(r.Owner) && !left
}

// Workspace is a private clone, ready to be worked in.
type Workspace struct {
	ID     string
	Dir    string // where work is done: where pawl.yaml is, in the clone
	Top    string // top level of the clone
	Own    string // pawl's folder for it, which no agent reaches
	Lent   string // where its git reads the user's objects; "" is where they are
	Branch string // without refs/heads/
	Base   string // commit that the work begins at
	Ports  int    // first of the 20 ports that are this workspace's
	Kept   bool   // it was there already, with what was done in it
	// Setup are commands to run in Dir before the first work, in order; it is
	// empty when that was done. The caller runs them as jobs in the sandbox and
	// says so with [Pool.SetupDone].
	Setup []string
	Notes []string // what a person should know
}

// Tree makes ready to take snapshots of a workspace, into pawl's own repository.
func (p *clones) Tree(ctx context.Context, w Workspace, maxFile int64) (*workspace.Checkout, error) {
	return OpenTree(ctx, p.repo, p.o.StateDir, w, maxFile)
}

// OpenTree is [Pool.Tree] for a workspace of the repository of.
func OpenTree(ctx context.Context, of *git.Repo, stateDir string, w Workspace, maxFile int64,
) (*workspace.Checkout, error) {
	at := workspace.Place{Top: w.Top, Root: w.Dir, Own: w.Own, Base: w.Base, Lent: w.Lent}
	return workspace.OpenClone(ctx, of, at, workspace.Options{
		StateDir: filepath.Join(w.Own, "tree"), Store: filepath.Join(stateDir, "store"), MaxFile: maxFile,
	})
}

// Env is what programs in the workspace have in their environment.
func (w Workspace) Env() []string { return []string{"PAWL_PORT_BASE=" + strconv.Itoa(w.Ports)} }

// PortsIn is how many ports a workspace has.
const PortsIn = boxnet.PortsIn

// Open makes ready to take workspaces of the repository that o.Root is in. What
// processes that are dead left half made or half removed is removed; what they
// held is kept. An error of [git.Open] is returned as it is.
func Open(ctx context.Context, o Options) (*Pool, error) {
	var err error
	repo := o.Repo
	if repo == nil {
		if repo, err = git.Open(ctx, o.Root); err != nil {
			return nil, err
		}
	}
	if o.Root, err = filepath.EvalSymlinks(o.Root); err != nil {
		return nil, fmt.Errorf("cannot open the workspaces: %v", err)
	}
	o.Dir = cmp.Or(o.Dir, filepath.Join(o.StateDir, "workspaces"))
	o.Ports = cmp.Or(o.Ports, filepath.Join(filepath.Dir(o.StateDir), "ports.json"))
	o.MaxFile = cmp.Or(o.MaxFile, defaultMaxFile)
	o.Warm = max(cmp.Or(o.Warm, defaultWarm), 0)
	if o.Free == nil {
		o.Free = files.Free
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the workspaces: %v", err)
	}
	if o.Dir, err = filepath.EvalSymlinks(o.Dir); err != nil {
		return nil, fmt.Errorf("cannot open the workspaces: %v", err)
	}
	for _, dir := range []string{repo.Objects, o.Dir, o.StateDir} {
		if strings.Contains(dir, "\n") {
			return nil, fmt.Errorf("cannot make workspaces: %q has a line break in its name, so git cannot share "+
				"objects; move it", dir)
		}
	}
	if rel, err := filepath.Rel(repo.Top, o.Dir); err == nil && filepath.IsLocal(rel) {
		return nil, fmt.Errorf("cannot keep workspaces in %s: it is inside of the repository; set workspace.root to a "+
			"folder outside of it", o.Dir)
	}
	me, err := ownProcess()
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspaces: %v", err)
	}
	p := &Pool{works: works{clones{rows{o: o, repo: repo, me: me, step: func(string) {}}}}}
	if err := p.followMoved(ctx); err != nil {
		return nil, err
	}
	if p.notes, err = repo.AfterBoot(ctx, o.StateDir); err != nil {
		return nil, err
	}
	if err := p.afterBoot(ctx); err != nil {
		return nil, err
	}
	if err := p.repairDead(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// CheckWritable is [git.CheckWritable] of the user's repository.
func (p *clones) CheckWritable() error { return checkout.CheckWritable(p.repo) }

// Notes are what a person should know of what was put in order by [Open].
func (p *Pool) Notes() []string { return p.notes }

// Root is the folder of pawl.yaml in the user's repository.
func (p *rows) Root() string { return p.o.Root }

// ownProcess is this process as an owner.
func ownProcess() (store.Owner, error) {
	id, err := process.Self()
	if err != nil {
		return store.Owner{}, err
	}
	return store.Owner{
		PID: id.PID, Start: strconv.FormatUint(id.Start, 10), Host: id.Host,
		Boot: id.Boot + " " + id.Space,
	}, nil
}

// isOwnerAlive reports whether an owner lives or may live.
func isOwnerAlive(o store.Owner) bool {
	if o.PID == 0 {
		return false
	}
	start, err := strconv.ParseUint(o.Start, 10, 64)
	if err != nil {
		return true
	}
	boot, space, _ := strings.Cut(o.Boot, " ")
	return process.Alive(process.Identity{Host: o.Host, Boot: boot, Space: space, PID: o.PID, Start: start})
}

// copyHash stands for what is copied.
func (p *rows) copyHash() string { return hashList(p.o.Copy) }

// setupHash stands for what is copied and for the commands, as a row has it: the
// copies' part, a slash, and the commands' once they were run.
func (p *rows) setupHash() string { return p.copyHash() + "/" + hashList(p.o.Setup) }

func hashList(list []string) string {
	h := sha256.Sum256([]byte(strings.Join(list, "\x00")))
	return hex.EncodeToString(h[:8])
}

// SetupDone records that the setup of the workspace was run.
func (p *rows) SetupDone(ctx context.Context, w Workspace) error {
	_, err := p.changeRow(ctx, w.ID, func(r *store.Workspace) { r.Setup = p.setupHash() })
	return err
}

// changeRow changes the row of a workspace that this process owns.
func (p *rows) changeRow(ctx context.Context, id string, change func(*store.Workspace)) (store.Workspace, error) {
	return p.editWorkspaceRow(ctx, id, func(r *store.Workspace) error {
		if r.Owner != p.me {
			return fmt.Errorf("%w by process %d", ErrTaken, r.Owner.PID)
		}
		change(r)
		r.UpdatedAt = time.Now()
		return nil
	})
}

// editWorkspaceRow changes the row of a workspace, unless change refuses it.
func (p *rows) editWorkspaceRow(ctx context.Context, id string, change func(*store.Workspace) error,
) (row store.Workspace, err error) {
	err = p.o.Store.EditWorkspaces(ctx, func(all []store.Workspace) (store.WorkspaceChange, error) {
		why := errors.New("there is none")
		i := slices.IndexFunc(all, func(r store.Workspace) bool { return r.ID == id })
		if i >= 0 {
			row = all[i]
		}
		was, _ := p.held.Load(id)
		if mine, ok := was.(store.Workspace); ok && row.Owner.PID == 0 {
			row, i = mine, 0
		}
		if i >= 0 {
			why = change(&row)
		}
		if why != nil {
			return store.WorkspaceChange{}, fmt.Errorf("cannot use the workspace of %s: %w", id, why)
		}
		return store.WorkspaceChange{Put: []store.Workspace{row}}, nil
	})
	if err != nil {
		return row, err
	}
	if p.held.Delete(id); row.Owner == p.me {
		p.held.Store(id, row)
	}
	return row, nil
}

// dropWorkspaceRow removes the row of a workspace whose folder is gone.
func (p *rows) dropWorkspaceRow(ctx context.Context, id string) error {
	p.held.Delete(id)
	return p.o.Store.EditWorkspaces(ctx, func([]store.Workspace) (store.WorkspaceChange, error) {
		return store.WorkspaceChange{Drop: []string{id}}, nil
	})
}

// openClone opens the clone of a row, alone: until the release, other processes and
// what is left of their git wait.
func (p *clones) openClone(ctx context.Context, r store.Workspace) (*git.Clone, func(), error) {
	lock, err := files.Lock(ctx, filepath.Join(r.Own, "lock"))
	if err != nil {
		return nil, nil, err
	}
	release := func() { _ = lock.Close() } // nothing was written to it
	c, err := git.OpenClone(ctx, p.repo, r.Dir, r.Own, lock, filepath.Join(p.o.StateDir, "store", "objects"))
	if err != nil {
		release()
		return nil, nil, err
	}
	return c, release, nil
}

// workspaceOf is a row as callers see it.
func (p *clones) workspaceOf(r store.Workspace) Workspace {
	dir := r.Dir
	if rel, err := filepath.Rel(p.repo.Top, p.o.Root); err == nil && filepath.IsLocal(rel) {
		dir = filepath.Join(r.Dir, rel)
	}
	w := Workspace{ID: r.ID, Dir: dir, Top: r.Dir, Own: r.Own, Branch: r.Branch, Base: r.Base, Ports: r.Ports}
	if r.Kind == kindRun {
		w.Lent = filepath.Join(r.Own, lentFolder)
	}
	if r.Setup != p.setupHash() {
		w.Setup = p.o.Setup
	}
	return w
}

// isValidID reports whether text can be part of a ref and the name of a folder.
func isValidID(text string) bool {
	if text == "" || len(text) > 100 || text[0] == '.' || text[0] == '-' || strings.HasSuffix(text, ".lock") ||
		strings.HasSuffix(text, ".") || strings.Contains(text, "..") {
		return false
	}
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// processIn names a process other than this one whose working folder is in dir, and
// is empty when there is none, or the machine does not say. A loop that was
// killed may have left its agent, and a person a shell.
func processIn(dir string) string { return process.Within(dir) }

// folderID identifies a folder on this machine by device and inode. A link and a
// file are an error.
func folderID(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", fmt.Errorf("cannot use %s: it is not a folder", dir)
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}

// treeSize is the room that a folder takes on the disk, in bytes; what cannot
// be read is not counted.
func treeSize(dir string) int64 {
	var size int64
	_ = filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		var st unix.Stat_t
		if unix.Lstat(name, &st) == nil {
			size += st.Blocks * 512
		}
		return nil
	})
	return size
}

// Room is what the free room of a disk allows.
type Room int

// From most to least. Thresholds are free bytes.
const (
	RoomEnough Room = iota // from 1 GB
	RoomWarn               // below 1 GB: say so
	RoomClean              // below 500 MB: remove idle workspaces, start nothing
	RoomStop               // below 100 MB: stop what runs
)

const mb = 1_000_000

// Judge says what the free bytes of a disk allow, and for everything but
// [RoomEnough] why, in words.
func Judge(free uint64, dir string) (Room, string) {
	said := files.FreeText(free, dir)
	switch {
	case free < 100*mb:
		return RoomStop, said + "; below 100 MB everything stops"
	case free < 500*mb:
		return RoomClean, said + "; below 500 MB nothing starts"
	case free < 1000*mb:
		return RoomWarn, said
	}
	return RoomEnough, ""
}

// Room looks how much room there is, on the disk that has the least: of the
// workspaces, of pawl's own files or of the repository. A disk that cannot be asked
// has enough: a full one shows in what fails.
func (p *clones) Room() (least Room, why string) {
	for _, dir := range []string{p.o.Dir, p.o.StateDir, p.repo.Common} {
		free, err := p.o.Free(dir)
		if err != nil {
			continue
		}
		if room, said := Judge(free, dir); room > least {
			least, why = room, said
		}
	}
	return least, why
}
