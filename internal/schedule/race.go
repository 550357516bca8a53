package schedule

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/loop"
)

// raceTag begins the tag that says who races for a task: race:3 or race:claude+codex.
const raceTag = "race:"

// Racers are the agents that race for a task: those of its tag, else those of the
// settings. Fewer than two is no race. "" is the agent that tasks have anyway.
func Racers(tags, settings []string) []string {
	names := settings
	for _, t := range tags {
		list, ok := strings.CutPrefix(t, raceTag)
		if !ok {
			continue
		}
		names = strings.Split(list, "+")
		if n, err := strconv.Atoi(list); err == nil {
			names = make([]string, max(0, min(n, board.MaxRacers)))
		}
	}
	return names[:min(len(names), board.MaxRacers)]
}

// RacedFor reports whether a race for a task is over: its work was verified once. It
// goes on alone then, with the agent that won.
func RacedFor(history []board.Entry) bool {
	return slices.ContainsFunc(history, func(e board.Entry) bool { return e.Action == board.Verify })
}

// Stands reports whether what the run of a racer came to still holds, so that it is not
// run again: pawl itself made the task pending since, and no person did.
func Stands(history []board.Entry, run loop.State, rested time.Time) bool {
	switch run.Status {
	case loop.Running, loop.Waiting, loop.Paused, loop.Interrupted, loop.Stopped:
		return false
	}
	for _, e := range slices.Backward(history) {
		own := e.Action == board.Stop || e.Action == board.Crash
		if e.To == board.Pending && !own {
			return rested.After(e.At)
		}
	}
	return true
}
