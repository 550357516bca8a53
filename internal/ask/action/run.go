package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/do/supervisor"

	flow "github.com/pawl-dev/pawl/internal/do/workflow/run"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// refuseEnded refuses what is too late for a run, and says what can be done with it.
func refuseEnded(r store.Run, format string, args ...any) error {
	e := fault.Refuse(format, args...)
	switch s := loop.Status(r.Status); {
	case s.Active():
		return e.Hint("Its pawl process has ended. Continue with: pawl resume %s", r.ID)
	case r.Kind == "task":
		e = e.Hint("See its task: pawl case show %s", board.TaskOf(r.Name))
	case s == loop.Completed:
		e = e.Hint("Start a new run: %s", StartCommand(r))
	default:
		e = e.Hint("Continue with: pawl resume %s", r.ID)
	}
	return e.Hint("See what it did: pawl show %s", r.ID)
}

// Pause asks a run to rest at the end of its iteration.
func (p *Runs) Pause(ctx context.Context, r store.Run) error {
	if !loop.Status(r.Status).Active() || !storedrun.Alive(r.Owner) {
		return refuseEnded(r, "run %s is not running: it is %s", r.ID, r.Status)
	}
	if err := p.storeControl(ctx, r, store.ControlPause, ""); err != nil {
		return err
	}
	p.Say("Run %s pauses at the end of iteration %d. Resume with: pawl resume %s", r.ID, r.Iteration, r.Name)
	return nil
}

// NeedsNoPerson reports whether a run at rest needs no person, because its task was removed from
// the board, or is ready for another attempt after it had needed a person.
func NeedsNoPerson(ctx context.Context, db *store.Store, r store.Run) bool {
	if r.Kind != "task" || loop.Status(r.Status).Active() {
		return false
	}
	c, err := db.Case(ctx, board.TaskOf(r.Name))
	asked := []loop.Status{loop.Pending, loop.Blocked, loop.Aborted, loop.FailedRun}
	return errors.Is(err, store.ErrNoCase) || c.Status == board.Pending && slices.Contains(asked, loop.Status(r.Status))
}

func (p *Runs) storeControl(ctx context.Context, r store.Run, kind, text string) error {
	_, err := p.Store.AddControl(ctx, store.Control{Run: r.ID, Kind: kind, Text: text, At: time.Now()})
	return err
}

// DiscardRun ends a run that waits for somebody. Its snapshots and history stay.
func (p *Runs) DiscardRun(ctx context.Context, r store.Run) error {
	switch {
	case r.Kind == "task":
		return fault.Refuse("run %s belongs to %s, a task of the board", r.ID, r.Name).
			Hint("Block the task:  pawl case block %s", r.Name).Hint("Remove the task: pawl case rm %s", r.Name)
	case storedrun.Alive(r.Owner):
		return fault.Refuse("run %s is running in %v", r.ID, r.Owner).
			Hint("Stop it first: pawl stop %s", r.ID)
	case !CanDiscard(r):
		return refuseEnded(r, "run %s has nothing to give up: it is %s", r.ID, r.Status)
	}
	r, err := p.finishDelivery(ctx, r)
	if err != nil {
		return err
	}
	if needsAttention(r) {
		if err := storedrun.Archive(ctx, p.Store, r.ID, "discarded by a person"); err != nil {
			return err
		}
	}
	last, err := p.Store.Latest(ctx, r.Root, r.Name)
	if err == nil && last.ID == r.ID {
		err = statefile.Remove(r.Root, r.Name)
	}
	if err == nil {
		err = storedrun.ClearUndelivered(ctx, p.Store, r.ID, "the undelivered work was discarded")
	}
	if err != nil {
		return err
	}
	p.Say("Run %s is discarded; your files are unchanged.", r.ID)
	if host := p.RemoteHost(ctx, r); host != "" {
		p.Say("Its work stays on %s, in %s.", host, PlaceOf(r))
	}
	if len(SetupOf(r).Deliveries) > 0 {
		p.Say("To undo what it had delivered: pawl rollback %s --to 0", r.ID)
	}
	return nil
}

// Undelivered are the runs that are over and whose verified work is not in the person's files.
func (p *Runs) Undelivered(ctx context.Context) (found []store.Run, err error) {
	runs, err := p.Store.Runs(ctx, store.RunQuery{Root: p.Root, Undelivered: true})
	for _, r := range runs {
		whole, rerr := p.Store.Run(ctx, r.ID)
		if rerr == nil && storedrun.WaitsForDelivery(whole) {
			found = append(found, whole)
		}
	}
	return found, err
}

