package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/workspace/pool"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/git/checkout"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/retention"
	"github.com/pawl-dev/pawl/internal/do/statefile"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// AdoptFile makes a run of a state file that the database knows nothing of,
// when nothing that it knows can be resumed instead.
// [statefile.ErrNone] when there is no such file.
func AdoptFile(ctx context.Context, db *store.Store, root, name string, last store.Run, lookup error) (store.Run,
	error) {
	if lookup != nil && !errors.Is(lookup, store.ErrNotFound) {
		return last, statefile.ErrNone
	}
	path := statefile.Path(root, name)
	file, err := statefile.Read(path)
	if err != nil && lookup == nil {
		return last, statefile.ErrNone // the database rules
	}
	if err != nil {
		return last, err
	}
	follows := !isOfOtherRun(file, last) || last.Status != string(loop.Completed)
	if lookup == nil && follows {
		return last, statefile.ErrNone
	}
	if err := refuseIfRunning(file, name, path); err != nil {
		return last, err
	}
	return storedrun.Import(ctx, db, root, name)
}

// MayStart refuses a second start, and asks before an earlier run that could
// go on is left behind.
func (s *Session) MayStart(ctx context.Context, fresh bool) error {
	path := statefile.Path(s.Plan.Root, s.Plan.Name)
	file, ferr := statefile.Read(path)
	if ferr != nil && !errors.Is(ferr, statefile.ErrNone) {
		to, err := statefile.KeepAside(path)
		if err != nil {
			s.App.Say("Warning: %v", err)
		} else {
			s.App.Say("Warning: %v; it was renamed to %s", ferr, filepath.Base(to))
		}
	}
	if ferr != nil {
		file = statefile.File{} // says nothing
	}
	worked := false
	last, err := s.Store.Latest(ctx, s.Plan.Root, s.Plan.Name)
	if err == nil {
		err = s.mayFollow(ctx, last, errors.Is(ferr, statefile.ErrNone), fresh)
	} else if errors.Is(err, store.ErrNotFound) {
		worked, err = s.hasEarlierRun(ctx)
	}
	known := last.ID != ""
	if err != nil || known && !isOfOtherRun(file, last) {
		return err
	}
	worked = worked || known
	if fresh {
		return nil
	}
	if worked && ferr == nil {
		return s.setStateFileAside(path)
	}
	return s.mayFollowFile(file, path)
}

// hasEarlierRun reports whether the database has a run of this root: then an agent may
// have written its files.
func (s *Session) hasEarlierRun(ctx context.Context) (bool, error) {
	known, _, _, err := s.Store.RunPage(ctx, store.RunQuery{Root: s.Plan.Root}, store.RunMark{}, 1)
	return len(known) > 0, err
}

// setStateFileAside keeps a state file that the database knows nothing of. It decides nothing
// where agents have worked.
func (s *Session) setStateFileAside(path string) error {
	to, err := statefile.KeepAside(path)
	if err != nil {
		return err
	}
	s.App.Say("Note: %s belongs to no run that is known here, and an agent may have written it; renamed it to %s",
		filepath.Base(path), filepath.Base(to))
	return nil
}

// isFromOtherMachine reports whether another machine made the run: its clone at the same
// path is not this one.
func (s *Session) isFromOtherMachine(r store.Run) bool {
	self, err := process.Self()
	host := cmp.Or(r.Owner.Host, action.SetupOf(r).Host)
	return err == nil && s.Store.BoardName() != "" && host != "" && host != self.Host
}

const (
	endsWithin = 15 * time.Second // from a run's last event to the end of its process
	endPause   = 50 * time.Millisecond
)

// awaitEnd waits for the process of a run that is over.
func (s *Session) awaitEnd(ctx context.Context, r store.Run) (store.Run, error) {
	var err error
	for by := time.Now().Add(endsWithin); err == nil && storedrun.Alive(r.Owner) && time.Now().Before(by); {
		if loop.Status(r.Status).Active() || !process.Sleep(ctx, endPause) {
			break
		}
		r, err = s.Store.Run(ctx, r.ID)
	}
	return r, err
}

