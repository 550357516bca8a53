package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// This file is the protocol between client and supervisor: JSON, a message a
// line, over a unix socket. The rules are:
//   - the first message is hello (from the starter), attach or status;
//   - every message of the attached client renews the lease;
//   - the start of a job is noted in its files before it happens, so that a
//     job which is delivered again after a crash is not run again;
//   - events may be dropped, everything else arrives in order.

type op string

const (
	opHello  op = "hello"  // Lease, Mark, Unboxed: the starter attaches
	opAttach op = "attach" // Secret: a client comes back; the one before gets taken
	opStatus op = "status" // Secret: ask only
	opRun    op = "run"    // Job
	opStop   op = "stop"   // TERM, grace, KILL
	opKill   op = "kill"   // KILL
	opRenew  op = "renew"

	opReady   op = "ready"  // Status: attached
	opEvents  op = "events" // Events
	opResult  op = "result" // Result
	opRenewed op = "renewed"
	opTaken   op = "taken"   // another client attached
	opRefused op = "refused" // Error
)

type request struct {
	Op    op            `json:"op"`
	Lease time.Duration `json:"lease,omitempty"`
	Mark  string        `json:"mark,omitempty"`
	Job   *Job          `json:"job,omitempty"`
	// Keys are those of the job's gateway: a job as such can be shown and stored.
	Keys []string `json:"keys,omitempty"`
	// Secret is what the supervisor left in the run's folder, for its own pawl.
	Secret string `json:"secret,omitempty"`
	// Unboxed: jobs may come without a box.
	Unboxed bool `json:"unboxed,omitempty"`
	// Stop with run: join the job if it runs, but do not start it.
	Stop bool `json:"stop,omitempty"`
}

type reply struct {
	Op      op                `json:"op"`
	ID      string            `json:"id,omitempty"`
	Status  *Status           `json:"status,omitempty"`
	Events  []json.RawMessage `json:"events,omitempty"`
	Result  *Result           `json:"result,omitempty"`
	Error   string            `json:"error,omitempty"`
	Running bool              `json:"running,omitempty"` // refused, as another supervisor serves the run
}

// Status is a supervisor's report about itself.
type Status struct {
	Supervisor process.Identity `json:"supervisor"`
	Mark       string           `json:"mark"`
	Lease      time.Duration    `json:"lease"`
	Left       time.Duration    `json:"left"`     // until the lease runs out
	Attended   bool             `json:"attended"` // a client is connected
	Job        *Job             `json:"job,omitempty"`
	StartedAt  time.Time        `json:"started_at,omitzero"` // the job's
}

// maxMessage bounds a message; the largest is a result with its final message
// and output ends, or a job with a large environment.
const maxMessage = 32 << 20

var errTooLong = errors.New("cannot read a message: it is over 32 MiB")

