package report

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// This file says in words what both templates show.

// Ending describes an agent process that did not end well; "" for one that did.
func (it Iteration) Ending() string {
	switch x := it.Exit; {
	case x.Ended != loop.NotEnded:
		return "ended: " + string(x.Ended)
	case x.Signal != "":
		return "signal: " + x.Signal
	case x.Code != 0:
		return fmt.Sprintf("exit %d", x.Code)
	}
	return ""
}

// Said is the agent's signal.
func (it Iteration) Said() string {
	switch {
	case it.Signal.Kind != "":
		return strings.TrimSpace(strings.ToUpper(string(it.Signal.Kind)) + " " + it.Signal.Text)
	case it.Progress >= 0:
		return fmt.Sprintf("PROGRESS %d", it.Progress)
	}
	return ""
}

// OwnReview is the review, unless the iteration's failure says the same.
func (it Iteration) OwnReview() *loop.Review {
	if it.Failure != nil && it.Review != nil && it.Review.Verdict == loop.Rejected {
		return nil
	}
	return it.Review
}

// Price formats the cost; "" where it is unknown.
func (it Iteration) Price() string {
	if !it.costKnown() {
		return ""
	}
	return loop.Money(it.Cost, true, it.CostSource == loop.CostPartial)
}

func (it Iteration) costKnown() bool { return loop.CostKnown(it.CostSource) }

// Tokens counts both directions.
func (it Iteration) Tokens() int64 { return it.TokensIn + it.TokensOut }

// Warnings lists changed protected files, refused commands and added secrets for a person to look
// at.
func (it Iteration) Warnings() []string {
	var out []string
	if n := len(it.Tampered); n > 0 {
		out = append(out, fmt.Sprintf("changed %s: %s", fault.Numbered(n, "protected file"), it.Tampered[0]))
	}
	if it.Refused != nil {
		out = append(out, "a forbidden command was refused: "+Line(it.Refused.Reason(), longText))
	}
	if n := len(it.Secrets); n > 0 {
		first := it.Secrets[0]
		places := fault.Numbered(n, "added place")
		out = append(out, fmt.Sprintf("%s look like secrets, the first in %s:%d", places, first.File, first.Line))
	}
	return out
}

// tones are built on first use: most programs print no report.
var tones = sync.OnceValue(func() map[string]Tone {
	return map[string]Tone{
		string(loop.Completed): Good, string(loop.Success): Good,
		string(loop.GatePassed): Good, string(loop.Approved): Good,
		string(loop.Running): Going, string(loop.Waiting): Going,
		string(loop.Paused): Wait, string(loop.Pending): Wait,
		string(loop.Blocked): Wait, string(loop.Interrupted): Wait,
		string(loop.Stopped): Wait, string(loop.Waited): Wait, string(loop.Asked): Wait,
		string(loop.Neutral): Plain, string(loop.GateNotRun): Plain,
	}
})

// toneOfValue gives the tone of a status, an outcome, a verdict or a gate.
func toneOfValue(of any) Tone {
	g, isGate := of.(loop.Gate)
	if isGate {
		of = g.Status
	}
	t, ok := tones()[fmt.Sprint(of)]
	switch {
	case ok:
		return t
	case isGate && !g.Required:
		return Wait
	}
	return Bad
}

// GateMark is a gate's status as one character.
func GateMark(g loop.Gate) string {
	switch g.Status {
	case loop.GatePassed:
		return "✓"
	case loop.GateNotRun:
		return "○"
	}
	return "✗"
}

// testsOfGate counts the tests of a gate, as "3/4".
func testsOfGate(g loop.Gate) string {
	if !g.Test || g.Total < 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", g.Passed, g.Total)
}

// noteOfGate gives what stands behind a gate's name.
func noteOfGate(g loop.Gate) string {
	var parts []string
	if g.Elapsed > 0 {
		parts = append(parts, loop.Duration(g.Elapsed))
	}
	if g.Status != loop.GatePassed && g.Status != loop.GateFailed {
		parts = append(parts, string(g.Status))
	}
	if !g.Required {
		parts = append(parts, "optional")
	}
	if g.Note != "" {
		parts = append(parts, g.Note)
	}
	return strings.Join(parts, ", ")
}

