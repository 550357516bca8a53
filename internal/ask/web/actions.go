package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Done is the result of an action.
type Done struct {
	Message string   `json:"message" doc:"What was done, in a sentence or two."`
	Lines   []string `json:"lines" nullable:"false" doc:"The same, line by line, as the command line says it."`
	Run     *Run     `json:"run,omitempty" doc:"The run after it."`
}

// actionHandlers do with runs what a person asks for.
type actionHandlers struct{ *core }

func (s actionHandlers) actionRoutes(api huma.API) {
	post(api, "/runs", "start-run", "actions", "Start a procedure or a workflow", s.startRun)
	post(api, "/runs/{run}/pause", "pause-run", "actions", "Pause a run at the end of its iteration", s.pauseRun)
	post(api, "/runs/{run}/stop", "stop-run", "actions",
		"Stop a run now; its agent is ended, its work is kept", s.stopRun)
	post(api, "/runs/{run}/redirect", "redirect-run", "actions",
		"Give the slot of a task at work to another task: both or neither; its agent is ended, its work is kept",
		s.redirectRun)
	post(api, "/runs/{run}/resume", "resume-run", "actions",
		"Go on with a run, with higher limits if wanted; limits alone change for one that works", s.resumeRun)
	post(api, "/runs/{run}/answer", "answer-run", "actions", "Answer a run's question, and go on", s.answerRun)
	post(api, "/runs/{run}/review", "review-run", "actions", "Decide about work that waits for a person's review",
		s.reviewRun)
	post(api, "/runs/{run}/message", "message-run", "actions", "Tell the agent something; it goes into the next prompt",
		s.messageRun)
	get(api, "/runs/{run}/rollback", "foresee-rollback", "actions", "Which files a rollback would put back now",
		s.foreseeRollback)
	post(api, "/runs/{run}/rollback", "rollback-run", "actions",
		"Put the files back to the snapshot after an iteration; itself undoable", s.rollbackRun)
	undeliveredRoutes(api, &undelivered{core: s.core})
}

