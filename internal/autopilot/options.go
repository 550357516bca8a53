package autopilot

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/account"
	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/sqlite"
	"github.com/pawl-dev/pawl/internal/workspace"
	"github.com/pawl-dev/pawl/internal/workspace/pool"
)

// Options is what an autopilot works with.
type Options struct {
	Root     string // of the repository
	StateDir string
	Store    *sqlite.Store
	Settings schedule.Settings
	// Filter narrows the tasks that are taken by themselves.
	Filter sqlite.CaseFilter
	// Sprint is nil when the autopilot is none.
	Sprint *Sprint
	// Plan makes the plan of a task's run, and the tree that it works on.
	Plan func(context.Context, Task) (engine.Plan, *workspace.Checkout, error)
	// Base is the commit that a new task starts from: what its work will land on.
	Base     func(context.Context) (string, error)
	Pool     *pool.Pool
	Queue    Queue
	Accounts *account.Shelf
	// Notify is told what happens, one notice at a time; it must be quick. Nil
	// tells nobody.
	Notify func(Notice)
	Log    *slog.Logger
	// Stops are causes from outside, e.g. signals: the first ends agents with
	// grace. Kill, when closed, ends them at once.
	Stops <-chan loop.Cause
	Kill  <-chan struct{}
}

// Task is what a run is planned for.
type Task struct {
	Case      board.Case
	Workspace pool.Workspace
	Limits    sqlite.CaseLimits
	// Told is what the agent should know besides the case: what an earlier
	// attempt left, and what a review said.
	Told []prompt.Item
}

// Work is what a task came to, ready to land.
type Work struct {
	Case     string    `json:"case"`
	Title    string    `json:"title"`
	Run      string    `json:"run"`
	Commit   string    `json:"commit"`
	Base     string    `json:"base"`
	Priority int       `json:"priority"`
	Needs    []string  `json:"needs,omitempty"`
	Empty    bool      `json:"empty,omitempty"` // it changes nothing
	At       time.Time `json:"at"`
}

// Queue lands what is verified.
type Queue interface {
	// Add stores work that is to land. To add the same again does nothing.
	Add(ctx context.Context, w Work) error
	// Work lands what can be landed until ctx ends, and says what it landed.
	Work(ctx context.Context, landed func(id string)) error
	// Left is how much is on its way, and why it does not go on without a
	// person; "" it does.
	Left(ctx context.Context) (n int, held string, err error)
}

// NoticeKind is the sort of a notice.
type NoticeKind string

// The notices.
const (
	Began     NoticeKind = "began"     // Text
	TaskBegan NoticeKind = "task"      // Case, Title, Slots, Text: why it was chosen
	RunNotice NoticeKind = "run"       // Case, Engine
	TaskEnded NoticeKind = "settled"   // Case, Title, Settlement
	Landed    NoticeKind = "landed"    // Case, Title
	Alert     NoticeKind = "alert"     // Text
	Rested    NoticeKind = "rested"    // Text: why nothing is done now; when it changed
	Warning   NoticeKind = "warning"   // Text
	Recovered NoticeKind = "recovered" // Case, Text
	Over      NoticeKind = "over"      // Text, Exit
)

// Notice is what happened.
type Notice struct {
	Kind       NoticeKind
	At         time.Time
	Case       string
	Title      string
	Run        string
	Text       string
	Slots      int // that are taken
	Exit       int
	Settlement schedule.Settlement
	Engine     engine.Notice
}

// TreeDir is where pawl keeps what it knows of the tree of a task's workspace.
func TreeDir(stateDir, id string) string { return filepath.Join(stateDir, "tasks", id) }
