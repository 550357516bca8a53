package agent

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

const (
	// MessageCap is how much of a final message is kept: its end, in bytes.
	MessageCap = 1 << 20
	// maxErrors is how many of the last errors are kept.
	maxErrors = 20
	// absurdTokens and absurdCost are beyond what one run can use. A number
	// over them is a broken report, and is dropped.
	absurdTokens = 1_000_000_000_000
	absurdCost   = loop.MicroUSD(1_000_000 * 1_000_000)
)

// Collector folds the events of one run into its [Outcome], in bounded memory
// whatever arrives, and holds the totals that limits are enforced on. It is
// not safe for concurrent use.
//
// The final message is what the program reports as such at its end, else what
// the agent said after its last tool call. Usage that the program reports
// never falls; an estimate gives way to a report.
type Collector struct {
	out      Outcome
	prices   Prices
	said     *Tail
	reported Usage // by the program: summed up, or its own total
	guessed  Usage // estimates since the last report of a total
	reports  int   // events with usage
	cost     loop.MicroUSD
	costSeen bool
	// retry is the error behind the program's own last retry. It is evidence
	// only if nothing worked after it.
	retry *failure.APIError
}

// NewCollector returns an empty collector.
func NewCollector() *Collector { return &Collector{said: NewTail(MessageCap)} }

// SetPrices lets the collector estimate the cost from tokens as long as the
// program reports none.
func (c *Collector) SetPrices(p Prices) { c.prices = p }

// SetModel sets the model that the program was asked to use. It prices the tokens of a program that
// does not name its model itself.
func (c *Collector) SetModel(model string) {
	c.out.Model = cmp.Or(c.out.Model, model)
}

// Add folds one event in.
func (c *Collector) Add(e Event) {
	c.countCalls(e)
	switch e.Kind {
	case Session:
		c.setSession(e)
	case Text:
		c.addSaidText(e)
	case ToolStart:
		c.out.Tools++
		c.retry = nil
		if !e.Sub {
			c.said.Reset()
		}
	case UsageSeen:
		c.addUsage(e)
	case CostSeen:
		c.raiseCost(e.Cost)
	case Retry:
		c.out.Retries++
		c.retry = e.Error
	case PlanSeen:
		c.out.Plan = e.Plan
	case RateLimit, Error:
		c.addError(e.Error)
	case End:
		c.recordEnd(e)
	case Unknown:
		c.out.Unknown++
	case Thinking, ToolEnd:
	}
}

// Outcome is the result of the run so far.
func (c *Collector) Outcome() Outcome {
	out := c.out
	out.Message = c.said.Text()
	out.Usage = c.totalUsage()
	out.Cost, out.CostSource = c.priceUsage()
	out.Errors = append([]failure.APIError(nil), c.out.Errors...)
	if c.retry != nil && out.Terminal != loop.TerminalOK {
		out.Errors = keepLast(out.Errors, boundError(*c.retry))
	}
	return out
}

// Tokens returns the count for a token limit: all of them so far.
func (c *Collector) Tokens() int64 {
	return c.totalUsage().Tokens()
}

// Cost returns the run's cost so far; known is false when neither the program nor the prices give
// it.
func (c *Collector) Cost() (cost loop.MicroUSD, known bool) {
	cost, source := c.priceUsage()
	return cost, source != CostNone
}

// Calls is the number of model calls so far, the program's own retries included.
func (c *Collector) Calls() int { return c.out.Calls }

// Session is the program's id of the session, "" before it is known.
func (c *Collector) Session() string { return c.out.Session }

// Reports counts the events that had usage.
func (c *Collector) Reports() int { return c.reports }

// Model is the model that works, as far as is known.
func (c *Collector) Model() string { return c.out.Model }

// Turns is the number of the agent's turns so far.
func (c *Collector) Turns() int { return c.out.Turns }

func (c *Collector) countCalls(e Event) {
	if e.Calls > 0 && e.Calls < absurdTokens {
		c.out.Calls = min(c.out.Calls+e.Calls, absurdTokens)
	}
	if e.Turns > 0 && e.Turns < absurdTokens {
		c.out.Turns = min(c.out.Turns+e.Turns, absurdTokens)
	}
}

func (c *Collector) setSession(e Event) {
	if e.Session != "" {
		c.out.Session = e.Session
	}
	if e.Model != "" {
		c.out.Model = e.Model
	}
}

func (c *Collector) addSaidText(e Event) {
	c.retry = nil
	if !e.Sub {
		c.said.Add(e.Text)
	}
}

func (c *Collector) addUsage(e Event) {
	u := e.Usage.Sane()
	if u == (Usage{}) {
		return
	}
	c.reports++
	switch {
	case e.Cumulative:
		c.reported = c.reported.raisedTo(u)
		c.guessed = Usage{}
	case e.Estimate:
		c.guessed = c.guessed.Plus(u)
	default:
		c.reported = c.reported.Plus(u)
		c.retry = nil
	}
	if e.Cost > 0 {
		c.raiseCost(e.Cost)
	}
}

