// Package rest has what the operations of the API are made of: how they are registered
// and described, the parts of addresses that several of them have, and the one form in
// which all of them say what went wrong and what to do next.
package rest

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

// Base is where the API begins.
const Base = "/api/v1"

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

// NewAPI makes an API that takes JSON, and answers in our form what is wrong with it.
func NewAPI(mux *http.ServeMux) huma.API {
	c := huma.DefaultConfig("pawl", "v1")
	c.Info.Description = "Runs, iterations, tasks and statistics of pawl in one repository, " +
		"and what a person can do about them. Every request needs the session's token: Authorization: Bearer TOKEN. " +
		"Fields are added, never renamed; a client ignores fields that it does not know."
	c.CreateHooks = nil // no $schema in answers
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", ""
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"bearer": {Type: "http", Scheme: "bearer", Description: "The session's token, from 'pawl serve --url'"},
	}
	c.Security = []map[string][]string{{"bearer": {}}}
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: readBody}
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	return humago.New(mux, c)
}

// Group are operations that are about the same.
type Group struct {
	api huma.API
	tag string
}

// Tagged returns the group of a tag.
func Tagged(api huma.API, tag string) Group { return Group{api, tag} }

// Get registers what is read.
func Get[I, O any](g Group, path, id, summary string, do func(context.Context, *I) (*O, error)) {
	registerRoute(g, http.MethodGet, path, id, summary, do)
}

// Post registers what is done.
func Post[I, O any](g Group, path, id, summary string, do func(context.Context, *I) (*O, error)) {
	registerRoute(g, http.MethodPost, path, id, summary, do)
}

// Patch registers what changes a thing in part.
func Patch[I, O any](g Group, path, id, summary string, do func(context.Context, *I) (*O, error)) {
	registerRoute(g, http.MethodPatch, path, id, summary, do)
}

// Delete registers what takes a thing away.
func Delete[I, O any](g Group, path, id, summary string, do func(context.Context, *I) (*O, error)) {
	registerRoute(g, http.MethodDelete, path, id, summary, do)
}

func registerRoute[I, O any](g Group, method, path, id, summary string,
	do func(context.Context, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: id, Method: method, Path: Base + path, Summary: summary, Tags: []string{g.tag},
		DefaultStatus: http.StatusOK,
		MaxBodyBytes:  -1, // the guard has set a limit
	}
	huma.Register(g.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		return out, ExplainError(err)
	})
}

// Body is an answer that is a document.
type Body[T any] struct{ Body T }

// Answer answers with a document.
func Answer[T any](v T) *Body[T] { return &Body[T]{Body: v} }

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

// CasePath names a case in an address.
type CasePath struct {
	ID string `path:"id" maxLength:"40" pattern:"^[0-9A-Za-z-]+$" doc:"task-042, op-005, or 42 for task-042."`
}

// Resolve is called for each request: it writes out a shortened id.
func (p *CasePath) Resolve(huma.Context) []error {
	if _, _, ok := board.ParseID(p.ID); !ok {
		return []error{Problem(http.StatusNotFound, "CASE_NOT_FOUND",
			"%q is not the id of a task: ids look like task-042 or op-007", p.ID).
			Suggest("List the board: GET /api/v1/cases")}
	}
	p.ID = board.Normal(p.ID)
	return nil
}

// Nothing is what a request without parameters has.
type Nothing struct{}

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

// Problem makes one; what it says is for a person.
func Problem(status int, code, format string, args ...any) *ProblemError {
	severity, recoverable := Medium, true
	if status >= http.StatusInternalServerError {
		severity = High
	}
	return &ProblemError{status: status, Body: Details{
		Code: code, Message: fmt.Sprintf(format,
			args...), Details: []string{}, Severity: severity, Recoverable: recoverable, Suggestions: []string{},
	}}
}

// Suggest adds what to do next.
func (p *ProblemError) Suggest(texts ...string) *ProblemError {
	p.Body.Suggestions = append(p.Body.Suggestions, texts...)
	return p
}

