package web

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

const (
	base       = "/api/v1"
	importPath = base + "/cases/import"
)

// decode reads the body of a request. No text of it may hold a NUL, which is
// possible in JSON, but not in an argument of a program, or in a file's name.
func decode(data []byte, v any) error {
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

// routes registers everything that can be asked under /api/v1, which is also
// what the OpenAPI description is made of.
func (s *Server) routes(mux *http.ServeMux) huma.API {
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
	c.Formats = map[string]huma.Format{"application/json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode},
		"json": {Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: decode}}
	api := humago.New(mux, c)
	s.runRoutes(api)
	s.iterationRoutes(api)
	s.stepRoutes(api)
	s.diffRoutes(api)
	s.actionRoutes(api)
	s.caseRoutes(api)
	s.workspaceRoutes(api, mux)
	s.proposalRoutes(api)
	s.reviewRoutes(api)
	s.queueRoutes(api)
	s.pilotRoutes(api)
	s.statRoutes(api)
	s.placeRoutes(api)
	s.repositoryRoutes(api)
	s.streamRoutes(api)
	mux.HandleFunc("GET "+base+"/openapi.json", s.describe)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is nothing at %s %s", r.Method, fault.Cut(r.URL.Path, 200)).
			suggest("See what there is: GET " + base + "/openapi.json").write(w)
	})
	return api
}

// describe answers with the OpenAPI description.
func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	data, err := s.Description()
	if err != nil {
		internal(err).write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who asked is gone
}

// Description is the OpenAPI 3.1 description of the API, as JSON.
func (s *Server) Description() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }

// get registers what is read.
func get[I, O any](api huma.API, path, id, tag, summary string, do func(context.Context, *I) (*O, error)) {
	register(api, huma.Operation{OperationID: id, Method: http.MethodGet, Path: base + path, Summary: summary,
		Tags: []string{tag}}, do)
}

// post registers what is done.
func post[I, O any](api huma.API, path, id, tag, summary string, do func(context.Context, *I) (*O, error)) {
	register(api, huma.Operation{OperationID: id, Method: http.MethodPost, Path: base + path, Summary: summary,
		Tags: []string{tag}, DefaultStatus: http.StatusOK}, do)
}

func register[I, O any](api huma.API, op huma.Operation, do func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = -1 // the guard has set a limit
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		return out, explain(err)
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
