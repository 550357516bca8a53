package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

// StateFile is .pawl/state/<procedure>.json: an image of the run for people
// and scripts, and what a run goes on from when the database is lost. Scripts
// read the first nine keys, which keep their order.
type StateFile struct {
	Iteration           int       `json:"iteration"`
	MaxIterations       int       `json:"max_iterations"`
	ConsecutiveFailures int       `json:"consecutive_failures"`
	FailureThreshold    int       `json:"failure_threshold"`
	StartedAt           time.Time `json:"started_at"`
	LastIterationAt     time.Time `json:"last_iteration_at"`
	Status              string    `json:"status"`
	ProcedureName       string    `json:"procedure_name"`
	ElapsedPerIteration []string  `json:"elapsed_per_iteration"`

	Run  string `json:"run,omitempty"`
	Why  string `json:"why,omitempty"`
	Next int    `json:"next_iteration,omitempty"`
	// InterruptedIteration is the one that was cut off; it is used up.
	InterruptedIteration int               `json:"interrupted_iteration,omitempty"`
	Owner                *process.Identity `json:"owner,omitempty"` // while it runs
}

// StateFilePath is where the state file of a procedure is.
func StateFilePath(root, procedure string) string {
	return filepath.Join(root, stateFileName(procedure))
}

// RemoveStateFile removes a procedure's, where there is one.
func RemoveStateFile(root, procedure string) error {
	err := files.RemoveBelow(root, stateFileName(procedure))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stateFileName is the state file as seen from the root.
func stateFileName(procedure string) string {
	name := strings.NewReplacer("/", "_", "\\", "_", "\x00", "_").Replace(procedure)
	return filepath.Join(".pawl", "state", name+".json")
}

// maxStateFile is the size in bytes over which a state file is not read.
const maxStateFile = 16 << 20

// ErrNoStateFile is that there is none.
var ErrNoStateFile = errors.New("no state file")

// ReadStateFile reads a state file. [ErrNoStateFile] when there is none; any
// other error means that it is not readable as one.
func ReadStateFile(path string) (StateFile, error) {
	var f StateFile
	root := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	data, err := files.ReadBelow(root, filepath.Join(".pawl", "state", filepath.Base(path)), maxStateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f, ErrNoStateFile
	}
	if err != nil {
		return f, fmt.Errorf("cannot read the state file: %v", err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s is not a state file: %v", path, err)
	}
	if f.Status == "" || f.Iteration < 0 {
		return f, fmt.Errorf("%s is not a state file: it has no status or no iteration", path)
	}
	return f, nil
}

// KeepAside renames a state file that cannot be used, so that nothing is lost. It
// renames nothing outside of the work tree, whatever link is on the way.
func KeepAside(path string) (string, error) {
	to := path + ".corrupt-" + time.Now().Format("20060102-150405.000")
	top := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	root, err := os.OpenRoot(top)
	if err != nil {
		return "", fmt.Errorf("cannot rename the state file: %v", err)
	}
	defer func() { _ = root.Close() }()
	at := func(name string) string { return filepath.Join(".pawl", "state", filepath.Base(name)) }
	if err := root.Rename(at(path), at(to)); err != nil {
		return "", fmt.Errorf("cannot rename the state file: %v", err)
	}
	return to, nil
}

// saveStateFile writes the image of the current state. A run that completed
// leaves no file. That it cannot be written is said once and changes nothing.
func (d *Driver) saveStateFile(last bool) {
	if d.homeless() != "" {
		return // the run says so, and no folder is made in its place
	}
	var err error
	if last && d.state.Status == loop.Completed {
		err = files.RemoveBelow(d.plan.Root, stateFileName(d.plan.Name))
	} else {
		err = d.writeStateFile()
	}
	if err != nil && !d.stale {
		d.warn(fmt.Sprintf("the state file is not up to date: %v. The run goes on", err))
	}
	d.stale = err != nil
}

func (d *Driver) writeStateFile() error {
	data, err := json.MarshalIndent(d.stateFile(), "", "  ")
	if err != nil {
		return err
	}
	// While the run goes on, the next iteration writes it again, and the
	// database rules; only what stays must outlive a power loss.
	return files.ReplaceBelow(d.plan.Root, stateFileName(d.plan.Name), append(data, '\n'), 0o600, !d.state.Status.Active())
}

// stateFile is the state file for the current state.
func (d *Driver) stateFile() StateFile {
	s := d.state
	f := StateFile{
		Iteration: s.Iteration, MaxIterations: s.Limit, ConsecutiveFailures: s.Guards.Failures,
		FailureThreshold: s.Policy.FailureThreshold,
		StartedAt:        s.StartedAt.UTC().Truncate(time.Second), LastIterationAt: s.LastAt.UTC().Truncate(time.Second),
		Status: string(s.Status), ProcedureName: d.plan.Name,
		ElapsedPerIteration: make([]string, len(d.elapsed)), Run: d.id, Why: s.Why,
	}
	for i, e := range d.elapsed {
		f.ElapsedPerIteration[i] = fmt.Sprintf("%.1fs", e.Seconds())
	}
	if n := len(s.Recent); n > 0 && s.Recent[n-1].Cut {
		f.InterruptedIteration = s.Recent[n-1].Number
	}
	if s.Status.Active() {
		f.Next = s.Iteration + 1
		f.Owner = &d.self
	}
	return f
}

// OwnerOf is a process as the database knows it.
func OwnerOf(id process.Identity) store.Owner {
	return store.Owner{PID: id.PID, Start: fmt.Sprint(id.Start), Boot: id.Boot + " " + id.Space, Host: id.Host}
}

// Alive says whether a run's owner lives, or may live.
func Alive(o store.Owner) bool {
	if o.PID == 0 {
		return false
	}
	id := process.Identity{PID: o.PID, Host: o.Host}
	if _, err := fmt.Sscan(o.Start, &id.Start); err != nil {
		return true
	}
	id.Boot, id.Space, _ = strings.Cut(o.Boot, " ")
	return process.Alive(id)
}

// Archive ends a run that nobody will go on with, and what of it still runs.
// Its history stays.
func Archive(ctx context.Context, db *store.Store, id, why string) error {
	self, err := process.Self()
	if err != nil {
		return fmt.Errorf("cannot archive run %s: %v", id, err)
	}
	run, err := db.Take(ctx, id, OwnerOf(self), Alive)
	if err != nil {
		return err
	}
	if _, err := process.Sweep(ctx, supervisor.Mark(id), sweepGrace); err != nil {
		return fmt.Errorf("cannot end what run %s left: %v", id, err)
	}
	now := time.Now()
	if loop.Status(run.Status).Active() {
		run.Status = string(loop.Interrupted)
	} else if err := discard(&run, why); err != nil {
		return err
	}
	run.Why, run.EndedAt, run.UpdatedAt = why, now, now
	e, err := journal.New(id, run.N+1, now, journal.Finished, journal.End{Status: run.Status, Why: why,
		Iteration: run.Iteration, Elapsed: run.Elapsed})
	if err != nil {
		return err
	}
	return db.Commit(ctx, store.Step{Run: run, Event: e, Release: true})
}

// discard lets a run at rest ask for nothing any more.
func discard(run *store.Run, why string) error {
	var s loop.State
	err := json.Unmarshal(run.State, &s)
	if err == nil {
		s.Discard(why)
		run.State, err = json.Marshal(s)
	}
	if err != nil {
		return fmt.Errorf("cannot archive run %s: %v", run.ID, err)
	}
	run.Status = string(s.Status)
	return nil
}

// EndUnattended ends what a run whose pawl is gone still has running.
func EndUnattended(ctx context.Context, runDir, id string) error {
	for _, many := range []bool{true, false} { // in lanes first: the run's mark is on all
		l := newSupervisors(runDir, id, supervisor.Options{})
		l.many = many
		if _, err := l.find(ctx, func(string) bool { return false }, func(string) {}); err != nil {
			return err
		}
	}
	return nil
}

// OwnerDead is true when the state file names an owner that is proved dead.
func (f StateFile) OwnerDead() bool { return f.Owner != nil && !process.Alive(*f.Owner) }

// Import makes a run of a state file of which the database knows nothing: the
// database was lost, or another tool wrote the file. It has the file's counts
// and its maximum, and can be resumed. [ErrNoStateFile] when there is none.
func Import(ctx context.Context, db *store.Store, root, procedure string) (store.Run, error) {
	f, err := ReadStateFile(StateFilePath(root, procedure))
	if err != nil {
		return store.Run{}, err
	}
	st := loop.Status(f.Status)
	if st.Active() {
		if !f.OwnerDead() {
			return store.Run{}, fmt.Errorf("the state file of %s says %q, and nothing proves that it does not run", procedure,
				f.Status)
		}
		st = loop.Interrupted
	}
	self, err := process.Self()
	if err != nil {
		return store.Run{}, fmt.Errorf("cannot import the state file: %v", err)
	}
	state := loop.State{
		Status: st, Why: "imported from its state file", StartedAt: f.StartedAt,
		LastAt: f.LastIterationAt, Iteration: f.Iteration,
		Limit: f.MaxIterations, Strategy: "default", Best: loop.Best{Score: -1},
		Guards: loop.Guards{Failures: f.ConsecutiveFailures},
		Policy: loop.Policy{Kind: loop.Procedure, MaxIterations: f.MaxIterations},
	}
	for _, e := range f.ElapsedPerIteration {
		if d, err := time.ParseDuration(e); err == nil {
			state.Spent.Active += d
		}
	}
	state.Spent.Wall = state.Spent.Active
	return create(ctx, db, root, procedure, state, self)
}

// named is how a run was started whose maximum was named: it holds when the run
// is resumed, whatever the configuration says.
func named(maximum int) json.RawMessage {
	return encode(map[string]any{"flags": map[string]string{"max_iterations": fmt.Sprint(maximum)}})
}

func create(ctx context.Context, db *store.Store, root, procedure string, state loop.State,
	self process.Identity,
) (store.Run, error) {
	now := time.Now()
	data, err := json.Marshal(state)
	if err != nil {
		return store.Run{}, err
	}
	run := store.Run{
		ID: NewID(), Kind: "procedure", Name: procedure, Root: root, Setup: named(state.Limit),
		Status: string(state.Status), Why: state.Why, State: data,
		Iteration: state.Iteration, MaxIterations: state.Limit, Owner: OwnerOf(self),
		StartedAt: state.StartedAt, UpdatedAt: now, Elapsed: state.Spent.Wall,
	}
	e, err := journal.New(run.ID, 1, now, journal.RunCreated, journal.Created{Kind: run.Kind, Name: procedure, Root: root,
		MaxIterations: state.Limit})
	if err != nil {
		return run, err
	}
	if err := db.Create(ctx, run, e, Alive); err != nil {
		return run, err
	}
	e, err = journal.New(run.ID, 2, now, journal.Warning, journal.Notice{Text: "imported from its state file"})
	if err != nil {
		return run, err
	}
	return run, db.Commit(ctx, store.Step{Run: run, Event: e, Release: true})
}
