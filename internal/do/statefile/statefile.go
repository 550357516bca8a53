// Package statefile reads and writes .pawl/state/<procedure>.json.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// File is .pawl/state/<procedure>.json: an image of the run for people
// and scripts, and what a run resumes from when the database is lost. Scripts
// read the first nine keys, which keep their order.
type File struct {
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

// OwnerDead is true when the state file names an owner that is proved dead.
func (f File) OwnerDead() bool { return f.Owner != nil && !process.Alive(*f.Owner) }

// Path of the state file of a procedure.
func Path(root, procedure string) string { return filepath.Join(root, fileName(procedure)) }

// Remove removes a procedure's, where there is one.
func Remove(root, procedure string) error {
	return files.RemoveBelow(root, fileName(procedure))
}

// fileName is the state file as seen from the root.
func fileName(procedure string) string {
	name := strings.NewReplacer("/", "_", "\\", "_", "\x00", "_").Replace(procedure)
	return filepath.Join(".pawl", "state", name+".json")
}

// maxSize is the size in bytes over which a state file is not read.
const maxSize = 16 << 20

// ErrNone is that there is none.
var ErrNone = errors.New("no state file")

// Read reads a state file. [ErrNone] when there is none; any
// other error means that it is not readable as one.
func Read(path string) (File, error) {
	var f File
	root := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	data, err := files.ReadBelow(root, filepath.Join(".pawl", "state", filepath.Base(path)), maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return f, ErrNone
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

// Write writes a procedure's. With durable it outlives a power loss.
func Write(root, procedure string, f File, durable bool) error {
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return files.ReplaceBelow(root, fileName(procedure), append(data, '\n'), 0o600, durable)
}
