package web

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/delivery"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// actionHandlers do with runs what a person asks for.
type actionHandlers struct{ *core }

func (s actionHandlers) actionRoutes(api huma.API) {
	at := rest.Tagged(api, "actions")
	rest.Post(at, "/runs", "start-run", "Start a procedure or a workflow", s.startRun)
	rest.Post(at, "/runs/{run}/pause", "pause-run", "Pause a run at the end of its iteration", s.pauseRun)
	rest.Post(at, "/runs/{run}/stop", "stop-run", "Stop a run now; its agent is ended, its work is kept", s.stopRunNow)
	rest.Post(at, "/runs/{run}/redirect", "redirect-run",
		"Give the slot of a task at work to another task: both or neither; its agent is ended, its work is kept",
		s.redirectRun)
	rest.Post(at, "/runs/{run}/resume", "resume-run",
		"Resume a run, with higher limits if wanted; for a running one only the limits change", s.resumeRun)
	rest.Post(at, "/runs/{run}/answer", "answer-run", "Answer a run's question, and continue", s.answerRun)
	rest.Post(at, "/runs/{run}/review", "review-run", "Decide on work that waits for a person's review", s.reviewRun)
	rest.Post(at, "/runs/{run}/message", "message-run", "Send the agent a message; it goes into the next prompt",
		s.messageRun)
	rest.Get(at, "/runs/{run}/rollback", "foresee-rollback", "Which files a rollback would restore now",
		s.foreseeRollback)
	rest.Post(at, "/runs/{run}/rollback", "rollback-run",
		"Restore the files from the snapshot after an iteration; this can be undone", s.rollbackRun)
	undeliveredRoutes(api, &undelivered{core: s.core})
}

