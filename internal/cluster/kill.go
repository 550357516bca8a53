package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/process"
)

// owner is the file in a worker's folder that says which process it is.
const owner = "owner"

// own notes that this process is the worker of a folder, which it has locked.
func own(dir string) error {
	self, err := process.Self()
	if err == nil {
		err = files.Replace(filepath.Join(dir, owner), encode(self), 0o600, false)
	}
	return err
}

// Kill ends the worker of a state folder at once, and the agents of the tasks that it
// has. It asks neither the engine nor the database. The tasks, which it returns, are
// another worker's when this one has been silent for [flow.Heartbeat].
func (p Program) Kill(ctx context.Context, stateDir string) (worked bool, tasks []string, err error) {
	dir := filepath.Join(stateDir, "worker")
	if data, err := os.ReadFile(filepath.Join(dir, owner)); err == nil {
		var id process.Identity
		if err := json.Unmarshal(data, &id); err != nil {
			return false, nil, fmt.Errorf("cannot tell which process the worker is: %v", err)
		}
		err := id.Signal(syscall.SIGKILL)
		if err != nil && !errors.Is(err, os.ErrProcessDone) {
			return false, nil, fmt.Errorf("cannot end the worker, process %d: %v", id.PID, err)
		}
		worked = err == nil && id.AwaitEnd(ctx)
	}
	if _, err := os.Stat(dir); err != nil {
		return false, nil, nil
	}
	lock, err := only(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return worked, nil, err
	}
	defer func() { _ = lock.Close() }()
	left, err := openOrders(dir)
	for path, o := range left {
		tasks = append(tasks, o.Order.Case)
		if run := o.Order.Run; run != "" && err == nil {
			err = engine.EndUnattended(ctx, filepath.Join(stateDir, "runs", run), run)
		}
		if err == nil {
			err = os.Remove(path)
		}
	}
	return worked, tasks, err
}

// openOrders are those that a worker left in its folder, by their files.
func openOrders(dir string) (map[string]openOrder, error) {
	left, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	orders := map[string]openOrder{}
	for _, path := range left {
		var o openOrder
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &o)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read what the worker before left in %s: %v", path, err)
		}
		orders[path] = o
	}
	return orders, nil
}
