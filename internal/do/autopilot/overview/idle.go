package overview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Idle is why an autopilot does not start what is ready.
type Idle struct {
	// Held is why nothing starts until a time, or until a person acts where that is zero; "" something may be.
	Held  string    `json:"held,omitempty"`
	Until time.Time `json:"held_until,omitzero"`
	// KeptOut are tasks that are ready, and not started.
	KeptOut []KeptOut `json:"kept_out,omitempty"`
	// Away are workers that are silent, and what others lack, each with the machine.
	Away    []string       `json:"away,omitempty"`
	Lacking []store.Worker `json:"-"` // these workers
}

// KeptOut is one that is not started: until a time, or where that is zero until a
// person starts it.
type KeptOut struct {
	Case  string    `json:"case"`
	Why   string    `json:"why"`
	Until time.Time `json:"until,omitzero"`
	// Lacks: it waits for a machine that has what it needs.
	Lacks bool `json:"lacks,omitempty"`
}

// IdleOf reads why the autopilot that is on starts nothing, or not all.
func IdleOf(ctx context.Context, db *store.Store) (i Idle, err error) {
	workers, err := db.Workers(ctx)
	if len(workers) > 0 { // where none ever was, labels have no meaning
		cases, cerr := db.Unserved(ctx)
		for _, c := range cases {
			i.KeptOut = append(i.KeptOut, KeptOut{c.ID, "there is no worker with " + strings.Join(c.Labels(), ", "),
				time.Time{}, true})
		}
		for _, w := range workers {
			if lines := LinesAway(w); len(lines) > 0 {
				i.Away, i.Lacking = append(i.Away, lines...), append(i.Lacking, w)
			}
		}
		err = cerr
	}
	if err != nil {
		return i, err
	}
	a, ok, err := db.Autopilot(ctx)
	if isOn := a.On() || storedrun.Alive(a.Owner); err != nil || !ok || !isOn {
		return i, err
	}
	var s schedule.State
	if err := json.Unmarshal(a.State, &s); err != nil {
		return i, err
	}
	i.Held, i.Until = s.Hold, s.Until
	for _, b := range s.Bench {
		if lasts := b.Until.IsZero() || !b.Until.Before(time.Now()); b.Seen || !lasts {
			continue
		}
		c, err := db.Case(ctx, b.Case)
		if err == nil && c.IsReady() {
			i.KeptOut = append(i.KeptOut, KeptOut{b.Case, b.Why, b.Until, b.Lacks})
		}
		if err != nil && !errors.Is(err, store.ErrNoCase) {
			return i, err
		}
	}
	return i, nil
}

// LinesAway say since when a worker is silent, or what it lacks.
func LinesAway(w store.Worker) (lines []string) {
	if w.Silent {
		return []string{fmt.Sprintf("worker %s, process %d on %s, is silent since %s", w.Name, w.PID, w.Host,
			w.BeatAt.Local().Format(time.DateTime))}
	}
	for line := range strings.Lines(w.Lacks) {
		lines = append(lines, w.Host+": "+strings.TrimSpace(line))
	}
	return lines
}

// IsBetterElsewhere reports whether the worker of this process lacks something, and another one lacks nothing.
func IsBetterElsewhere(ctx context.Context, db *store.Store) bool {
	workers, err := db.Workers(ctx)
	host, herr := os.Hostname()
	if err != nil || herr != nil {
		return false
	}
	isMine := func(w store.Worker) bool { return w.Host == host && w.PID == os.Getpid() }
	lacks := slices.ContainsFunc(workers, func(w store.Worker) bool { return isMine(w) && w.Lacks != "" })
	return lacks && slices.ContainsFunc(workers, func(w store.Worker) bool {
		return !isMine(w) && !w.Silent && !w.Drains && w.Lacks == ""
	})
}

// LinesOf say in words why one task is not started.
func (i *Idle) LinesOf(task string) []string {
	one, lines := Idle{}, []string(nil)
	for _, line := range i.Away {
		if strings.Contains(line, ": "+task+" waits") {
			lines = append(lines, line)
		}
	}
	for _, k := range i.KeptOut {
		if k.Case == task {
			one.KeptOut = append(one.KeptOut, k)
		}
	}
	return append(lines, one.Lines()...)
}

// Lines say it in words, what several tasks wait for once.
func (i *Idle) Lines() (lines []string) {
	switch {
	case i.Held != "" && i.Until.IsZero():
		lines = append(lines, i.Held)
	case i.Held != "":
		lines = append(lines, "nothing starts until "+clockTimeOf(i.Until)+": "+i.Held)
	}
	waiting := map[string][]string{}
	for _, k := range i.KeptOut {
		until := clockTimeOf(k.Until) + ": " + strings.TrimSuffix(k.Why, " until "+clockTimeOf(k.Until))
		switch {
		case k.Lacks:
			lines = append(lines, k.Case+" waits for a machine that has what it needs: "+k.Why)
		case k.Until.IsZero():
			lines = append(lines, k.Case+" is not started: "+k.Why+". Give it back: pawl case start "+k.Case)
		case k.Why != i.Held:
			waiting[until] = append(waiting[until], k.Case)
		}
	}
	for _, until := range slices.Sorted(maps.Keys(waiting)) {
		list, do := waiting[until], " do not start until "
		if len(list) == 1 {
			do = " does not start until "
		}
		if more := len(list) - 3; more > 0 {
			list = append(list[:3:3], fmt.Sprintf("%d more", more))
		}
		lines = append(lines, strings.Join(list, ", ")+do+until)
	}
	return lines
}

// clockTimeOf is the time of day of t, with the date on another day than today.
func clockTimeOf(t time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format("2006-01-02 15:04")
}
