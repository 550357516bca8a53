package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Law is a promise that the world is held to at every step.
type Law string

// The laws.
const (
	Slots    Law = "slots"    // no more agents than slots, and no more slots than were given
	Kept     Law = "kept"     // no task is lost: somebody will go on with it
	Once     Law = "once"     // no task is worked on twice at a time, and none lands twice
	Order    Law = "order"    // nothing starts or lands before what it needs has landed
	Verified Law = "verified" // the target is moved to verified trees only, from where it was seen
	Landed   Law = "landed"   // done means landed, and landed means done
	Idle     Law = "idle"     // no slot is free while a task is ready
	Fair     Law = "fair"     // younger entries go before one of the queue a bounded number of times
	Blame    Law = "blame"    // no entry is blamed for a target that is red by itself
	Drained  Law = "drained"  // everything is done in the end
	Prompt   Law = "prompt"   // no wait is longer than it was to be, however the clock is set
	Table    Law = "table"    // the board takes what the autopilot says of a task
)

// ViolationError is a law that was broken.
type ViolationError struct {
	Options Options
	Law     Law
	What    string
	About   []string // the cases that it is about
	Event   int      // after this many events
	// Story is what happened to those that were watched, and to all; the last
	// lines of it.
	Story []string
}

func (v *ViolationError) Error() string {
	o := v.Options
	return fmt.Sprintf("seed %d, %d tasks, %d agents, event %d: %s: %s", o.Seed, o.Tasks, o.Agents, v.Event, v.Law, v.What)
}

// Tell is the violation with its story.
func (v *ViolationError) Tell() string { return v.Error() + "\n" + strings.Join(v.Story, "\n") }

// maxStory is how many lines of a story are kept.
const maxStory = 400

// broken ends the play; the first broken law counts.
func (w *world) broken(law Law, about []string, format string, args ...any) {
	if w.violation != nil {
		return
	}
	w.violation = &ViolationError{
		Options: w.o, Law: law, What: fmt.Sprintf(format, args...), About: about, Event: w.report["events"], Story: w.story,
	}
}

// tell writes a line of the story, if anybody of it is watched; without
// anybody it is about all.
func (w *world) tell(about string, format string, args ...any) {
	if len(w.o.Watch) == 0 || about != "" && !slices.Contains(w.o.Watch, about) {
		return
	}
	at := w.clock.now.Sub(w.clock.begin).Round(time.Millisecond)
	w.story = append(w.story, fmt.Sprintf("%12s %-9s %s", at, about, fmt.Sprintf(format, args...)))
	w.story = w.story[max(0, len(w.story)-maxStory):]
}

// Explain looks for the smallest world in which the same law is broken, and
// plays it again to have it told.
func Explain(v *ViolationError) *ViolationError {
	v = smallest(v)
	o := v.Options
	o.Watch = append([]string{"-"}, v.About...)
	if _, told := Play(o); told != nil {
		return told
	}
	return v // a rule that is not a function of what it gets
}

func smallest(v *ViolationError) *ViolationError {
	o := v.Options
	for o.Tasks = 3; o.Tasks < v.Options.Tasks; o.Tasks *= 2 {
		o.Agents = min(1+o.Tasks/6, v.Options.Agents)
		for n := range uint64(40) {
			o.Seed = v.Options.Seed + n
			if _, found := Play(o); found != nil && found.Law == v.Law {
				return found
			}
		}
	}
	return v
}
