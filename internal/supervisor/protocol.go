package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
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
	opAttach op = "attach" // Secret: a client comes back; the one before is told taken
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

// Status is what a supervisor says of itself.
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

// encode makes the line of a message. Only what this package defines is
// encoded, so a failure is a mistake in it.
func encode(message any) []byte {
	data, err := json.Marshal(message)
	if err != nil {
		data = fmt.Appendf(nil, `{"op":%q,"error":%q}`, opRefused, "cannot encode a message")
	}
	return append(data, '\n')
}
