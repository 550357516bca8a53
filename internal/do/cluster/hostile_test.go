package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/cluster"
	"github.com/pawl-dev/pawl/internal/keep/store/postgres"
)

// once is an agent that waits the first time that any of them is started.
const once = `
echo x >> $DIR/starts
echo "$MAX_COST" >> $DIR/limits
if mkdir $DIR/waited 2> $DIR/null; then echo up > $DIR/up; read x < $DIR/go; fi
echo done > "done.$(date +%N)"
echo "<promise>COMPLETE</promise>"
`

// stranger is somebody who reaches the engine, and nothing else.
func (m *team) stranger() client.Client {
	m.t.Helper()
	c, err := cluster.Dial(m.t.Context(), m.machines[0].at(), nil)
	must(m.t, err)
	m.t.Cleanup(c.Close)
	return c
}

// withSettings is an order, or what a workflow begins with, that has settings of a stranger's own.
func withSettings(t *testing.T, v any) (m map[string]any) {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	must(t, json.Unmarshal(data, &m))
	m["asked"] = map[string]string{"loop.max_cost": "666", "loop.safety": "permissive", "agent": "theirs"}
	return m
}

// orders is a workflow that a stranger wrote: it orders what it is told to.
func orders(ctx workflow.Context, queue string, o map[string]any) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: queue, StartToCloseTimeout: time.Hour, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	return workflow.ExecuteActivity(ctx, flow.PerformName, o).Get(ctx, nil)
}

// Somebody who reaches the engine starts workflows of their own: for a task that is worked, one that
// nobody works, one that does not exist, and a run that nobody knows. No worker carries one out, each
// task is told once, and what the board has ordered goes on.
func TestAForeignOrder(t *testing.T) {
	t.Parallel()
	m := newTeam(t, 3, 2, time.Minute, once)
	m.pipes("up", "go")
	for i := range m.machines {
		m.machines[i].Told = filepath.Join(m.dir, "told")
	}
	m.machines[1].start(t)
	ended := m.pilot(0)
	_, err := os.ReadFile(filepath.Join(m.dir, "up"))
	must(t, err)
	m.machines[2].start(t)

	c, q := m.stranger(), flow.QueuesOf("repo")
	own := worker.New(c, "strangers", worker.Options{})
	own.RegisterWorkflow(orders)
	must(t, own.Start())
	defer own.Stop()
	complete := loop.Decide(loop.State{Status: loop.Running}, loop.Event{Kind: loop.StopAsked, At: time.Now(), Cause: loop.CauseStop})
	complete.State.Status = loop.Completed
	var all []client.WorkflowRun
	begin := func(id, queue string, name any, args ...any) {
		t.Helper()
		r, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, name, args...)
		must(t, err)
		all = append(all, r)
	}
	for _, task := range []string{"task-001", "task-002", "task-099"} {
		first := flow.Begin{Queues: q, Case: task, Heartbeat: time.Minute}
		begin("mine:"+task, q.Board, flow.TaskName, withSettings(t, first))
		first.Run, first.Last = "run00000", &complete
		begin("run:"+task, q.Board, flow.TaskName, withSettings(t, first))
		begin("own:"+task, "strangers", orders, q.Slots, withSettings(t, flow.Order{Case: task}))
		begin("done:"+task, "strangers", orders, q.Slots, withSettings(t, flow.Order{Case: task, Run: "run00000", Decision: &complete}))
	}
	for _, r := range all {
		_ = r.Get(t.Context(), nil) // refused
	}
	must(t, os.WriteFile(filepath.Join(m.dir, "go"), []byte("on\n"), 0o600))
	if res := ended(); res.Tally.Landed != 2 || res.Tally.Started != 2 {
		t.Errorf("it ended with %+v", res)
	}
	m.landed(2)
	m.starts(2)
	if limits, err := os.ReadFile(filepath.Join(m.dir, "limits")); err != nil || strings.Contains(string(limits), "666") {
		t.Errorf("the agents were started with %q (%v)", limits, err)
	}
	told, err := os.ReadFile(filepath.Join(m.dir, "told"))
	must(t, err)
	for _, task := range []string{"task-001", "task-002", "task-099"} {
		if n := strings.Count(string(told), "order for "+task); n < 1 || n > 2 { // once a worker
			t.Errorf("%s is told %d times:\n%s", task, n, told)
		}
	}
}

