package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Line is one thing that was tried.
type Line struct {
	Name string   `json:"name"`
	Says string   `json:"says"`
	OK   bool     `json:"ok"`
	Do   []string `json:"do,omitempty"` // what a person can do about it, also where it works
}

// Checked is what a check found: of the database, and of everything.
type Checked struct {
	store.Inspection
	Lines []Line `json:"lines"`
}

func checkCluster(ctx context.Context, a *command.App, c *config.Config, db *store.Store) error {
	i, err := db.Inspect(ctx)
	if err != nil {
		return err
	}
	workers, err := db.Workers(ctx)
	if err != nil {
		return err
	}
	v := Checked{i, append(ofDatabase(i), checkSharedFolder(c.Cluster.Folder()))}
	if c.Cluster.Engine != "" {
		v.Lines = append(v.Lines, checkRemote(ctx, c), checkEngine(ctx, a, c, i.Board), ofWorkers(workers))
	}
	v.Lines = append(v.Lines, checkDiskRoom(c.Root, statedir.Of(c.Root, a.Env)))
	if a.JSON {
		err = a.JSONLine(v)
	} else {
		v.printChecks(a)
	}
	for _, l := range v.Lines {
		if err == nil && !l.OK {
			return command.StatusError(command.ExitFailed)
		}
	}
	return err
}

// apart is how many seconds clocks may differ before it is worth a word: times in
// lists are those of the machine that wrote them.
const apart = 2

func ofDatabase(i store.Inspection) []Line {
	clock := Line{Name: "clock here", Says: "agrees with the server's", OK: true}
	if math.Abs(i.Behind) >= apart {
		clock.Says = fmt.Sprintf("%.0f s from the server's: synchronize it with NTP, or times in lists are wrong",
			math.Abs(i.Behind))
	}
	notices := Line{Name: "notices", Says: "are received", OK: i.Notified}
	if !i.Notified {
		notices.Says = "are not received"
		notices.Do = []string{
			"This machine does not see what others do: the server's notices are not received.",
			"  If there is a pooler in between, it must keep sessions: pool_mode = session",
		}
	}
	return []Line{
		{Name: "address", Says: i.Address, OK: true}, {Name: "server", Says: "PostgreSQL " + i.Version, OK: true},
		{Name: "board", Says: i.Board, OK: true},
		{Name: "schema", Says: fmt.Sprintf("%s, step %d; it can be written", i.Schema, i.Steps), OK: true},
		clock, notices,
	}
}

// checkSharedFolder tries the shared folder: pawl never makes it, since a disk may be missing.
func checkSharedFolder(folder string) Line {
	l := Line{Name: "files", Says: folder + " can be written", OK: true}
	if folder == "" {
		l.Says = "cluster.files is not set: what runs print is only on the machine that they run on"
		return l
	}
	f, err := os.CreateTemp(folder, ".pawl-check-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		l.OK, l.Says = false, fmt.Sprintf("cannot write into cluster.files: %v", err)
		l.Do = []string{"Mount the folder, or create it: install -d -m 2770 -g GROUP " + folder}
	}
	return l
}

// checkDiskRoom looks whether the disks here have room for work.
func checkDiskRoom(dirs ...string) Line {
	l, least := Line{Name: "disk", Says: "has room", OK: true}, pool.RoomEnough
	for _, dir := range dirs {
		free, err := files.Free(dir)
		if err != nil {
			continue // what keeps it from being read shows in what is done there
		}
		if room, said := pool.Judge(free, dir); room > least {
			l.Says, l.OK, least = said, room < pool.RoomClean, room
		}
	}
	if !l.OK {
		l.Do = []string{"No task starts on this machine until there is room. Remove old runs: pawl gc"}
	}
	return l
}

// remoteLimit is how long the remote may take.
const remoteLimit = time.Minute