// ItemLine is an actionable item in a line: where, which test, and what is wrong.
func ItemLine(i failure.Item) string {
	place := i.File
	if place != "" && i.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, i.Line)
	}
	parts := lists.NonEmpty(place, i.Test, i.Message)
	if i.HasValuesBeyond(i.Message) {
		parts = append(parts, fmt.Sprintf("expected %s, received %s", i.Expected, i.Received))
	}
	return strings.Join(parts, ": ")
}

// String is "3 of 10", with what came of them.
func (c Count) String() string {
	text := fmt.Sprint(c.Done)
	if c.Limit > 0 {
		text += fmt.Sprintf(" of %d", c.Limit)
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{c.Succeeded, "succeeded"}, {c.Failed, "failed"}, {c.Cuts, "cut off by a provider"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// String is "3 files, +12 −4 lines".
func (c *Changes) String() string {
	text := fault.Numbered(len(c.Files), "file")
	if c.More {
		text = "more than " + text
	}
	if c.Added+c.Deleted > 0 {
		text += fmt.Sprintf(", +%d −%d lines", c.Added, c.Deleted)
	}
	return text
}

// Share is a part of the time, in ten thousandths.
type Share struct {
	Name, What string
	Took       time.Duration
	Share      int
}

// Shares are the parts of the time that are not nothing.
func (t Times) Shares() []Share {
	first, last := "agents", "snapshots and the rest"
	if t.Stepped {
		first = "steps"
	}
	if t.Going {
		last = "in progress, and the rest"
	}
	var out []Share
	for _, s := range []Share{
		{first, "agent", t.Agents, 0}, {"gates", "gates", t.Gates, 0}, {"reviews", "review", t.Reviews, 0},
		{"waiting", "wait", t.Waits, 0}, {last, "rest", t.Rest, 0},
	} {
		if s.Took > 0 && t.Wall > 0 {
			s.Share = int(float64(s.Took) / float64(t.Wall) * 10_000)
			out = append(out, s)
		}
	}
	return out
}

// Sign is the change as one character.
func (f File) Sign() string {
	sign, ok := map[string]string{"added": "+", "deleted": "−", "renamed": "→"}[f.Status]
	if !ok {
		return "~"
	}
	return sign
}

// listLabels lists iterations, at most 20.
func listLabels(list []string) string {
	const most = 20
	if len(list) > most {
		list = append(list[:most:most], "…")
	}
	return strings.Join(list, ", ")
}

// Some are the first few of many, in words.
func Some(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// Short is a count of tokens in at most five characters: 1.5k, 2.0M.
func Short(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// ModelUse is the use of one model, in tokens, for programs that read it.
type ModelUse struct {
	Model      string   `json:"model"`
	Calls      int      `json:"calls"`
	Input      int64    `json:"input" doc:"Without what came from a cache."`
	CacheRead  int64    `json:"cache_read"`
	CacheWrite int64    `json:"cache_write"`
	Output     int64    `json:"output"`
	CostUSD    *float64 `json:"cost_usd" nullable:"true" doc:"null where not all of it is known."`
}

// Models are the models of an iteration as users see them.
func Models(list []loop.ModelUse) []ModelUse {
	var out []ModelUse
	for _, m := range list {
		out = append(out, ModelUse{
			Model: m.Model, Calls: m.Calls, Input: m.Input, CacheRead: m.CacheRead, CacheWrite: m.CacheWrite, Output: m.Output,
			CostUSD: m.Cost.Dollars(!m.Unpriced),
		})
	}
	return out
}

// Line makes a program's words fit for one line: no line ends, no control
// characters, no signs that turn the direction of text; at most limit runes
// and then an ellipsis.
func Line(text string, limit int) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r) {
			continue
		}
		if n >= limit {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			n++
			space = false
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
