package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Options are what a queue works with.
type Options struct {
	Store *store.Store
	Repo  *git.Repo // see git.OpenStore; a bare one will do
	// Dir is a folder for this repository's queues, outside of it.
	Dir    string
	Target string // the branch: main, or refs/heads/main
	Policy queue.Policy

	SignOff bool // the queue's commits are signed off

	Verifying
	// Proposing is for a policy that lands by pull requests.
	Proposing
	// Environment names what beside tree and gates a verdict depends on.
	Environment string
	// Exe and Args start the supervisor that gates run under, as for a run.
	Exe   string
	Args  []string
	Lease time.Duration
	// Integration gives a folder with a commit checked out, for gates. A process that
	// only adds entries and requests needs none.
	// In one that is closed the level paranoid holds, whatever the level of the queue.
	Integration func(ctx context.Context, commit string, closed bool) (Workspace, error)

	// Resolve runs an agent at a problem, and returns the commit that it made.
	// It may be called again for the same attempt after a crash, or a [*LaterError].
	// Nil: all problems are for people.
	Resolve func(ctx context.Context, p Problem) (commit string, err error)
	// Resolvers is how many of these run at once; 0 is 1.
	Resolvers int

	// Owner is this process; Alive says whether another one lives.
	Owner store.Owner
	Alive func(store.Owner) bool
	// Notify gets the notes of the queue, in order. It must not block.
	Notify func(queue.Note)
	// Before is called before the target is moved, with the entries that land,
	// and waited for. A landing that is tried again calls it again. Nil is
	// not called.
	Before func(ctx context.Context, entries []queue.Entry, commit string)
	// Begins is called with the name of each gate and set-up that begins. Nil is not called.
	Begins func(name string)
	// Again has [Queue.Try] run gates that were green before.
	Again bool
	// Local: no remote is asked or pushed to.
	Local bool
	// Travel is the remote that has the work of other machines; "" where there are none.
	// Where it is set, a landing is pushed before it counts, if the policy pushes.
	Travel string

	point func(name string) // called between the steps of a landing, by tests
}

// Verifying is how merged work is verified.
type Verifying struct {
	Gates []gate.Spec
	// Folder is where pawl.yaml is, below the top of the repository; "" is the top.
	Folder string
	// TaskGates are the checks of one task, which its work has to pass as well. Nil are none.
	TaskGates func(task *board.Case) []gate.Spec
	// RulesAt are the rules that the target's own configuration has at a commit. Nil: they are those of the options.
	RulesAt func(ctx context.Context, commit string) (Rules, error)
	// Regenerate are commands for files that conflict; the first that has one
	// counts. They run as gates do, without a workspace's setup.
	Regenerate []Regeneration
	Protect    gate.Protect // what stays as the target has it, but for an entry's Allow
	Environ    []string     // of gates
}

// Rules are what a verdict is made by.
type Rules struct {
	Gates       []gate.Spec
	TaskGates   func(task *board.Case) []gate.Spec
	Protect     gate.Protect
	Environment string
	Closed      bool // the gates are held to the level paranoid
}

// rulesNow are the rules that hold for what lands on the target as it is.
func (t *target) rulesNow(ctx context.Context) (Rules, error) {
	tip, err := t.Tip(ctx)
	if o := &t.o; err != nil || tip == "" || o.RulesAt == nil {
		return Rules{o.Gates, o.TaskGates, o.Protect, o.Environment, false}, err
	}
	return t.o.RulesAt(ctx, tip)
}

// Workspace is a folder for gates. Done gives it back.
type Workspace struct {
	Dir     string
	Environ []string // variables of its own, such as a base port
	Setup   []string // commands to run before the gates; one that fails is red
	// Box is what the operating system holds gates to; nil is nothing.
	Box *sandbox.Policy
	// Caches are the tools' caches in the box.
	Caches []sandbox.Cache
	Done   func(ctx context.Context)

	guarded []string // files that no gate may write
}

// Problem is what an agent is to solve: make a commit that holds what both the
// entry and the target mean, on top of the target.
type Problem struct {
	Entry   queue.Entry
	Problem queue.Problem
	// Tip is the target's commit now.
	Tip string
	// Landed are the changes on the target that it meets, the last first.
	Landed []git.Landing
}

// Entry is a task's change to land. Commit is in the repository.
type Entry = queue.Entry