// checkRemote sends a commit as a task's work, and removes it.
func checkRemote(ctx context.Context, c *config.Config) Line {
	ctx, cancel := context.WithTimeout(ctx, remoteLimit)
	defer cancel()
	name := c.Cluster.Remote
	l := Line{Name: "remote", Says: name + " takes work", OK: true}
	repo, err := git.Open(ctx, c.Root)
	if errors.Is(err, git.ErrNoGit) {
		l.OK, l.Says = false, err.Error()
		return l
	}
	if err == nil {
		_, err = repo.RemoteURL(ctx, name)
	}
	if err != nil {
		l.OK, l.Says = false, fmt.Sprintf("there is no git remote %q, through which work moves between machines", name)
		l.Do = []string{
			"Add it: git remote add " + name + " ADDRESS", "Or name another one in pawl.yaml: cluster: {remote: NAME}",
		}
		return l
	}
	head, err := repo.Find(ctx, "HEAD")
	if err == nil && head == "" {
		err = errors.New("the repository has no commit yet")
	}
	host, _ := os.Hostname()
	task := fmt.Sprintf("check-%s-%d", host, os.Getpid()) // no task has such a name
	if err == nil {
		err = repo.PushWork(ctx, name, task, head)
	}
	if err == nil {
		err = repo.DropWork(ctx, name, []string{git.WorkRef(task, head)})
	}
	if err != nil {
		l.OK, l.Says = false, errorOnOneLine(err)
		l.Do = []string{"This machine must be able to push and delete refs below refs/pawl/work at " + name}
	}
	return l
}

// oldest is the oldest server that pawl works with.
const oldest = 29 // of 1.x

func checkEngine(ctx context.Context, a *command.App, c *config.Config, board string) Line {
	l := Line{Name: "engine", OK: true}
	if a.Cluster == nil {
		l.Says = c.Cluster.Engine + " was not tried: this program cannot talk to an engine"
		l.Do = []string{"Try it: pawl-cluster cluster check"}
		return l
	}
	at, err := a.EngineAt(c)
	if err == nil {
		s, ierr := a.Cluster.Inspect(ctx, at, board)
		l.Says = fmt.Sprintf("Temporal %s, asked by %s", s.Version, fault.Numbered(s.Workers, "worker"))
		var major, minor int
		if n, _ := fmt.Sscanf(s.Version, "%d.%d", &major, &minor); n == 2 && major == 1 && minor < oldest {
			l.OK, l.Do = false, []string{fmt.Sprintf("Pawl needs Temporal 1.%d or newer", oldest)}
		}
		err = ierr
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		l.OK, l.Says, l.Do = false, errorOnOneLine(err), known.Hints
	} else if err != nil {
		l.OK, l.Says = false, errorOnOneLine(err)
		l.Do = []string{"Check cluster.engine, cluster.tls and cluster.api_key, and that the server is running"}
	}
	return l
}

// ofWorkers compares the versions and clocks of workers with those of others.
func ofWorkers(workers []store.Worker) Line {
	l, there := Line{Name: "workers", OK: true}, 0
	for _, w := range workers {
		if w.Silent {
			continue
		}
		there++
		if w.Twin {
			l.OK = false
			l.Do = append(l.Do, fmt.Sprintf("another machine with a worker is called %s too: give each a host "+
				"name of its own, as with hostnamectl set-hostname NAME", w.Host))
		}
		if w.Version != command.Version {
			l.Do = append(l.Do, fmt.Sprintf("%s runs pawl %s, this is %s: install the same version everywhere", w.Name,
				cmp.Or(w.Version, "of no version"), cmp.Or(command.Version, "of no version")))
		}
		if math.Abs(w.Behind) >= apart {
			l.Do = append(l.Do, fmt.Sprintf("the clock of %s is %.0f s from the server's: set it with NTP", w.Name,
				math.Abs(w.Behind)))
		}
	}
	l.Says = fault.Numbered(there, "worker") + " there"
	if there == 0 {
		l.Do = []string{"Start one on each machine that works: pawl-cluster worker"}
	}
	return l
}

// errorOnOneLine is an error without its line breaks.
func errorOnOneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// shown is how many other boards are named.
const shown = 10

func (v *Checked) printChecks(a *command.App) {
	rows := lists.Each(v.Lines, func(l Line) []any { return []any{l.Name, l.Says} })
	a.Table("", rows, 0)
	if len(v.Others) > 0 {
		a.Result("%s in the same database:\n", fault.Numbered(len(v.Others), "other board"))
		for _, o := range v.Others[:min(len(v.Others), shown)] {
			a.Result("  %s\n", o)
		}
		if len(v.Others) > shown {
			a.Result("  …\n")
		}
		a.Say("If one of them is this repository's, two people name it differently: use the same name everywhere,")
		a.Say("with ?repository=NAME at the end of cluster.store.")
	}
	for _, l := range v.Lines {
		for _, text := range l.Do {
			a.Say("%s", text)
		}
	}
}
