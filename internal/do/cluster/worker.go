package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/flow"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Options are the settings of a worker.
type Options struct {
	Engine client.Client
	Repo   string // names the board on the engine
	Offer  autopilot.Offer
	// Dir is the worker's own folder: its open orders, one file a task.
	Dir string
	// Work does the work of a task; see autopilot.Work.
	Work func(ctx context.Context, o flow.Order, placed store.Order, k engine.Kernel) (schedule.Outcome, queue.Entry)
	// Placed is what the board has ordered for a task; else the error is [store.ErrNoOrder].
	// Nil believes the engine.
	Placed func(ctx context.Context, task string) (store.Order, error)
	// Believe puts what the board knows in the place of what an order says, and refuses what cannot be.
	Believe func(ctx context.Context, placed store.Order, o *flow.Order) error
	// Ended stores the result of an order.
	Ended func(ctx context.Context, o store.Order) error
	// Warn gets a text for a person; nil is not called.
	Warn func(text string)
	// Push sends what an iteration left to other machines; nil where there are none.
	Push func(ctx context.Context, task, run string) *loop.Pushed
	// Seen gets now and then what the worker has. It must be quick. Its error ends the
	// worker: a [store.TwinError].
	Seen func(ctx context.Context, used int, drains bool) error
	// Look finds out what the worker lacks, and returns true where that has changed; nil is never asked.
	Look func(ctx context.Context) bool
	// Same is [store.ErrGone] once the board is another one, which ends the worker; nil is never asked.
	Same func(ctx context.Context) error
	// Waits gets the reason why the worker does not begin yet.
	Waits func(why error)
	// Gone is called when the worker of the folder has ended.
	Gone func(ctx context.Context)
	// Heartbeat is that of the orders.
	Heartbeat time.Duration
	Log       *slog.Logger
}

// agentLease is how long an agent works without its worker: 90 seconds of 120.
func (o *Options) agentLease() time.Duration { return o.Heartbeat * 3 / 4 }

// engineSilenceLimit is how long a worker works at an order without an answer of the engine: 150
// seconds of 120. The engine waits for it half of a heartbeat longer than that is.
func (o *Options) engineSilenceLimit() time.Duration { return o.Heartbeat * 5 / 4 }

// beatEvery is the time between two heartbeats of an order: 5 seconds of 120.
func (o *Options) beatEvery() time.Duration { return o.Heartbeat / 24 }

// workerNameOf names the worker that has a folder.
func workerNameOf(dir string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("cannot name the worker: %v", err)
	}
	sum := sha256.Sum256([]byte(dir))
	return host + "-" + hex.EncodeToString(sum[:4]), nil
}

// Worker carries out orders.
type Worker struct {
	o     Options
	name  string
	slots *slots

	mu      sync.Mutex
	open    map[string]*session // by task
	refused map[string]bool     // tasks with orders that the board did not give
	drains  bool                // nothing new is begun; set by its owner, the goroutine of Run
	busy    sync.WaitGroup      // sessions, and answers to adopted orders
}

// openOrder is an order that is being carried out, as the next worker finds it.
type openOrder struct {
	Token    []byte     `json:"token"`
	Workflow string     `json:"workflow,omitempty"`
	Of       string     `json:"of,omitempty"` // the execution of the workflow that gave it
	Order    flow.Order `json:"order"`

	placed store.Order // as the board has it
}

