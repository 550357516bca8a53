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
	// failed model calls again with nothing new between.
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

// Digest is a number that tells a tool's arguments or its result from others;
// never 0, which stands for not known. It differs from process to process.
func Digest(raw []byte) uint64 {
	if len(raw) == 0 {
		return 0
	}
	return max(maphash.Bytes(hashSeed, raw), 1)
}

// Add takes the next event and when it came. The first trip counts: the caller
// ends the run, or calls [Guard.Forgive] and goes on.
func (g *Guard) Add(e Event, at time.Time) (Trip, bool) {
	if e.Kind == End {
		g.progress()
		return Trip{}, false
	}
	news := g.news(e)
	if news {
		g.progress()
	}
	if e.Error != nil {
		g.lastError = e.Error
	}
	if e.Kind == Retry {
		if trip, tripped := g.retry(e, at); tripped {
			return trip, true
		}
	}
	if e.Calls > 0 && !news {
		g.empty += e.Calls
	}
	if l := g.limits.EmptyCalls; l > 0 && g.empty > l {
		return g.requestLoop(), true
	}
	return g.compare(e, at)
}

// Expired says whether the program has been trying again for too long at the
// time at, although no event came.
func (g *Guard) Expired(at time.Time) (Trip, bool) {
	if g.retries == 0 || g.limits.RetryTime <= 0 || at.Sub(g.first) < g.limits.RetryTime {
		return Trip{}, false
	}
	return g.retrying(fmt.Sprintf("for %s", at.Sub(g.first).Round(time.Second))), true
}

// Deadline is when [Guard.Expired] is worth asking; zero when nothing is tried
// again.
func (g *Guard) Deadline() time.Time {
	if g.retries == 0 || g.limits.RetryTime <= 0 {
		return time.Time{}
	}
	return g.first.Add(g.limits.RetryTime)
}

// Forgive forgets what repeated itself, since something changed meanwhile.
func (g *Guard) Forgive() { g.actions, g.same = 0, [longestTurn + 1]int{} }

// news is whether e is something that the model or the program did, other than
// saying the same again.
func (g *Guard) news(e Event) bool {
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

func (g *Guard) progress() {
	g.retries, g.empty, g.refusal, g.lastError = 0, 0, nil, nil
}

func (g *Guard) retry(e Event, at time.Time) (Trip, bool) {
	if g.retries == 0 {
		g.first = at
	}
	g.retries++
	g.refusal = e.Error
	l := g.limits
	if l.Retries > 0 && g.retries > l.Retries {
		return g.retrying(fmt.Sprintf("%d times in a row", g.retries)), true
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
		return g.retrying(fmt.Sprintf("and waits %s for it", e.Error.RetryAfter.Round(time.Second))), true
	}
	return Trip{}, false
}

func (g *Guard) retrying(how string) Trip {
	const advice = "see whether the provider can be reached from here, or raise loop.retry_timeout or loop.max_retries"
	why := "the program tried a failed model call again " + how + " with nothing new"
	return Trip{Ended: loop.EndedRetries, Why: why + reason(g.refusal) + "; " + advice}
}

func (g *Guard) requestLoop() Trip {
	const advice = "make the task or its context smaller, use another model, or raise loop.max_empty_calls"
	why := fmt.Sprintf("%d model calls in a row brought nothing new", g.empty)
	return Trip{Ended: loop.EndedRequests, Why: why + reason(g.lastError) + "; " + advice}
}

// reason is what the provider said, in brackets.
func reason(err *failure.APIError) string {
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

// compare holds an action against the one a turn ago, for turns of
// each length.
func (g *Guard) compare(e Event, at time.Time) (Trip, bool) {
	id, counts := g.identity(e)
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
			return g.repeated(e, length), true
		}
	}
	return Trip{}, false
}

func (g *Guard) repeated(e Event, length int) Trip {
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

// identity is what makes an action the same as another. A call whose arguments
// are not known is like no other.
func (g *Guard) identity(e Event) (id uint64, counts bool) {
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