// Queue is one target's queue, in this process. It takes in what is asked, drives the
// decisions and has its parts carry them out: each of them knows the target, and conflicts
// use the checks. None of them calls the queue.
type Queue struct {
	*target
	checks    *checks
	conflicts *conflicts
	requests  *requests
	woken     chan struct{} // something may be to be taken in
}

// Open prepares a queue. Nothing is landed before [Queue.Work] or [Queue.Drain].
func Open(ctx context.Context, o Options) (*Queue, error) {
	if o.Target == "" || o.Dir == "" || o.Repo == nil || o.Store == nil {
		return nil, errors.New("cannot open the merge queue: it needs a repository, a folder, a database and a target")
	}
	if o.Alive == nil {
		o.Alive = func(store.Owner) bool { return true }
	}
	if o.Notify == nil {
		o.Notify = func(queue.Note) {}
	}
	if o.point == nil {
		o.point = func(string) {}
	}
	o.Resolvers = max(o.Resolvers, 1)
	o.Policy.Resolve = o.Resolve != nil
	o.Policy.Checks = len(o.Required) > 0 && !o.Policy.Propose
	t := &target{o: o, ref: Ref(o.Target)}
	k := &checks{target: t}
	q := &Queue{
		target: t, checks: k, conflicts: &conflicts{target: t, checks: k, remade: map[string]string{}},
		requests: &requests{target: t}, woken: make(chan struct{}, 1),
	}
	q.o.Policy.Key = recordKey("", Rules{Environment: q.o.Environment}, q.o.Gates, false)
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the merge queue: %v", err)
	}
	var err error
	if q.shadow, err = git.OpenShadow(ctx, o.Repo, o.Repo, filepath.Join(o.Dir, "git")); err != nil {
		return nil, err
	}
	q.shadow.Who.SignsOff = o.SignOff
	if !o.Local {
		err = q.findRemote(ctx)
	}
	return q, err
}

// Ref is the full name of a branch.
func Ref(branch string) string {
	if strings.HasPrefix(branch, "refs/") {
		return branch
	}
	return "refs/heads/" + branch
}

// Add queues a task's change: it is stored when Add returns, and the task is
// in review. Any process may add; the one that works on the queue sees it. A
// later change of a task takes the place of an earlier one. What the task
// needs and has not landed is looked up on the board, if Needs is nil.
func (q *Queue) Add(ctx context.Context, e Entry) error {
	ask, err := q.Offer(ctx, e)
	if err == nil {
		_, err = q.o.Store.AskQueue(ctx, ask)
	}
	q.wakeWorker()
	return err
}

// wakeWorker has the queue's worker look at once.
func (q *Queue) wakeWorker() {
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// Offer prepares what [Queue.Add] stores, for a caller that has more to store in the
// same transaction.
func (q *Queue) Offer(ctx context.Context, e Entry) (store.QueueAsk, error) {
	if err := q.bringWork(ctx, &e); err != nil && !errors.Is(err, errMissing) {
		return store.QueueAsk{}, err
	}
	commit, err := q.o.Repo.Find(ctx, e.Commit)
	if err != nil {
		return store.QueueAsk{}, err
	}
	if commit == "" {
		return store.QueueAsk{}, fmt.Errorf("cannot queue %s: there is no commit %q in the repository", e.ID, e.Commit)
	}
	e.Commit = commit
	if e.Needs == nil {
		if e.Needs, err = q.o.Store.UnmetNeeds(ctx, e.ID); err != nil {
			return store.QueueAsk{}, err
		}
	}
	// The commit stays until it has landed, whatever else points to it.
	if err := q.o.Repo.SetRefs(ctx, queuedTaskRef(e.ID), commit); err != nil {
		return store.QueueAsk{}, err
	}
	return q.toQueueAsk(queue.Event{Kind: queue.Added, Entry: &e}), nil
}

// errMissing is that a commit is neither here nor on the remote, which was asked.
var errMissing = errors.New("there is no such commit")

// queuedTaskRef keeps the commit of a queued task until it has landed.
func queuedTaskRef(id string) string { return "refs/pawl/queue/" + id }

// Ask stores a request for the queue's worker.
func (q *Queue) Ask(ctx context.Context, a queue.Ask) error {
	_, err := q.o.Store.AskQueue(ctx, q.toQueueAsk(queue.Event{Kind: queue.Asked, Ask: &a}))
	return err
}

func (q *Queue) toQueueAsk(e queue.Event) store.QueueAsk {
	return store.QueueAsk{Target: q.ref, Event: e, At: time.Now()}
}
