// Package agent knows coding-agent programs: how each is started, and what
// its output means. An [Adapter] is data plus a [Parser]; the programs' own
// formats live in one folder each below this one.
//
// The package starts nothing itself. An adapter turns an [Invocation] into a
// [Start], the supervisor runs that, splits the output with [Lines], feeds it
// to the parser and folds the normalised events into an [Outcome] with a
// [Collector]. The table of all adapters and parsers is package agents.
package agent

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/subscription"
)

// EventKind is the sort of a normalised event.
type EventKind string

// The kinds.
const (
	Session   EventKind = "session"    // Session id, Model
	Text      EventKind = "text"       // Text: a whole message or block of the agent's own words
	Thinking  EventKind = "thinking"   // Text: reasoning; never a signal
	ToolStart EventKind = "tool"       // Tool, Command, Files
	ToolEnd   EventKind = "tool_end"   // Tool, Failed
	UsageSeen EventKind = "usage"      // Usage, Cumulative
	CostSeen  EventKind = "cost"       // Cost: the run's total so far
	Retry     EventKind = "retry"      // Attempt, Error: the program tries a model call again by itself
	RateLimit EventKind = "rate_limit" // Error with ResetAt
	PlanSeen  EventKind = "plan"       // Plan: how much of a subscription is used
	Error     EventKind = "error"      // Error: of the provider or the program
	NearLimit EventKind = "near_limit" // Cost, Calls so far: 80 % of a limit on one of them is used; the supervisor's
	End       EventKind = "end"        // Terminal, Text: the final message if the event carries one
	Unknown   EventKind = "unknown"    // Raw type in Text; kept, never fatal
)

// Usage is tokens. Input excludes cached tokens; the parser takes care of it.
type Usage struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
}

// CommandCap is how much of a shell tool's command a parser keeps, in bytes: as
// much as a shell can be given, so that nothing hides at its end.
const CommandCap = 128 << 10

// ResultCap is how much of a tool's result a parser keeps, in bytes: what a
// person wants to glance at. All of it is in the raw output.
const ResultCap = 4 << 10

