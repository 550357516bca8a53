package web

import (
	"github.com/pawl-dev/pawl/internal/ask/web/rest"

	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// registerRoutes registers everything that can be asked under /api/v1, which is also
// what the OpenAPI description is made of.
func (s *Server) registerRoutes(mux *http.ServeMux) huma.API {
	api := rest.NewAPI(mux)
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
	mux.HandleFunc("GET "+rest.Base+"/openapi.json", s.serveDescription)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		rest.Problem(http.StatusNotFound, "NO_SUCH_ADDRESS", "There is nothing at %s %s", r.Method, fault.Cut(r.URL.Path, 200)).
			Suggest("See what there is: GET " + rest.Base + "/openapi.json").WriteTo(w)
	})
	return api
}

// serveDescription answers with the OpenAPI description.
func (s *Server) serveDescription(w http.ResponseWriter, _ *http.Request) {
	data, err := s.Description()
	if err != nil {
		rest.InternalProblem(err).WriteTo(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who asked is gone
}

// Description is the OpenAPI 3.1 description of the API, as JSON.
func (s *Server) Description() ([]byte, error) { return s.api.OpenAPI().MarshalJSON() }
