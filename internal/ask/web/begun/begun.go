// Package begun keeps what a server started of the autopilot and its sprints, and what is planned to follow, so that
// both survive the server: a sprint follows the one before, what is left of one that was cut off is offered, and an
// autopilot without a sprint works again. It never starts what a person stopped or paused.
package begun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// stopped is the least exit status of an autopilot that somebody ended: what was
// planned behind it waits for a person.
const stopped = 128

// longAway is after how long an autopilot that was cut off waits for a click: a server that is started to look
// back starts no agents.
const longAway = 24 * time.Hour

// Autopilots are those that a server starts, one after the other.
type Autopilots struct {
	Store *store.Store
	Dir   string // the state folder
	// Start starts pawl with these arguments, and returns the session of the autopilot.
	Start func(ctx context.Context, args []string) (session string, err error)
	// Changed is called when another sprint is planned, or none.
	Changed func()
	// Resumed is called when an autopilot that was cut off works again; nil: none is started again.
	Resumed func()

	lock   sync.Mutex
	worked bool // one worked since the server started
	again  bool // one was started again
}

// begun is what is known of the last one: of a sprint what it is to come to, else how the autopilot is to work.
type begun struct {
	view.SprintWish
	Autopilot *view.PilotWish `json:"autopilot,omitempty"`
	Session   string          `json:"session,omitempty"`
	Restart   string          `json:"restart,omitempty"` // in words, after it was cut off
	Held      bool            `json:"held,omitempty"`    // since then it waits for a person
}

func (a *Autopilots) nextSprintFile() string { return filepath.Join(a.Dir, "next-sprint.json") }

func (a *Autopilots) begunFile() string { return filepath.Join(a.Dir, "this-sprint.json") }

// StartWithoutSprint starts an autopilot that has no target.
func (a *Autopilots) StartWithoutSprint(ctx context.Context, wish view.PilotWish) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.startKept(ctx, begun{Autopilot: &wish})
}

func (a *Autopilots) startKept(ctx context.Context, b begun) (err error) {
	args := append([]string{"sprint"}, view.FlagsOf(b.SprintWish)...)
	if b.Autopilot != nil {
		wish := *b.Autopilot
		args = []string{"autopilot"}
		if wish.Mode == string(schedule.SemiAuto) {
			args = append(args, "--semi-auto")
		}
		wish.Mode = ""
		args = append(args, view.FlagsOf(wish)...)
	}
	if b.Session, err = a.Start(ctx, args); err != nil {
		return err
	}
	return files.ReplaceJSON(a.begunFile(), b, false)
}

// StartSprint starts a sprint. One that is held is this one, or is not wanted any more.
func (a *Autopilots) StartSprint(ctx context.Context, wish view.SprintWish) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	err := a.startKept(ctx, begun{SprintWish: wish})
	if next, nerr := a.Planned(); err == nil && nerr == nil && next != nil && next.Held != "" {
		err = a.storePlanned(nil)
	}
	return err
}

// Forget is called when a person stops what works: the rest is not wanted.
func (a *Autopilots) Forget() { _ = os.Remove(a.begunFile()) }

// Restart returns what became of the autopilot of a session after it was cut off; "" when it was not.
func (a *Autopilots) Restart(session string) (string, error) {
	b, err := a.readLastBegun()
	if b == nil || b.Session != session {
		return "", err
	}
	return b.Restart, nil
}

func (a *Autopilots) readLastBegun() (b *begun, err error) {
	if err = files.ReadJSON(a.begunFile(), &b); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return b, err
}

// Planned returns the sprint that is planned, or nil.
func (a *Autopilots) Planned() (p *view.Planned, err error) {
	if err = files.ReadJSON(a.nextSprintFile(), &p); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return p, err
}

// Plan keeps a sprint for later; nil drops it.
func (a *Autopilots) Plan(p *view.Planned) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.storePlanned(p)
}