// Somebody who reaches the engine asks the run of a task to stop, and then ends its workflow. The stop
// was asked by nobody of the board, and what was ended is ordered again: the task lands once.
func TestAForeignEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]bool{"it is signalled": false, "it is ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTeam(t, 2, 1, time.Minute, once)
			m.pipes("up", "go")
			m.machines[1].start(t)
			ended := m.pilot(0)
			_, err := os.ReadFile(filepath.Join(m.dir, "up"))
			must(t, err)
			o, err := m.store.Order(t.Context(), "task-001")
			must(t, err)
			run, err := m.store.Latest(t.Context(), "", "task-001")
			must(t, err)
			c, starts := m.stranger(), 1
			if end {
				must(t, c.TerminateWorkflow(t.Context(), o.Workflow, "", "I may"))
				starts = 2
			} else {
				must(t, c.SignalWorkflow(t.Context(), o.Workflow, "", flow.LookName, nil))
				stop := flow.Request{Run: run.ID, Event: loop.Event{Kind: loop.StopAsked, At: time.Now(), Cause: loop.CauseStop}}
				u, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{WorkflowID: o.Workflow, UpdateName: flow.HearName,
					Args: []any{stop}, WaitForStage: client.WorkflowUpdateStageCompleted})
				must(t, err)
				must(t, u.Get(t.Context(), nil))
				must(t, os.WriteFile(filepath.Join(m.dir, "go"), []byte("on\n"), 0o600))
			}
			if res := ended(); res.Tally.Landed != 1 || res.Tally.Started != 1 {
				t.Errorf("it ended with %+v", res)
			}
			m.landed(1)
			m.starts(starts)
		})
	}
}

// The database is put back, or the board dropped and made anew, while an agent works, a worker has nothing to
// do and an autopilot drives them. It is another board to each: they end, with what they run, say so once,
// and change nothing there; not the tasks that get the old ones' numbers either.
func TestTheBoardIsAnother(t *testing.T) {
	t.Parallel()
	schema := postgres.SchemaOf(boardName)
	for name, isBack := range map[string]bool{"put back": true, "made anew": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTeam(t, 3, 1, time.Minute, `
exec 9> $DIR/life
echo up > $DIR/up; read x < $DIR/go
echo one > one.txt
echo "<promise>COMPLETE</promise>"
`)
			m.pipes("up", "go", "life")
			db, _, _ := strings.Cut(m.machines[0].Store, "?")
			db = filepath.Base(db)
			copied := m.database.Dump(t, db, schema)
			var said [3]strings.Builder
			var all []*exec.Cmd
			for i, s := range m.machines {
				s.Pilot = i == 0
				all = append(all, s.startTelling(t, &said[i]))
			}
			life, err := os.Open(filepath.Join(m.dir, "life"))
			must(t, err)
			_, err = os.ReadFile(filepath.Join(m.dir, "up"))
			must(t, err)
			if isBack {
				m.database.PutBack(t, db, schema, copied)
			} else {
				m.database.SQL(t, db, "DROP SCHEMA "+schema+" CASCADE")
				next, err := m.machines[0].open(t.Context())
				must(t, err)
				_, err = next.AddCases(t.Context(), []board.Draft{{Case: board.Case{Title: "Another"}}}, board.Person, time.Now())
				must(t, errors.Join(err, next.Close()))
			}
			before := m.database.Dump(t, db, schema)
			for i, c := range all {
				if err := c.Wait(); err == nil {
					t.Errorf("process %d ended well", i)
				}
				if n := strings.Count(said[i].String(), "was put back from a copy, dropped or made anew"); n != 1 {
					t.Errorf("process %d said it %d times:\n%s", i, n, said[i].String())
				}
			}
			_, err = io.ReadAll(life) // ends with the agent
			must(t, errors.Join(err, life.Close()))
			if m.database.Dump(t, db, schema) != before {
				t.Error("the other board was changed")
			}
		})
	}
}

// startTelling starts a process, and keeps what it says.
func (s site) startTelling(t *testing.T, said io.Writer) *exec.Cmd {
	t.Helper()
	input, err := json.Marshal(s)
	must(t, err)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], workCommand)
	c.Stdin, c.Stderr = strings.NewReader(string(input)), said
	ends(t, c)
	return c
}