// doAction does something for a person; the answer says what was done, and how the run
// is that it was done to, if there is one.
func (s *core) doAction(ctx context.Context, do func(*action.Operator) (run string, err error)) (*done, error) {
	run := ""
	said, err := s.o.CollectLines(func(p *action.Operator) (err error) {
		run, err = do(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := view.Done{Message: strings.Join(said, " "), Lines: view.NonNil(said)}
	if r, err := s.o.Store.Run(ctx, run); run != "" && err == nil {
		out.Run = new(s.viewOfRun(ctx, r))
	}
	return rest.Answer(out), nil
}

// actOnRun does something with a run that exists.
func (s *core) actOnRun(ctx context.Context, in *rest.RunPath,
	do func(*action.Operator, context.Context, store.Run) error) (*done, error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	return s.doAction(ctx, func(p *action.Operator) (string, error) {
		r, err := p.WaitUntilReleased(ctx, r)
		if err != nil {
			return r.ID, err
		}
		return r.ID, do(p, ctx, r)
	})
}

func (s actionHandlers) pauseRun(ctx context.Context, in *rest.RunPath) (*done, error) {
	return s.actOnRun(ctx, in, (*action.Operator).Pause)
}

// stopRunNow does not wait for the end; the events show it.
func (s actionHandlers) stopRunNow(ctx context.Context, in *rest.RunPath) (*done, error) {
	return s.actOnRun(ctx, in,
		func(p *action.Operator, ctx context.Context, r store.Run) error { return p.Stop(ctx, r, false) })
}

func (s actionHandlers) redirectRun(ctx context.Context, in *struct {
	rest.RunPath
	Body struct {
		To string `json:"to" maxLength:"40" pattern:"^[0-9A-Za-z-]+$" doc:"The task that gets the slot; it must be ready."`
	}
}) (*done, error) {
	to := board.Normal(in.Body.To)
	if _, err := s.o.Store.Case(ctx, to); err != nil {
		return nil, err
	}
	return s.actOnRun(ctx, &in.RunPath,
		func(p *action.Operator, ctx context.Context, r store.Run) error { return p.Redirect(ctx, r, to) })
}

func (s actionHandlers) startRun(ctx context.Context, in *struct {
	Body view.StartWish
}) (*done, error) {
	return s.doAction(ctx, func(p *action.Operator) (run string, err error) {
		what, name, err := s.resolveStart(in.Body)
		if err != nil {
			return "", err
		}
		wish := in.Body
		verb := "run"
		if wish.Goal != "" {
			verb, wish.Fresh, wish.Iterate, wish.Strategy = "plan", false, false, "" // it always begins anew
		}
		wish.Procedure, wish.Workflow, wish.Goal = "", "", ""
		run, err = s.o.Launch(ctx, slices.Concat([]string{verb}, view.FlagsOf(wish), []string{"--", what}),
			s.findOwned(ctx, func(r store.Run) bool { return r.Name == name }))
		p.Say("Run %s of %s has started.", run, name)
		return run, err
	})
}

// resolveStart returns the argument for 'pawl run', and the name that the run will have.
func (s actionHandlers) resolveStart(wish view.StartWish) (what, name string, err error) {
	if wish.Goal != "" {
		return wish.Goal, planner.Proposal, nil
	}
	if wish.Workflow != "" {
		for _, w := range findWorkflowFiles(s.o.Root) {
			if w.File == wish.Workflow {
				return filepath.Join(s.o.Root, w.File), w.Name, nil
			}
		}
		return "", "", fault.Refuse("there is no workflow %q here", fault.Cut(wish.Workflow, 100))
	}
	c, err := s.loadConfig()
	if err == nil {
		_, err = planner.Lookup(c, wish.Procedure)
	}
	return wish.Procedure, wish.Procedure, err
}

func (s actionHandlers) resumeRun(ctx context.Context, in *struct {
	rest.RunPath
	Body view.Raise
}) (*done, error) {
	return s.actOnRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		return s.raiseAndResume(ctx, p, r, in.Body)
	})
}

// raiseAndResume lets a run go on, with higher limits if they are given: where it is
// driven, or in the background.
func (s actionHandlers) raiseAndResume(ctx context.Context, p *action.Operator, r store.Run, raise view.Raise) error {
	f := planner.Flags{Max: raise.MaxIterations, MaxCost: raise.MaxCost, Timeout: raise.Timeout,
		Iterate: raise.Iterate, Strategy: raise.Strategy}
	if done, err := p.ResumeElsewhere(ctx, r, f); done || err != nil {
		return err
	}
	if storedrun.Alive(r.Owner) {
		return fault.Refuse("run %s is already running: %v", r.ID, r.Owner)
	}
	_, err := s.o.Launch(ctx, append([]string{"resume", r.ID}, view.FlagsOf(raise)...),
		s.findOwned(ctx, func(now store.Run) bool { return now.ID == r.ID }))
	p.Say("Run %s of %s continues.", r.ID, r.Name)
	return err
}

// findOwned finds a run that fits and that a process drives.
func (s *core) findOwned(ctx context.Context, fits func(store.Run) bool) Begun {
	return func(pid int) (string, bool, error) {
		runs, err := s.o.Store.Runs(ctx, store.RunQuery{Root: s.o.Root})
		for _, r := range runs {
			if fits(r) && r.Owner.PID == pid {
				return r.ID, true, nil
			}
		}
		return "", false, err
	}
}

func (s actionHandlers) answerRun(ctx context.Context, in *struct {
	rest.RunPath
	Body view.Reply
}) (*done, error) {
	return s.replyToRun(ctx, &in.RunPath, in.Body)
}

// replyToRun stores the answer, and resumes the run if the answer asks for more work.
func (s actionHandlers) replyToRun(ctx context.Context, in *rest.RunPath, a view.Reply) (*done, error) {
	if a.Choice == 0 && strings.TrimSpace(a.Text) == "" {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"An answer needs the number of an option, or words").
			Suggest("See the question: GET /api/v1/runs/" + in.Run)
	}
	return s.actOnRun(ctx, in, func(p *action.Operator, ctx context.Context, r store.Run) error {
		goesOn, err := p.Answer(ctx, r, a.Step, action.Words(a.Choice, a.Text))
		rests := a.Resume != nil && !*a.Resume
		if err != nil || !goesOn || rests {
			return err
		}
		if err := s.raiseAndResume(ctx, p, r, a.Raise); err != nil { // the answer is kept, so the error must be shown
			p.Say("The run does not continue yet: %v", action.Explain(err))
		}
		return nil
	})
}

func (s actionHandlers) reviewRun(ctx context.Context, in *struct {
	rest.RunPath
	Body struct {
		Decision string `json:"decision" enum:"approve,reject"`
		Text     string `json:"text,omitempty" maxLength:"20000" doc:"What must change; needed to reject."`
	}
}) (*done, error) {
	words := "approve"
	if in.Body.Decision == "reject" {
		if strings.TrimSpace(in.Body.Text) == "" {
			return nil, rest.Problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
				"Work that is sent back needs words").Suggest("Say in text what must change: the next prompt has it")
		}
		words = "reject: " + in.Body.Text
	}
	return s.replyToRun(ctx, &in.RunPath, view.Reply{Text: words})
}

