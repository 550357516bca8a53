package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/action"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/journal"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/report"
	"github.com/pawl-dev/pawl/internal/sqlite"
)

func (a *app) logsCommand() *cobra.Command {
	var follow, reviewed bool
	iteration, step := 0, ""
	cmd := a.onRun("logs RUN", "Print a run's journal; -f follows it, -i N prints what an iteration's agent said",
		func(ctx context.Context, p *action.Operator, r sqlite.Run) error {
			switch {
			case r.Kind == "workflow" && (iteration > 0 || step != ""):
				return a.stepOutput(ctx, p.Store, r, step, iteration)
			case iteration > 0:
				return a.iterationOutput(r, iteration, reviewed)
			}
			return a.logs(ctx, p.Store, r, follow)
		})
	cmd.Example = "  pawl logs build -f\n  pawl logs 7k3f -i 3"
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	cmd.Flags().BoolVar(&reviewed, "review", false, "with -i: the raw output of its review instead")
	cmd.Flags().IntVarP(&iteration, "iteration", "i", 0, "print the raw output of the agent in iteration `N`")
	cmd.Flags().StringVar(&step, "step", "", "print the raw output of the step `ID` of a workflow")
	return cmd
}

func (a *app) logs(ctx context.Context, st *sqlite.Store, r sqlite.Run, follow bool) error {
	var last int64
	for e, err := range journal.Read(ctx, st, r.ID, 0) {
		if err != nil {
			return err
		}
		last = e.Seq
		a.printEvent(e)
	}
	if !follow || !loop.Status(r.Status).Active() {
		return nil
	}
	if !engine.Alive(r.Owner) {
		a.sayGone(r)
		return nil
	}
	return a.follow(ctx, st, r, last)
}

// sayGone says that nothing is added to the journal of a run.
func (a *app) sayGone(r sqlite.Run) {
	a.say("The pawl that drove %s is gone, so nothing is added here. Go on with: pawl resume %s", r.Name, r.Name)
}

// follow prints events as they are stored, until the run comes to rest or
// nobody drives it.
func (a *app) follow(ctx context.Context, st *sqlite.Store, r sqlite.Run, last int64) error {
	sig := engine.CatchSignals()
	defer sig.Stop()
	tick := time.NewTicker(journal.Poll)
	defer tick.Stop()
	for ended := false; ; {
		for e, err := range journal.Read(ctx, st, r.ID, last) {
			if err != nil {
				return err
			}
			last = e.Seq
			a.printEvent(e)
			if e.Kind == journal.Finished || e.Kind == journal.Paused || e.Kind == journal.QuestionAsked {
				return nil
			}
		}
		if ended {
			return nil
		}
		select {
		case <-tick.C:
		case <-sig.Stops:
			return status(exitInterrupted)
		}
		now, err := st.Run(ctx, r.ID)
		switch {
		case err != nil:
		case now.Owner.PID == 0 && !loop.Status(now.Status).Active():
			ended = true // one more read above has what was stored meanwhile
		case now.Owner.PID != 0 && !engine.Alive(now.Owner):
			a.sayGone(now)
			return nil
		}
	}
}

func (a *app) printEvent(e journal.Event) {
	if a.json {
		_ = a.jsonLine(e) // it always encodes
		return
	}
	a.result("%s %s%s\n", e.At.Local().Format("2006-01-02 15:04:05"), e.Kind, eventText(e))
}

// eventText is the part of an event's data that a person reads.
func eventText(e journal.Event) string {
	switch e.Kind {
	case journal.IterationEnded:
		var r loop.Record
		if json.Unmarshal(e.Data, &r) != nil {
			return ""
		}
		text := fmt.Sprintf(" %d %s (%s, %s)", r.Number, r.Outcome, r.Agent, loop.Duration(r.Took()))
		if what := whatHappened(r); what != "" {
			text += ": " + report.Line(what, 200)
		}
		return text
	case journal.IterationReviewed:
		var v journal.Review
		if json.Unmarshal(e.Data, &v) != nil {
			return ""
		}
		return reviewText(v)
	case journal.Finished, journal.Paused:
		var end journal.End
		if json.Unmarshal(e.Data, &end) != nil {
			return ""
		}
		return fmt.Sprintf(" %s: %s", end.Status, report.Line(end.Why, 200))
	}
	if e.Kind == journal.StepStarted || e.Kind == journal.StepEnded {
		return stepText(e)
	}
	var data struct {
		Text, Why, Name, Option string
		Choice                  int
	}
	_ = json.Unmarshal(e.Data, &data)
	if data.Choice != 0 {
		data.Text = strings.TrimSuffix(fmt.Sprintf("%d. %s; %s", data.Choice, data.Option, data.Text), "; ")
	}
	for _, t := range []string{data.Text, data.Why, data.Name} {
		if t != "" {
			return ": " + report.Line(t, 200)
		}
	}
	return ""
}

// iterationOutput prints what an iteration's agent wrote, as it was.
func (a *app) iterationOutput(r sqlite.Run, n int, reviewed bool) error {
	dir := filepath.Join(config.StateDir(r.Root, a.env), "runs", r.ID, strconv.Itoa(n))
	name, who := "agent.out", "agent"
	if reviewed {
		name, who = lastReview(dir), "reviewer"
	}
	f, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		if _, serr := os.Stat(dir); serr != nil {
			return usage("run %s has no iteration %d", r.ID, n)
		}
		a.say("The %s of iteration %d printed nothing.", who, n)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the output: %v", err)
	}
	defer f.Close()
	_, err = io.Copy(a.stdout, f)
	return err
}

// lastReview is the output of the last review of an iteration.
func lastReview(dir string) string {
	name := "review.out"
	for try := 2; fileExists(filepath.Join(dir, fmt.Sprintf("review-%d.begun.json", try))); try++ {
		name = fmt.Sprintf("review-%d.out", try)
	}
	return name
}