// Run works until ctx is done. Then it begins nothing new, and returns when what runs
// has come to the end of its iteration, or [autopilot.Offer.Drain] is over: what still
// runs then continues under its lease, and a worker that starts with the same folder
// adopts it. So the process has to end after it.
func Run(ctx context.Context, o Options) error {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("cannot create the worker's folder: %v", err)
	}
	lock, err := lockFolder(ctx, o.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if o.Gone != nil {
		defer o.Gone(context.WithoutCancel(ctx))
	}
	if err := noteOwner(o.Dir); err != nil {
		return err
	}
	if err := o.announceWorker(ctx); err != nil {
		return err
	}
	name, err := workerNameOf(o.Dir)
	if err != nil {
		return err
	}
	if o.Offer.Begins != nil {
		o.Offer.Begins()
	}
	w := &Worker{o: o, name: name, slots: newSlots(o.Offer.Slots), open: map[string]*session{},
		refused: map[string]bool{}}
	if err := w.adoptOrders(ctx); err != nil {
		return err
	}
	return w.pollQueues(ctx)
}

// announceWorker stores that the worker is there. Where another machine has its name it waits until that
// one beats again, which is an error, or is gone: it may be this one, before it was
// started again.
func (o *Options) announceWorker(ctx context.Context) error {
	for heard := (time.Time{}); o.Seen != nil; {
		err := o.Seen(ctx, 0, false)
		twin, ok := errors.AsType[*store.TwinError](err)
		switch {
		case !ok:
			return err
		case heard.IsZero():
			heard = twin.Worker.BeatAt
			o.Waits(err)
		case twin.Worker.BeatAt.After(heard):
			return refuseTwin(twin)
		}
		if !process.Sleep(ctx, time.Second) {
			return refuseTwin(twin)
		}
	}
	return nil
}

// refuseTwin advises what to do about two machines that are one by name.
func refuseTwin(t *store.TwinError) error {
	return fault.Refuse("%v", t).
		Hint("Give each machine a host name of its own, then start the worker: hostnamectl set-hostname NAME")
}

// pollQueues takes orders from the queues until ctx is done.
func (w *Worker) pollQueues(ctx context.Context) error {
	q := flow.QueuesOf(w.o.Repo)
	limited, err := w.slots.newWorkerTuner()
	if err != nil {
		return err
	}
	board := worker.New(w.o.Engine, q.Board, worker.Options{LocalActivityWorkerOnly: true})
	board.RegisterWorkflowWithOptions(flow.Task, workflow.RegisterOptions{Name: flow.TaskName})
	sent := min(w.o.Offer.Drain, sending)
	options := worker.Options{DisableWorkflowWorker: true, WorkerStopTimeout: sent}
	own := worker.New(w.o.Engine, q.Worker(w.name), options)
	own.RegisterActivityWithOptions(w.performOwn, activity.RegisterOptions{Name: flow.PerformName})
	anyones := []worker.Worker{}
	for _, queue := range q.Serves(w.o.Offer.Labels) {
		one := worker.New(w.o.Engine, queue,
			worker.Options{DisableWorkflowWorker: true, Tuner: limited, WorkerStopTimeout: sent})
		one.RegisterActivityWithOptions(w.performOrder, activity.RegisterOptions{Name: flow.PerformName})
		anyones = append(anyones, one)
	}
	all := append([]worker.Worker{board, own}, anyones...)
	for _, one := range all {
		if err := one.Start(); err != nil {
			return fmt.Errorf("cannot take orders from the engine: %v", err)
		}
	}
	err = w.showWorker(ctx)
	for _, one := range all {
		one.Stop()
	}
	return err
}

// sending is how long a worker that drained waits until the engine has its answers.
const sending = 5 * time.Second

// lockFolder makes this process the only worker of a folder.
func lockFolder(ctx context.Context, dir string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock, err := files.Lock(ctx, filepath.Join(dir, "lock"))
	if errors.Is(err, context.DeadlineExceeded) {
		by := "another process"
		if id, err := lastOwnerOf(dir); err == nil {
			by = fmt.Sprintf("process %d", id.PID)
		}
		return nil, fault.Refuse("a worker of this repository is already running here: %s", by).
			Hint("To work on more tasks at once, stop it and start it with more slots: pawl-cluster worker --slots N")
	}
	return lock, err
}