// readLine reads one line without its newline. The slice is valid until the
// next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == nil {
		return line[:len(line)-1], nil
	}
	if !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	long := bytes.Clone(line)
	for len(long) <= maxMessage {
		line, err = r.ReadSlice('\n')
		long = append(long, line...)
		if err == nil {
			return long[:len(long)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	return nil, errTooLong
}

// encodeMessage makes the line of a message. Only what this package defines is
// encoded, so a failure is a mistake in it.
func encodeMessage(message any) []byte {
	data, err := json.Marshal(message)
	if err != nil {
		data = fmt.Appendf(nil, `{"op":%q,"error":%q}`, opRefused, "cannot encode a message")
	}
	return append(data, '\n')
}

// Limits bound one job. A zero duration or amount is no limit, except Output.
type Limits struct {
	Wall   time.Duration `json:"wall,omitempty"`
	Idle   time.Duration `json:"idle,omitempty"`   // no output and no file change below Watch
	Grace  time.Duration `json:"grace,omitempty"`  // after TERM, before KILL; 0 is 5 s
	Ask    time.Duration `json:"ask,omitempty"`    // TERM to the process alone, before all that it started get it
	Linger time.Duration `json:"linger,omitempty"` // of a program that has printed its result; 0 is 30 s
	Cost   loop.MicroUSD `json:"cost_micro_usd,omitempty"`
	Tokens int64         `json:"tokens,omitempty"` // those from a cache included
	Calls  int           `json:"calls,omitempty"`
	Turns  int           `json:"turns,omitempty"`
	// NearCost and NearCalls: there the client gets an event, once; 0 for none.
	NearCost  loop.MicroUSD `json:"near_cost_micro_usd,omitempty"`
	NearCalls int           `json:"near_calls,omitempty"`
	// Priced: money is limited, so that a model without a price is not called (again).
	Priced bool  `json:"priced,omitempty"`
	Output int64 `json:"output,omitempty"` // bytes kept per stream; 0 is 64 MiB, of an agent 128 MiB
	// Room is how many bytes must stay free on the disk of the job's folder, or
	// a tenth of what was free at its start where that is less; 0 looks at nothing.
	Room int64 `json:"room,omitempty"`
	// Printed is the most bytes of output, kept or not; a quarter of it is the
	// most for one message of a parsed stream.
	Printed int64 `json:"printed,omitempty"`
	// Tools: the silence of a tool that runs does not count for Idle.
	Tools bool `json:"tools,omitempty"`
}

// Job is one process to run. The ID is unique in a run: a job that is
// delivered twice runs once, and the second asker gets the same result.
type Job struct {
	ID string `json:"id"` // e.g. "3.1" for an attempt, "3.1/gate/2"
	// Files is the path prefix of what the job leaves: Files+".out", ".err",
	// ".events.jsonl", ".result.json". Its folder exists.
	Files string   `json:"files"`
	Args  []string `json:"args"`
	Dir   string   `json:"dir"`
	Env   []string `json:"env"`             // the whole environment
	Stdin string   `json:"stdin,omitempty"` // a file; "" is the null device
	// Talks: the program takes messages on stdin while it works, see [Job.Messages].
	Talks bool `json:"talks,omitempty"`
	// Parser names the stream format (agent.NewParser); "" parses nothing.
	Parser string `json:"parser,omitempty"`
	// Prompt is the file whose echo is cut off a text agent's output.
	Prompt string `json:"prompt,omitempty"`
	Watch  string `json:"watch,omitempty"`
	// Merge sends stderr to the same file as stdout, in order.
	Merge bool `json:"merge,omitempty"`
	// Prices lets a cost limit work for programs that report tokens only; nil
	// estimates nothing.
	Prices agent.Prices `json:"prices,omitempty"`
	// Model that the program was started with, for programs that do not name it.
	Model  string `json:"model,omitempty"`
	Limits Limits `json:"limits"`
	// Gateway is what its model calls go through; nil is nothing.
	Gateway *agent.Gateway `json:"gateway,omitempty"`
	// Settings are files of the agent's program that have the gateway's address.
	// They lie below SettingsRoot.
	Settings     []agent.File `json:"settings,omitempty"`
	SettingsRoot string       `json:"settings_root,omitempty"`
	// Usage is the file in which the program notes what it uses, where its stream is
	// late; nil is none.
	Usage *agent.UsageFile `json:"usage,omitempty"`
	// Guards end an agent that runs in circles.
	Guards agent.Guards `json:"guards,omitzero"`
	// Box is what the operating system holds the job to; nil is nothing.
	Box *sandbox.Policy `json:"box,omitempty"`
	// Safety ends an agent at once whose tool call it forbids.
	Safety safety.Rules `json:"safety,omitzero"`
}

// Messages is the file to which the messages for a job that talks are added, each a
// line as [agent.UserLine] makes it.
func (j Job) Messages() string { return j.Files + ".messages" }

// Result is how a job ended.
type Result struct {
	ID        string        `json:"id"`
	StartedAt time.Time     `json:"started_at"`
	Elapsed   time.Duration `json:"elapsed"`
	Exit      loop.Exit     `json:"exit"`
	// Error is set when the process could not be started; Exit.Code is then
	// 127 (not found), 126 (not executable) or -1.
	Error string `json:"error,omitempty"`
	// Told is how many messages the program has read.
	Told int `json:"told,omitempty"`
	// Killed counts processes that were still there after the end, and were ended.
	Killed int `json:"killed,omitempty"`
	// Unreached are connections that the box did not let out, the first 20.
	Unreached []string      `json:"unreached,omitempty"`
	Stdout    Stream        `json:"stdout"`
	Stderr    Stream        `json:"stderr"`
	Agent     agent.Outcome `json:"agent"`
	// Refused is the tool call that ended the job, when one did.
	Refused *safety.Finding `json:"refused,omitempty"`
}

// Stream is what is known of one output stream. Tail and Head are cut for
// classification and for messages; the file has up to Limits.Output.
type Stream struct {
	Bytes     int64  `json:"bytes"`
	Truncated bool   `json:"truncated,omitempty"`
	Head      string `json:"head,omitempty"` // first 8 KiB
	Tail      string `json:"tail,omitempty"` // last 64 KiB, when longer than Head
	// Note says why the file is not whole, other than by the limit.
	Note string `json:"note,omitempty"`
}

// Text is the beginning and the end of what was printed.
func (s Stream) Text() string {
	if s.Tail == "" || s.Bytes <= int64(len(s.Head)) {
		return s.Head
	}
	if s.Bytes <= int64(len(s.Tail)) {
		return s.Tail
	}
	return s.Head + fmt.Sprintf("\n… %d bytes in all …\n", s.Bytes) + s.Tail
}
