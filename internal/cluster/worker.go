package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/internal/cluster/flow"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/files"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/schedule"
)

const (
	// Lease is how long an agent goes on without its worker, and a worker without the
	// engine; shorter than [flow.Heartbeat].
	Lease = 90 * time.Second
	// beatEvery is the time between two heartbeats of an order.
	beatEvery = 5 * time.Second
)

// Options is what a worker works with.
type Options struct {
	Engine client.Client
	Repo   string // names the board on the engine
	Slots  int    // tasks at once
	// Dir is the worker's own folder: its open orders, one file a task.
	Dir string
	// Work does the work of a task; see autopilot.Work.
	Work func(ctx context.Context, task, run string, k engine.Kernel) (schedule.Outcome, queue.Entry)
	Log  *slog.Logger
}

// Worker carries out orders.
type Worker struct {
	o     Options
	name  string
	slots *slots

	mu   sync.Mutex
	open map[string]*session // by task
}

// openOrder is an order that is being carried out, as the next worker finds it.
type openOrder struct {
	Token []byte     `json:"token"`
	Order flow.Order `json:"order"`
}

// Run works until ctx is done, and returns at once then: what runs goes on under
// its lease, and a worker that starts with the same folder goes on with it. So
// the process has to end after it.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the worker's folder: %v", err)
	}
	lock, err := only(ctx, filepath.Join(o.Dir, "lock"))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("cannot name the worker: %v", err)
	}
	sum := sha256.Sum256([]byte(o.Dir))
	name := host + "-" + hex.EncodeToString(sum[:4])
	w := &Worker{o: o, name: name, slots: newSlots(o.Slots), open: map[string]*session{}}
	if err := w.adopt(ctx); err != nil {
		return err
	}
	return w.poll(ctx)
}

// poll takes orders from the queues until ctx is done.
func (w *Worker) poll(ctx context.Context) error {
	q := flow.QueuesOf(w.o.Repo)
	limited, err := w.slots.tuner()
	if err != nil {
		return err
	}
	board := worker.New(w.o.Engine, q.Board, worker.Options{LocalActivityWorkerOnly: true})
	board.RegisterWorkflowWithOptions(flow.Task, workflow.RegisterOptions{Name: flow.TaskName})
	polls := []worker.Worker{board}
	for queue, o := range map[string]worker.Options{
		q.Slots:          {DisableWorkflowWorker: true, Tuner: limited},
		q.Worker(w.name): {DisableWorkflowWorker: true},
	} {
		one := worker.New(w.o.Engine, queue, o)
		one.RegisterActivityWithOptions(w.perform, activity.RegisterOptions{Name: flow.PerformName})
		polls = append(polls, one)
	}
	for _, one := range polls {
		if err := one.Start(); err != nil {
			return fmt.Errorf("cannot take orders from the engine: %v", err)
		}
	}
	<-ctx.Done()
	for _, one := range polls {
		one.Stop()
	}
	return nil
}

// only makes this process the only worker of a folder.
func only(ctx context.Context, path string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := files.Lock(ctx, path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("another worker of this folder runs: give it more slots instead (%v)", err)
	}
	return lock, nil
}

// perform is the activity: it carries one order out.
func (w *Worker) perform(ctx context.Context, o flow.Order) (flow.Answer, error) {
	return w.carryOut(ctx, openOrder{activity.GetInfo(ctx).TaskToken, o})
}

// carryOut has the task's session carry an order out, which is written down
// before and as long as it is open.
func (w *Worker) carryOut(ctx context.Context, o openOrder) (flow.Answer, error) {
	path := w.path(o.Order.Case)
	if err := files.Replace(path, encode(o), 0o600, true); err != nil {
		return flow.Answer{}, fmt.Errorf("cannot write down the order: %v", err)
	}
	s := w.session(ctx, o.Order)
	beating, stop := context.WithCancel(s.ctx)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		w.beat(beating, s, o.Token)
	}()
	defer func() {
		stop()
		<-beats
		_ = os.Remove(path)
	}()
	select {
	case a := <-s.answers:
		return a, nil
	case <-s.ctx.Done():
		<-s.ended
		return flow.Answer{}, context.Cause(s.ctx)
	}
}

// path is where the open order of a task is.
func (w *Worker) path(task string) string {
	return filepath.Join(w.o.Dir, hex.EncodeToString([]byte(task))+".json")
}

// session hands an order to the session of its task, or begins one. A session that
// is at work when another order comes was lost to the engine: it ends first.
func (w *Worker) session(ctx context.Context, o flow.Order) *session {
	for {
		s, mine := w.handOver(ctx, o)
		if mine {
			return s
		}
		s.abandon(errLost)
		<-s.ended
	}
}

func (w *Worker) handOver(ctx context.Context, o flow.Order) (s *session, taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s = w.open[o.Case]; s != nil {
		taken, s.asks = s.asks, false
		if taken {
			s.orders <- o
		}
		return s, taken
	}
	s = &session{
		w: w, task: o.Case, run: o.Run, pending: o.Decision,
		orders: make(chan flow.Order, 1), answers: make(chan flow.Answer), ended: make(chan struct{}),
	}
	if o.Decision != nil {
		_, _, _ = s.follow(*o.Decision)
	}
	s.ctx, s.abandon = context.WithCancelCause(context.WithoutCancel(ctx))
	w.open[o.Case] = s
	w.slots.take()
	go s.work()
	return s, true
}

// ask notes that a session waits for an order.
func (w *Worker) ask(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.asks = true
}

func (w *Worker) close(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, s.task)
	w.slots.give()
}

// beat tells the engine that an order is being carried out. When it hears nothing
// for the length of the lease, or that the order is no more, the session ends.
func (w *Worker) beat(ctx context.Context, s *session, token []byte) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	accepted := time.Now()
	for {
		call, cancel := context.WithTimeout(ctx, beatEvery)
		err := w.o.Engine.RecordActivityHeartbeat(call, token)
		cancel()
		var gone *serviceerror.NotFound
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			accepted = time.Now()
		case errors.As(err, &gone), time.Since(accepted) > Lease:
			w.o.Log.Warn("the order is given up", "task", s.task, "error", err)
			s.abandon(errLost)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// adopt goes on with the orders that a worker before left open.
func (w *Worker) adopt(ctx context.Context) error {
	left, err := filepath.Glob(filepath.Join(w.o.Dir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range left {
		var o openOrder
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &o)
		}
		if err != nil {
			return fmt.Errorf("cannot read what the worker before left in %s: %v", path, err)
		}
		w.o.Log.Info("goes on with what the worker before began", "task", o.Order.Case)
		go w.complete(ctx, o)
	}
	return nil
}

// complete carries out an adopted order and answers it under its token.
func (w *Worker) complete(ctx context.Context, o openOrder) {
	a, err := w.carryOut(context.WithoutCancel(ctx), o)
	if errors.Is(err, errLost) {
		return // nobody waits for it
	}
	if cerr := w.o.Engine.CompleteActivity(context.WithoutCancel(ctx), o.Token, a, err); cerr != nil {
		w.o.Log.Warn("the answer does not reach the engine", "task", o.Order.Case, "error", strings.TrimSpace(cerr.Error()))
	}
}