func (c *Collector) totalUsage() Usage { return c.reported.Plus(c.guessed) }

// raiseCost takes the run's total so far. A smaller one than before is ignored.
func (c *Collector) raiseCost(total loop.MicroUSD) {
	if total < 0 || total > absurdCost {
		return
	}
	c.costSeen = true
	c.cost = max(c.cost, total)
}

// The sources of a cost.
const (
	CostMetered   = "metered"
	CostReported  = "reported"
	CostEstimated = "estimated"
	CostPartial   = loop.CostPartial // at least so much
	CostNone      = "none"
)

// priceUsage does not take missing tokens for none: a program that is ended before it reports them
// has used some.
func (c *Collector) priceUsage() (loop.MicroUSD, string) {
	if c.costSeen {
		return c.cost, CostReported
	}
	used := c.totalUsage()
	if cost, ok := c.prices.Cost(c.out.Model, used); ok && (used != Usage{} || c.out.Calls == 0) {
		return cost, CostEstimated
	}
	return 0, CostNone
}

func (c *Collector) addError(err *failure.APIError) {
	if err == nil {
		return
	}
	c.retry = nil
	c.out.Errors = keepLast(c.out.Errors, boundError(*err))
}

func (c *Collector) recordEnd(e Event) {
	c.out.Terminal = e.Terminal
	if e.Final || e.Text != "" {
		c.said.Reset()
		c.said.Add(e.Text)
	}
	c.addError(e.Error)
}

func keepLast(errs []failure.APIError, e failure.APIError) []failure.APIError {
	if len(errs) >= maxErrors {
		errs = append(errs[:0:0], errs[1:]...)
	}
	return append(errs, e)
}

// Tokens is all of them together: what pawl shows, and what limits hold.
func (u Usage) Tokens() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Plus sums up, without overflow.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input:      min(u.Input+v.Input, absurdTokens),
		Output:     min(u.Output+v.Output, absurdTokens),
		CacheRead:  min(u.CacheRead+v.CacheRead, absurdTokens),
		CacheWrite: min(u.CacheWrite+v.CacheWrite, absurdTokens),
	}
}

// raisedTo raises each count to v's.
func (u Usage) raisedTo(v Usage) Usage {
	return Usage{
		Input:      max(u.Input, v.Input),
		Output:     max(u.Output, v.Output),
		CacheRead:  max(u.CacheRead, v.CacheRead),
		CacheWrite: max(u.CacheWrite, v.CacheWrite),
	}
}

// Tail keeps the end of what was said, whole lines if it can, in at most
// about twice its limit of memory. [NewTail] makes one.
//
// What is cut off must not change the meaning of what stays: a signal counts
// only alone on its line and outside of code fences. So the cut is at the end
// of a line, or marked by "…", and a fence that was open is opened again.
type Tail struct {
	limit int
	buf   []byte
	began bool   // something was added; the next text starts a new line
	fence string // the marker of the code fence that is open at the start of buf
}

// NewTail returns an empty tail that keeps limit bytes.
func NewTail(limit int) *Tail { return &Tail{limit: max(limit, 1)} }

// cutMark stands for the start of a line that was cut off.
const cutMark = "…"

// Add appends one text on a line of its own.
func (t *Tail) Add(s string) {
	if t.began {
		t.buf = append(t.buf, '\n')
	}
	t.began = true
	t.Join(s)
}

// Join appends s to the text that was added last, on the same line: a message
// that arrives in pieces is one Add and then Joins.
func (t *Tail) Join(s string) {
	t.began = true
	for len(s) > 0 {
		n := min(len(s), t.limit/4+1)
		t.buf = append(t.buf, s[:n]...)
		s = s[n:]
		if len(t.buf) > t.limit+t.limit/2 {
			t.dropLines()
		}
	}
}

// Reset forgets everything.
func (t *Tail) Reset() { t.buf, t.began, t.fence = t.buf[:0], false, "" }

// Text returns the last limit bytes, by lines, as valid UTF-8.
func (t *Tail) Text() string {
	if len(t.buf) > t.limit {
		t.dropLines()
	}
	s := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	if t.fence != "" {
		return t.fence + "\n" + s
	}
	return s
}

// dropLines drops lines from the start until the limit holds.
func (t *Tail) dropLines() {
	cut := max(len(t.buf)-t.limit, len(cutMark)) // room for the mark
	for cut < len(t.buf) && !utf8.RuneStart(t.buf[cut]) {
		cut++
	}
	mark := ""
	if t.buf[cut-1] != '\n' {
		if end := bytes.IndexByte(t.buf[cut:], '\n'); end >= 0 {
			cut += end + 1
		} else {
			mark = cutMark
		}
	}
	t.fence = signal.OpenFence(t.fence, string(t.buf[:cut]))
	n := copy(t.buf[len(mark):], t.buf[cut:])
	copy(t.buf, mark)
	t.buf = t.buf[:len(mark)+n]
}

// Clip returns the first n bytes of s or a little less, without half a rune.
func Clip(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
