// Package activity looks at what agents do: at their conversations, which are read by
// place, and at what runs do just now, for all readers at once.
package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/hub"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/engine/attemptdir"
	"github.com/pawl-dev/pawl/internal/do/engine/ending"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/keep/spool"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// watchEvery is how often running agents are looked at while somebody watches.
const watchEvery = 150 * time.Millisecond

// maxWatched bounds how many runs are looked at.
const maxWatched = 100

// Watcher looks at what runs do, for all readers at once.
type Watcher struct {
	Hub *hub.Hub
	// Active lists the runs that are stored as working, Checks are those of a run, and Open
	// opens the folder of an iteration.
	Active func(ctx context.Context) ([]store.Run, error)
	Checks func(ctx context.Context, run string) []view.GateSpec
	Open   func(r store.Run, number int) (*os.Root, error)
	runs   map[string]*watchedRun
}

// watchedRun is what is known of one running attempt.
type watchedRun struct {
	root   *os.Root
	tail   spool.Tail
	totals *agent.Collector
	now    view.Activity
	specs  []view.GateSpec // the run's checks as they were when its phase began
	phase  string          // in which they were read
	sent   string          // the last one, as it was sent
	out    *spool.Reader
	grown  view.Grown
}

// WatchRuns polls the active runs until ctx is done.
func (g *Watcher) WatchRuns(ctx context.Context) {
	defer g.forgetOthers(nil)
	hub.Every(ctx, watchEvery, func() {
		if g.Hub.Watched() {
			g.sendChanges(ctx)
		} else {
			g.forgetOthers(nil)
		}
	})
}

// measureOutput returns how much the agent has printed; the last value if that cannot be
// read.
func (o *watchedRun) measureOutput() view.Grown {
	now := view.Grown{Run: o.now.Run, Iteration: o.now.Iteration, Attempt: o.now.Attempt, Events: o.grown.Events,
		Output: o.grown.Output}
	if o.tail.Open() == nil {
		if n, err := o.tail.Reader.Size(); err == nil {
			now.Events = n
		}
	}
	if o.out == nil {
		o.out, _ = spool.Open(o.root, "agent.out") // while it has printed nothing there is none
	}
	if o.out != nil {
		if n, err := o.out.Size(); err == nil {
			now.Output = n
		}
	}
	return now
}

// sendUpdate sends what is new about a run to its subscribers.
func (g *Watcher) sendUpdate(run, kind string, data any) {
	f := hub.NewFrame("", kind, data)
	f.Run = run
	g.Hub.Broadcast(f)
}

// sendChanges sends what changed of every active run.
func (g *Watcher) sendChanges(ctx context.Context) {
	runs, err := g.Active(ctx)
	if err != nil {
		return // the hub says so
	}
	again := g.Hub.Came()
	kept := map[string]bool{}
	for _, r := range runs[:min(len(runs), maxWatched)] {
		one := g.findAttempt(ctx, r)
		if one == nil {
			continue
		}
		kept[r.ID] = true
		one.readNewEvents(func() []view.GateSpec { return g.Checks(ctx, r.ID) })
		if text, err := json.Marshal(one.now); err == nil && (again || string(text) != one.sent) {
			one.sent = string(text)
			g.sendUpdate(r.ID, "activity", one.now)
		}
		if grown := one.measureOutput(); grown != one.grown {
			one.grown = grown
			g.sendUpdate(r.ID, "output", grown)
		}
	}
	g.forgetOthers(kept)
}

// findAttempt returns the watchedRun of a run's attempt under way; nil if there is none.
func (g *Watcher) findAttempt(ctx context.Context, r store.Run) *watchedRun {
	one := g.runs[r.ID]
	if one != nil && (one.now.Iteration == r.Iteration || one.isChecking()) && one.isCurrent() &&
		one.now.Phase != "waiting" && r.Status == string(loop.Running) {
		return one
	}
	if one != nil {
		one.closeReaders()
		delete(g.runs, r.ID)
	}
	if len(g.runs) >= maxWatched || ctx.Err() != nil {
		return nil
	}
	now := view.Activity{Run: r.ID, Iteration: r.Iteration, Attempt: 1, Phase: "agent", Gates: []view.Gate{}}
	root, err := g.Open(r, r.Iteration)
	if err != nil && r.Iteration == 1 {
		now.Iteration, now.Phase = 0, "gates"
		root, err = g.Open(r, 0)
	}
	if err != nil {
		return nil // it has not begun
	}
	if r.Status == string(loop.Waiting) {
		now.Phase = "waiting"
	}
	one = &watchedRun{root: root, tail: spool.Tail{Root: root, Name: EventsFile}, totals: agent.NewCollector(), now: now}
	one.readStart()
	if g.runs == nil {
		g.runs = map[string]*watchedRun{}
	}
	g.runs[r.ID] = one
	return one
}

// forgetOthers closes the runs that are not in kept.
func (g *Watcher) forgetOthers(kept map[string]bool) {
	for id, one := range g.runs {
		if !kept[id] {
			one.closeReaders()
			delete(g.runs, id)
		}
	}
}

func (o *watchedRun) closeReaders() {
	o.tail.Close()
	if o.out != nil {
		_ = o.out.Close()
	}
	_ = o.root.Close()
}

// readStart reads when the attempt began.
func (o *watchedRun) readStart() {
	if attempt, at, ok := attemptdir.ReadBegun(o.root); ok {
		o.now.Attempt, o.now.Since = attempt, at.UTC()
	}
}

