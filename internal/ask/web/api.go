package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

const (
	base       = "/api/v1"
	importPath = base + "/cases/import"
)

// readBody reads the body of a request. No text of it may hold a NUL, which is
// possible in JSON, but not in an argument of a program, or in a file's name.
func readBody(data []byte, v any) error {
	for i := 0; i+6 <= len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if string(data[i:i+6]) == `\u0000` {
			return errors.New("a text has a NUL character")
		}
		i++ // what is escaped
	}
	return huma.DefaultJSONFormat.Unmarshal(data, v)
}

// registerRoutes registers everything that can be asked under /api/v1, which is also
// what the OpenAPI description is made of.
func (s *Server) registerRoutes(mux *http.ServeMux) huma.API {
	c := huma.DefaultConfig("pawl", "v1")
	c.Info.Description = "Runs, iterations, cases and statistics of pawl in one repository, " +
		"and what a person can do about them. " +
		"Every request needs the session's token: Authorization: Bearer TOKEN. " +
		"Fields are added, never renamed; a reader passes over fields that it does not know."
	c.CreateHooks = nil // no $schema in answers
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", ""
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "The session's token, from 'pawl serve --url'"},
	}
	c.Security = []map[string][]string{{"bearer": {}}}
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readBody}
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	api := humago.New(mux, c)
	runHandlers{s.core}.runRoutes(api)
	iterationHandlers{s.core}.iterationRoutes(api)
	runHandlers{s.core}.stepRoutes(api)
	diffHandlers{s.core}.diffRoutes(api)
	actionHandlers{s.core}.actionRoutes(api)
	caseHandlers{s.core}.caseRoutes(api)
	workspaceHandlers{s.core, s.shells, s.previews}.workspaceRoutes(api, mux)
	caseHandlers{s.core}.proposalRoutes(api)
	reviewHandlers{s.core}.reviewRoutes(api)
	queueHandlers{s.core}.queueRoutes(api)
	s.pilot.pilotRoutes(api)
	statHandlers{s.core}.statRoutes(api)
	placeHandlers{s.core}.placeRoutes(api)
	neighbourHandlers{s.core}.repositoryRoutes(api)
	s.streams.streamRoutes(api)
	iterationHandlers{s.core}.rawRoute(api)
	mux.HandleFunc("GET "+base+"/openapi.json", s.serveDescription)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is nothing at %s %s", r.Method, fault.Cut(r.URL.Path, 200)).
			suggest("See what there is: GET " + base + "/openapi.json").writeTo(w)
	})
	return api
}

// serveDescription answers with the OpenAPI description.
func (s *Server) serveDescription(w http.ResponseWriter, _ *http.Request) {
	data, err := s.Description()
	if err != nil {
		internalProblem(err).writeTo(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who asked is gone
}

// Description is the OpenAPI 3.1 description of the API, as JSON.
func (s *Server) Description() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }

// get registers what is read.
func get[I, O any](api huma.API, path, id, tag, summary string, do func(context.Context, *I) (*O, error)) {
	addRoute(api, huma.Operation{OperationID: id, Method: http.MethodGet, Path: base + path, Summary: summary,
		Tags: []string{tag}}, do)
}

// post registers what is done.
func post[I, O any](api huma.API, path, id, tag, summary string, do func(context.Context, *I) (*O, error)) {
	addRoute(api, huma.Operation{OperationID: id, Method: http.MethodPost, Path: base + path, Summary: summary,
		Tags: []string{tag}, DefaultStatus: http.StatusOK}, do)
}

func addRoute[I, O any](api huma.API, op huma.Operation, do func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = -1 // the guard has set a limit
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		return out, explainError(err)
	})
}

// body is an answer that is a document.
type body[T any] struct{ Body T }

func answer[T any](v T) *body[T] { return &body[T]{Body: v} }

// RunPath names a run in an address.
type RunPath struct {
	Run string `path:"run" maxLength:"64" pattern:"^[0-9A-Za-z][0-9A-Za-z_-]*$" doc:"The run's id, or the beginning of it that only its id has."`
}

// IterationPath names an iteration of a run.
type IterationPath struct {
	RunPath
	Number  int `path:"number" minimum:"0" maximum:"1000000" doc:"The iteration, from 1; 0 is the checks before the first one."`
	Attempt int `query:"attempt" minimum:"0" maximum:"1000000" doc:"Which attempt, from 1, where a provider's limit cut some off; 0 is the last."`
}

// Paging is how a list is read in pages.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The most entries of a page."`
	Cursor string `query:"cursor" maxLength:"64" pattern:"^[0-9]*(\\.[0-9]+)?$" doc:"The next_cursor of the page before."`
}

// Severity says how an error is to be shown.
type Severity string

// The severities.
const (
	Low      Severity = "low"      // a note
	Medium   Severity = "medium"   // a message that goes away
	High     Severity = "high"     // a message that stays
	Critical Severity = "critical" // nothing works until it is repaired
)

// ProblemError is every error that the API answers with.
type ProblemError struct {
	status int
	Body   Details `json:"error"`
}

// Details say what happened and what to do next.
type Details struct {
	Code        string   `json:"code" doc:"A name for programs, e.g. RUN_NOT_FOUND; names stay."`
	Message     string   `json:"message" doc:"What happened, in a sentence for a person."`
	Details     []string `json:"details" nullable:"false" doc:"What exactly, e.g. each field that is wrong."`
	Severity    Severity `json:"severity" enum:"low,medium,high,critical" doc:"How it is to be shown."`
	Recoverable bool     `json:"recoverable" doc:"Another request, or the same again later, may work."`
	Suggestions []string `json:"suggestions" nullable:"false" doc:"What to do next; some are commands to paste."`
}