// mayFollow decides by the last run of this procedure.
func (s *Session) mayFollow(ctx context.Context, last store.Run, noFile, fresh bool) error {
	if s.isFromOtherMachine(last) {
		return nil
	}
	last, err := s.awaitEnd(ctx, last)
	if err != nil {
		return err
	}
	st := loop.Status(last.Status)
	if storedrun.Alive(last.Owner) {
		return command.Usage("%s is already running: run %s, %v", s.Plan.Name, last.ID, last.Owner).
			Hint("Watch it: pawl logs %s -f", last.ID).Hint("Stop it:  pawl stop %s", last.ID)
	}
	if st.Active() {
		if left, ok := action.Unattended(ctx, s.StateDir, last.ID); ok {
			return command.Usage("%s runs unattended: its pawl has ended, the agent ends in %s", s.Plan.Name, left).
				Hint("Resume it: pawl resume %s", s.Plan.Name)
		}
		st = loop.Interrupted
	}
	waits := st == loop.Interrupted || st == loop.Stopped || st == loop.Paused || st == loop.Pending
	removed := noFile && !loop.Status(last.Status).Active()
	if removed || !waits {
		return nil
	}
	if fresh {
		return storedrun.Archive(ctx, s.Store, last.ID, "left behind by a fresh start")
	}
	if s.App.Interactive() {
		return s.offerResume(ctx, last, st)
	}
	return command.Usage("%s can be resumed: run %s is %s after iteration %d", s.Plan.Name, last.ID, st, last.Iteration).
		Hint("Continue it:    pawl resume %s", s.Plan.Name).Hint("Start over:     %s", s.commandForFresh()).
		Hint("Discard it:     pawl discard %s", s.Plan.Name)
}

// commandForFresh returns the command that starts anew what runs: as it was typed, if it was 'pawl run'.
func (s *Session) commandForFresh() string {
	line, words, work := "pawl", s.App.Args, s.Plan.Prompt.Work
	if !slices.Contains(words, "run") {
		words = lists.NonEmpty("run", cmp.Or(s.file, s.Plan.Name), work)
	}
	for _, word := range words {
		line += " " + fault.QuoteShell(word)
	}
	fromStdin := work != "" && !slices.Contains(words, work)
	if fromStdin || len(line) > 300 || strings.ContainsFunc(line, unicode.IsControl) || slices.Contains(words, "--") {
		return "the same command with --fresh"
	}
	return line + " --fresh"
}

// offerResume asks on a terminal whether to go on with the run that waits.
func (s *Session) offerResume(ctx context.Context, last store.Run, st loop.Status) error {
	switch s.App.Ask("Run %s of %s is %s after iteration %d.\n[r]esume it, start [f]resh, or [q]uit? ",
		last.ID, s.Plan.Name, st, last.Iteration) {
	case "r", "resume":
		return ErrResumeInstead
	case "f", "fresh":
		return storedrun.Archive(ctx, s.Store, last.ID, "left behind by a fresh start")
	}
	return command.StatusError(command.ExitUsage)
}

// ErrResumeInstead is that the person wants to resume the earlier run.
var ErrResumeInstead = errors.New("resume instead")

// isOfOtherRun reports whether the state file is not the interrupted run's own.
func isOfOtherRun(f statefile.File, last store.Run) bool { return f.Run != last.ID }

// refuseIfRunning refuses a state file that says that somebody works on it, unless that
// process is proved dead.
func refuseIfRunning(f statefile.File, name, path string) error {
	if !loop.Status(f.Status).Active() || f.OwnerDead() {
		return nil
	}
	return command.Usage("%s may be running already: %s says %q", name, path, f.Status).
		Hint("If nothing runs, start with: pawl run %s --fresh", name)
}

// mayFollowFile decides by a state file of which the database knows nothing.
func (s *Session) mayFollowFile(f statefile.File, path string) error {
	if err := refuseIfRunning(f, s.Plan.Name, path); err != nil {
		return err
	}
	switch loop.Status(f.Status) {
	case loop.Running, loop.Waiting, loop.Interrupted, loop.Stopped, loop.Paused, loop.Pending:
	default:
		return nil
	}
	return command.Usage("%s can be resumed: %s says %q after iteration %d", s.Plan.Name, path, f.Status, f.Iteration).
		Hint("Continue it:    pawl resume %s", s.Plan.Name).Hint("Start over:     %s", s.commandForFresh())
}

// sayWithheld names the variables that the agent does not get.
func (s *Session) sayWithheld(plan runplan.Plan) {
	if held := plan.Agents[plan.Policy.Agent].Withheld; len(held) > 0 {
		s.App.Say("Note: %s.", WithheldWords(held, "agent "+plan.Policy.Agent))
	}
}

// WarnOfHiddenCost warns if a limit on cost cannot hold for the agent.
func WarnOfHiddenCost(a *command.App, name string, of runplan.Agent) {
	if len(of.Routes) == 0 && agents.HidesUse(of.Adapter) {
		a.Say("Warning: the cost limit cannot be enforced: the cost of agent %q is unknown. "+
			"Limits on calls and time hold (docs/agents.md).", name)
	}
}

// sayGateway prints which model calls go through the gateway, and which agent could use
// it but does not.
func (s *Session) sayGateway(plan runplan.Plan) {
	name := plan.Policy.Agent
	ag := plan.Agents[name]
	var to []string
	for _, r := range ag.Routes {
		to = append(to, r.Name)
	}
	if len(to) > 0 {
		const through = "Note: %s reaches its models (%s) through pawl's gateway: " +
			"limits are checked before each call, and the key stays here."
		s.App.Say(through, name, strings.Join(to, ", "))
		return
	}
	if ag.Around {
		const around = "Note: %s calls its models with a login of its own: " +
			"limits on cost depend on the cost that it reports."
		s.App.Say(around, name)
	}
}