// ReasonNotDelivered returns why the work of a run is not in the person's files, and the command that brings it
// there. Both are "" if the run does not wait for that.
func ReasonNotDelivered(ctx context.Context, r store.Run) (why, command string) {
	if !storedrun.WaitsForDelivery(r) {
		return "", ""
	}
	s := SetupOf(r)
	why, command = s.Undelivered, "pawl apply "+r.ID
	switch {
	case s.Choose:
		command = "pawl settle " + r.ID
	case s.UndeliveredBack != "" && fault.QuoteShell(branchIn(ctx, r.Root)) == s.UndeliveredBack:
		why = "its branch is checked out again"
	case s.UndeliveredBack != "":
		command = "git checkout " + s.UndeliveredBack + " && " + command
	}
	return "not in your files: " + why + "; " + command, command
}

// CanDiscard reports whether a run that no process drives leaves something that can be given up.
func CanDiscard(r store.Run) bool {
	left := needsAttention(r) || SetupOf(r).Undelivered != ""
	return left && r.Kind != "task"
}

// needsAttention reports whether a person has to be shown r, or the next run of the same
// name has to refuse: r has not ended, a guard ended it, it failed with a question or for what a
// person has to cure, or it was stopped and its state file still exists.
func needsAttention(r store.Run) bool {
	if r.EndedAt.IsZero() || loop.Status(r.Status) == loop.Aborted {
		return true
	}
	if s, err := storedrun.StateOf(r); err == nil && storedrun.NeedsPerson(s) {
		return true
	}
	f, err := statefile.Read(statefile.Path(r.Root, r.Name))
	stopped := []loop.Status{loop.Stopped, loop.Interrupted, loop.Paused, loop.Pending}
	return err == nil && f.Run == r.ID && slices.Contains(stopped, loop.Status(r.Status))
}

// stopWait is how long stop waits for the run to have ended: the agent's
// grace, and what comes after.
const stopWait = 30 * time.Second

// Stop ends a run; its work is kept. A run whose pawl is gone is ended through
// its supervisor. With wait it is over when the run has ended.
func (p *Runs) Stop(ctx context.Context, r store.Run, wait bool) error {
	if !loop.Status(r.Status).Active() {
		return refuseEnded(r, "run %s is not running: it is %s", r.ID, r.Status)
	}
	if !storedrun.Alive(r.Owner) {
		return p.stopUnattended(ctx, r)
	}
	if err := p.storeControl(ctx, r, store.ControlStop, ""); err != nil {
		return err
	}
	if wait {
		return p.awaitStop(ctx, r)
	}
	p.Say("Run %s is stopping: its agent is ended, its work is kept.", r.ID)
	return nil
}

func (p *Runs) awaitStop(ctx context.Context, r store.Run) error {
	var now store.Run
	// A run that has come to rest still ends its supervisor; when its process has
	// gone too, nothing is left.
	rests := func() bool { return !loop.Status(now.Status).Active() && now.Owner.PID == 0 }
	err := pollUntil(ctx, stopWait, func() (over bool, err error) {
		now, err = p.Store.Run(ctx, r.ID)
		return err == nil && rests() && !storedrun.Alive(r.Owner), err
	})
	late := errors.Is(err, errLate)
	switch {
	case err == nil, late && rests():
		p.Say("Run %s is %s after iteration %d. Resume with: pawl resume %s", r.ID, now.Status, now.Iteration, r.Name)
		return nil
	case late:
		return fault.Refuse("run %s was asked to stop %s ago and has not ended; it is running in %v", r.ID, stopWait,
			r.Owner).
			Hint("See what it does: pawl logs %s -f", r.ID)
	}
	return err
}

// WaitUntilReleased returns the run after its process has released it. A run that rests
// belongs to its process until everything is stored; after half a minute it is returned
// as it is then. It does not wait for a process on another machine, which cannot be seen
// from here.
func (p *Runs) WaitUntilReleased(ctx context.Context, r store.Run) (store.Run, error) {
	here, _ := os.Hostname()
	err := pollUntil(ctx, stopWait, func() (over bool, err error) {
		if loop.Status(r.Status).Active() || r.Owner.Host != here || !storedrun.Alive(r.Owner) {
			return true, nil
		}
		r, err = p.Store.Run(ctx, r.ID)
		return false, err
	})
	if errors.Is(err, errLate) {
		err = nil
	}
	return r, err
}

