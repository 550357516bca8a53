package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/board"
)

// Done is what came of a wish.
type Done struct {
	Message string   `json:"message" doc:"What was done, in a sentence or two."`
	Lines   []string `json:"lines" nullable:"false" doc:"The same, line by line, as the command line says it."`
	Run     *Run     `json:"run,omitempty" doc:"The run after it."`
}

func (s *Server) actionRoutes(api huma.API) {
	post(api, "/runs", "start-run", "deeds", "Start a procedure", s.startRun)
	post(api, "/runs/{run}/pause", "pause-run", "deeds", "Pause a run at the end of its iteration", s.pauseRun)
	post(api, "/runs/{run}/stop", "stop-run", "deeds", "Stop a run now; its agent is ended, its work is kept", s.stopRun)
	post(api, "/runs/{run}/redirect", "redirect-run", "deeds",
		"Give the slot of a task at work to another task: both or neither; its agent is ended, its work is kept", s.redirectRun)
	post(api, "/runs/{run}/resume", "resume-run", "deeds",
		"Go on with a run, with higher limits if wanted; limits alone change for one that works", s.resumeRun)
	post(api, "/runs/{run}/answer", "answer-run", "deeds", "Answer a run's question, and go on", s.answerRun)
	post(api, "/runs/{run}/review", "review-run", "deeds", "Decide about work that waits for a person's review",
		s.reviewRun)
	post(api, "/runs/{run}/message", "message-run", "deeds", "Tell the agent something; it goes into the next prompt",
		s.messageRun)
	post(api, "/runs/{run}/rollback", "rollback-run", "deeds",
		"Put the files back to the snapshot after an iteration; itself undoable", s.rollbackRun)
	post(api, "/runs/{run}/apply", "apply-run", "deeds", "Bring the result of a run that worked on a copy into the files",
		s.applyRun)
}

// done makes the answer to an action that was carried out.
func (s *Server) done(ctx context.Context, run string, said Result, err error) (*body[Done], error) {
	if err != nil {
		return nil, err
	}
	out := Done{Message: strings.Join(said.Lines, " "), Lines: list(said.Lines)}
	if run == "" {
		return answer(out), nil
	}
	if r, err := s.o.Store.Run(ctx, run); err == nil {
		v := s.view(ctx, r)
		out.Run = &v
	}
	return answer(out), nil
}

// onRun does something with a run that exists.
func (s *Server) onRun(ctx context.Context, in *RunPath,
	do func(context.Context, string) (Result, error)) (*body[Done], error) {
	r, err := s.o.Store.Run(ctx, in.Run)
	if err != nil {
		return nil, err
	}
	said, err := do(ctx, r.ID)
	return s.done(ctx, r.ID, said, err)
}

func (s *Server) pauseRun(ctx context.Context, in *RunPath) (*body[Done], error) {
	return s.onRun(ctx, in, s.o.Actions.Pause)
}

func (s *Server) stopRun(ctx context.Context, in *RunPath) (*body[Done], error) {
	return s.onRun(ctx, in, s.o.Actions.Stop)
}

func (s *Server) redirectRun(ctx context.Context, in *struct {
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
		func(ctx context.Context, run string) (Result, error) { return s.o.Actions.Redirect(ctx, run, to) })
}

func (s *Server) applyRun(ctx context.Context, in *RunPath) (*body[Done], error) {
	return s.onRun(ctx, in, s.o.Actions.Apply)
}

func (s *Server) startRun(ctx context.Context, in *struct {
	Body StartWish
}) (*body[Done], error) {
	run, said, err := s.o.Actions.Start(ctx, in.Body)
	return s.done(ctx, run, said, err)
}

func (s *Server) resumeRun(ctx context.Context, in *struct {
	RunPath
	Body Raise
}) (*body[Done], error) {
	return s.onRun(ctx, &in.RunPath,
		func(ctx context.Context, run string) (Result, error) { return s.o.Actions.Resume(ctx, run, in.Body) })
}

// Reply is an answer to a question.
type Reply struct {
	Choice int    `json:"choice,omitempty" minimum:"0" maximum:"100" doc:"The number of an option; 0 for words alone."`
	Text   string `json:"text,omitempty" maxLength:"20000" doc:"Words, for the next prompt."`
	Step   string `json:"step,omitempty" maxLength:"1000" doc:"The step of a workflow that is answered; needed where several ask."`
	Resume *bool  `json:"resume,omitempty" doc:"Go on with the run at once; true when left out."`
	Raise
}

func (s *Server) answerRun(ctx context.Context, in *struct {
	RunPath
	Body Reply
}) (*body[Done], error) {
	return s.onRun(ctx, &in.RunPath,
		func(ctx context.Context, run string) (Result, error) { return s.reply(ctx, run, in.Body) })
}

// reply answers, and goes on where the answer asks for work.
func (s *Server) reply(ctx context.Context, run string, a Reply) (Result, error) {
	if a.Choice == 0 && strings.TrimSpace(a.Text) == "" {
		return Result{}, problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"An answer needs the number of an option, or words").
			suggest("See what is asked: GET /api/v1/runs/" + run)
	}
	said, goesOn, err := s.o.Actions.Answer(ctx, run, a.Step, a.Choice, a.Text)
	if err != nil || !goesOn || a.Resume != nil && !*a.Resume {
		return said, err
	}
	more, err := s.o.Actions.Resume(ctx, run, a.Raise)
	if err != nil { // the answer is kept: whoever asks must know
		said.Lines = append(said.Lines, fmt.Sprintf("The run does not go on yet: %v", err))
		return said, nil
	}
	return Result{Lines: append(said.Lines, more.Lines...)}, nil
}

func (s *Server) reviewRun(ctx context.Context, in *struct {
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
	return s.onRun(ctx, &in.RunPath,
		func(ctx context.Context, run string) (Result, error) { return s.reply(ctx, run, Reply{Text: words}) })
}

func (s *Server) messageRun(ctx context.Context, in *struct {
	RunPath
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"20000"`
	}
}) (*body[Done], error) {
	if strings.TrimSpace(in.Body.Text) == "" {
		return nil, problem(http.StatusUnprocessableEntity, "INVALID_REQUEST",
			"The message is empty").suggest("Write in text what the agent is to know")
	}
	return s.onRun(ctx, &in.RunPath, func(ctx context.Context, run string) (Result, error) {
		return s.o.Actions.Message(ctx, run, in.Body.Text)
	})
}

// bothWays is a rollback that is to go to a place and to be undone.
func bothWays() *ProblemError {
	return problem(http.StatusUnprocessableEntity, "INVALID_REQUEST", "to and undo exclude each other").
		suggest("Send to for going back to an iteration, or undo for taking the last rollback back")
}

func (s *Server) rollbackRun(ctx context.Context, in *struct {
	RunPath
	Body struct {
		To   *int `json:"to,omitempty" minimum:"0" maximum:"1000000" doc:"The iteration whose snapshot to go back to; 0 is before the run; left out: the one before the last."`
		Undo bool `json:"undo,omitempty" doc:"Instead: get back what was there before the last rollback."`
	}
}) (*body[Done], error) {
	to := -1
	if in.Body.To != nil {
		to = *in.Body.To
	}
	if in.Body.Undo && to >= 0 {
		return nil, bothWays()
	}
	return s.onRun(ctx, &in.RunPath, func(ctx context.Context, run string) (Result, error) {
		return s.o.Actions.Rollback(ctx, run, to, in.Body.Undo)
	})
}
