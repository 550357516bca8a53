// Package rest has what the operations of the API are made of: how they are registered
// and described, the parts of addresses that several of them have, and the one form in
// which all of them say what went wrong and what to do next.
package rest

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawl-dev/pawl/internal/decide/board"
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
			"%q is no id of a task: they look like task-042 or op-007", p.ID).
			Suggest("List the board: GET /api/v1/cases")}
	}
	p.ID = board.Normal(p.ID)
	return nil
}

// Nothing is what a request without parameters has.
type Nothing struct{}
