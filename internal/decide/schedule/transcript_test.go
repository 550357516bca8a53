package schedule_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/test/transcript"
)

// TestTranscripts plays the files in testdata. Each line is something that
// happens; below the line of dashes stands what is done about it, until the
// autopilot rests. The notation:
//
//	begin [slots=N] [threshold=N] [wip=N] [mode=M] [count=N] [for=D] [keep] [review] [batch] [pause-on-error] [running=a,b]
//	ready a b · gone a · end TASK STATUS [why] [guard] [empty] [hold] [secret] · cannot-start TASK [task|machine|lacks]
//	iteration TASK N [CLASS WORDS]: it ended, or failed in that way
//	pause · resume · stop [CAUSE] · kill · mode M · slots N · assign TASK · approve TASK · land TASK · hold-queue WHY
//	unwritable · writable: whether the database takes what is settled
//	limited AGENT WHY · answers AGENT: a provider does · end TASK paused until=D
//	target green|red WHY|diverged WHY|unknown · repairs TASK: it is ready, and the repair of the target
//	after D: time passes
//
// Tasks are ready in the order in which they were named.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) func(string) string {
		w := &world{t: t, at: time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC), fails: map[string]schedule.Fault{}}
		return w.line
	})
}

// world is a board and a queue that answer commands.
type world struct {
	t                       *testing.T
	s                       schedule.State
	at                      time.Time
	ready, repairs          []string
	target                  schedule.Target
	waiting, review, queued int
	held                    string
	fails                   map[string]schedule.Fault // tasks whose start fails
	unwritable              bool
	out                     strings.Builder
}

func (w *world) line(line string) string {
	w.out.Reset()
	words := strings.Fields(line)
	e, told := w.read(words)
	if told {
		w.feed(e)
	}
	if w.out.Len() == 0 {
		return "nothing\n"
	}
	return w.out.String()
}

// feed takes an event and all that follows from it.
func (w *world) feed(e schedule.Event) {
	for range 1000 {
		e.At = w.at
		kept, _ := json.Marshal(w.s)
		after, c := schedule.Step(w.s, e)
		if now, _ := json.Marshal(w.s); !bytes.Equal(now, kept) {
			w.t.Fatalf("%s changed the state before it", e.Kind)
		}
		if len(after.Slots) > max(0, after.Settings.MaxParallel, len(w.s.Slots)) {
			w.t.Fatalf("%d slots are taken of %d", len(after.Slots), after.Settings.MaxParallel)
		}
		w.s = after
		var over bool
		if e, over = w.perform(c); over {
			return
		}
	}
	w.t.Fatal("it never rests")
}

