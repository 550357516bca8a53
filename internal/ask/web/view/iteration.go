package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Iteration is one attempt of a run that has ended.
type Iteration struct {
	Number      int       `json:"number"`
	Attempt     int       `json:"attempt" doc:"From 1; a provider's limit may have cut earlier ones off."`
	Outcome     string    `json:"outcome" enum:"success,failed,neutral,asked,waited"`
	Agent       string    `json:"agent"`
	Strategy    string    `json:"strategy"`
	StrategyWhy string    `json:"strategy_why" doc:"Why this strategy was chosen."`
	Instruction string    `json:"instruction" doc:"What the strategy told the agent to do differently."`
	StartedAt   time.Time `json:"started_at"`
	Elapsed     float64   `json:"elapsed" doc:"Seconds."`

	ExitCode int    `json:"exit_code" doc:"-1 when the agent did not exit by itself."`
	Ended    string `json:"ended" doc:"Why pawl ended the agent; empty when it ended by itself."`
	EndedWhy string `json:"ended_why"`

	Signal     string   `json:"signal" doc:"COMPLETE, BLOCKED, PENDING, FAILURE or empty."`
	SignalText string   `json:"signal_text"`
	Progress   *int     `json:"progress" nullable:"true" doc:"0 to 100, as the agent said; null when it did not."`
	Malformed  []string `json:"malformed" nullable:"false" doc:"What was nearly a signal and did not count."`
	Complete   bool     `json:"complete"`

	Verified bool              `json:"verified" doc:"The checks were run, or there are none."`
	Gates    []Gate            `json:"gates" nullable:"false"`
	Score    *float64          `json:"score" nullable:"true" doc:"0 to 1; null without checks."`
	Tampered []string          `json:"tampered" nullable:"false" doc:"Protected files that it changed."`
	Review   *Review           `json:"review,omitempty"`
	Failure  *Failure          `json:"failure,omitempty"`
	Refused  *Refused          `json:"refused,omitempty" doc:"A tool call that the safety level forbids; it ended the agent."`
	Secrets  []safety.Secret   `json:"secrets" nullable:"false" doc:"Places that look like secrets."`
	Files    []string          `json:"files" nullable:"false" doc:"Changed; the first thousand."`
	Commits  int               `json:"commits"`
	Snapshot string            `json:"snapshot" doc:"Commit of the files after it; empty without one."`
	Diff     bool              `json:"diff" doc:"There is a diff to ask for."`
	TokensIn int64             `json:"tokens_in"`
	TokenOut int64             `json:"tokens_out"`
	CostUSD  *float64          `json:"cost_usd" nullable:"true"`
	Cost     string            `json:"cost_source" enum:"metered,reported,estimated,none" doc:"Where the cost comes from."`
	Calls    int               `json:"api_calls"`
	Models   []report.ModelUse `json:"models" nullable:"false" doc:"By model, where the gateway saw the calls."`
	Output   int64             `json:"output_bytes"`
	Evidence []loop.Evidence   `json:"evidence" nullable:"false" doc:"Files that show what the work does."`
	Gone     string            `json:"evidence_gone,omitempty" doc:"Why they cannot be shown, or where they are."`
	Story    []StoryElement    `json:"story" nullable:"false" doc:"What happened, in order, in words."`
}

// StoryElement is one line of an iteration's story.
type StoryElement struct {
	What string `json:"what" enum:"strategy,agent,signal,gate,review,failure,snapshot"`
	Mark string `json:"mark" enum:"passed,failed,not run,note"`
	Text string `json:"text"`
}