// doAction does something for a person; the answer says what was done, and how the run
// is that it was done to, if there is one.
func (s *core) doAction(ctx context.Context, do func(*action.Operator) (run string, err error)) (*body[Done], error) {
	run := ""
	said, err := s.o.CollectLines(func(p *action.Operator) (err error) {
		run, err = do(p)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := Done{Message: strings.Join(said, " "), Lines: nonNil(said)}
	if r, err := s.o.Store.Run(ctx, run); run != "" && err == nil {
		out.Run = new(s.viewOf(ctx, r))
	}
	return answer(out), nil
}

// onRun does something with a run that exists.
func (s *core) onRun(ctx context.Context, in *RunPath,
	do func(*action.Operator, context.Context, store.Run) error) (*body[Done], error) {
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

func (s actionHandlers) pauseRun(ctx context.Context, in *RunPath) (*body[Done], error) {
	return s.onRun(ctx, in, (*action.Operator).Pause)
}

// stopRun does not wait for the end; the events show it.
func (s actionHandlers) stopRun(ctx context.Context, in *RunPath) (*body[Done], error) {
	return s.onRun(ctx, in,
		func(p *action.Operator, ctx context.Context, r store.Run) error { return p.Stop(ctx, r, false) })
}

func (s actionHandlers) redirectRun(ctx context.Context, in *struct {
	RunPath
	Body struct {
		To string `json:"to" maxLength:"40" pattern:"^[0-9A-Za-z-]+$" doc:"The task that gets the slot; it must be ready."`
	}
}) (*body[Done], error) {
	to := board.Normal(in.Body.To)
	if _, err := s.o.Store.Case(ctx, to); err != nil {
		return nil, err
	}
	return s.onRun(ctx, &in.RunPath,
		func(p *action.Operator, ctx context.Context, r store.Run) error { return p.Redirect(ctx, r, to) })
}

// StartWish is which procedure or workflow is to be started, and how.
type StartWish struct {
	Procedure string   `json:"procedure,omitempty" maxLength:"200" doc:"Its name, as in GET /procedures."`
	Workflow  string   `json:"workflow,omitempty" maxLength:"500" doc:"Instead: the file of a workflow, as in GET /workflows; context has its inputs, each NAME=VALUE."`
	Goal      string   `json:"goal,omitempty" maxLength:"20000" doc:"Instead: an agent proposes tasks for it, as 'pawl plan GOAL'; see GET /proposal."`
	Fresh     bool     `json:"fresh,omitempty" doc:"Start anew although an earlier run could be resumed."`
	Context   []string `json:"context,omitempty" maxItems:"20" doc:"As --context: each is a text for the prompt, or a file whose text it is."`
	Agent     string   `json:"agent,omitempty" maxLength:"200" doc:"As --agent: one of those that GET /overview names, or another one; as configured when left out."`
	Safety    string   `json:"safety,omitempty" enum:"permissive,normal,paranoid" doc:"As --safety; as configured when left out."`
	Raise
}

func (s actionHandlers) startRun(ctx context.Context, in *struct {
	Body StartWish
}) (*body[Done], error) {
	return s.doAction(ctx, func(p *action.Operator) (run string, err error) {
		what, name, err := s.resolveStart(in.Body)
		if err != nil {
			return "", err
		}
		wish := in.Body
		verb := "run"
		if wish.Goal != "" {
			verb, wish.Fresh = "plan", false // it always begins anew
		}
		wish.Procedure, wish.Workflow, wish.Goal = "", "", ""
		run, err = s.o.Launch(ctx, slices.Concat([]string{verb}, flagsOf(wish), []string{"--", what}),
			s.findOwned(ctx, func(r store.Run) bool { return r.Name == name }))
		p.Say("Run %s of %s has started.", run, name)
		return run, err
	})
}

// resolveStart returns the argument for 'pawl run', and the name that the run will have.
func (s actionHandlers) resolveStart(wish StartWish) (what, name string, err error) {
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

// Raise are new limits for a run that resumes or starts; "" leaves them. They
// are written as the flags of the same names are.
type Raise struct {
	MaxIterations string `json:"max_iterations,omitempty" maxLength:"20" doc:"As --max-iterations: the highest number that an iteration may have; 0 is unlimited for procedures."`
	MaxCost       string `json:"max_cost,omitempty" maxLength:"20" doc:"As --max-cost: US dollars of the whole run, e.g. 5 or 2.50."`
	Timeout       string `json:"timeout,omitempty" maxLength:"20" doc:"As --timeout: wall clock with its unit, e.g. 90m."`
}

func (s actionHandlers) resumeRun(ctx context.Context, in *struct {
	RunPath
	Body Raise
}) (*body[Done], error) {
	return s.onRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		return s.raiseAndResume(ctx, p, r, in.Body)
	})
}

// raiseAndResume lets a run go on, with higher limits if they are given: where it is
// driven, or in the background.
func (s actionHandlers) raiseAndResume(ctx context.Context, p *action.Operator, r store.Run, raise Raise) error {
	f := planner.Flags{Max: raise.MaxIterations, MaxCost: raise.MaxCost, Timeout: raise.Timeout}
	if done, err := p.ResumeElsewhere(ctx, r, f); done || err != nil {
		return err
	}
	if engine.Alive(r.Owner) {
		return fault.Refuse("run %s is running already: %v", r.ID, r.Owner)
	}
	_, err := s.o.Launch(ctx, append([]string{"resume", r.ID}, flagsOf(raise)...),
		s.findOwned(ctx, func(now store.Run) bool { return now.ID == r.ID }))
	p.Say("Run %s of %s goes on.", r.ID, r.Name)
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

// flagNames are the flags whose names are not those of the API's fields.
var flagNames = map[string]string{"operations": "op", "tags": "tag", "exclude_tags": "exclude-tag"}

// flagsOf makes flags of a request of the API: each field that is set is the
// flag of its name.
func flagsOf(wish any) []string {
	var fields map[string]any
	data, err := json.Marshal(wish)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil { // requests always encode
		panic(err)
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		flag := cmp.Or(flagNames[name], strings.ReplaceAll(name, "_", "-"))
		values, isList := fields[name].([]any)
		if !isList {
			values = []any{fields[name]}
		}
		for _, v := range values {
			if v != "" {
				args = append(args, fmt.Sprintf("--%s=%v", flag, v))
			}
		}
	}
	return args
}

// Reply is an answer to a question.
type Reply struct {
	Choice int    `json:"choice,omitempty" minimum:"0" maximum:"100" doc:"The number of an option; 0 for words alone."`
	Text   string `json:"text,omitempty" maxLength:"20000" doc:"Words, for the next prompt."`
	Step   string `json:"step,omitempty" maxLength:"1000" doc:"The step of a workflow that is answered; needed where several ask."`
	Resume *bool  `json:"resume,omitempty" doc:"Go on with the run at once; true when left out."`
	Raise
}

func (s actionHandlers) answerRun(ctx context.Context, in *struct {
	RunPath
	Body Reply
}) (*body[Done], error) {
	return s.replyToRun(ctx, &in.RunPath, in.Body)
}

// replyToRun stores the answer, and resumes the run if the answer asks for more work.
func (s actionHandlers) replyToRun(ctx context.Context, in *RunPath, a Reply) (*body[Done], error) {
	if a.Choice == 0 && strings.TrimSpace(a.Text) == "" {
		return nil, problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"An answer needs the number of an option, or words").
			suggest("See what is asked: GET /api/v1/runs/" + in.Run)
	}
	return s.onRun(ctx, in, func(p *action.Operator, ctx context.Context, r store.Run) error {
		goesOn, err := p.Answer(ctx, r, a.Step, action.Words(a.Choice, a.Text))
		rests := a.Resume != nil && !*a.Resume
		if err != nil || !goesOn || rests {
			return err
		}
		if err := s.raiseAndResume(ctx, p, r, a.Raise); err != nil { // the answer is kept, so the error must be shown
			p.Say("The run does not go on yet: %v", action.Explain(err))
		}
		return nil
	})
}

func (s actionHandlers) reviewRun(ctx context.Context, in *struct {
	RunPath
	Body struct {
		Decision string `json:"decision" enum:"approve,reject"`
		Text     string `json:"text,omitempty" maxLength:"20000" doc:"What must change; needed to reject."`
	}
}) (*body[Done], error) {
	words := "approve"
	if in.Body.Decision == "reject" {
		if strings.TrimSpace(in.Body.Text) == "" {
			return nil, problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
				"Work that is sent back needs words").suggest("Say in text what must change: the next iteration is told")
		}
		words = "reject: " + in.Body.Text
	}
	return s.replyToRun(ctx, &in.RunPath, Reply{Text: words})
}

func (s actionHandlers) messageRun(ctx context.Context, in *struct {
	RunPath
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"20000"`
	}
}) (*body[Done], error) {
	if strings.TrimSpace(in.Body.Text) == "" {
		return nil, problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"The message is empty").suggest("Write in text what the agent is to know")
	}
	return s.onRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		return p.Message(ctx, r, in.Body.Text, "web")
	})
}

// checkRollback returns an error if the task cannot be rolled back, or if the run is not
// the task's last.
func (s actionHandlers) checkRollback(ctx context.Context, r store.Run) error {
	last, err := s.o.Store.Latest(ctx, r.Root, r.Name)
	if err != nil {
		return err
	}
	if last.ID != r.ID {
		return fault.Refuse("run %s has worked on %s since", last.ID, r.Name).Hint("Roll that run back, or the task")
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

// bothWays is a rollback that is to go to a place and to be undone.
func bothWays() *ProblemError {
	return problem(http.StatusUnprocessableEntity, "INVALID_REQUEST", "to and undo exclude each other").
		suggest("Send to for going back to an iteration, or undo for taking the last rollback back")
}

// maxForeseen is how many files a rollback is foreseen to put back by name.
const maxForeseen = 1000

// Foreseen is what a rollback would do with the files as they are now.
type Foreseen struct {
	Where    string   `json:"where" doc:"Where it goes to, in words."`
	Restored []string `json:"restored" nullable:"false" doc:"Files that are put back; the first thousand."`
	Removed  []string `json:"removed" nullable:"false" doc:"Files that go; the first thousand."`
	Files    int      `json:"files" doc:"How many files change in all."`
	Notes    []string `json:"notes" nullable:"false" doc:"What is left alone, and why."`
}

func (s actionHandlers) foreseeRollback(ctx context.Context, in *struct {
	RunPath
	To int `query:"to" minimum:"-1" maximum:"1000000" default:"-1" doc:"The iteration whose snapshot it goes back to; 0 is before the run, -1 the one before the last."`
}) (*body[Foreseen], error) {
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
	names := func(all []string) []string { return lists.Each(all[:min(len(all), maxForeseen)], validUTF8) }
	notes := lists.Each(back.Left[:min(len(back.Left), maxForeseen)], func(c workspace.Conflict) string {
		return c.Path + " stays as it is: " + c.Why
	})
	if back.WhyNot != "" {
		notes = append(notes, "the branch is not moved: "+back.WhyNot)
	}
	return answer(Foreseen{Where: back.Where, Restored: names(back.Written), Removed: names(back.Removed),
		Files: len(back.Written) + len(back.Removed), Notes: nonNil(notes)}), nil
}

func (s actionHandlers) rollbackRun(ctx context.Context, in *struct {
	RunPath
	Body struct {
		To   *int `json:"to,omitempty" minimum:"0" maximum:"1000000" doc:"The iteration whose snapshot to go back to; 0 is before the run; left out: the one before the last."`
		Undo bool `json:"undo,omitempty" doc:"Instead: get back what was there before the last rollback."`
	}
}) (*body[Done], error) {
	to := action.BackTo{N: -1, Undo: in.Body.Undo}
	if in.Body.To != nil {
		to.N = *in.Body.To
	}
	if to.Undo && to.N >= 0 {
		return nil, bothWays()
	}
	return s.onRun(ctx, &in.RunPath, func(p *action.Operator, ctx context.Context, r store.Run) error {
		if r.Kind == string(loop.Task) {
			return s.rollbackTaskRun(ctx, p, r, to)
		}
		return p.Rollback(ctx, r, to)
	})
}
