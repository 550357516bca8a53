package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

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
		p := Problem(status, codeOf(status), "%s", sentence(message))
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
	return Problem(http.StatusRequestEntityTooLarge, "TOO_LARGE",
		"The request is larger than the %d MiB that are taken at once; nothing of it was done", limit>>20).
		Suggest("Send less at once: a shorter text, or a list in several parts",
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
			err).Suggest("Try again in a few seconds: another pawl writes to the database just now")
	case errors.Is(err, store.ErrUnwritable), errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrGone),
		errors.Is(err, store.ErrNewer):
		p := Problem(http.StatusInternalServerError, "DATABASE", "%v",
			err).Suggest("'pawl doctor' says what is wrong with the state folder")
		p.Body.Severity, p.Body.Recoverable = Critical, false
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Problem(http.StatusServiceUnavailable, "CANCELLED", "The request was given up: %v", err).Suggest("Try again")
	}
	return InternalProblem(err)
}

// InternalProblem returns a fault of the server's own, or of the machine that it runs on.
func InternalProblem(err error) *ProblemError {
	return Problem(http.StatusInternalServerError, "INTERNAL", "The server could not do it: %v", err).
		Suggest("Try again; if it stays so, 'pawl doctor' says whether the machine is to blame")
}

// ExplainCase makes a problem of what the board refuses; nil for another error.
func ExplainCase(err error) *ProblemError {
	var problems *board.ProblemsError
	var cycle *board.CycleError
	switch {
	case errors.As(err, &problems):
		p := Problem(http.StatusUnprocessableEntity, "INVALID_CASE", "Nothing was stored: %s", problems.Problems[0].String()).
			Suggest("Change it and send it again: all that is sent is stored, or nothing")
		p.Body.Details = strings.Split(problems.Error(), "\n")[1:]
		return p
	case errors.As(err, &cycle):
		return Problem(http.StatusUnprocessableEntity, "CYCLE", "Nothing was stored: %v",
			cycle).Suggest("Leave one of these needs out")
	case errors.Is(err, store.ErrNoCase):
		return Problem(http.StatusNotFound, "CASE_NOT_FOUND",
			"There is no such task").Suggest("List the board: GET /api/v1/cases")
	}
	return nil
}