// Gate is one check.
type Gate struct {
	Name     string  `json:"name"`
	Status   string  `json:"status" enum:"passed,failed,timeout,not run,error,running,waiting"`
	Required bool    `json:"required"`
	Elapsed  float64 `json:"elapsed" doc:"Seconds."`
	Timeout  float64 `json:"timeout" doc:"Seconds that it may take, as configured now; 0 when it is not configured any more."`
	ExitCode int     `json:"exit_code"`
	Passed   *int    `json:"passed" nullable:"true" doc:"Tests that passed; null when it is no test."`
	Total    *int    `json:"total" nullable:"true"`
	Note     string  `json:"note"`
	Origin   string  `json:"origin,omitempty" enum:"task,sealed" doc:"Of a check of one task."`
	Shows    string  `json:"criterion,omitempty" doc:"What a check of a task shows."`
	Before   string  `json:"before,omitempty" doc:"How a check of a task ended before the work."`
	File     string  `json:"file" doc:"Its output, among the iteration's files; not there when it printed nothing."`
}

// Review is a second look at the work.
type Review struct {
	Verdict  string        `json:"verdict" doc:"approved, rejected or undecided"`
	Reviewer string        `json:"reviewer"`
	Summary  string        `json:"summary"`
	Items    []FindingItem `json:"items" nullable:"false"`
	Elapsed  float64       `json:"elapsed"`
	Tries    int           `json:"tries"`
	CostUSD  *float64      `json:"cost_usd" nullable:"true"`
	Reverted []string      `json:"reverted" nullable:"false" doc:"Files that the reviewer changed, and that were put back."`
}

// FindingItem is what a review asks to be changed.
type FindingItem struct {
	failure.Item
	Severity string `json:"severity"`
}

// Failure is what went wrong.
type Failure struct {
	Class       string         `json:"class"`
	Kind        string         `json:"kind" doc:"transient, work or permanent"`
	Transient   bool           `json:"transient"`
	Severity    string         `json:"severity"`
	Summary     string         `json:"summary"`
	Step        string         `json:"failed_step" doc:"The check that was red; empty for the agent itself."`
	Code        string         `json:"code,omitempty" doc:"VERIFICATION_FAILED or VERIFICATION_TIMEOUT, where checks were red."`
	Pattern     string         `json:"pattern" doc:"What it has in common with the failures before."`
	Fingerprint string         `json:"fingerprint"`
	Items       []failure.Item `json:"items" nullable:"false"`
	Actions     []string       `json:"actions" nullable:"false" doc:"What can be done about it."`
}

// Refused is a forbidden operation.
type Refused struct {
	Why     string `json:"why"`
	Command string `json:"command"`
	Tool    string `json:"tool"`
	Level   string `json:"level"`
}

// IterationPage is one page of attempts, in order.
type IterationPage struct {
	Iterations []Iteration `json:"iterations" nullable:"false"`
	NextCursor string      `json:"next_cursor"`
	Current    *Current    `json:"current,omitempty" doc:"The iteration under way, on the last page."`
}

// Current is an iteration that has not ended.
type Current struct {
	Number      int       `json:"number"`
	Attempt     int       `json:"attempt"`
	Agent       string    `json:"agent"`
	Strategy    string    `json:"strategy"`
	StrategyWhy string    `json:"strategy_why"`
	Instruction string    `json:"instruction"`
	StartedAt   time.Time `json:"started_at"`
	Reviewing   bool      `json:"reviewing" doc:"The work is done and is being reviewed."`
}

// History is what is needed to show a run's iterations.
type History struct {
	Asked    map[[2]int]loop.Command // what the loop asked for, by number and attempt
	Past     []failure.Analysis
	Timeouts map[string]float64 // of the checks by name, in seconds
	// EvidenceGone says why the evidence of an iteration is not here; "" where it is.
	EvidenceGone func(*loop.Record) string
}

// CurrentOf returns the iteration under way; nil when the run rests.
func CurrentOf(r store.Run) *Current {
	state, err := storedrun.StateOf(r)
	if err != nil || !state.Status.Active() {
		return nil
	}
	c := state.Command
	if c.Kind != loop.Run && c.Kind != loop.RunReview {
		return nil
	}
	return &Current{
		Number: c.Iteration, Attempt: c.Attempt, Agent: c.Agent, Strategy: c.Strategy,
		StrategyWhy: c.StrategyWhy, Instruction: instructionOf(c),
		StartedAt: state.LastAt.UTC(), Reviewing: c.Kind == loop.RunReview,
	}
}

