package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/store"
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
	if d.homeless() {
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
