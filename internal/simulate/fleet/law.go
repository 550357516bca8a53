package fleet

import (
	"fmt"
	"slices"
	"strings"
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

// maxGeneral is how many lines about all stand between two about those watched.
const maxGeneral = 6

// broken ends the play; the first broken law counts.
func (w *world) broken(law Law, about []string, format string, args ...any) {
	if w.violation != nil {
		return
	}
	w.violation = &ViolationError{
		Options: w.o, Law: law, What: fmt.Sprintf(format, args...), About: about, Event: w.report.Events, Story: w.story,
	}
}

// tell writes a line of the story, if anybody of it is watched; without
// anybody it is about all, of which only a few lines stand side by side.
func (w *world) tell(about string, format string, args ...any) {
	if len(w.o.Watch) == 0 || about != "" && !slices.Contains(w.o.Watch, about) {
		return
	}
	if about != "" {
		w.general = 0
	} else if w.general++; w.general > maxGeneral {
		w.story = slices.Delete(w.story, len(w.story)-maxGeneral, len(w.story)-maxGeneral+1)
	}
	if len(w.story) >= 2*maxStory {
		w.story = slices.Delete(w.story, 0, len(w.story)-maxStory)
	}
	at := w.clock.now.Sub(w.clock.begin)
	w.story = append(w.story, fmt.Sprintf("%12s %-9s %s", at.Round(1e6), about, fmt.Sprintf(format, args...)))
}

// Explain plays a violation again and has it told. It looks first for a smaller
// world in which the same law is broken.
func Explain(v *ViolationError) *ViolationError {
	o := v.Options
	for _, size := range [][2]int{{3, 1}, {6, 2}, {12, 3}, {25, 4}, {50, 6}, {100, 10}, {200, 20}} {
		if size[0] >= o.Tasks {
			break
		}
		for n := range uint64(40) {
			small := Options{Seed: o.Seed + n, Tasks: size[0], Agents: min(size[1], o.Agents), Rules: o.Rules}
			if _, found := Play(small); found != nil && found.Law == v.Law {
				return again(found)
			}
		}
	}
	return again(v)
}

// again plays the same once more and listens.
func again(v *ViolationError) *ViolationError {
	o := v.Options
	o.Watch = append([]string{"-"}, v.About...)
	_, told := Play(o)
	if told == nil {
		return v // a rule that is not a function of what it gets
	}
	return told
}
