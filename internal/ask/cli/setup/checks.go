package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/ask/cli/session"
	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/autopilot"
	"github.com/pawl-dev/pawl/internal/do/git"
	"github.com/pawl-dev/pawl/internal/do/merge"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// The states of a check. A problem is that a run or the board cannot work.
const (
	sound   = "ok"
	doubt   = "warning"
	problem = "problem"
)

// check is one thing that work depends on.
type check struct {
	What  string   `json:"what"`
	State string   `json:"state"`
	Found string   `json:"found"`
	Hints []string `json:"hints,omitempty"`
}

// checks are what has to be true before anything is paid for.
type checks struct {
	a    *command.App
	list []check
}

func (k *checks) addCheck(state, what, found string, hints ...string) {
	k.list = append(k.list, check{what, state, report.Line(found, 1200), hints})
}

// addError adds an error, with its hints.
func (k *checks) addError(what string, err error) {
	var hints []string
	if e, ok := errors.AsType[*fault.Error](err); ok {
		hints = e.Hints
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // the rest shows the place, on lines of its own
	k.addCheck(problem, what, first, hints...)
}

func (k *checks) countFailed() (n int) {
	for _, c := range k.list {
		if c.State == problem {
			n++
		}
	}
	return n
}

// examineSetup looks at configuration, agent, repository and gates. quick runs no gate; warm runs them outside of the
// box first.
func examineSetup(ctx context.Context, a *command.App, quick, warm bool) *checks {
	quiet := *a
	quiet.Quiet = true
	k := &checks{a: &quiet}
	c, err := quiet.Load(nil)
	if err != nil {
		k.addError("configuration", err)
		return k
	}
	if c.File == "" {
		k.addError("configuration", planner.WithoutProcedures(c))
	}
	db := k.checkDatabase(ctx, c)
	if db != nil {
		defer db.Close()
	}
	if err := session.CheckLevel(ctx, &quiet, c); err != nil {
		k.addError("sandbox", err)
	}
	if k.checkPlans(c) {
		k.checkLogin(c)
	}
	if path, err := action.HiddenInHistory(ctx, c); err == nil && path != "" {
		k.addCheck(doubt, "safety.hide", "commits have "+path+", where agents can read it", "Change what is secret in it")
	}
	missing := k.checkPrograms(c)
	boards := k.checkRepository(ctx, c, db)
	switch {
	case len(c.Verification.Gates()) == 0:
		k.addCheck(doubt, "gates", "none are configured: whatever an agent calls complete counts as complete",
			"Add the command that tests the project: verification.commands in pawl.yaml")
	case quick, missing, !boards:
		k.addCheck(doubt, "gates", "not run")
	default:
		k.checkGates(ctx, a, c, warm)
	}
	return k
}

// checkDatabase opens the database, as a start would; nil if it cannot be used.
func (k *checks) checkDatabase(ctx context.Context, c *config.Config) *store.Store {
	err := k.a.KnowsShared(c)
	var db *store.Store
	if err == nil {
		db, err = k.a.Database(ctx, c)
	}
	if err == nil {
		err = db.Check(ctx)
	}
	if err != nil {
		k.addError("database", err)
	}
	return db
}

// checkPlans makes those of all procedures and of a task, as a start would: what refuses
// them is said once. Programs of gates are left to programs. It reports whether tasks
// have a plan.
func (k *checks) checkPlans(c *config.Config) bool {
	pl := k.a.Planner(c, planner.Flags{})
	pl.LookPath = k.gatesPresent(pl)
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.Procedures)) {
		if _, err := pl.Procedure(name); err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			k.addError("procedure "+name, err)
		}
	}
	_, err := pl.Task(autopilot.Task{})
	if err != nil && !seen[err.Error()] {
		k.addError("tasks", err)
	}
	return err == nil
}

// gatesPresent finds programs of gates that are not there: each is a check of its own.
func (k *checks) gatesPresent(pl *planner.Planner) func(string) (string, error) {
	gone := lists.Set(lists.Each(pl.MissingPrograms(), func(m planner.Missing) string { return m.Program }))
	find := pl.LookPath
	return func(name string) (string, error) {
		path, err := find(name)
		if err != nil && gone[name] {
			return name, nil
		}
		return path, err
	}
}

// checkLogin looks for signs that the configured agent is logged in.
func (k *checks) checkLogin(c *config.Config) {
	own := c.Agents.Named[c.Agent]
	name := agents.Program(c.Agent, own.Output, own.Command)
	sign, known := action.LoggedIn(k.a.Env, name)
	what := "login of " + c.Agent
	switch {
	case !known:
		k.addCheck(sound, "agent "+c.Agent, "a program of your own: "+strings.Join(own.Command, " "))
	case len(own.Env) > 0:
	case sign == "":
		k.addCheck(doubt, what, "no key in the environment and no login of "+name+" was found",
			"Log in with the program itself, or set "+cmp.Or(strings.Join(agents.Keys(name), " or "), "its key")+
				", before work is started")
	default:
		k.addCheck(sound, what, sign)
	}
}

// checkPrograms reports whether a gate that is required cannot run.
func (k *checks) checkPrograms(c *config.Config) (missing bool) {
	for _, m := range k.a.Planner(c, planner.Flags{}).MissingPrograms() {
		state := doubt
		if m.Required {
			state, missing = problem, true
		}
		k.addCheck(state, "gate "+m.Gate, fmt.Sprintf("%q is not installed on this machine", m.Program),
			"Install it, or correct the gate's command in "+c.Name())
	}
	return missing
}