func (a *Autopilots) storePlanned(p *view.Planned) error {
	defer a.Changed()
	if p == nil {
		if err := os.Remove(a.nextSprintFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return files.ReplaceJSON(a.nextSprintFile(), p, false)
}

// StartNext starts what is to work now, if anything is and its time has come.
func (a *Autopilots) StartNext(ctx context.Context) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	pilot, ok, err := a.Store.Autopilot(ctx)
	isOn := storedrun.Alive(pilot.Owner) || pilot.On()
	a.worked = a.worked || isOn
	if err != nil || isOn {
		return err
	}
	cutOff := ok && (pilot.EndedAt.IsZero() || pilot.Exit >= stopped)
	b, err := a.readLastBegun()
	if err == nil && a.Resumed != nil && b != nil && b.Autopilot != nil && !b.Held {
		return a.resumeLast(ctx, b, pilot, cutOff)
	}
	next, nerr := a.Planned()
	isHeld := next != nil && next.Held != ""
	if err = errors.Join(err, nerr); err != nil || isHeld {
		return err
	}
	if next == nil {
		rest, err := a.restOfSprint(ctx, b, pilot)
		if err == nil && rest != nil && cutOff {
			err = a.storePlanned(rest)
		}
		return err
	}
	if cutOff {
		next.Held = "The sprint before it was stopped, or failed."
		return a.storePlanned(next)
	}
	if err := a.startKept(ctx, begun{SprintWish: next.SprintWish}); err != nil {
		next.Held = err.Error()
		return a.storePlanned(next)
	}
	return a.storePlanned(nil)
}

// resumeLast starts an autopilot without a sprint again if it was cut off, or keeps why it does not.
func (a *Autopilots) resumeLast(ctx context.Context, b *begun, pilot store.Autopilot, cutOff bool) error {
	var was schedule.State
	err := json.Unmarshal(pilot.State, &was)
	stopAsked, serr := a.Store.AutopilotAsked(ctx, store.AutopilotStop)
	pauseAsked, perr := a.Store.AutopilotAsked(ctx, store.AutopilotPause)
	if err := errors.Join(err, serr, perr); err != nil {
		return err
	}
	if !cutOff || stopAsked || was.ByPerson() || pilot.Session != b.Session {
		return os.Remove(a.begunFile())
	}
	beside := a.worked && !pilot.EndedAt.IsZero()
	var why string
	switch {
	case pauseAsked || was.WasPaused || was.Phase == schedule.Paused:
		why = "it was paused"
	case a.again, beside:
		why = cmp.Or(pilot.Why, "its process ended")
	case time.Since(endOfAutopilot(pilot)) > longAway:
		why = "that is more than a day ago"
	default:
		a.again = true
		b.Autopilot.Mode, b.Autopilot.MaxParallel = pilot.Mode, pilot.MaxParallel // as they were changed meanwhile
		b.Restart = "It was cut off, and works again."
		if err = a.startKept(ctx, *b); err == nil {
			a.Resumed()
			return nil
		}
		why = err.Error()
	}
	defer a.Changed()
	b.Restart, b.Held = "It was cut off, and waits for you: "+why+".", true
	return files.ReplaceJSON(a.begunFile(), b, false)
}

// restOfSprint returns what is left of the sprint that was begun here and cut off; nil where nothing is.
func (a *Autopilots) restOfSprint(ctx context.Context, b *begun, pilot store.Autopilot) (*view.Planned, error) {
	if b == nil || b.Autopilot != nil {
		return nil, nil
	}
	rest := &view.Planned{SprintWish: b.SprintWish}
	list, err := a.Store.Sprints(ctx, 1)
	if err = errors.Join(err, os.Remove(a.begunFile())); err != nil || len(list) == 0 {
		return nil, err
	}
	var did struct {
		Completed int `json:"completedTasks"`
	}
	_ = json.Unmarshal(list[0].Stats, &did) // of what cannot be read nothing counts as done
	rest.Held = "The sprint was cut off: " + cmp.Or(pilot.Why, "its process ended") + "."
	if n, err := strconv.Atoi(rest.Count); err == nil {
		rest.Count = strconv.Itoa(n - did.Completed)
		if n <= did.Completed {
			return nil, nil
		}
	}
	hours, err := strconv.ParseFloat(rest.Hours, 64)
	all := time.Duration(hours * float64(time.Hour))
	if err != nil {
		all, _ = time.ParseDuration(rest.Hours) // none is set
	}
	if all > 0 {
		left := all - endOfAutopilot(pilot).Sub(list[0].StartedAt)
		rest.Hours = fmt.Sprintf("%dm", max(1, int(left.Minutes())))
	}
	return rest, nil
}

// endOfAutopilot returns when it ended, or was stored last before it was killed.
func endOfAutopilot(pilot store.Autopilot) time.Time {
	if pilot.EndedAt.IsZero() {
		return pilot.UpdatedAt
	}
	return pilot.EndedAt
}