// Detail adds what exactly is wrong.
func (p *ProblemError) Detail(texts ...string) *ProblemError {
	p.Body.Details = append(p.Body.Details, texts...)
	return p
}

// WriteTo sends the problem outside of the API's own machinery.
func (p *ProblemError) WriteTo(w http.ResponseWriter) {
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
		p := Problem(status, codeOfStatus(status), "%s", asSentence(message))
		for _, err := range errs {
			var known *ProblemError
			var large *http.MaxBytesError
			switch {
			case errors.As(err, &known):
				return known
			case errors.As(err, &large):
				return requestTooLarge(large.Limit)
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

// requestTooLarge is a request of more than so many bytes.
func requestTooLarge(limit int64) *ProblemError {
	return Problem(http.StatusRequestEntityTooLarge, "TOO_LARGE",
		"The request is larger than %d MiB; nothing was done", limit>>20).
		Suggest("Send less: a shorter text, or a list in several parts",
			"Read a long list from a file: pawl case add -f FILE")
}

// codeOfStatus names a status for which there is no better name.
func codeOfStatus(status int) string {
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

func asSentence(message string) string {
	if message == "validation failed" {
		return "The request does not have the form that this address expects"
	}
	return message
}

// ExplainError makes a problem of an error of the rooms below.
func ExplainError(err error) error {
	if err == nil {
		return nil
	}
	if p := ExplainCase(err); p != nil {
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
		p := Problem(http.StatusConflict, "REFUSED", "%v", refused)
		for _, hint := range refused.Hints { // set in columns for a terminal
			p = p.Suggest(strings.Join(strings.Fields(hint), " "))
		}
		return p
	case errors.As(err, &ambiguous):
		return Problem(http.StatusNotFound, "RUN_AMBIGUOUS", "%v", ambiguous).Suggest("Give more characters of the id")
	case errors.Is(err, store.ErrNotFound):
		return Problem(http.StatusNotFound, "RUN_NOT_FOUND",
			"There is no such run").Suggest("List the runs: GET /api/v1/runs")
	case errors.Is(err, store.ErrBusy):
		return Problem(http.StatusServiceUnavailable, "BUSY", "%v",
			err).Suggest("Try again in a few seconds: another pawl process is writing to the database")
	case errors.Is(err, store.ErrUnwritable), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrGone),
		errors.Is(err, store.ErrNewer):
		p := Problem(http.StatusInternalServerError, "DATABASE", "%v",
			err).Suggest("'pawl doctor' says what is wrong with the state folder")
		p.Body.Severity, p.Body.Recoverable = Critical, false
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Problem(http.StatusServiceUnavailable, "CANCELLED", "The request ended: %v", err).Suggest("Try again")
	}
	return InternalProblem(err)
}

// InternalProblem returns a fault of the server's own, or of the machine that it runs on.
func InternalProblem(err error) *ProblemError {
	return Problem(http.StatusInternalServerError, "INTERNAL", "The server could not do it: %v", err).
		Suggest("Try again; if it fails again, 'pawl doctor' checks the machine")
}

// ExplainCase makes a problem of what the board refuses; nil for another error.
func ExplainCase(err error) *ProblemError {
	var problems *board.ProblemsError
	var cycle *board.CycleError
	switch {
	case errors.As(err, &problems):
		p := Problem(http.StatusUnprocessableEntity, "INVALID_CASE", "Nothing was stored: %s",
			problems.Problems[0].String()).
			Suggest("Change it and send it again: either everything is stored, or nothing")
		p.Body.Details = strings.Split(problems.Error(), "\n")[1:]
		return p
	case errors.As(err, &cycle):
		return Problem(http.StatusUnprocessableEntity, "CYCLE", "Nothing was stored: %v",
			cycle).Suggest("Remove one of these needs")
	case errors.Is(err, store.ErrNoCase):
		return Problem(http.StatusNotFound, "CASE_NOT_FOUND",
			"There is no such task").Suggest("List the board: GET /api/v1/cases")
	}
	return nil
}
