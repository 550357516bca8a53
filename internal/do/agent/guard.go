package agent

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Guards bound what a program may do without getting anywhere. They are far
// above what a run that works does; a bound of zero is off.
type Guards struct {
	// Repeats is how often the same turns may follow each other: the same
	// calls of tools with the same arguments and results, the same words.
	Repeats int `json:"repeats,omitempty"`
	// Retries and RetryTime are how often, and for how long, the program may try
	// failed model calls again without any change between.
	Retries   int           `json:"retries,omitempty"`
	RetryTime time.Duration `json:"retry_time,omitempty"`
	// EmptyCalls is how many model calls in a row may bring nothing new.
	EmptyCalls int `json:"empty_calls,omitempty"`
}

// Trip is what a guard saw, and what to do about it.
type Trip struct {
	Ended loop.Ended
	Why   string
	// Since is when it began, if it counts only where no file changed since.
	Since time.Time
}

// longestTurn is how many words, calls and results a repeated turn may have.
const longestTurn = 8

// Guard looks at the events of one run for signs that it runs in circles. It
// keeps a few hundred bytes, reads no clock and decides nothing about files:
// times come in, and a [Trip] says when it depends on the tree. It is not safe
// for concurrent use.
type Guard struct {
	limits Guards

	past    [longestTurn]uint64 // the last actions
	actions int
	same    [longestTurn + 1]int // by length of a turn: actions in a row that repeat the turn before
	since   [longestTurn + 1]time.Time

	retries int
	first   time.Time // of the retries in a row
	refusal *failure.APIError

	empty     int // model calls since something new
	said      uint64
	lastError *failure.APIError
}

// NewGuard returns the guard of one run.
func NewGuard(limits Guards) *Guard { return &Guard{limits: limits} }

// hashSeed makes hashes comparable within this process; they are not stored.
var hashSeed = maphash.MakeSeed()

// Digest hashes a tool's arguments or its result; it is never 0, which stands for not known. It
// differs from process to process.
func Digest(raw []byte) uint64 {
	if len(raw) == 0 {
		return 0
	}
	return max(maphash.Bytes(hashSeed, raw), 1)
}

// Add takes the next event and when it came. The first trip counts: the caller ends the run, or
// calls [Guard.Forgive] and continues.
func (g *Guard) Add(e Event, at time.Time) (Trip, bool) {
	if e.Kind == End {
		g.resetRetries()
		return Trip{}, false
	}
	news := g.isNewAction(e)
	if news {
		g.resetRetries()
	}
	if e.Error != nil {
		g.lastError = e.Error
	}
	if e.Kind == Retry {
		if trip, tripped := g.countRetry(e, at); tripped {
			return trip, true
		}
	}
	if e.Calls > 0 && !news {
		g.empty += e.Calls
	}
	if l := g.limits.EmptyCalls; l > 0 && g.empty > l {
		return g.requestLoop(), true
	}
	return g.compareTurns(e, at)
}

// Expired returns a trip if the program has been trying again for too long at the time at, although
// no event came.
func (g *Guard) Expired(at time.Time) (Trip, bool) {
	if g.retries == 0 || g.limits.RetryTime <= 0 || at.Sub(g.first) < g.limits.RetryTime {
		return Trip{}, false
	}
	return g.retryTrip(fmt.Sprintf("for %s", at.Sub(g.first).Round(time.Second))), true
}

// Deadline returns the time from which [Guard.Expired] may be true; zero when nothing is tried
// again.
func (g *Guard) Deadline() time.Time {
	if g.retries == 0 || g.limits.RetryTime <= 0 {
		return time.Time{}
	}
	return g.first.Add(g.limits.RetryTime)
}

// Forgive forgets what repeated itself, since something changed meanwhile.
func (g *Guard) Forgive() { g.actions, g.same = 0, [longestTurn + 1]int{} }

// isNewAction reports whether e is an action of the model or the program, other than the same text
// again.
func (g *Guard) isNewAction(e Event) bool {
	switch e.Kind {
	case ToolStart, ToolEnd:
		return true
	case Text, Thinking:
		if strings.TrimSpace(e.Text) == "" {
			return false
		}
		words := maphash.String(hashSeed, e.Text)
		fresh := words != g.said
		g.said = words
		return fresh
	}
	return false
}