// performOrder is the activity: it carries one order out, if there is room for its task.
func (w *Worker) performOrder(ctx context.Context, o flow.Order) (flow.Answer, error) {
	return w.carryOut(ctx, newOpenOrder(ctx, o), true)
}

// performOwn is the same for an order that is for this worker.
func (w *Worker) performOwn(ctx context.Context, o flow.Order) (flow.Answer, error) {
	return w.carryOut(ctx, newOpenOrder(ctx, o), false)
}

func newOpenOrder(ctx context.Context, o flow.Order) openOrder {
	i := activity.GetInfo(ctx)
	return openOrder{Token: i.TaskToken, Workflow: i.WorkflowExecution.ID, Of: i.WorkflowExecution.RunID, Order: o}
}

// carryOut has the task's session carry an order out, which is written down
// before and as long as it is open.
// With limited it is refused while there is no room for another task.
func (w *Worker) carryOut(ctx context.Context, o openOrder, limited bool) (flow.Answer, error) {
	path := w.orderPath(o.Order.Case)
	if err := w.checkOrder(ctx, &o); err != nil {
		return flow.Answer{}, err
	}
	if err := files.Replace(path, encodeJSON(o), 0o600, true); err != nil {
		return flow.Answer{}, fmt.Errorf("cannot store the order: %v", err)
	}
	s, c := w.sessionFor(ctx, o, limited)
	if s == nil {
		_ = os.Remove(path)
		return flow.Answer{}, temporal.NewNonRetryableApplicationError("the worker has no room", flow.NoRoom, nil)
	}
	beating, stop := context.WithCancel(s.ctx)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		w.beatOrder(beating, s, o)
	}()
	a, err := w.awaitAnswer(s, c)
	stop()
	<-beats
	if !errors.Is(err, errAgain) {
		_ = os.Remove(path)
	}
	w.detachCarrier(s, c)
	return a, err
}

// awaitAnswer of the session to the order that c carries.
func (w *Worker) awaitAnswer(s *session, c *carrier) (flow.Answer, error) {
	select {
	case a := <-s.answers:
		w.mu.Lock()
		defer w.mu.Unlock()
		s.owes = false
		if s.refuses {
			return flow.Answer{}, temporal.NewNonRetryableApplicationError(a.Result.Outcome.Why, flow.Unfit, nil, w.name)
		}
		return a, nil
	case <-c.again:
		return flow.Answer{}, errAgain
	case <-s.ctx.Done():
		<-s.ended
		return flow.Answer{}, context.Cause(s.ctx)
	}
}

// detachCarrier has the carrier no longer wait for the session.
func (w *Worker) detachCarrier(s *session, c *carrier) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.carrier = nil
	close(c.left)
}

// orderPath is the file of the open order of a task.
func (w *Worker) orderPath(task string) string {
	return filepath.Join(w.o.Dir, hex.EncodeToString([]byte(task))+".json")
}

// sessionFor hands an order to the session of its task, or begins one; nil is that there
// is no room for it. The order that it is at may come again, since the engine does not know
// of it: then it continues, and answers the new one. A session that is at work when another
// order comes, or waits for another one, was lost to the engine: it ends first.
func (w *Worker) sessionFor(ctx context.Context, o openOrder, limited bool) (*session, *carrier) {
	for {
		s, c, mine := w.assignOrder(ctx, o, limited)
		switch {
		case mine:
			return s, c
		case c != nil:
			c.leave()
			<-c.left
		default:
			s.abandon(errLost)
			<-s.ended
		}
	}
}

