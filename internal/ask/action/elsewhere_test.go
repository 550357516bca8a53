package action_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
	"github.com/pawl-dev/pawl/internal/test/gittest"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// shared is somebody at a clone of one of several machines, which share a board.
func shared(t *testing.T) (p *action.Operator, said *strings.Builder) {
	t.Helper()
	address := pgtest.Start(t).New(t)
	p, said = person(t)
	db, err := store.OpenShared(t.Context(), store.Shared{Address: address, Repository: "acme/shop", Place: "p"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p.Store, p.Env = db, []string{"HOME=" + p.Root, "XDG_STATE_HOME=" + t.TempDir()}
	p.Planner = func(string, planner.Flags) (*planner.Planner, error) {
		c := &config.Config{}
		c.Root, c.Merge.Target, c.Cluster.Remote = p.Root, "main", "origin"
		return &planner.Planner{Config: c}, nil
	}
	gittest.Git(t, p.Root, "init", "-q", "-b", "main")
	gittest.Git(t, p.Root, "commit", "-q", "--allow-empty", "-m", "first")
	return p, said
}

// worked stores a run that stopped after an iteration, on a machine.
func worked(t *testing.T, p *action.Operator, kind loop.Kind, name, host, place string) store.Run {
	t.Helper()
	state, err := json.Marshal(loop.State{Status: loop.Stopped, Iteration: 1})
	if err != nil {
		t.Fatal(err)
	}
	setup, err := json.Marshal(action.Setup{Setup: storedrun.Setup{Host: host, Place: place}})
	if err != nil {
		t.Fatal(err)
	}
	r := store.Run{
		ID: "run-" + name, Kind: string(kind), Name: name, Root: p.Root, Status: string(loop.Stopped), Iteration: 1,
		State: state, Setup: setup, Owner: store.Owner{PID: 1, Host: host},
	}
	e, err := journal.New(r.ID, 1, noon, journal.RunCreated, journal.Created{Kind: r.Kind, Name: r.Name})
	if err == nil {
		err = p.Store.Create(t.Context(), r, e, func(store.Owner) bool { return false })
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The run of a task whose worker is gone is no person's matter while an autopilot is on.
func TestARunWhoseWorkerIsGone(t *testing.T) {
	t.Parallel()
	p, _ := shared(t)
	id := task(t, p, board.Start)
	r := worked(t, p, loop.Task, id, "lost", "")
	r.Status, r.Owner = string(loop.Running), store.Owner{}
	if is, _ := p.AsIs(t.Context(), r); is.Why != "its pawl process has ended; pawl resume "+id {
		t.Errorf("without an autopilot: %q", is.Why)
	}
	on := store.Autopilot{Session: "one", State: []byte("{}"), Options: []byte("{}")}
	if _, err := p.Store.TakeAutopilot(t.Context(), on, storedrun.Alive); err != nil {
		t.Fatal(err)
	}
	if is, _ := p.AsIs(t.Context(), r); is.Why != "its worker is gone; the autopilot gives it to another one" {
		t.Errorf("with an autopilot: %q", is.Why)
	}
}

// What is to go on, or to be taken back, on another machine than that with the work names
// the machine and the folder, and changes nothing here.
func TestWorkOfAnotherMachine(t *testing.T) {
	t.Parallel()
	p, said := shared(t)
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if done, err := p.ResumeElsewhere(t.Context(), worked(t, p, loop.Procedure, "mine", here, ""), planner.Flags{}); done || err != nil {
		t.Errorf("a run of this machine: %t, %v", done, err)
	}
	theirs := worked(t, p, loop.Procedure, "build", "node7", "")
	if _, err := p.ResumeElsewhere(t.Context(), theirs, planner.Flags{}); err == nil ||
		!strings.Contains(err.Error(), p.Root+" on node7") {
		t.Errorf("a run of another machine: %v", err)
	}

	list, err := p.Store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "One"}}}, board.Person, noon)
	if err != nil {
		t.Fatal(err)
	}
	id := list[0].ID
	worked(t, p, loop.Task, id, "node7", "/srv/w/"+id)
	state := statedir.Of(p.Root, p.Env)
	clones, err := pool.Open(t.Context(), pool.Options{Root: p.Root, StateDir: state, Store: p.Store})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.RollbackTask(t.Context(), clones, id, action.BackTo{})
	if err == nil || !strings.Contains(err.Error(), "/srv/w/"+id+" on node7") || said.Len() > 0 {
		t.Errorf("the rollback of a task of another machine: %v; said %s", err, said)
	}
}

// What a task's run did is seen where its workspace is gone, or never was, once it landed.
func TestTheWorkOfARunThatLanded(t *testing.T) {
	t.Parallel()
	p, _ := shared(t)
	list, err := p.Store.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "One"}}}, board.Person, noon)
	if err != nil {
		t.Fatal(err)
	}
	r := worked(t, p, loop.Task, list[0].ID, "node7", "/srv/w/one")
	if _, err := p.WorkOf(t.Context(), r); err == nil || !strings.Contains(err.Error(), "not on this machine") {
		t.Errorf("before it landed: %v", err)
	}
	from := gittest.Git(t, p.Root, "rev-parse", "main")
	if err := os.WriteFile(filepath.Join(p.Root, "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, p.Root, "add", ".")
	gittest.Git(t, p.Root, "commit", "-qm", "one")
	to := gittest.Git(t, p.Root, "rev-parse", "main")
	self := store.Owner{PID: 1, Host: "node7"}
	row, err := p.Store.TakeQueue(t.Context(), "refs/heads/main", self, noon, func(store.Owner) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	row.N++
	s := row.State
	s.Out.Landings = []queue.Landing{{Task: r.Name, Run: r.ID, Commit: to, At: noon}}
	if err := p.Store.CommitQueue(t.Context(), store.QueueStep{Queue: row, State: s, At: noon}); err != nil {
		t.Fatal(err)
	}
	w, err := p.WorkOf(t.Context(), r)
	if err != nil || w.From != from || w.To != to || !strings.Contains(w.Said, to[:10]) {
		t.Errorf("after it landed: %+v, %v", w, err)
	}
}
