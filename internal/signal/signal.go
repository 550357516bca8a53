// Package signal reads what an agent says about its own work: the signals
// of the completion protocol in its final message.
//
// A false completion is the worst thing that a loop can do, so a signal
// counts only alone on its own line of the agent's own final message,
// outside code fences and quotes. The package decides nothing about a run
// and touches nothing: text in, a [Reading] out.
//
// A plain-text agent's message is made with [FinalOfText] (no terminal codes)
// and [StripEcho] (no echo of the prompt), then read with [Read].
package signal

// Kind is what a control signal asks for.
type Kind string

// The control signals. None is the absence of one.
const (
	None     Kind = ""
	Complete Kind = "complete" // COMPLETE, SUCCESS: the work is done
	Blocked  Kind = "blocked"  // BLOCKED: why
	Pending  Kind = "pending"  // PENDING, ESCALATE: a question to a person
	Failure  Kind = "failure"  // FAILURE: the agent says that this iteration failed
	Approve  Kind = "approve"  // APPROVE: a review's yes
	Reject   Kind = "reject"   // REJECT: why
)

// Signal is one control signal with its payload.
type Signal struct {
	Kind Kind   `json:"kind,omitempty"`
	Text string `json:"text,omitempty"`
}

// Reading is what one final message says.
type Reading struct {
	// Signal is the one that counts: the last, except that BLOCKED or
	// FAILURE anywhere in the message beats COMPLETE. A review's APPROVE is
	// beaten by these and by a REJECT.
	Signal Signal `json:"signal"`
	// All has the valid control signals in the order of the message, at most
	// the first 1,000.
	All []Signal `json:"all,omitempty"`
	// Progress is the last PROGRESS value, 0 to 100; -1 when there is none.
	Progress int `json:"progress"`
	// Malformed has one sentence for each line that is nearly a signal, made
	// for the agent's next prompt, at most 10. It never quotes a tag, so it
	// cannot be taken for a signal itself.
	Malformed []string `json:"malformed,omitempty"`
}