// Error is the message.
func (p *ProblemError) Error() string { return p.Body.Message }

// GetStatus is the status of the response.
func (p *ProblemError) GetStatus() int { return p.status }

// problem makes one; what it says is for a person.
func problem(status int, code, format string, args ...any) *ProblemError {
	severity, recoverable := Medium, true
	if status >= http.StatusInternalServerError {
		severity = High
	}
	return &ProblemError{status: status, Body: Details{
		Code: code, Message: fmt.Sprintf(format,
			args...), Details: []string{}, Severity: severity, Recoverable: recoverable, Suggestions: []string{},
	}}
}

func (p *ProblemError) suggest(texts ...string) *ProblemError {
	p.Body.Suggestions = append(p.Body.Suggestions, texts...)
	return p
}

func (p *ProblemError) detail(texts ...string) *ProblemError {
	p.Body.Details = append(p.Body.Details, texts...)
	return p
}

// writeTo sends the problem outside of the API's own machinery.
func (p *ProblemError) writeTo(w http.ResponseWriter) {
	data, err := json.Marshal(p)
	if err != nil {
		data = []byte("{}") // texts always encode
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	_, _ = w.Write(append(data, '\n')) // who asked may be gone
}

// This variable makes the API library use our form for its own errors, too. Nothing else
// in pawl uses it.
func init() { //nolint:gochecknoinits // the library offers this variable and no other way
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		p := problem(status, codeOf(status), "%s", sentence(message))
		for _, err := range errs {
			var known *ProblemError
			var large *http.MaxBytesError
			switch {
			case errors.As(err, &known):
				return known
			case errors.As(err, &large):
				return tooLarge(large.Limit)
			}
			if err != nil {
				p.Body.Details = append(p.Body.Details, err.Error())
			}
		}
		if status < http.StatusInternalServerError {
			p.Body.Suggestions = append(p.Body.Suggestions, "See what the request takes in /api/v1/openapi.json")
		}
		return p
	}
}

// tooLarge is a request of more than so many bytes.
func tooLarge(limit int64) *ProblemError {
	return problem(http.StatusRequestEntityTooLarge, "TOO_LARGE",
		"The request is larger than the %d MiB that are taken at once; nothing of it was done", limit>>20).
		suggest("Send less at once: a shorter text, or a list in several parts",
			"A long list is taken from a file: pawl case add -f FILE")
}

// codeOf names a status for which there is no better name.
func codeOf(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return "INVALID_REQUEST"
	case http.StatusRequestEntityTooLarge:
		return "TOO_LARGE"
	case http.StatusInternalServerError:
		return "INTERNAL"
	}
	return strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_", "'", "").Replace(http.StatusText(status)))
}

func sentence(message string) string {
	if message == "validation failed" {
		return "The request is not what this address takes"
	}
	return message
}

// explainError makes a problem of an error of the rooms below.
func explainError(err error) error {
	if err == nil {
		return nil
	}
	if p := explainCase(err); p != nil {
		return p
	}
	err = action.Explain(err)
	var p *ProblemError
	var refused *fault.Error
	var ambiguous *store.AmbiguousError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refused) && refused.Kind == fault.Refused:
		p := problem(http.StatusConflict, "REFUSED", "%v", refused)
		for _, hint := range refused.Hints { // set in columns for a terminal
			p = p.suggest(strings.Join(strings.Fields(hint), " "))
		}
		return p
	case errors.As(err, &ambiguous):
		return problem(http.StatusNotFound, "RUN_AMBIGUOUS", "%v", ambiguous).suggest("Give more characters of the id")
	case errors.Is(err, store.ErrNotFound):
		return problem(http.StatusNotFound, "RUN_NOT_FOUND",
			"There is no such run").suggest("List the runs: GET /api/v1/runs")
	case errors.Is(err, store.ErrBusy):
		return problem(http.StatusServiceUnavailable, "BUSY", "%v",
			err).suggest("Try again in a few seconds: another pawl writes to the database just now")
	case errors.Is(err, store.ErrUnwritable), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrGone),
		errors.Is(err, store.ErrNewer):
		p := problem(http.StatusInternalServerError, "DATABASE", "%v",
			err).suggest("'pawl doctor' says what is wrong with the state folder")
		p.Body.Severity, p.Body.Recoverable = Critical, false
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem(http.StatusServiceUnavailable, "CANCELLED", "The request was given up: %v", err).suggest("Try again")
	}
	return internalProblem(err)
}

// internalProblem returns a fault of the server's own, or of the machine that it runs on.
func internalProblem(err error) *ProblemError {
	return problem(http.StatusInternalServerError, "INTERNAL", "The server could not do it: %v", err).
		suggest("Try again; if it stays so, 'pawl doctor' says whether the machine is to blame")
}

func explainCase(err error) *ProblemError {
	var problems *board.ProblemsError
	var cycle *board.CycleError
	switch {
	case errors.As(err, &problems):
		p := problem(http.StatusUnprocessableEntity, "INVALID_CASE", "Nothing was stored: %s", problems.Problems[0].String()).
			suggest("Change it and send it again: all that is sent is stored, or nothing")
		p.Body.Details = strings.Split(problems.Error(), "\n")[1:]
		return p
	case errors.As(err, &cycle):
		return problem(http.StatusUnprocessableEntity, "CYCLE", "Nothing was stored: %v",
			cycle).suggest("Leave one of these needs out")
	case errors.Is(err, store.ErrNoCase):
		return problem(http.StatusNotFound, "CASE_NOT_FOUND",
			"There is no such task").suggest("List the board: GET /api/v1/cases")
	}
	return nil
}