// isChecking reports whether a check runs before the first agent.
func (o *watchedRun) isChecking() bool {
	return o.now.Iteration == 0 && slices.ContainsFunc(o.now.Gates,
		func(g view.Gate) bool { return g.Status == "running" })
}

// isCurrent is false if the files now belong to another attempt.
func (o *watchedRun) isCurrent() bool {
	before := o.now.Attempt
	o.readStart()
	return o.now.Attempt == before
}

func (o *watchedRun) readNewEvents(specs func() []view.GateSpec) {
	o.readEvents()
	out := o.totals.Outcome()
	used := out.Usage
	o.now.TokensIn, o.now.TokensOut = used.Input+used.CacheRead+used.CacheWrite, used.Output
	o.now.Calls = o.totals.Calls()
	cost, known := o.totals.Cost()
	o.now.CostUSD = cost.Dollars(known)
	if o.now.Phase != "waiting" && fileExists(o.root, "agent.result.json") {
		o.now.Phase = "gates"
		if fileExists(o.root, "review.begun.json") {
			o.now.Phase = "review"
		}
	}
	if o.phase != o.now.Phase { // the run may have been resumed with other checks
		o.phase, o.specs = o.now.Phase, specs()
	}
	o.now.Gates = o.gateStates(o.specs)
}

// readEvents adds new events of the agent.
func (o *watchedRun) readEvents() {
	if o.tail.Open() != nil {
		return
	}
	for range 2000 { // more comes with the next look
		if !o.tail.Lines.Next() {
			return
		}
		var e agent.Event
		if json.Unmarshal(o.tail.Lines.Line, &e) != nil {
			continue
		}
		o.totals.Add(e)
		switch e.Kind {
		case agent.Text, agent.ToolStart, agent.Thinking, agent.Retry, agent.RateLimit, agent.Error:
			if shown, ok := view.ReadEvent(o.tail.Lines.Line, o.tail.Lines.At); ok {
				shown.Text, shown.Command = fault.Cut(shown.Text, 500), fault.Cut(shown.Command, 500)
				o.now.Last = &shown
			}
		case agent.Session, agent.ToolEnd, agent.UsageSeen, agent.CostSeen, agent.End, agent.Unknown:
		}
	}
}

// gateStates returns how far the checks are, judging by the files that they have written.
func (o *watchedRun) gateStates(specs []view.GateSpec) []view.Gate {
	out := []view.Gate{}
	stopped := false
	for i, spec := range specs {
		g := view.Gate{Name: spec.Name, Required: spec.Required, Timeout: spec.Timeout, Status: "waiting", ExitCode: -1}
		file := fmt.Sprintf("gate-%d", i+1)
		switch {
		case fileExists(o.root, file+".result.json"):
			check := runplan.Check{Name: spec.Name, Required: spec.Required}
			if r, ok := ending.ReadGate(o.root, i+1, check); ok {
				g.Elapsed, g.ExitCode, g.Status = view.Seconds(r.Elapsed), r.ExitCode, string(r.Status)
			}
			stopped = stopped || g.Required && g.Status != string(loop.GatePassed) && o.now.Iteration > 0
		case fileExists(o.root, file+".result.json.tmp"):
			g.Status = "running"
			if info, err := o.root.Stat(file + ".result.json.tmp"); err == nil {
				g.Elapsed = float64(int(time.Since(info.ModTime()).Seconds()))
			}
		case stopped:
			g.Status = string(loop.GateNotRun)
		}
		if fileExists(o.root, file+".out") {
			g.File = file + ".out"
		}
		out = append(out, g)
	}
	return out
}

func fileExists(root *os.Root, name string) bool {
	_, err := root.Stat(path.Clean(name))
	return err == nil
}

// lookBack is how many bytes are looked at for events before a place, and about how many
// of them after one.
const lookBack = 1 << 20

// EventsFile is where the supervisor writes what the agent's parser made of
// its stream.
const EventsFile = "agent.events.jsonl"

// ReadEventsFrom reads the events that begin at or after a place.
func ReadEventsFrom(f *spool.Reader, from int64, limit int, out view.Conversation) view.Conversation {
	lines := spool.NewLines(f, from)
	out.Before, out.Next = from, from
	for len(out.Events) < limit && out.Next-out.Before < lookBack && lines.Next() {
		out.Next = lines.End
		if e, ok := view.ReadEvent(lines.Line, lines.At); ok {
			if len(out.Events) == 0 {
				out.Before = e.Offset
			}
			out.Events = append(out.Events, e)
		}
	}
	out.Size = max(out.Size, out.Next)
	return out
}

// ReadEventsBefore reads the last events that end at or before a place.
func ReadEventsBefore(f *spool.Reader, spans []spool.Span, end int64, limit int, out view.Conversation,
) view.Conversation {
	at := len(spans) - 1
	if at > 0 && spans[at].From >= end {
		at--
	}
	end = min(end, spans[at].To)
	from := max(spans[at].From, end-lookBack)
	lines := spool.NewLines(f, from)
	out.Before, out.Next = from, from
	var all []view.AgentEvent
	for lines.Next() && lines.End <= end {
		out.Next = lines.End
		if e, ok := view.ReadEvent(lines.Line, lines.At); ok {
			all = append(all, e)
		}
	}
	out.Events = append(out.Events, all[max(0, len(all)-limit):]...)
	more := len(all) > limit || from > spans[at].From
	if more && len(out.Events) > 0 {
		out.Before = out.Events[0].Offset
	}
	return out
}
