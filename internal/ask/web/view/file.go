package view

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
)

// FileList is what an iteration left.
type FileList struct {
	Files []File `json:"files" nullable:"false"`
}

// File is one of it.
type File struct {
	Name      string    `json:"name"`
	Size      int64     `json:"size" doc:"Bytes."`
	ChangedAt time.Time `json:"changed_at"`
}

// FilePart is a part of a file as text; bytes that are no text are replaced.
type FilePart struct {
	Name   string `json:"name"`
	Size   int64  `json:"size" doc:"Of all that was printed, in bytes, as of now."`
	Offset int64  `json:"offset" doc:"Where this part begins: later than asked for where the middle of a long output was left out."`
	Next   int64  `json:"next" doc:"The offset after this part."`
	More   bool   `json:"more" doc:"There is more after this part now."`
	Text   string `json:"text"`
}

// AgentEvent is one thing that an agent did, whatever its program is.
type AgentEvent struct {
	Offset  int64    `json:"offset" doc:"Where it begins; rises, and stays the same for an event."`
	Kind    string   `json:"kind" enum:"session,text,thinking,tool,tool_end,usage,cost,retry,rate_limit,error,end,unknown"`
	Text    string   `json:"text,omitempty"`
	Tool    string   `json:"tool,omitempty"`
	Command string   `json:"command,omitempty" doc:"What a shell tool runs."`
	Files   []string `json:"files,omitempty" doc:"What a file tool touches."`
	Failed  bool     `json:"failed,omitempty"`
	Call    string   `json:"call,omitempty" doc:"The program's id of a tool call: its start and its end have the same."`
	Result  string   `json:"result,omitempty" doc:"Of a tool_end: the beginning of what the tool returned, at most 4 KiB; … stands for the rest."`
	Sub     bool     `json:"sub,omitempty" doc:"A sub-agent's doing."`
	Model   string   `json:"model,omitempty"`

	Input      int64    `json:"tokens_in,omitempty" doc:"Not cached."`
	Output     int64    `json:"tokens_out,omitempty"`
	CacheRead  int64    `json:"cache_read,omitempty"`
	CacheWrite int64    `json:"cache_write,omitempty"`
	Cumulative bool     `json:"cumulative,omitempty" doc:"The tokens are the run's total, not added to it."`
	CostUSD    *float64 `json:"cost_usd,omitempty"`

	Attempt int    `json:"attempt,omitempty" doc:"Of a model call that the program tries again."`
	Error   string `json:"error,omitempty"`
}

// Conversation is a part of what the agent did.
type Conversation struct {
	Events []AgentEvent `json:"events" nullable:"false"`
	Before int64        `json:"before" doc:"Where this part begins, later than asked for where the middle of a long conversation was left out. Ask for what came before this offset; 0 at the beginning."`
	Next   int64        `json:"next" doc:"Ask for, or follow, what comes after from this offset."`
	Size   int64        `json:"size" doc:"Where all of it ends, as of now."`
}

// ReadEvent reads a line of the events' file; false for the line that says what
// was left out, and for one that is not whole.
func ReadEvent(line []byte, at int64) (AgentEvent, bool) {
	var e agent.Event
	if json.Unmarshal(line, &e) != nil || e.Kind == "" {
		return AgentEvent{}, false
	}
	out := AgentEvent{
		Offset: at, Kind: string(e.Kind), Text: e.Text, Tool: e.Tool, Command: e.Command, Files: slices.Clone(e.Files),
		Failed: e.Failed, Call: e.Call, Result: e.Result, Sub: e.Sub, Model: e.Model,
		Input: e.Usage.Input, Output: e.Usage.Output, CacheRead: e.Usage.CacheRead,
		CacheWrite: e.Usage.CacheWrite, Cumulative: e.Cumulative,
		CostUSD: e.Cost.Dollars(e.Cost > 0), Attempt: e.Attempt,
	}
	if e.Error != nil {
		out.Error = e.Error.Message
	}
	return out, true
}

// Diff is which files differ between two states of a run, and by how much.
// What differs in a file is asked for file by file.
type Diff struct {
	From    string     `json:"from" doc:"The tree before."`
	To      string     `json:"to" doc:"The tree after."`
	Files   []DiffFile `json:"files" nullable:"false"`
	Added   int        `json:"added" doc:"Lines, of the listed files."`
	Deleted int        `json:"deleted"`
	More    bool       `json:"more" doc:"There are more files than are listed."`
}

// DiffFile is one file that differs.
type DiffFile struct {
	Path    string `json:"path"`
	From    string `json:"from" doc:"The old path of a renamed file; else empty."`
	Status  string `json:"status" enum:"added,modified,deleted,renamed,type"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary"`
}

// Snapshots are the states that a run can go back to.
type Snapshots struct {
	Snapshots []Snapshot `json:"snapshots" nullable:"false"`
	// Undo is true when a rollback can be taken back.
	Undo bool `json:"undo" doc:"The last rollback can be undone."`
}

// Snapshot is the files after an iteration.
type Snapshot struct {
	Number  int       `json:"number" doc:"The iteration; 0 is before the run."`
	Attempt string    `json:"attempt" doc:"Of an attempt that was cut off."`
	Commit  string    `json:"commit"`
	Branch  string    `json:"branch"`
	At      time.Time `json:"at"`
	Skipped []string  `json:"skipped" nullable:"false" doc:"Paths that are in no snapshot, e.g. for their size."`
}

// ValidUTF8 replaces what is no text.
func ValidUTF8(line string) string { return strings.ToValidUTF8(line, "\uFFFD") }

// Activity is what a run does just now, between two events of its journal. It
// is not stored, and has no id: a reader that comes back gets the next one.
type Activity struct {
	Run       string      `json:"run"`
	Iteration int         `json:"iteration" doc:"0 while the checks run on the files as they are, before the first agent."`
	Attempt   int         `json:"attempt"`
	Phase     string      `json:"phase" enum:"agent,gates,review,waiting" doc:"Who works."`
	Since     time.Time   `json:"since" doc:"When this attempt began."`
	Last      *AgentEvent `json:"last,omitempty" doc:"The last thing that the agent did."`
	TokensIn  int64       `json:"tokens_in" doc:"Of this attempt so far."`
	TokensOut int64       `json:"tokens_out"`
	CostUSD   *float64    `json:"cost_usd" nullable:"true"`
	Calls     int         `json:"api_calls"`
	Gates     []Gate      `json:"gates" nullable:"false" doc:"The checks that this attempt goes through, and how far they are."`
	Progress  *int        `json:"progress" nullable:"true"`
}

// Grown is how much a running agent has printed. It says when there is more to
// ask for; what there is, and all of it, is read by offset.
type Grown struct {
	Run       string `json:"run"`
	Iteration int    `json:"iteration"`
	Attempt   int    `json:"attempt"`
	Events    int64  `json:"events" doc:"Where its conversation ends now."`
	Output    int64  `json:"output" doc:"Where its raw output ends now."`
}

// Hello is the first thing of a stream of events.
type Hello struct {
	Cursor  string    `json:"cursor" doc:"Everything after this place follows. Who loads its data after this misses nothing."`
	Version string    `json:"version"`
	Now     time.Time `json:"now" doc:"The server's clock."`
}

// Beat says that the server is there.
type Beat struct {
	Now time.Time `json:"now"`
}

// Parting is the last thing of a stream.
type Parting struct {
	Why string `json:"why"`
}