func (w *world) read(words []string) (e schedule.Event, told bool) {
	first := ""
	if len(words) > 1 {
		first = words[1]
	}
	ask := func(a schedule.Ask) (schedule.Event, bool) {
		return schedule.Event{Kind: schedule.Asked, Ask: a, Case: first, Mode: schedule.Mode(first)}, true
	}
	changed := schedule.Event{Kind: schedule.Changed}
	switch words[0] {
	case "begin":
		e = schedule.Event{Kind: schedule.Began, Settings: w.settings(words[1:])}
		for _, word := range words[1:] {
			if list, ok := strings.CutPrefix(word, "running="); ok {
				e.Cases = strings.Split(list, ",")
			}
		}
		return e, true
	case "ready":
		w.ready = append(w.ready, words[1:]...)
		return changed, w.s.Phase != ""
	case "repairs":
		w.ready, w.repairs = append(w.ready, first), append(w.repairs, first)
		return changed, w.s.Phase != ""
	case "target":
		w.target = schedule.Target{Health: schedule.Health(first), Why: strings.Join(words[2:], " ")}
		if first == "unknown" {
			w.target.Health = schedule.Unknown
		}
		return changed, w.s.Phase != ""
	case "gone":
		w.ready = slices.DeleteFunc(w.ready, func(id string) bool { return id == first })
		return changed, true
	case "taken":
		return schedule.Event{Kind: schedule.Gone, Case: first, Why: strings.Join(words[2:], " ")}, true
	case "end":
		return schedule.Event{Kind: schedule.Ended, Case: first, Outcome: w.outcome(words[2:])}, true
	case "iteration":
		return iteration(words), true
	case "limited", "answers":
		return schedule.Event{Kind: schedule.Limited, Named: first, Why: strings.Join(words[min(2, len(words)):], " ")}, true
	case "cannot-start":
		w.fails[first] = schedule.OfTask
		if len(words) > 2 {
			w.fails[first] = schedule.Fault(words[2])
		}
		return e, false
	case "can-start":
		delete(w.fails, first)
		return e, false
	case "unwritable", "writable":
		w.unwritable = words[0] == "unwritable"
		return e, false
	case "pause":
		return ask(schedule.AskPause)
	case "resume":
		return ask(schedule.AskResume)
	case "mode":
		return ask(schedule.AskMode)
	case "slots":
		n, err := strconv.Atoi(first)
		if err != nil {
			w.t.Fatal(err)
		}
		return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskSlots, Settings: schedule.Settings{MaxParallel: n}}, true
	case "assign":
		return ask(schedule.AskStart)
	case "stop", "kill":
		cause := loop.CauseInterrupt
		if first != "" {
			cause = loop.Cause(first)
		}
		return schedule.Event{Kind: schedule.Asked, Ask: schedule.AskStop, Cause: cause, Kill: words[0] == "kill"}, true
	case "approve":
		w.review--
		w.waiting--
		w.queued++
		return changed, true
	case "land":
		w.queued--
		return schedule.Event{Kind: schedule.Landed, Case: first}, true
	case "hold-queue":
		w.held = strings.Join(words[1:], " ")
		return changed, true
	case "after":
		d, err := time.ParseDuration(first)
		if err != nil {
			w.t.Fatal(err)
		}
		w.at = w.at.Add(d)
		return schedule.Event{Kind: schedule.Woken}, true
	}
	w.t.Fatalf("unknown event %q", words[0])
	return e, false
}

func (w *world) settings(words []string) schedule.Settings {
	s := schedule.Settings{MaxParallel: 2, ErrorThreshold: 3}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "slots":
			s.MaxParallel = n
		case "threshold":
			s.ErrorThreshold = n
		case "wip":
			s.WIPLimit = n
		case "mode":
			s.Mode = schedule.Mode(value)
		case "count":
			s.Count = n
		case "for":
			d, _ := time.ParseDuration(value)
			s.Until = w.at.Add(d)
		case "pause-limit":
			s.PauseLimit, _ = time.ParseDuration(value)
		case "wait-green":
			s.Verify, s.WaitGreen = true, true
		case "target-limit":
			s.TargetLimit, _ = time.ParseDuration(value)
		case "green-first":
			s.GreenFirst = true
		case "keep":
			s.Keep = true
		case "review":
			s.Review = true
		case "batch":
			s.Batch = true
		case "pause-on-error":
			s.PauseOnError = true
		case "running":
		default:
			w.t.Fatalf("unknown setting %q", name)
		}
	}
	return s
}

func iteration(words []string) schedule.Event {
	n, _ := strconv.Atoi(words[2])
	e := schedule.Event{Kind: schedule.Iterated, Case: words[1], Iteration: schedule.Iteration{Number: n}}
	if len(words) > 3 {
		what := strings.Join(words[4:], " ")
		e.Iteration.Failure = &schedule.Failure{Class: failure.Class(words[3]), Fingerprint: what, Summary: what, Step: "tests"}
	}
	return e
}

func (w *world) outcome(words []string) schedule.Outcome {
	o := schedule.Outcome{Status: loop.Status(words[0])}
	var why []string
	for _, word := range words[1:] {
		if text, ok := strings.CutPrefix(word, "until="); ok {
			d, _ := time.ParseDuration(text)
			o.Until = w.at.Add(d)
			continue
		}
		switch word {
		case "empty":
			o.Empty = true
		case "question":
			o.Question = true
		case "guard":
			o.Guard = true
		case "auth:":
			o.Person = failure.Auth
			why = append(why, word)
		case "hold":
			o.Hold = "the level is paranoid"
		case "secret":
			o.Secrets = "a.go:3"
		default:
			why = append(why, word)
		}
	}
	o.Why = strings.Join(why, " ")
	if o.Why == "" {
		o.Why = "it is " + words[0]
	}
	return o
}

