package hook

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// Command is a command line for sh -c.
type Command struct {
	Line    string
	Timeout time.Duration // positive; then TERM, Options.Grace, KILL
	// Boxed runs it in Options.Box with Options.Environ; else it has the user's
	// own rights and Options.Whole.
	Boxed bool
}

// Receiver gets the events that it names: exactly one of Command,
// Webhook and Desktop is set.
type Receiver struct {
	Label   string // for messages, e.g. "notify[0]"
	Events  []Name
	Command *Command
	Webhook *Webhook
	Desktop bool
	Timeout time.Duration // of Desktop
}

// Options name the receivers of events, and the means.
type Options struct {
	Hooks map[Name]Command // run when the event happens
	Any   *Command         // run at every event, after the event's own; nil is none
	// Receivers get events side by side, each one event after the other.
	Receivers []Receiver

	Root string // the working folder of commands, absolute
	Dir  string // where their input and output is kept while they run
	// Exe and Args start pawl as a supervisor, as in supervisor.Options.
	Exe  string
	Args []string
	// Environ is what boxed commands inherit, and Whole what the others do.
	Environ, Whole []string
	// LeftOut are folders that Whole's PATH lacks: agents may put programs there.
	LeftOut []string
	Box     *sandbox.Policy // nil is no sandbox

	// Backoff are the pauses between the tries of a webhook; nil is 1 s and 5 s.
	Backoff []time.Duration
	// Grace is what a command has after TERM before KILL; 0 is 5 s.
	Grace time.Duration
	// Flush is how long Close waits; 0 is a minute.
	Flush time.Duration

	Log *slog.Logger // nil logs nothing
	// Say shows the person a problem, each once; it may be called from any
	// goroutine.
	Say func(string)
}

const (
	maxWaiting = 256 // tasks that are waiting or under way
	maxAtOnce  = 4   // tasks under way
	flushBound = time.Minute
	maxSaid    = 50 // different problems that a person is shown
)

// Runner carries out what is fired. Its methods may be called from any
// goroutine. A nil Runner does nothing.
type Runner struct {
	o     Options
	lanes *lanes
	web   *sender
	work  context.Context // done: what is under way is ended
	stop  context.CancelFunc
	tidy  sync.Once

	mu   sync.Mutex
	said map[string]bool
}

// None reports whether there is no receiver.
func (o Options) None() bool { return len(o.Hooks) == 0 && o.Any == nil && len(o.Receivers) == 0 }

