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
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
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
//     malformed, and the next prompt says so.
//
// A claim of success (COMPLETE, APPROVE) is held to more. It does not count
// while a quotation or inline code of the same paragraph is open, within
// fences that only a nested reading sees, nor anywhere in a message with a
// fence that is never closed: there it is not known what was quoted. A message
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
		r.readLine(line)
	}
	return r.decideSignal()
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

func (r *reader) readLine(line string) {
	where, sure := r.blocks.placeLine(line)
	text := trimBlanks(line)
	if where == quoted {
		text = strings.TrimLeft(text, "> \t")
	}
	p, ok := parseLine(text)
	counts := where == open && sure
	if ok && !p.signal.claimsSuccess() {
		counts = where == open || where == spanned
	}
	switch {
	case ok && counts:
		r.addSignal(p)
	case ok:
		r.addMention(where.String())
	case where == open:
		r.warnOfNearSignal(text)
	}
}

// claimsSuccess is true where the work is said to be done or good.
func (s Signal) claimsSuccess() bool { return s.Kind == Complete || s.Kind == Approve }

func (r *reader) addSignal(p parsed) {
	if p.progress >= 0 {
		r.out.Progress = p.progress
		return
	}
	s := p.signal
	if len(r.out.All) < maxAll {
		r.out.All = append(r.out.All, s)
	}
	r.last = s
	if s.claimsSuccess() {
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

// decideSignal decides which signal counts.
func (r *reader) decideSignal() Reading {
	if r.claims > 0 && r.blocks.hasOpenFence() {
		r.withdrawClaims()
	}
	s := r.last
	if s.Kind == Approve && r.reject.Kind != None {
		s = r.reject
	}
	if s.claimsSuccess() && r.denial.Kind != None {
		s = r.denial
	}
	r.out.Signal = s
	if s.Kind == None && r.mention != "" && len(r.out.Malformed) == 0 {
		r.addMalformed(r.mention)
	}
	return r.out
}

// withdrawClaims takes every claim of success back.
func (r *reader) withdrawClaims() {
	r.out.All, r.last = slices.DeleteFunc(r.out.All, Signal.claimsSuccess), r.lastSafe
	if len(r.out.All) == 0 {
		r.out.All = nil
	}
	r.out.Malformed = r.out.Malformed[:min(len(r.out.Malformed), maxMalformed-1)]
	r.addMalformed(fmt.Sprintf("The signal on line %d did not count, because a code fence in the message is never "+
		"closed: close every fence, then print the signal behind it.", r.claims))
}

func (r *reader) addMalformed(sentence string) {
	if len(r.out.Malformed) < maxMalformed {
		r.out.Malformed = append(r.out.Malformed, sentence)
	}
}

// addMention remembers a signal that was quoted or talked about. That is no
// mistake, so it is a warning only when the message has nothing else.
func (r *reader) addMention(how string) {
	if r.mention == "" {
		r.mention = fmt.Sprintf("A signal on line %d was %s, so nothing counted. If it was meant, print it alone on a "+
			"line of its own.", r.number, how)
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

// Kind is the request of a control signal.
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

// Reading is the content of one final message.
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

// maxFinal is the size of a plain-text agent's final message, in bytes.
const maxFinal = 1 << 20

// c1Lead is the first byte of an 8-bit control character in UTF-8.
const c1Lead = 0xc2

// FinalOfText makes the final message of an agent that prints plain text.
// Such an output does not say where its last message begins, so the whole
// output is taken: a BLOCKED early in it still beats a COMPLETE at its end.
//
// Terminal codes (CSI, OSC and other escape sequences, bells) are dropped.
// Carriage returns and backspaces are carried out as a progress display means
// them: what stands behind the last carriage return of a line replaces it.
// All other bytes stay as they are.
//
// Of more than 1 MiB the end is kept, from the start of a line; should one
// line be longer, it is cut and marked with an ellipsis. So a cut never makes
// a line of its own out of the end of a sentence.
func FinalOfText(output string) string { return lastPart(carryOutCodes(output), maxFinal) }

// lastPart keeps at most limit bytes from the end.
func lastPart(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	// The byte before the part shows whether it starts a line.
	part := s[len(s)-limit-1:]
	if i := strings.IndexByte(part, '\n'); i >= 0 && i+1 < len(part) {
		return part[i+1:]
	}
	const mark = "… "
	part = s[len(s)-limit+len(mark):]
	for part != "" && !utf8.RuneStart(part[0]) {
		part = part[1:]
	}
	return mark + part
}

// codes are terminal sequences: CSI, those with a text such as a window's title,
// those that choose a character set, and single ones, each also as one 8-bit
// character. One that breaks off ends where it does; a line break ends a text.
var codes = lazy.Regexp(`(?:\x1b\[|\x{9b})[\x20-\x3f]*[\x40-\x7e]?` +
	`|(?:\x1b[\]PX^_]|[\x{9d}\x{90}\x{98}\x{9e}\x{9f}])[^\n\a\x1b\x{9c}]*(?:\a|\x1b\\|\x{9c})?` +
	`|\x1b[\x20-\x2f]+[0-~]?` +
	`|\x1b[0-~]?` +
	`|[\x{80}-\x{84}\x{86}-\x{9f}]`)

// carryOutCodes carries out or drops what is meant for a terminal.
func carryOutCodes(s string) string {
	if !strings.ContainsAny(s, "\x1b\r\b\a") && strings.IndexByte(s, c1Lead) < 0 {
		return s
	}
	s = codes().ReplaceAllString(s, "")
	out := make([]byte, 0, len(s))
	start := 0        // of the line, in out
	returned := false // a carriage return waits for what replaces the line
	for _, c := range []byte(s) {
		switch c {
		case '\a':
		case '\b':
			if n := len(out); n > start {
				_, size := utf8.DecodeLastRune(out[start:])
				out = out[:n-size]
			}
		case '\r':
			returned = true
		case '\n':
			out = append(out, c)
			start, returned = len(out), false
		default:
			if returned {
				out, returned = out[:start], false
			}
			out = append(out, c)
		}
	}
	return string(out)
}
