package cluster

import (
	"context"
	"fmt"
	"log/slog"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"

	"github.com/pawl-dev/pawl/internal/cluster/flow"
)

// Address is where the engine is.
type Address struct {
	HostPort, Namespace string
	Log                 *slog.Logger // nil logs nothing
}

// Dial connects to the engine. What is sent is compressed: states and records
// repeat themselves, and a history has a limit.
func Dial(ctx context.Context, a Address) (client.Client, error) {
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	c, err := client.DialContext(ctx, client.Options{
		HostPort: a.HostPort, Namespace: a.Namespace, Logger: sdklog.NewStructuredLogger(a.Log), DataConverter: Converter(),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the engine at %s: %v", a.HostPort, err)
	}
	return c, nil
}

// Converter is how values are sent.
func Converter() converter.DataConverter {
	return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{}))
}

// Begin starts the workflow of a task, or joins the one that is there.
func Begin(ctx context.Context, c client.Client, repo, task string) (client.WorkflowRun, error) {
	q := flow.QueuesOf(repo)
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: flow.TaskID(repo, task), TaskQueue: q.Board, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, flow.TaskName, flow.Begin{Queues: q, Case: task})
	if err != nil {
		return nil, fmt.Errorf("cannot start %s on the engine: %v", task, err)
	}
	return run, nil
}