// errLate is that something has not become so in time.
var errLate = errors.New("it took too long")

// pollUntil looks again and again whether something is over, for so long.
func pollUntil(ctx context.Context, limit time.Duration, over func() (bool, error)) error {
	late, tick := time.NewTimer(limit), time.NewTicker(50*time.Millisecond)
	defer late.Stop()
	defer tick.Stop()
	for {
		if ok, err := over(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-late.C:
			return errLate
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Runs) stopUnattended(ctx context.Context, r store.Run) error {
	dir := filepath.Join(statedir.Of(r.Root, p.Env), "runs", r.ID)
	if err := lanes.EndUnattended(ctx, dir, r.ID); err != nil {
		return err
	}
	p.Say("Nothing of run %s is running any more. Continue with: pawl resume %s", r.ID, r.Name)
	return nil
}

// AsIs says how a run really is: one whose pawl died runs unattended for as long
// as its lease lasts, and is interrupted after that; one that rested for conflicts
// can continue once they are resolved, and one that asked once it has an answer.
// next is the command that the stored status does not tell; "" where it does.
func (p *Runs) AsIs(ctx context.Context, r store.Run) (is store.Run, next string) {
	resume := "pawl resume " + r.ID
	if strings.HasSuffix(r.Why, deliver.Decision{Kind: deliver.Settle}.ResumeHint(r.ID)) {
		next = "pawl settle " + r.ID
		if whole, err := p.Store.Run(ctx, r.ID); err == nil && !SetupOf(whole).Choose {
			r.Why, next = "its conflicts are resolved; continue: "+resume, resume
		}
	}
	asks := slices.Contains([]loop.Status{loop.Pending, loop.Blocked}, loop.Status(r.Status))
	if asks && r.Kind != string(loop.Task) {
		asked, err := p.Store.Controls(ctx, r.ID)
		isAnswer := func(c store.Control) bool { return c.Kind == store.ControlAnswer || c.Kind == store.ControlChoice }
		if err == nil && slices.ContainsFunc(asked, isAnswer) {
			r.Why, next = "it has your answer; continue: "+resume, resume
		}
	}
	if !loop.Status(r.Status).Active() || storedrun.Alive(r.Owner) {
		return r, next
	}
	r.Owner = store.Owner{Host: r.Owner.Host}
	if left, ok := Unattended(ctx, statedir.Of(r.Root, p.Env), r.ID); ok {
		r.Why = "unattended, ends in " + left + " unless it is resumed"
		if r.Kind == string(loop.Task) {
			resume = "pawl autopilot"
		}
		return r, resume
	}
	r.Status, r.Why = string(loop.Interrupted), "its pawl process has ended"
	if p.autopilotResumes(ctx, r) {
		r.Why = "its worker is gone; the autopilot gives it to another one"
		return r, next
	}
	if last, err := p.Store.Latest(ctx, r.Root, r.Name); err == nil && last.ID == r.ID { // what resume takes up
		r.Why += "; pawl resume " + r.Name
	}
	return r, next
}

// autopilotResumes reports whether an autopilot, here or on another machine, will
// continue the run: it is of a task, and the task is active.
func (p *Runs) autopilotResumes(ctx context.Context, r store.Run) bool {
	if p.Store.BoardName() == "" || r.Kind != string(loop.Task) {
		return false
	}
	pilot, ok, err := p.Store.Autopilot(ctx)
	if err != nil || !ok || !pilot.On() && !storedrun.Alive(pilot.Owner) {
		return false
	}
	c, err := p.Store.Case(ctx, r.Name)
	return err == nil && c.Status == board.Active
}

// Unattended is how long the supervisor of a run without a pawl keeps working.
func Unattended(ctx context.Context, stateDir, run string) (string, bool) {
	dir := filepath.Join(stateDir, "runs", run)
	st, err := supervisor.Probe(ctx, dir)
	for i := 1; i <= lanes.Most; i++ {
		if err == nil && st.Job != nil {
			break
		}
		lane := lanes.Dir(dir, i)
		if _, serr := os.Stat(lane); serr != nil {
			break
		}
		st, err = supervisor.Probe(ctx, lane)
	}
	if err != nil || st.Job == nil {
		return "", false
	}
	// Who asks knows that the owner is dead. The supervisor may see that a
	// moment later, so whether it calls itself attended says nothing here.
	return st.Left.Round(time.Second).String(), true
}

// Message leaves words for the next prompt of a run; from says where they come
// from.
func (p *Runs) Message(ctx context.Context, r store.Run, text, from string) error {
	if err := p.CheckTask(ctx, r, false); err != nil {
		return err
	}
	err := storedrun.LeaveMessage(ctx, p.Store, r, text, from)
	if errors.Is(err, storedrun.ErrNoReader) {
		return refuseEnded(r, "%v", err)
	}
	if err != nil {
		return err
	}
	p.Say("The message goes into the next prompt of run %s; a running Claude Code gets it at once.", r.ID)
	return nil
}

// This file answers steps of a workflow where several ask: each has a question
// of its own, and an answer that is kept until the run resumes.

// answerStep keeps an answer to one of the steps that ask. kept is true when
// none is left without one.
func (p *Runs) answerStep(ctx context.Context, r store.Run, asked []loop.Asks, step string,
	words []string) (kept bool, err error) {
	rows, err := p.Store.Controls(ctx, r.ID)
	if err != nil {
		return false, err
	}
	open := unansweredSteps(asked, rows)
	if step == "" && len(open) == 1 {
		step = open[0].Step
	}
	i := slices.IndexFunc(asked, func(q loop.Asks) bool { return q.Step == step })
	switch {
	case len(asked) == 0:
		return false, fault.Refuse("no step of run %s has a question; answer it without --step", r.ID)
	case step == "":
		e := fault.Refuse("%d steps of run %s have a question; choose one with --step", len(asked), r.ID)
		return false, withAsked(e, r.ID, open, asked)
	case i < 0:
		return false, withAsked(fault.Refuse("step %q of run %s has no question", step, r.ID), r.ID, open, asked)
	}
	data, err := json.Marshal(loop.Asks{Step: step, Text: strings.TrimSpace(strings.Join(words, " "))})
	if err != nil {
		return false, err
	}
	if err := p.storeControl(ctx, r, store.ControlReply, string(data)); err != nil {
		return false, err
	}
	p.Say("The answer to step %s is kept.", report.Line(step, 200))
	open = slices.DeleteFunc(open, func(q loop.Asks) bool { return q.Step == step })
	if len(open) == 0 {
		return true, nil
	}
	p.Say("Not answered yet:")
	for _, q := range open {
		p.Say("  %s: %s", report.Line(q.Step, 200), report.Line(q.Text, 300))
	}
	p.Say("Answer them too, or continue as far as possible: pawl resume %s", r.ID)
	return false, nil
}

// withAsked adds the steps that ask to an error, with how one is answered.
func withAsked(e *fault.Error, run string, open, asked []loop.Asks) *fault.Error {
	for _, q := range asked {
		state := ""
		if !slices.Contains(open, q) {
			state = " (answered)"
		}
		e = e.Hint("%s: %s%s", report.Line(q.Step, 200), report.Line(q.Text, 300), state)
	}
	if len(open) > 0 {
		asked = open
	}
	return e.Hint("For example: pawl answer %s --step %s TEXT", run, fault.QuoteShell(asked[0].Step))
}

// unansweredSteps returns the questions of steps that no answer waits for.
func unansweredSteps(asked []loop.Asks, rows []store.Control) []loop.Asks {
	e, _ := storedrun.Replies(rows, nil)
	return slices.DeleteFunc(slices.Clone(asked), func(q loop.Asks) bool {
		return slices.ContainsFunc(e.Replies, func(r loop.Asks) bool { return r.Step == q.Step })
	})
}

// StartCommand starts the procedure or the workflow of a run anew, with the words that it was given; TEXT stands for
// many of them, or several lines.
func StartCommand(r store.Run) string {
	line, given := "pawl run", SetupOf(r).Flags
	work := given.Work
	if len(work) > 300 || strings.ContainsFunc(work, unicode.IsControl) {
		work = "TEXT"
	}
	for _, word := range lists.NonEmpty(cmp.Or(given.File, r.Name), work) {
		line += " " + fault.QuoteShell(word)
	}
	return line
}

// ListExecutions returns the executions of a workflow's steps in the order of their
// start.
func ListExecutions(ctx context.Context, st *store.Store, run string) ([]report.Execution, error) {
	rows, err := st.StepsWithOutput(ctx, run)
	if err != nil {
		return nil, err
	}
	out := make([]report.Execution, len(rows))
	for i, row := range rows {
		if out[i], err = flow.Shown(row); err != nil {
			return nil, err
		}
	}
	return out, nil
}
