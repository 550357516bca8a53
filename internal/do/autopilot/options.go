package autopilot

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/prompt"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/ratelimit"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Options is what an autopilot works with.
type Options struct {
	Root     string // of the repository
	StateDir string
	Repo     *git.Repo
	// Confirm are patterns of what runs by itself: work that changes one waits for a person.
	Confirm  []string
	Store    *store.Store
	Settings schedule.Settings
	// Asked are the keys of the configuration that the person set for this autopilot: who
	// plans its tasks on another machine sets them, too.
	Asked map[string]string
	// Filter narrows the tasks that are taken by themselves.
	Filter store.CaseFilter
	// Sprint is nil when the autopilot is none.
	Sprint *Sprint
	Racing
	// Plan makes the plan of a task's run, and the tree that it works on.
	Plan func(context.Context, Task) (runplan.Plan, *workspace.Checkout, error)
	// Base is the commit that a new task starts from: what its work will land on.
	Base func(context.Context) (string, error)
	Pool *pool.Pool
	Machines
	// Queue opens the merge queue, which calls tell with what it does.
	Queue func(ctx context.Context, tell func(queue.Note)) (*merge.Queue, error)
	// ReviewWhen says which work waits for a person, whatever else says of reviews.
	ReviewWhen ReviewWhen
	// Late are gates that run on what has landed.
	Late     Late
	Accounts *ratelimit.Store
	// PlanAccounts are those whose subscriptions are shown, and looked at for the sprint's target.
	PlanAccounts []string
	Upkeep
	// Notify gets one notice at a time; it must be quick. Nil is not called.
	Notify func(Notice)
	Log    *slog.Logger
	// Stops are causes from outside, e.g. signals: the first ends agents with
	// grace. Kill, when closed, ends them at once.
	Stops <-chan loop.Cause
	Kill  <-chan struct{}
}

// Upkeep is called beside the work.
type Upkeep struct {
	// Sweep removes what is over; it is called now and then, beside the work.
	Sweep func(context.Context) error
	// Sync brings the issues of a forge to the board, and what became of them back,
	// and says what it did; it is called before the work, beside it and after it.
	// Nil is none.
	Sync func(ctx context.Context, say func(string)) error
	// Claim says at the issue of a task that work on it begins, or why it must not: another
	// board does it. Nil is no issues.
	Claim func(ctx context.Context, c board.Case) (why string, err error)
}

// Machines is how the autopilot shares its work with other machines.
type Machines struct {
	// Elsewhere works the tasks of the slots; nil works them here.
	Elsewhere Elsewhere
	// HandsOn: when this process ends another one continues; see [StandBy]. GoOn: this one
	// continues the autopilot that is on.
	HandsOn, GoOn bool
	// Remote is the remote by which work travels to other machines and back; "" where
	// all share this checkout. Worker names this one among them.
	Remote, Worker string
	// Refused gets the error of each push of a task's work that failed, and nil of the others; nil is not called.
	Refused func(task string, err error)
}

// Racing is how several agents race for a task.
type Racing struct {
	// Race has the agents that race for each task that does not say otherwise; fewer
	// than two is no race.
	Race []string
	// PickBest waits for all that race, and the best work wins; see [schedule.PicksBest].
	PickBest bool
}

// Task is what a run is planned for.
type Task struct {
	Case      board.Case
	Name      string // of run and workspace, where they are not the task's own; see [board.RacerName]
	Agent     string // that works on it; "" is the configured one
	Racers    int    // agents that race for it, and share its cost limit; below 2 it is no race
	Workspace pool.Workspace
	Limits    store.CaseLimits
	Asked     map[string]string // see [Options]
	Level     string            // of the safety that what its agents wrote so far has: theirs is not lower; "" is none
	// Earlier is what the agent should know besides the case: what an earlier
	// attempt left, and what a review said.
	Earlier []prompt.Item
}

// RunName is the name of its run and of its workspace.
func (t Task) RunName() string { return cmp.Or(t.Name, t.Case.ID) }

// NoticeKind is the sort of a notice.
type NoticeKind string

// The notices.
const (
	Began       NoticeKind = "began"   // Text
	TaskBegan   NoticeKind = "task"    // Case, Title, Text: why it was chosen
	RunNotice   NoticeKind = "run"     // Case, Engine
	TaskEnded   NoticeKind = "settled" // Case, Title, Settlement
	Landed      NoticeKind = "landed"  // Case, Title
	QueueNote   NoticeKind = "queue"   // Case, Note
	Alert       NoticeKind = "alert"   // Text
	Paused      NoticeKind = "paused"  // Text: why
	GoesOn      NoticeKind = "goes on"
	Checkpoint  NoticeKind = "checkpoint" // Text: the ref that keeps the target
	Rested      NoticeKind = "rested"     // Text: why nothing is done now; when it changed
	Told        NoticeKind = "told"       // Text: what happened that needs no action
	TargetRed   NoticeKind = "target red" // Text: what is waited for
	Warning     NoticeKind = "warning"    // Text
	Recovered   NoticeKind = "recovered"  // Case, Text
	SprintBegan NoticeKind = "sprint"     // Text: its id
	Over        NoticeKind = "over"       // Text
)

// Notice is what happened.
type Notice struct {
	Kind       NoticeKind
	At         time.Time
	Case       string
	Title      string
	Run        string
	Agent      string // of a run that races with others; else ""
	Text       string
	Sprint     bool // it was one that is over
	Settlement schedule.Settlement
	Engine     engine.Notice
	Workspace  pool.Workspace // of a run's
	Note       queue.Note
}

// Forget removes what pawl keeps beside the workspace of a task, once that is
// gone.
func Forget(stateDir, id string) error { return os.RemoveAll(setupDir(stateDir, id)) }

// setupDir has the outputs of the commands that set a task's workspace up.
func setupDir(stateDir, id string) string { return filepath.Join(stateDir, "setup", id) }
