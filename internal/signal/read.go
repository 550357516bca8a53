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

import (
	"fmt"
	"strings"
)

// The bounds of a Reading.
const (
	maxAll       = 1000
	maxMalformed = 10
)

// Read reads the signals of one final message. It takes any bytes, of any
// length, in linear time; a message without signals gives None and -1.
//
// A signal counts alone on its own line, with nothing but ASCII white space
// around it and at most three columns of indentation. It does not count
//   - in a code fence, indented code, a block quote, an HTML comment or a
//     pre, code or blockquote element,
//   - as a list item or with decoration around it, such as bold: that is
//     malformed, and the agent is told.
//
// A claim of success (COMPLETE, APPROVE) is held to more. It does not count
// while a quotation or inline code of the same paragraph is open, within
// fences that only a nested reading sees, nor anywhere in a message with a
// fence that is never closed: there nobody can know what was quoted. A message
// that was cut off within a fence, at either end, is such a one.
func Read(message string) Reading {
	r := reader{out: Reading{Progress: -1}}
	for message != "" {
		line := message
		if i := strings.IndexByte(message, '\n'); i >= 0 {
			line, message = message[:i], message[i+1:]
		} else {
			message = ""
		}
		r.number++
		r.line(line)
	}
	return r.finish()
}

// reader gathers a Reading.
type reader struct {
	out    Reading
	blocks blocks
	number int // of the line, from 1

	last     Signal // of all
	lastSafe Signal // that is no claim of success
	denial   Signal // the last BLOCKED or FAILURE
	reject   Signal // the last REJECT
	claims   int    // the number of the last line with a claim; 0 for none

	mention string // the first signal that was only mentioned
}

func (r *reader) line(line string) {
	where, sure := r.blocks.next(line)
	text := trim(line)
	if where == quoted {
		text = strings.TrimLeft(text, "> \t")
	}
	p, ok := parseLine(text)
	counts := where == open && sure
	if ok && !p.signal.claim() {
		counts = where == open || where == spanned
	}
	switch {
	case ok && counts:
		r.take(p)
	case ok:
		r.mentioned(where.String())
	case where == open:
		r.inspect(text)
	}
}

// claim is true for a signal that says that the work is done or good.
func (s Signal) claim() bool { return s.Kind == Complete || s.Kind == Approve }

func (r *reader) take(p parsed) {
	if p.progress >= 0 {
		r.out.Progress = p.progress
		return
	}
	s := p.signal
	if len(r.out.All) < maxAll {
		r.out.All = append(r.out.All, s)
	}
	r.last = s
	if s.claim() {
		r.claims = r.number
	} else {
		r.lastSafe = s
	}
	switch s.Kind {
	case Blocked, Failure:
		r.denial = s
	case Reject:
		r.reject = s
	case None, Complete, Pending, Approve:
	}
}

// finish decides which signal counts.
func (r *reader) finish() Reading {
	if r.claims > 0 && r.blocks.unclosed() {
		r.withdraw()
	}
	s := r.last
	if s.Kind == Approve && r.reject.Kind != None {
		s = r.reject
	}
	if s.claim() && r.denial.Kind != None {
		s = r.denial
	}
	r.out.Signal = s
	if s.Kind == None && r.mention != "" && len(r.out.Malformed) == 0 {
		r.malformed(r.mention)
	}
	return r.out
}

// withdraw takes every claim of success back.
func (r *reader) withdraw() {
	kept := r.out.All[:0]
	for _, s := range r.out.All {
		if !s.claim() {
			kept = append(kept, s)
		}
	}
	r.out.All, r.last = kept, r.lastSafe
	if len(kept) == 0 {
		r.out.All = nil
	}
	r.out.Malformed = r.out.Malformed[:min(len(r.out.Malformed), maxMalformed-1)]
	r.malformed(fmt.Sprintf("The signal on line %d did not count, because a code fence in the message is never closed: "+
		"close every fence, then print the signal behind it.", r.claims))
}

func (r *reader) malformed(sentence string) {
	if len(r.out.Malformed) < maxMalformed {
		r.out.Malformed = append(r.out.Malformed, sentence)
	}
}

// mentioned remembers a signal that was quoted or talked about. That is no
// mistake, so it is told only when the message has nothing else.
func (r *reader) mentioned(how string) {
	if r.mention == "" {
		r.mention = fmt.Sprintf("A signal on line %d was %s, so nothing counted. If it was meant, print it alone on a line "+
			"of its own.", r.number, how)
	}
}

// String is how a signal in that place was written.
func (p place) String() string {
	switch p {
	case open, fenced:
		return "inside a code fence"
	case indented:
		return "indented like code"
	case quoted, spanned:
		return "inside a quotation"
	case hidden:
		return "inside a comment or an HTML element"
	}
	return "not on a line of its own"
}

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