func instructionOf(c loop.Command) string {
	if c.Feedback == nil {
		return ""
	}
	return c.Feedback.Instruction
}

// ShowIteration translates a record for the pages. The records of a run must come in order.
func (t *History) ShowIteration(r *loop.Record) Iteration {
	asked := t.Asked[[2]int{r.Number, r.Attempt}]
	out := Iteration{
		Number: r.Number, Attempt: r.Attempt, Outcome: string(r.Outcome), Agent: r.Agent,
		Strategy: r.Strategy, StrategyWhy: asked.StrategyWhy, Instruction: instructionOf(asked),
		StartedAt: r.StartedAt.UTC(), Elapsed: Seconds(r.Elapsed), ExitCode: r.Exit.Code,
		Ended: string(r.Exit.Ended), EndedWhy: r.Exit.Why,
		Signal: strings.ToUpper(string(r.Signal.Kind)), SignalText: r.Signal.Text, Malformed: NonNil(r.Malformed),
		Verified: r.Verified, Gates: t.showGates(r.Gates), Tampered: NonNil(r.Tampered),
		Review: showReview(r.Review), Failure: t.showFailure(r.Failure),
		Secrets: append([]safety.Secret{}, r.Secrets...), Files: NonNil(r.Files), Commits: r.Commits,
		Snapshot: r.Snapshot, Diff: r.TreeKnown && r.TreeBefore != "" && r.TreeAfter != "",
		TokensIn: r.TokensIn, TokenOut: r.TokensOut, CostUSD: r.Cost.Dollars(loop.CostKnown(r.CostSource)),
		Cost: r.CostSource, Calls: r.Calls, Models: NonNil(report.Models(r.Models)), Output: r.Output,
		Evidence: NonNil(r.Evidence), Gone: t.EvidenceGone(r),
	}
	out.Complete, _ = r.Completes()
	if r.Progress >= 0 {
		out.Progress = &r.Progress
	}
	if r.Score >= 0 {
		out.Score = new(float64(r.Score) / 1000)
	}
	if r.Refused != nil {
		out.Refused = &Refused{Why: r.Refused.Why, Command: r.Refused.Command, Tool: r.Refused.Tool,
			Level: string(r.Refused.Level)}
	}
	out.Story = buildStory(&out)
	return out
}

// NonNil returns a copy that is never nil: JSON has [] where there is nothing.
func NonNil[T any](of []T) []T { return append([]T{}, of...) }

func (t *History) showGates(gates []loop.Gate) []Gate {
	out := make([]Gate, len(gates))
	for i, g := range gates {
		out[i] = Gate{Name: g.Name, Status: string(g.Status), Required: g.Required, Elapsed: Seconds(g.Elapsed),
			Timeout: t.Timeouts[g.Name], ExitCode: g.ExitCode, Note: g.Note,
			Origin: g.Origin, Shows: g.Criterion, Before: g.Before}
		if g.Test && g.Total >= 0 {
			out[i].Passed, out[i].Total = &gates[i].Passed, &gates[i].Total
		}
		if g.Status != loop.GateNotRun {
			out[i].File = fmt.Sprintf("gate-%d.out", i+1)
		}
	}
	return out
}

func (t *History) showFailure(a *failure.Analysis) *Failure {
	if a == nil {
		return nil
	}
	t.Past = append(t.Past, *a)
	return &Failure{
		Class: string(a.Class), Kind: string(a.Kind), Transient: a.Transient,
		Severity: string(a.Severity), Summary: a.Summary, Step: a.Step, Code: a.Code, Fingerprint: a.Fingerprint,
		Pattern: failure.Pattern(t.Past), Items: NonNil(a.Items), Actions: NonNil(a.Actions),
	}
}