// Event is one normalised happening in an agent's stream.
type Event struct {
	Kind    EventKind `json:"kind"`
	Session string    `json:"session,omitempty"`
	Model   string    `json:"model,omitempty"`
	Text    string    `json:"text,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Command string    `json:"command,omitempty"` // what a shell tool runs
	Files   []string  `json:"files,omitempty"`   // what a file tool touches
	Failed  bool      `json:"failed,omitempty"`
	// Call is the program's id of a tool call, the same at its start and its end; "" where it has
	// none. It identifies calls that run at the same time.
	Call string `json:"call,omitempty"`
	// Result is the beginning of a tool's result, of a ToolEnd; "…" at its end
	// stands for the rest. It is never the agent's own word.
	Result string `json:"result,omitempty"`
	// Digest is a hash of a tool's arguments (of a start) or result (of an end), see [Digest]; 0 is
	// not known. It is not stored.
	Digest uint64 `json:"-"`
	Usage  Usage  `json:"usage,omitzero"`
	// Cumulative: Usage is the run's total and replaces what was added up.
	Cumulative bool `json:"cumulative,omitempty"`
	// Estimate: Usage is guessed from the length of what was said. It counts
	// until the program reports its total, which takes its place.
	Estimate bool `json:"estimate,omitempty"`
	// Sub: a sub-agent's doing. Its words are never the final message.
	Sub bool `json:"sub,omitempty"`
	// Final, with End: Text is the final message even when it is empty.
	Final    bool                  `json:"final,omitempty"`
	Calls    int                   `json:"calls,omitempty"` // model calls that this event stands for
	Turns    int                   `json:"turns,omitempty"`
	Cost     loop.MicroUSD         `json:"cost_micro_usd,omitempty"`
	Attempt  int                   `json:"attempt,omitempty"`
	Error    *failure.APIError     `json:"error,omitempty"`
	Terminal loop.Terminal         `json:"terminal,omitempty"`
	Plan     []subscription.Window `json:"plan,omitempty"` // of a PlanSeen
}

// Parser reads one run's stdout. It keeps no more than a bounded state.
type Parser interface {
	// Line takes one line without its newline. A line over the cap arrives cut
	// with cut set; the parser must not fail on it. The slice is reused.
	Line(line []byte, cut bool, emit func(Event))
	// Close takes the end of the stream.
	Close(emit func(Event))
}

// Invocation describes one start of an agent, as the loop wants it.
type Invocation struct {
	PromptFile string   // absolute path of the assembled prompt
	PromptSize int64    // bytes
	Dir        string   // working folder
	StateDir   string   // the agent's own state, one per repository, reused
	Model      string   // "" for the program's default
	Mode       string   // of a program that speaks ACP; "" is the widest that it has
	Safety     string   // permissive, normal, paranoid
	Command    []string // the user's command line; nil for the adapter's own. A built-in adapter adds its flags.
	Env        []string // the user's env additions, K=V
	Isolate    bool     // keep the agent's state in StateDir, whatever key is set
	// ReadOnly asks for the program's mode that changes no file, where it has one that works
	// headless: for a review. It is a request, nothing is enforced.
	ReadOnly bool
	MaxCost  loop.MicroUSD
	// Pawl is the program that serves pawl's tools to the agent, and Tools the folder
	// where it finds what is the agent's; "" are no tools.
	Pawl, Tools string
	// Routes are the ways to the program's models through pawl's gateway; nil:
	// it calls them by itself.
	Routes []Route
	Now    time.Time
}

// Start is how to run it: what the supervisor needs.
type Start struct {
	Args   []string      // Args[0] is looked up in PATH
	Env    []string      // additions to the environment, K=V
	Unset  []string      // names taken out of the environment
	Stdin  string        // file that becomes stdin; "" is the null device
	Talks  bool          // stdin takes lines of [UserLine], the prompt's and later ones
	Parser string        // a name for agents.Parser
	Grace  time.Duration // after TERM, before KILL
	// Ask is how long TERM is the program's alone, before all that it started get it too: for a
	// program that stops them in a better way. 0 is not at all.
	Ask time.Duration
	// Program is what Args[0] runs for the user, when that is pawl itself; ""
	// is Args[0].
	Program string
	// Usage is where the program keeps its own count of what it uses; nil is nowhere.
	Usage *UsageFile
	// Files are written before the start where they are not there as they
	// should be, all below Invocation.StateDir: settings of a program that has
	// neither a flag nor a variable for them. They may have the gateway's address.
	Files []File
	// Warm is a command that must have run once, alone, in the same environment
	// before the first start: two first starts at once would break one of them.
	// It calls no model. nil for programs that need none.
	Warm []string
}

// MoveProgram takes a program of the user's own that lies below one folder from another that has it, too,
// where a workspace is not shown in the place of the user's files. One that git ignores is in no task's, and one
// whose run bit is not committed cannot be started there.
func (s *Start) MoveProgram(from, to string) {
	name, below := strings.CutPrefix(s.Args[0], from+"/")
	if info, err := os.Stat(to + "/" + name); below && err == nil && info.Mode()&0o111 != 0 {
		s.Args[0] = to + "/" + name
	}
}

// UserLine formats a person's message as a line of the input of programs that take messages while
// they work: Claude Code's form.
func UserLine(text string) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	line, err := json.Marshal(struct {
		Type    string  `json:"type"`
		Message message `json:"message"`
	}{"user", message{"user", text}})
	if err != nil {
		panic(err) // strings can be written
	}
	return append(line, '\n')
}

// UsageFile is a file in which a program notes, while it works, what it uses: for one whose stream
// reports it at the end only. Its parser is a [Recorder].
type UsageFile struct {
	// Variable names the program's folder; without it that is Home, below the
	// user's home folder.
	Variable string `json:"variable"`
	Home     string `json:"home"`
	// Days is the folder below it with one for each day, "2006/01/02".
	Days string `json:"days"`
	// The name ends with the session's id and Suffix.
	Suffix string `json:"suffix"`
	// Path is a file that the program writes once, at its end, and that is
	// removed when it was read; then the other fields are empty. "" is none.
	Path string `json:"path,omitempty"`
}

// Recorder is optionally implemented by a [Parser] whose program has a [UsageFile].
type Recorder interface {
	// Record takes one line of that file, or the whole of one that is written
	// at the end.
	Record(line []byte, emit func(Event))
}

// File is a small file that a program needs.
type File struct {
	Path    string // absolute
	Content string
}

// Adapter is one agent program.
type Adapter interface {
	About() About
	// Start makes the command line. An error is the user's to solve and says
	// how, e.g. a prompt over the program's limit.
	Start(Invocation) (Start, error)
}

// About is what is known of an agent before it is started.
type About struct {
	Name    string
	Install string // how to get the program, in a line
	Traits
	// Idle is the shortest silence that means something, where the program is silent
	// for long while it works; 0 is nothing special. A limit that a user set wins.
	Idle  time.Duration
	Tools bool // the program can be given pawl's tools
	// Exits are errors that exit statuses of the program's own stand for.
	Exits  map[int]failure.APIError
	*Facts // nil where the program is none that pawl knows
}

// Traits are what an output format reports about a run.
type Traits struct {
	LiveUsage  bool // tokens and cost can be metered while it runs
	Structured bool // the stream has a terminal event
}

// Pointed is optionally implemented by an [Adapter] whose program can be pointed
// at pawl's gateway.
type Pointed interface {
	// Routes are the ways to the providers that the program has a key for; can is
	// false for a program that cannot be pointed at all. isolated is whether it
	// keeps its state in pawl's folder; see looks up a variable as the program will
	// see it.
	Routes(isolated bool, see func(string) string) (routes []Route, can bool)
}

// Outcome is the result of one run of an agent, read from its stream. It goes
// through JSON to the run's folder, where a later pawl adopts it.
type Outcome struct {
	Session  string        `json:"session,omitempty"`
	Model    string        `json:"model,omitempty"`
	Message  string        `json:"message"` // the final message; its last MiB
	Terminal loop.Terminal `json:"terminal"`
	Usage    Usage         `json:"usage"`
	Cost     loop.MicroUSD `json:"cost_micro_usd"`
	// Models is the use by model, where the gateway saw the calls; nil elsewhere.
	Models map[string]ModelUse `json:"models,omitempty"`
	// CostSource: "metered" by the gateway, "reported" by the program,
	// "estimated" from tokens, "none".
	CostSource string                `json:"cost_source"`
	Calls      int                   `json:"calls"`
	Turns      int                   `json:"turns"`
	Tools      int                   `json:"tools"`
	Retries    int                   `json:"retries"`
	Errors     []failure.APIError    `json:"errors,omitempty"` // the last 20
	Plan       []subscription.Window `json:"plan,omitempty"`   // of a subscription, as it was seen last
	Unknown    int                   `json:"unknown_events,omitempty"`
}

// Program is the start of the command line: the user's own command, else name.
func (in Invocation) Program(name string) []string {
	if len(in.Command) > 0 {
		return slices.Clone(in.Command)
	}
	return []string{name}
}

// HasValue reports whether the program will find a value for one of the variables.
func (in Invocation) HasValue(getenv func(string) string, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return in.Value(getenv, name) != "" })
}

// Value returns what the program will find in a variable: the user's addition, else the value in
// pawl's own environment, which getenv looks up and which may be nil. An addition without a value
// takes a variable away.
func (in Invocation) Value(getenv func(string) string, name string) string {
	if value, ok := lists.LookupEnv(in.Env, name); ok || getenv == nil {
		return value
	}
	return getenv(name)
}

// Facts are what pawl knows of an agent program beside its command line, for
// people: the table in the documentation, `pawl doctor`. A field that is empty
// is not known.
type Facts struct {
	Program     string   // as it is called on the command line
	Package     string   // what to install, e.g. "npm @qwen-code/qwen-code"
	Versions    string   // the versions that pawl was tried with
	Format      string   // the stream format, as `output:` names it
	Tokens      string   // where token counts come from, and when, or [NotKnown]
	Cost        string   // where the cost comes from
	PromptLimit int64    // bytes; 0 is none known
	Problems    []string // what is wrong with the program, one sentence each
}

// NotKnown is the value of [Facts.Tokens] for a program that never reports them.
const NotKnown = "not known"

// ReportsCost reports whether the program of an adapter says itself what its work cost.
func ReportsCost(a Adapter) bool {
	of := a.About()
	return of.Facts != nil && strings.HasPrefix(of.Cost, "reported")
}

// WithExit completes the errors of a run by what its exit status says, if it is
// one of the program's own: a last error without a status gets one, and a run
// without errors gets an error. errs is not changed.
func WithExit(a Adapter, code int, errs []failure.APIError) []failure.APIError {
	said, ok := a.About().Exits[code]
	if !ok {
		return errs
	}
	if len(errs) == 0 {
		return []failure.APIError{said}
	}
	last := errs[len(errs)-1]
	if last.Status != 0 || said.Status == 0 {
		return errs
	}
	last.Status = said.Status
	last.Type = cmp.Or(last.Type, said.Type)
	return append(errs[:len(errs)-1:len(errs)-1], last)
}

// An agent that has pawl's tools (`pawl mcp --run FOLDER`) finds its task in the
// folder and leaves there what it says by them. All that is in it is the agent's to
// write, so it is read as hostile input.
const (
	BriefFile = "task.json"
	SaidFile  = "said.jsonl"
	SaidLimit = 64 << 10 // bytes that are read of what it says
)

// Brief is the description of its own work that the tools give an agent.
type Brief struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description,omitempty"`
	Acceptance  []string `json:"acceptance,omitempty"`
	Gates       []string `json:"gates,omitempty"`
	Iteration   int      `json:"iteration"`
}

// The kinds of what an agent says by a tool.
const (
	SaysProgress = "progress"
	SaysAsk      = "ask"
	SaysBlocked  = "blocked"
	SaysComplete = "complete"
	SaysFollowUp = "follow_up"
)

// Said is one thing that it says.
type Said struct {
	Kind    string `json:"kind"`
	Text    string `json:"text,omitempty"`
	Title   string `json:"title,omitempty"`
	Percent int    `json:"percent,omitempty"`
}