func (g *Guard) resetRetries() {
	g.retries, g.empty, g.refusal, g.lastError = 0, 0, nil, nil
}

func (g *Guard) countRetry(e Event, at time.Time) (Trip, bool) {
	if g.retries == 0 {
		g.first = at
	}
	g.retries++
	g.refusal = e.Error
	l := g.limits
	if l.Retries > 0 && g.retries > l.Retries {
		return g.retryTrip(fmt.Sprintf("%d times in a row", g.retries)), true
	}
	if trip, tripped := g.Expired(at); tripped {
		return trip, true
	}
	if e.Error == nil || l.RetryTime <= 0 || e.Error.RetryAfter <= 0 {
		return Trip{}, false
	}
	// A wait that would outlast the limit is pawl's to make: it costs nothing,
	// and other runs can share it.
	if at.Add(e.Error.RetryAfter).Sub(g.first) > l.RetryTime {
		return g.retryTrip(fmt.Sprintf("and waits %s for it", e.Error.RetryAfter.Round(time.Second))), true
	}
	return Trip{}, false
}

func (g *Guard) retryTrip(how string) Trip {
	const advice = "see whether the provider can be reached from here, or raise loop.retry_timeout or loop.max_retries"
	why := "the program tried a failed model call again " + how + " without any change"
	return Trip{Ended: loop.EndedRetries, Why: why + bracketedReason(g.refusal) + "; " + advice}
}

func (g *Guard) requestLoop() Trip {
	const advice = "make the task or its context smaller, use another model, or raise loop.max_empty_calls"
	why := fmt.Sprintf("%d model calls in a row brought nothing new", g.empty)
	return Trip{Ended: loop.EndedRequests, Why: why + bracketedReason(g.lastError) + "; " + advice}
}

// bracketedReason returns the provider's message, in brackets.
func bracketedReason(err *failure.APIError) string {
	if err == nil {
		return ""
	}
	said := cmp.Or(err.Message, err.Type)
	if err.Status != 0 {
		said = strings.TrimSpace(fmt.Sprintf("%d %s", err.Status, said))
	}
	if said == "" {
		return ""
	}
	return " (" + strings.Join(strings.Fields(fault.Cut(said, 200)), " ") + ")"
}

// compareTurns compares an action with the one a turn ago, for turns of each length.
func (g *Guard) compareTurns(e Event, at time.Time) (Trip, bool) {
	id, counts := g.identityOf(e)
	if !counts || g.limits.Repeats <= 0 {
		return Trip{}, false
	}
	for length := 1; length <= longestTurn && length <= g.actions; length++ {
		if g.past[(g.actions-length)%longestTurn] != id {
			g.same[length] = 0
			continue
		}
		if g.same[length] == 0 {
			g.since[length] = at
		}
		g.same[length]++
	}
	g.past[g.actions%longestTurn] = id
	g.actions++
	for length := 1; length <= longestTurn; length++ {
		if g.same[length] >= length*g.limits.Repeats {
			return g.repeatTrip(e, length), true
		}
	}
	return Trip{}, false
}

func (g *Guard) repeatTrip(e Event, length int) Trip {
	what := "the same words"
	if e.Kind != Text || length > 1 {
		what = "the same turn"
	}
	if e.Tool != "" {
		what += " with the tool " + e.Tool
		if e.Command != "" {
			what += " (" + Clip(e.Command, 100) + ")"
		}
	}
	const advice = "say in the prompt what to do instead, or raise loop.repeat_threshold"
	times := g.same[length]/length + 1
	why := fmt.Sprintf("%s came %d times in a row and no file changed between; %s", what, times, advice)
	return Trip{Ended: loop.EndedRepeats, Since: g.since[length], Why: why}
}

// identityOf returns a hash by which equal actions are recognized. A call whose arguments are not
// known is like no other.
func (g *Guard) identityOf(e Event) (id uint64, counts bool) {
	switch e.Kind {
	case Text:
		if strings.TrimSpace(e.Text) == "" {
			return 0, false
		}
		return maphash.String(hashSeed, e.Text), true
	case ToolStart:
		if e.Digest == 0 {
			return uint64(g.actions), true
		}
		return e.Digest ^ maphash.String(hashSeed, e.Tool), true
	case ToolEnd:
		if e.Digest == 0 {
			return 0, false
		}
		return e.Digest + 1, true
	}
	return 0, false
}