func showReview(v *loop.Review) *Review {
	if v == nil {
		return nil
	}
	return &Review{
		Verdict: string(v.Verdict), Reviewer: v.Agent, Summary: v.Summary, Elapsed: Seconds(v.Elapsed), Tries: v.Tries,
		CostUSD: v.Cost.Dollars(loop.CostKnown(v.CostSource)), Reverted: NonNil(v.Reverted),
		Items: lists.Each(v.Items, func(f loop.Finding) FindingItem {
			return FindingItem{Item: f.Item,
				Severity: string(f.Severity)}
		}),
	}
}

// buildStory lists the events of an iteration in the order in which they happened.
func buildStory(it *Iteration) []StoryElement {
	list := []StoryElement{}
	add := func(what, mark, format string, args ...any) {
		list = append(list, StoryElement{What: what, Mark: mark, Text: fmt.Sprintf(format, args...)})
	}
	if it.StrategyWhy != "" {
		add("strategy", "note", "Strategy %s: %s", it.Strategy, it.StrategyWhy)
	}
	switch {
	case it.Ended != "":
		add("agent", "failed", "pawl ended %s (%s)", it.Agent, strings.TrimSuffix(it.Ended+": "+it.EndedWhy, ": "))
	case it.ExitCode != 0:
		add("agent", "failed", "%s exited with status %d", it.Agent, it.ExitCode)
	default:
		add("agent", "passed", "%s changed %s", it.Agent, fault.Numbered(len(it.Files), "file"))
	}
	if it.Signal != "" {
		add("signal", "note", "It said %s", strings.TrimSuffix(it.Signal+": "+it.SignalText, ": "))
	}
	for _, g := range it.Gates {
		mark := map[string]string{string(loop.GatePassed): "passed", string(loop.GateNotRun): "not run"}[g.Status]
		add("gate", cmp.Or(mark, "failed"), "%s: %s", g.Name, strings.TrimSuffix(g.Status+", "+g.Note, ", "))
	}
	if it.Review != nil {
		mark := map[string]string{string(control.Approved): "passed",
			string(control.Rejected): "failed"}[it.Review.Verdict]
		add("review", cmp.Or(mark, "note"), "%s: %s", it.Review.Reviewer,
			strings.TrimSuffix(it.Review.Verdict+", "+it.Review.Summary, ", "))
	}
	if it.Failure != nil {
		add("failure", "failed", "%s: %s", it.Failure.Class, it.Failure.Summary)
	}
	if it.Snapshot != "" {
		add("snapshot", "note", "Snapshot %.12s: rollback can return to this point", it.Snapshot)
	}
	return list
}

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

// ListSnapshots lists the snapshots of this machine; undo is whether a rollback can be undone.
func ListSnapshots(snaps []workspace.Snapshot, undo bool) Snapshots {
	return Snapshots{Undo: undo, Snapshots: lists.Each(snaps, func(n workspace.Snapshot) Snapshot {
		branch := strings.TrimPrefix(n.Branch, "refs/heads/")
		return Snapshot{Number: n.N, Attempt: n.Attempt, Commit: n.Commit, Branch: branch, At: n.When.UTC(),
			Skipped: NonNil(n.Skipped)}
	})}
}

// SentSnapshots lists the work that another machine sent to the remote after each iteration.
func SentSnapshots(records []loop.Record) Snapshots {
	v := Snapshots{Snapshots: []Snapshot{}}
	for i := range records {
		if r := &records[i]; r.Pushed != nil && r.Pushed.Commit != "" {
			v.Snapshots = append(v.Snapshots, Snapshot{Number: r.Number, Commit: r.Pushed.Commit,
				At: r.StartedAt.Add(r.Elapsed).UTC(), Skipped: []string{}})
		}
	}
	return v
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