// assignOrder returns the session that takes the order, and who waits for its answer. Without
// taken it returns who waits for the same order, or else a session that has to end before.
func (w *Worker) assignOrder(ctx context.Context, given openOrder, limited bool) (s *session, c *carrier, taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := given.Order
	if s = w.open[o.Case]; s != nil {
		a, same := s.asks, o.Decision != nil && s.owes && s.seq == o.Decision.State.Seq
		switch {
		case same && s.carrier != nil:
			return s, s.carrier, false
		case same:
			c = s.carryOrder(o)
			return s, c, true
		case a == nil, !a.answeredBy(o) && !a.isSameOrder(o):
			return s, nil, false
		}
		s.asks = nil
		if w.drains {
			s.orders <- flow.Order{} // it ends, and the order is another worker's
			return nil, nil, true
		}
		s.orders <- o
		c = s.carryOrder(o)
		return s, c, true
	}
	if w.drains || !w.slots.takeSlot(limited) {
		return nil, nil, true
	}
	s = &session{
		w: w, first: o, placed: given.placed, of: given.Of, task: o.Case, run: o.Run, pending: o.Decision,
		orders: make(chan flow.Order, 1), answers: make(chan flow.Answer), ended: make(chan struct{}),
	}
	if o.Decision != nil {
		_, _, _ = s.followDecision(*o.Decision)
	}
	s.ctx, s.abandon = context.WithCancelCause(context.WithoutCancel(ctx))
	w.open[o.Case] = s
	c = s.carryOrder(o)
	w.busy.Go(s.workSession)
	return s, c, true
}

// setAsked notes that a session waits for an order.
func (w *Worker) setAsked(s *session, a *asked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.asks = a
}

// asksNoMore notes that a session waits no more; false when its order is on the way.
func (w *Worker) asksNoMore(s *session) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := s.asks != nil
	s.asks = nil
	return asked
}

func (w *Worker) closeSession(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, s.task)
	w.slots.giveSlot()
}

// beatOrder reports to the engine that an order is being carried out. The session ends when the
// order is no more, or the engine does not answer for too long. An order that the engine gave
// up since it was away itself may come again: that is waited for as long.
func (w *Worker) beatOrder(ctx context.Context, s *session, o openOrder) {
	tick := time.NewTicker(w.o.beatEvery())
	defer tick.Stop()
	accepted := time.Now()
	for {
		asked := time.Now()
		call, cancel := context.WithTimeout(ctx, min(w.o.agentLease()/3, w.o.engineSilenceLimit()-time.Since(accepted)))
		err := w.o.Engine.RecordActivityHeartbeat(call, o.Token)
		ended := fault.Is[*serviceerror.NotFound](err) && !w.mayComeAgain(call, o)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			accepted = asked
		case ended, time.Since(accepted) >= w.o.engineSilenceLimit():
			w.o.Log.Warn("the order is dropped", "task", s.task, "error", err)
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

// mayComeAgain is true unless the workflow that gave an order has ended. An order to take a
// task up is anybody's.
func (w *Worker) mayComeAgain(ctx context.Context, o openOrder) bool {
	if o.Order.Decision == nil {
		return false
	}
	d, err := w.o.Engine.DescribeWorkflowExecution(ctx, o.Workflow, o.Of)
	if err != nil {
		return !fault.Is[*serviceerror.NotFound](err)
	}
	return d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// adoptOrders resumes the orders that a worker before left open.
func (w *Worker) adoptOrders(ctx context.Context) error {
	left, err := openOrders(w.o.Dir)
	for _, o := range left {
		w.o.Log.Info("continues what the previous worker started", "task", o.Order.Case)
		w.busy.Go(func() { w.completeOrder(ctx, o) })
	}
	return err
}

// completeOrder carries out an adopted order and answers it under its token.
func (w *Worker) completeOrder(ctx context.Context, o openOrder) {
	a, err := w.carryOut(context.WithoutCancel(ctx), o, false)
	if errors.Is(err, errLost) || errors.Is(err, errAgain) {
		return // it is not waited for
	}
	if cerr := w.o.Engine.CompleteActivity(context.WithoutCancel(ctx), o.Token, a, err); cerr != nil {
		text := strings.TrimSpace(cerr.Error())
		w.o.Log.Warn("cannot send the answer to the engine", "task", o.Order.Case, "error", text)
	}
}