// New returns a runner for o. It starts nothing before the first event. It is
// nil when o has no receiver.
func New(o Options) *Runner {
	if o.None() {
		return nil
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Flush <= 0 {
		o.Flush = flushBound
	}
	if o.Backoff == nil {
		o.Backoff = []time.Duration{time.Second, 5 * time.Second}
	}
	r := &Runner{o: o, lanes: newLanes(maxAtOnce, maxWaiting), web: newSender(o.Backoff), said: map[string]bool{}}
	r.work, r.stop = context.WithCancel(context.Background())
	return r
}

// Delivery is how telling one of them went.
type Delivery struct {
	To      string        `json:"to"`   // e.g. "hooks.on_start", "notify[0]"
	Kind    string        `json:"kind"` // command, webhook, desktop
	Elapsed time.Duration `json:"-"`
	Problem string        `json:"problem,omitempty"` // "" when it went well
	Output  string        `json:"output,omitempty"`  // of a command, its end
}

// job is one delivery to be made.
type job struct {
	to, kind string
	hook     bool
	deliver  func(ctx context.Context) (output string, err error)
}

// Fire delivers e: to the event's own hook, then the general one, and every
// receiver that wants the event. It returns at once. A done ctx withholds
// nothing: people want to know of a run that is being stopped.
func (r *Runner) Fire(_ context.Context, e Event) {
	if r != nil {
		r.queueAll(e, nil)
	}
}

// Await is Fire for each of events, and waits until their hooks are over, which
// their time limits bound, or ctx ends. What becomes of them makes no
// difference.
func (r *Runner) Await(ctx context.Context, events ...Event) {
	if r == nil {
		return
	}
	var over sync.WaitGroup
	for _, e := range events {
		r.queueAll(e, &over)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		over.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// queueAll queues the deliveries of e. over, which may be nil, counts its hooks.
func (r *Runner) queueAll(e Event, over *sync.WaitGroup) {
	e = e.completeEvent(time.Now())
	for _, j := range append(r.hookJobs(e), r.receiverJobs(e, false)...) {
		done := func() {}
		if over != nil && j.hook {
			over.Add(1)
			done = over.Done
		}
		r.queueJob(e, j, done)
	}
}

// Try delivers to all receivers, also those that do not want the event, one after the
// other, and returns how it went.
func (r *Runner) Try(ctx context.Context, e Event) []Delivery {
	if r == nil {
		return nil
	}
	e = e.completeEvent(time.Now())
	return lists.Each(r.receiverJobs(e, true), func(j job) Delivery { return r.deliverJob(ctx, j) })
}

// Close waits for what was fired, a bounded time and no longer than ctx, ends
// what is still under way then, and waits for its end. Events that are fired
// afterwards are lost.
func (r *Runner) Close(ctx context.Context) {
	if r == nil {
		return
	}
	idle := r.lanes.closeLanes()
	timer := time.NewTimer(r.o.Flush)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-ctx.Done():
	}
	r.stop()
	<-idle
	r.web.closeIdle()
}

// hookJobs are the commands of e: the specific before the general.
func (r *Runner) hookJobs(e Event) []job {
	var jobs []job
	if c, ok := r.o.Hooks[e.Name]; ok {
		jobs = append(jobs, r.commandJob(Key(e.Name), c, e))
	}
	if r.o.Any != nil {
		jobs = append(jobs, r.commandJob(GeneralKey, *r.o.Any, e))
	}
	for i := range jobs {
		jobs[i].hook = true
	}
	return jobs
}

// GeneralKey is the key of the hook that every event has.
const GeneralKey = "hooks.on_event"

// Key is the key of an event's own hook in the configuration.
func Key(n Name) string {
	if n == PreMerge || n == PostMerge {
		return "hooks." + string(n)
	}
	return "hooks.on_" + string(n)
}

func (r *Runner) receiverJobs(e Event, all bool) []job {
	var jobs []job
	for _, to := range r.o.Receivers {
		if !all && !to.wantsEvent(e) {
			continue
		}
		switch {
		case to.Command != nil:
			jobs = append(jobs, r.commandJob(to.Label, *to.Command, e))
		case to.Webhook != nil:
			jobs = append(jobs, job{to: to.Label, kind: "webhook", deliver: func(ctx context.Context) (string, error) {
				return "", r.web.sendWebhook(ctx, *to.Webhook, e)
			}})
		case to.Desktop:
			jobs = append(jobs, job{to: to.Label, kind: "desktop", deliver: func(ctx context.Context) (string, error) {
				return r.showOnDesktop(ctx, to.Timeout, e)
			}})
		}
	}
	return jobs
}

// wantsEvent reports whether the event goes to this receiver. The end of a run that asks a
// person something is sent once, as an escalation.
func (to *Receiver) wantsEvent(e Event) bool {
	if e.asks && slices.Contains(to.Events, Escalation) {
		return false
	}
	return slices.Contains(to.Events, e.Name)
}

func (r *Runner) commandJob(to string, c Command, e Event) job {
	return job{to: to, kind: "command", deliver: func(ctx context.Context) (string, error) {
		p := program{args: []string{"sh", "-c", c.Line}, timeout: c.Timeout, env: r.o.Whole, left: r.o.LeftOut}
		if c.Boxed {
			p.env, p.box, p.left = r.o.Environ, r.o.Box, nil
		}
		return r.runProgram(ctx, p, e)
	}}
}

// queueJob hands j to its lane: hooks of one run in order, and each receiver's
// deliveries in order. over is called when j is done or dropped.
func (r *Runner) queueJob(e Event, j job, over func()) {
	lane := j.to
	if j.hook {
		lane = "hooks of " + e.Case + "/" + e.Run
	}
	log := r.o.Log.With("to", j.to, "event", string(e.Name), "run", e.Run, "case", e.Case)
	ok := r.lanes.enqueueTask(lane, func() {
		defer over()
		d := r.deliverJob(r.work, j)
		if d.Problem == "" {
			log.Info("told", "elapsed", d.Elapsed.Seconds())
			return
		}
		log.Warn("not sent", "elapsed", d.Elapsed.Seconds(), "problem", d.Problem, "output", d.Output)
		r.reportOnce(fmt.Sprintf("%s: %s", d.To, d.Problem))
	})
	if !ok {
		over()
		log.Warn("not sent: too many are waiting, or pawl ends")
		r.reportOnce(j.to + ": some events were not sent: too many are waiting")
	}
}

func (r *Runner) deliverJob(ctx context.Context, j job) Delivery {
	d := Delivery{To: j.to, Kind: j.kind}
	began := time.Now()
	output, err := j.deliver(ctx)
	d.Elapsed, d.Output = time.Since(began), output
	if err != nil {
		d.Problem = makePrintable(strings.TrimSpace(err.Error()), maxText)
	}
	return d
}

// reportOnce shows a person a problem the first time.
func (r *Runner) reportOnce(text string) {
	r.mu.Lock()
	first := !r.said[text] && len(r.said) < maxSaid
	if first {
		r.said[text] = true
	}
	r.mu.Unlock()
	if first {
		r.o.Say(text)
	}
}

// lanes carries tasks out: those of one lane in order, those of several lanes
// side by side, no more than slots at once and most waiting in all.
type lanes struct {
	most  int
	slots chan struct{}
	busy  sync.WaitGroup

	mu     sync.Mutex
	last   map[string]chan struct{} // of each lane, closed when its last task is over
	count  int                      // waiting and under way
	closed bool
}

func newLanes(slots, most int) *lanes {
	return &lanes{most: most, slots: make(chan struct{}, slots), last: map[string]chan struct{}{}}
}

// enqueueTask is false when there is no room, or after close.
func (l *lanes) enqueueTask(lane string, task func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.count >= l.most {
		return false
	}
	l.count++
	before, over := l.last[lane], make(chan struct{})
	l.last[lane] = over
	l.busy.Go(func() {
		if before != nil {
			<-before
		}
		l.slots <- struct{}{}
		task()
		<-l.slots
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.count--; l.last[lane] == over {
			delete(l.last, lane)
		}
		close(over)
	})
	return true
}

// closeLanes takes no more tasks; idle is closed when those that are there are done.
func (l *lanes) closeLanes() (idle <-chan struct{}) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.busy.Wait()
	}()
	return done
}