// checkRepository reports whether runs and tasks can be worked on in clones.
func (k *checks) checkRepository(ctx context.Context, c *config.Config, db *store.Store) bool {
	repo, err := git.Open(ctx, c.Root)
	if err != nil {
		if errors.Is(err, git.ErrNotRepository) {
			k.addCheck(problem, "board", err.Error(), "Runs work without git, the board does not: git init")
		} else {
			k.addError("board", err)
		}
		return false
	}
	if err := session.CheckDelivery(ctx, c, c.Loop.Safety, repo); err != nil {
		k.addError("runs", err)
	}
	_, err = action.LandingTarget(ctx, c, repo)
	if err == nil && db != nil {
		_, err = k.a.Pool(ctx, c, db)
	}
	if err != nil {
		k.addError("board", err)
	}
	return err == nil
}

// checkGates runs each once on the target, in a clone. If warm is set they run outside of the box first, which
// fills the person's caches.
func (k *checks) checkGates(ctx context.Context, a *command.App, c *config.Config, warm bool) {
	begins := func(where string) func(string) {
		return func(name string) { a.Say("… %s%s", name, where) }
	}
	var err error
	switch {
	case warm && c.Loop.Safety == sandbox.Paranoid:
		err = fault.Refuse("at the level paranoid nothing of the project runs outside of the sandbox").
			Hint("Fill your caches by hand: run the gates once in your checkout")
	case warm:
		_, err = session.TryGates(ctx, k.a, c, true, true, begins(", outside of the sandbox, to fill your caches"))
	}
	var t merge.Trial
	if err == nil {
		t, err = session.TryGates(ctx, k.a, c, warm, false, begins(""))
	}
	if err != nil {
		k.addError("gates", err)
		return
	}
	k.list = append(k.list, describeTrial(t, c)...)
	if t.Cold {
		k.addCheck(doubt, "caches", "empty: the gates compiled or downloaded everything anew, as each verdict will",
			hintForCold(warm, a.Getenv("HOME")))
	}
}

// hintForCold returns the advice for caches that the gates found empty.
func hintForCold(warm bool, home string) string {
	inTemp := sandbox.HomeInTemp(home)
	switch {
	case inTemp != "":
		return inTemp
	case warm:
		return "They stay empty: the sandbox cannot show your caches here, see docs/safety.md"
	}
	return "Fill your own caches once, by running the gates outside of the sandbox: pawl doctor --warm"
}

// describeTrial puts a trial in words.
func describeTrial(t merge.Trial, c *config.Config) []check {
	if t.Setup != "" {
		hint := "A clone has only what git has: add what else it needs to workspace.setup or workspace.copy of " + c.Name()
		if strings.Contains(t.Setup, ": network: ") {
			hint = hintNetwork
		}
		return []check{{"set-up", problem, t.Setup, []string{hint}}}
	}
	var list []check
	if n := len(c.Workspace.Setup); n > 0 {
		list = append(list, check{"set-up", sound, fault.Numbered(n, "command"), nil})
	}
	at := ""
	if !t.Cached.IsZero() {
		at = ", on " + t.Cached.Local().Format("2006-01-02 15:04")
	}
	list = append(list, lists.Each(t.Gates, func(g loop.Gate) check { return gateCheck(g, t.Why[g.Name], at, c) })...)
	return list
}

func gateCheck(g loop.Gate, why, at string, c *config.Config) check {
	what := "gate " + g.Name
	if g.Status == loop.GatePassed {
		found := "green in " + loop.Duration(g.Elapsed.Round(100*time.Millisecond)) + at
		return check{what, sound, found, nil}
	}
	out := check{what, doubt, "red: " + strings.TrimPrefix(why, g.Name+": "), nil}
	if g.Required {
		out.State, out.Hints = problem, []string{
			hintForRedGate(why),
			"Or correct its command in " + c.Name() + ", or make it a warning there: required: false",
		}
	}
	return out
}

// namedSetting is a setting with its value, as the reason of a refusal names it.
var namedSetting = lazy.Regexp(`safety\.[a-z_]+: \[[^\]]+\]`)

// hintRed is for a gate that ran, and is red: a run can make it green.
const hintRed = "Repair it on the branch, by hand or with a run: the board starts no task while it is red"

const hintNetwork = "See whether this machine reaches the registry, then try again"

// hintForRedGate names what makes a gate green that is red for this reason.
func hintForRedGate(why string) string {
	switch {
	case strings.Contains(why, "pawl's sandbox"):
		if key, value, ok := strings.Cut(namedSetting().FindString(why), ": "); ok {
			section, name, _ := strings.Cut(key, ".")
			return fmt.Sprintf("In pawl.yaml: %s: {%s: %s}", section, name, value)
		}
		return "Set what allows it"
	case strings.Contains(why, "missing command: "):
		return "Install what it needs here"
	case strings.Contains(why, "dependency: "):
		return "Install what it needs here, or add that to workspace.setup, which each clone runs"
	case strings.Contains(why, "network: "):
		return hintNetwork
	}
	return hintRed
}

// printChecks shows the checks, problems with what to do.
func (k *checks) printChecks(a *command.App) {
	rows := lists.Each(k.list, func(c check) []any { return []any{c.State, c.What, c.Found} })
	a.Table("", rows, 0)
	told := map[string]bool{}
	for _, c := range k.list {
		for _, h := range c.Hints {
			if c.State != sound && !told[h] {
				told[h] = true
				a.Result("  %s: %s\n", c.What, h)
			}
		}
	}
}