func (s actionHandlers) messageRun(ctx context.Context, in *struct {
	rest.RunPath
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"20000"`
	}
}) (*done, error) {
	if strings.TrimSpace(in.Body.Text) == "" {
		return nil, rest.Problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"The message is empty").Suggest("Say in text what the agent should know")
	}
	return s.actOnRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		return p.Message(ctx, r, in.Body.Text, "web")
	})
}

// checkRollback returns an error if the task cannot be rolled back, or if the run is not
// the task's last.
func (s actionHandlers) checkRollback(ctx context.Context, r store.Run) error {
	if err := s.o.CheckTask(ctx, r, false); err != nil {
		return err
	}
	return s.o.CheckRollback(ctx, r.Name)
}

// rollbackTaskRun rolls the workspace of a task back, where its last run is meant.
func (s actionHandlers) rollbackTaskRun(ctx context.Context, p *action.Operator, r store.Run, to action.BackTo) error {
	if err := s.checkRollback(ctx, r); err != nil {
		return err
	}
	clones, err := s.o.Pool(ctx)
	if err != nil {
		return err
	}
	if to.N < 0 {
		to.N = max(r.Iteration-1, 0)
	}
	done, err := p.RollbackTask(ctx, clones, r.Name, to)
	p.Say("%s", done.Text)
	return err
}

// toAndUndoTogether is a rollback that is to go to a place and to be undone.
func toAndUndoTogether() *rest.ProblemError {
	return rest.Problem(http.StatusUnprocessableEntity, "INVALID_REQUEST", "to and undo cannot be used together").
		Suggest("Send to to go back to an iteration, or undo to undo the last rollback")
}

// maxForeseen is how many files a rollback is foreseen to put back by name.
const maxForeseen = 1000

func (s actionHandlers) foreseeRollback(ctx context.Context, in *struct {
	rest.RunPath
	To int `query:"to" minimum:"-1" maximum:"1000000" default:"-1" doc:"The iteration whose snapshot it goes back to; 0 is before the run, -1 the one before the last."`
}) (*rest.Body[view.Foreseen], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	if r.Kind == string(loop.Task) {
		if err := s.checkRollback(ctx, r); err != nil {
			return nil, err
		}
	}
	back, err := s.o.Foresee(ctx, r, in.To)
	if err != nil {
		return nil, err
	}
	names := func(all []string) []string { return lists.Each(all[:min(len(all), maxForeseen)], view.ValidUTF8) }
	notes := lists.Each(back.Left[:min(len(back.Left), maxForeseen)], func(c workspace.Conflict) string {
		return c.Path + " is not changed: " + c.Why
	})
	if back.WhyNot != "" {
		notes = append(notes, "the branch is not moved: "+back.WhyNot)
	}
	return rest.Answer(view.Foreseen{Where: back.Where, Restored: names(back.Written), Removed: names(back.Removed),
		Files: len(back.Written) + len(back.Removed), Notes: view.NonNil(notes)}), nil
}

func (s actionHandlers) rollbackRun(ctx context.Context, in *struct {
	rest.RunPath
	Body struct {
		To   *int `json:"to,omitempty" minimum:"0" maximum:"1000000" doc:"The iteration whose snapshot to go back to; 0 is before the run; left out: the one before the last."`
		Undo bool `json:"undo,omitempty" doc:"Instead: get back what was there before the last rollback."`
	}
}) (*done, error) {
	to := action.BackTo{N: -1, Undo: in.Body.Undo}
	if in.Body.To != nil {
		to.N = *in.Body.To
	}
	if to.Undo && to.N >= 0 {
		return nil, toAndUndoTogether()
	}
	return s.actOnRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		if r.Kind == string(loop.Task) {
			return s.rollbackTaskRun(ctx, p, r, to)
		}
		return p.Rollback(ctx, r, to)
	})
}

// undelivered is the work of runs that is not in the person's files.
type undelivered struct {
	core *core
	mu   sync.Mutex // held while this process has the workspace of a run
}

func undeliveredRoutes(api huma.API, u *undelivered) {
	at := rest.Tagged(api, "actions")
	rest.Get(at, "/runs/{run}/apply", "foresee-apply", "What applying the work of a run would do now", u.foreseeApply)
	rest.Post(at, "/runs/{run}/apply", "apply-run", "Apply the work of a run that is not in your files",
		u.applyRun)
	rest.Get(at, "/runs/{run}/conflicts", "list-conflicts",
		"The files that a person and the agent both changed, for which a run is paused", u.listConflicts)
	rest.Post(at, "/runs/{run}/conflicts", "settle-file", "Choose the content of such a file; then resume",
		u.settleFile)
	rest.Post(at, "/runs/{run}/discard", "discard-run",
		"Discard a waiting run, and its work that is not in your files", u.discardRun)
}

// inspect looks at the work of a run.
func (u *undelivered) inspect(ctx context.Context, in *rest.RunPath, do func(*action.Operator, store.Run) error) error {
	r, err := u.core.o.Store.Run(ctx, in.Run)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err = u.core.o.CollectLines(func(p *action.Operator) error { return do(p, r) })
	return err
}

func (u *undelivered) foreseeApply(ctx context.Context, in *rest.RunPath) (*rest.Body[action.Application], error) {
	var out action.Application
	err := u.inspect(ctx, in, func(p *action.Operator, r store.Run) (err error) {
		out, err = p.Apply(ctx, r, action.ApplyOptions{Check: true})
		return err
	})
	out.Written = out.Written[:min(len(out.Written), maxForeseen)]
	out.Removed = out.Removed[:min(len(out.Removed), maxForeseen)]
	out.Conflicts = out.Conflicts[:min(len(out.Conflicts), maxForeseen)]
	return rest.Answer(out), err
}

// applyRun refuses a result that does not fit.
func (u *undelivered) applyRun(ctx context.Context, in *struct {
	rest.RunPath
	Confirmed bool `query:"confirmed" doc:"A person has seen by name what programs run by themselves, and says yes."`
}) (*done, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.actOnRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		out, err := p.Apply(ctx, r, action.ApplyOptions{Confirmed: in.Confirmed})
		if err != nil {
			return err
		}
		if out.Status == "conflict" || out.Status == "confirm" {
			said, _ := p.CollectLines(func(p *action.Operator) error { p.PrintApplied(out, false); return nil })
			return fault.Refuse("%s", strings.Join(said, " "))
		}
		p.PrintApplied(out, false)
		return nil
	})
}

func (u *undelivered) listConflicts(ctx context.Context, in *rest.RunPath) (*rest.Body[view.Clashes], error) {
	var all []action.Clash
	err := u.inspect(ctx, in, func(p *action.Operator, r store.Run) (err error) {
		all, err = p.ListConflicts(ctx, r)
		return err
	})
	return rest.Answer(view.Clashes{Files: lists.Each(all, func(c action.Clash) view.Clash {
		out := view.Clash{Path: c.Path, Text: c.Text, Why: c.Why, Settled: c.Settled != nil}
		if len(out.Text) > maxBody/2 || !utf8.ValidString(out.Text) {
			out.Text, out.Why = "", "it is not UTF-8, or too large to be shown here: choose mine or agent"
		}
		return out
	})}), err
}

func (u *undelivered) settleFile(ctx context.Context, in *struct {
	rest.RunPath
	Body struct {
		Path   string          `json:"path" minLength:"1" maxLength:"4096"`
		Choice delivery.Choice `json:"choice" enum:"mine,agent,both,edit" doc:"Whose lines stay where both changed them; both: the person's first."`
		Text   string          `json:"text,omitempty" doc:"What the file becomes, with the choice edit."`
	}
}) (*done, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.core.actOnRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		_, left, err := p.SettleConflict(ctx, r, []string{in.Body.Path}, in.Body.Choice,
			func(string, []byte) ([]byte, error) { return []byte(in.Body.Text), nil })
		if err != nil {
			return err
		}
		next := "resume the run, or apply its work"
		if left > 0 {
			next = fault.Numbered(left, "file") + " left"
		}
		p.Say("%s is settled: %s.", in.Body.Path, next)
		return nil
	})
}

func (u *undelivered) discardRun(ctx context.Context, in *rest.RunPath) (*done, error) {
	return u.core.actOnRun(ctx, in, (*action.Operator).DiscardRun)
}