const maxNames = 8

// WithheldWords counts and names variables, never their values.
func WithheldWords(names []string, from string) string {
	shown := make([]string, 0, maxNames+1)
	for i, n := range names {
		if i == maxNames {
			shown = append(shown, fmt.Sprintf("%d more", len(names)-i))
			break
		}
		shown = append(shown, report.Line(n, 60))
	}
	what := "1 variable is"
	if len(names) != 1 {
		what = fmt.Sprintf("%d variables are", len(names))
	}
	return fmt.Sprintf("%s withheld from %s: %s (safety.env.allow lets one through)", what, from,
		strings.Join(shown, ", "))
}

// TryGates runs each gate once on the target, in a clone that is set up like that of a
// task. begins hears of each. A green verdict is that which the autopilot starts with.
// again runs gates that were green before; unboxed runs them as a person does by hand, with the person's caches.
func TryGates(ctx context.Context, a *command.App, c *config.Config, again, unboxed bool, begins func(string)) (
	t merge.Trial, err error) {
	db, err := a.Database(ctx, c)
	if err != nil {
		return t, err
	}
	defer func() { _ = db.Close() }() // the verdict is stored
	l, q, err := OpenJudge(ctx, a, c, db, unboxed, func(o *merge.Options) {
		o.Begins, o.Local, o.Again = begins, true, again
	})
	if err != nil {
		return t, err
	}
	own, err := filepath.Rel(l.Repo.Top, c.File)
	if c.File == "" || err != nil || !filepath.IsLocal(own) {
		own = ""
	}
	return q.Try(ctx, filepath.ToSlash(own))
}

// sweepWithin bounds what a run that ended does about others.
const sweepWithin = 10 * time.Second

// Sweep removes what is over, unless somebody did so within the hour.
func (s *Session) Sweep(ctx context.Context) error {
	if !retention.Due(s.StateDir, time.Now()) {
		return nil
	}
	o, err := command.RetentionOptions(ctx, s.Config, s.StateDir, s.Store)
	if err != nil {
		return err
	}
	_, err = retention.Sweep(ctx, o)
	return err
}

// sweepAfter sweeps after a run. What cannot be removed is tried again after the
// next.
func (s *Session) sweepAfter(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
		s.App.Say("Warning: cannot remove old runs: %v", err)
	}
}

// CheckLevel refuses the configured level where this machine cannot enforce it.
func CheckLevel(ctx context.Context, a *command.App, c *config.Config) error {
	_, err := judgeSandbox(ctx, a, c.Loop.Safety, false, "")
	return err
}

// CheckDelivery refuses runs at a level whose work the checkout would not take as it is.
func CheckDelivery(ctx context.Context, c *config.Config, level string, repo *git.Repo) error {
	if action.When(c, "", level) == deliver.Asked {
		return nil
	}
	return checkout.CheckTakesWork(ctx, repo)
}

// takeWorkspace takes the private workspace of the run; nil outside of git. A run before
// it that is over, and whose process still ends, is waited for.
func (s *Session) takeWorkspace(ctx context.Context) (*delivery.Workspace, error) {
	if s.Tree == nil {
		return nil, nil
	}
	open := func() (*delivery.Workspace, error) {
		return action.OpenPrivate(ctx, s.Config, s.App.Env, s.Store, action.PrivateID(s.Plan.Name), s.printNote)
	}
	w, err := open()
	for by := time.Now().Add(endsWithin); errors.Is(err, pool.ErrTaken) && time.Now().Before(by); w, err = open() {
		last, lerr := s.Store.Latest(ctx, s.Config.Root, s.Plan.Name)
		if lerr != nil || loop.Status(last.Status).Active() || !process.Sleep(ctx, endPause) {
			break
		}
	}
	if errors.Is(err, pool.ErrTaken) {
		return nil, command.Usage("%s is already running, in the same workspace: %v", s.Plan.Name, err)
	}
	if err != nil {
		return nil, err
	}
	w.DeliverWhen(action.When(s.Config, s.Plan.Name, s.Plan.Safety))
	if run, d, ok := w.Finished(); ok {
		if err := storedrun.RecordDelivery(ctx, s.Store, run, d); err != nil {
			s.App.Say("Warning: %v", err)
		}
	}
	note, err := storedrun.FinishEarlier(ctx, s.Store, w)
	if err != nil {
		return nil, errors.Join(err, w.Release(ctx, "a run before it could not be finished"))
	}
	if note != "" {
		s.App.Say("Note: %s.", note)
	}
	if err := CheckDelivery(ctx, s.Config, s.Plan.Safety, s.Repo); err != nil {
		return nil, errors.Join(err, w.Release(ctx, "nothing could be delivered"))
	}
	return w, nil
}
