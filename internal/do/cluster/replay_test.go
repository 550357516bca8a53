package cluster_test

import (
	"flag"
	"os"
	"testing"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/do/cluster"
)

var rewrite = flag.Bool("rewrite", false, "store the history of a task anew")

// stored is the history of a task of two iterations, as an earlier pawl made it.
const stored = "testdata/task.json"

// keepHistory stores what the engine has of the task, where it is asked for.
func (d *desk) keepHistory() {
	d.t.Helper()
	if !*rewrite {
		return
	}
	c, err := cluster.Dial(d.t.Context(), d.at(), nil)
	must(d.t, err)
	defer c.Close()
	var h history.History
	o, err := d.store.Order(d.t.Context(), "task-001")
	must(d.t, err)
	events := c.GetWorkflowHistory(d.t.Context(), o.Workflow, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		must(d.t, err)
		h.Events = append(h.Events, e)
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&h)
	must(d.t, err)
	must(d.t, os.WriteFile(stored, append(data, '\n'), 0o644)) //nolint:gosec // it is committed
}

// A task that began under an earlier pawl goes on under this one: what was decided
// is read from its history, whatever the kernel would decide now.
func TestAStoredHistoryIsReplayed(t *testing.T) {
	t.Parallel()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DataConverter: cluster.Converter()})
	must(t, err)
	r.RegisterWorkflowWithOptions(flow.Task, workflow.RegisterOptions{Name: flow.TaskName})
	must(t, r.ReplayWorkflowHistoryFromJSONFile(nil, stored))
}
