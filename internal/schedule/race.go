package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/loop"
)

// Racers are the agents that race for a task: those of its tag, else those of the
// settings. Fewer than two is no race. "" is the agent that tasks have anyway.
func Racers(tags, settings []string) []string {
	names := settings
	for _, t := range tags {
		list, ok := strings.CutPrefix(t, board.RaceTag)
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

// RaceTrouble says what is wrong with the tag of a task that says who races for it; ""
// is nothing.
func RaceTrouble(tags []string) string {
	for _, t := range tags {
		list, ok := strings.CutPrefix(t, board.RaceTag)
		if !ok {
			continue
		}
		wrong := fmt.Sprintf("with the tag %.60q nobody races: write race:2 to race:%d, or race:claude+codex", t, board.MaxRacers)
		names := strings.Split(list, "+")
		n, err := strconv.Atoi(list)
		switch {
		case errors.Is(err, strconv.ErrRange), n < 0, slices.Contains(names, ""):
			return wrong
		case err != nil && len(names) == 1:
			return fmt.Sprintf("%s; for one agent write agent:%.60s", wrong, list)
		case max(n, len(names)) > board.MaxRacers:
			return fmt.Sprintf("with the tag %.60q %d agents race, and no more: that is the most", t, board.MaxRacers)
		}
	}
	return ""
}

// PicksBest reports whether a race for a task goes on until all of its agents have
// ended, and the best work wins: as its tag says, pick:best or pick:first, else as the
// settings do.
func PicksBest(tags []string, setting bool) bool {
	for _, t := range tags {
		if how, ok := strings.CutPrefix(t, board.PickTag); ok {
			setting = how == "best"
		}
	}
	return setting
}

// Merit is what the work of an agent that raced is judged by.
type Merit struct {
	Score int // of its gates, per mille; -1 is not known
	Files int // that it changed
	Lines int // that it added and deleted
}

// Beats reports whether work is better than other work: it changes something, then its
// gates' score is higher, then it is smaller. Equal work does not.
func (m Merit) Beats(other Merit) bool {
	if (m.Files > 0) != (other.Files > 0) {
		return m.Files > 0
	}
	return cmp.Or(cmp.Compare(other.Score, m.Score), cmp.Compare(m.Lines, other.Lines),
		cmp.Compare(m.Files, other.Files)) < 0
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
