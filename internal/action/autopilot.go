package action

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/schedule"
	"github.com/pawl-dev/pawl/internal/store"
)

// stopAutopilotWait is how long stop waits for the autopilot to have ended:
// agents have their grace, one after the other's end.
const stopAutopilotWait = 60 * time.Second

// AskAutopilot asks the one that runs to pause, resume, stop or change its mode,
// which is text. With wait a stop is over when the autopilot has ended.
func (p *Operator) AskAutopilot(ctx context.Context, kind, text string, wait bool) error {
	pilot, err := p.Autopilot(ctx)
	if err != nil {
		return err
	}
	if pilot.Phase != string(schedule.Paused) && kind == store.AutopilotResume {
		if pauses, err := p.Store.AutopilotAsked(ctx, store.AutopilotPause); err != nil {
			return err
		} else if !pauses {
			return fault.Refuse("the autopilot is not paused: it is %s", pilot.Phase)
		}
	}
	if _, err := p.Store.AskAutopilot(ctx, store.AutopilotControl{Kind: kind, Text: text, At: time.Now()}); err != nil {
		return err
	}
	switch kind {
	case store.AutopilotPause:
		p.Say("The autopilot starts nothing new; runs rest at the end of their iteration. Go on with: pawl autopilot resume")
	case store.AutopilotResume:
		p.Say("The autopilot goes on.")
	case store.AutopilotMode:
		p.Say("The autopilot's mode is %s.", text)
	case store.AutopilotStop:
		if wait {
			return p.awaitAutopilot(ctx, pilot)
		}
		p.Say("The autopilot is stopping: its runs are ended, their tasks go back to pending.")
	}
	return nil
}

// Autopilot is the one that a live process drives, or that is on without one.
func (p *Operator) Autopilot(ctx context.Context) (store.Autopilot, error) {
	pilot, ok, err := p.Store.Autopilot(ctx)
	if err != nil {
		return pilot, err
	}
	if !ok || !engine.Alive(pilot.Owner) && !pilot.On() {
		return pilot, fault.Refuse("no autopilot runs here").Hint("Start it: pawl autopilot")
	}
	return pilot, nil
}

func (p *Operator) awaitAutopilot(ctx context.Context, pilot store.Autopilot) error {
	err := until(ctx, stopAutopilotWait, func() (bool, error) {
		now, _, err := p.Store.Autopilot(ctx)
		return now.Session != pilot.Session || !engine.Alive(now.Owner) && !now.On(), err
	})
	switch {
	case errors.Is(err, errLate) && pilot.Owner.PID == 0:
		return fault.Refuse("the autopilot was asked to stop %s ago; no process drives it, so it ends when a worker is there",
			stopAutopilotWait).Hint("Start one: pawl-cluster worker")
	case errors.Is(err, errLate):
		return fault.Refuse("the autopilot was asked to stop %s ago and has not ended; process %d drives it",
			stopAutopilotWait, pilot.Owner.PID).
			Hint("See what it does: pawl autopilot status")
	case err == nil:
		p.Say("The autopilot has ended.")
	}
	return err
}