func (w *world) counts() schedule.Counts {
	return schedule.Counts{Ready: len(w.ready), Review: w.review, Waiting: w.waiting, Queued: w.queued, QueueHeld: w.held, Target: w.target}
}

// perform shows a command and gives the event that answers it; over is true
// when it rests.
func (w *world) perform(c schedule.Command) (e schedule.Event, over bool) {
	show := func(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }
	switch c.Kind {
	case schedule.Pick:
		return w.pick(c), false
	case schedule.Count:
		return schedule.Event{Kind: schedule.Counted, Counts: w.counts()}, false
	case schedule.Start:
		show("start %s: %s", c.Case, c.Why)
		w.ready = slices.DeleteFunc(w.ready, func(id string) bool { return id == c.Case })
		if fault, fails := w.fails[c.Case]; fails {
			if fault != schedule.OfTask {
				w.ready = append(w.ready, c.Case)
			}
			e := schedule.Event{Kind: schedule.NotStarted, Case: c.Case, Fault: fault, Why: "no room"}
			if fault == "lacks" {
				e.Fault, e.Outcome.Lacks = schedule.OfMachine, true
			}
			return e, false
		}
		return schedule.Event{Kind: schedule.Started, Case: c.Case}, false
	case schedule.Settle:
		return w.settle(c), false
	case schedule.Pause, schedule.Resume:
		show("%s %s: %s", c.Kind, c.Case, c.Why)
	case schedule.Stop:
		show("stop %s%s: %s", c.Case, map[bool]string{true: " at once"}[c.Kill], c.Why)
	case schedule.Verify:
		show("verify the target: %s", c.Why)
	case schedule.Tell:
		show("tell: %s", c.Why)
	case schedule.Alert:
		show("alert: %s", c.Why)
	case schedule.Rest:
		until := ""
		if !c.Until.IsZero() {
			until = " for " + c.Until.Sub(w.at).String()
		}
		show("rest%s: %s", until, c.Why)
		return e, true
	case schedule.Finish:
		show("finish %d: %s", c.Exit, c.Why)
		return e, true
	}
	return schedule.Event{Kind: schedule.Did}, false
}

func (w *world) pick(c schedule.Command) schedule.Event {
	e := schedule.Event{Kind: schedule.Picked, Named: c.Case, Counts: w.counts()}
	e.Repairs = c.Repairs
	for _, id := range w.ready {
		if c.Repairs && !slices.Contains(w.repairs, id) {
			continue
		}
		if c.Case == id || c.Case == "" && !slices.Contains(c.Exclude, id) {
			e.Case = id
			return e
		}
	}
	if c.Case != "" {
		e.Why = "it is not ready"
	}
	return e
}

func (w *world) settle(c schedule.Command) schedule.Event {
	e := schedule.Event{Kind: schedule.Settled, Case: c.Case}
	v := c.Settlement
	if w.unwritable {
		e.Fault, e.Why = schedule.OfMachine, "the database cannot be written"
		fmt.Fprintf(&w.out, "settle %s: not stored\n", c.Case)
		return e
	}
	to := map[bool]string{true: " queue"}[v.Queue] + map[bool]string{true: " review"}[v.Review] + map[bool]string{true: " bench"}[v.Bench]
	fmt.Fprintf(&w.out, "settle %s: %s%s (%s)\n", c.Case, v.Action, to, v.Why)
	switch {
	case v.Queue:
		w.queued++
	case v.Review:
		w.review++
		w.waiting++
	case v.Action == "block":
		w.waiting++
	case v.Action == "stop":
		w.ready = append(w.ready, c.Case)
	}
	return e
}
