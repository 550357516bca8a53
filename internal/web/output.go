package web

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// rawRoute serves whole files, which have no schema.
func (s *Server) rawRoute(api huma.API) {
	op := huma.Operation{
		OperationID: "get-iteration-file", Method: http.MethodGet,
		Path: base + "/runs/{run}/iterations/{number}/files/{file}/raw", Tags: []string{"iterations"},
		Summary: "A whole file, or ranges of it, as plain text to keep",
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "The file",
		Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	huma.Register(api, op, func(_ context.Context, in *struct {
		IterationPath
		File string `path:"file" maxLength:"40"`
	}) (*huma.StreamResponse, error) {
		return &huma.StreamResponse{Body: func(c huma.Context) { s.serveRaw(c, &in.IterationPath, in.File) }}, nil
	})
}
