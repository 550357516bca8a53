package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// flaky starts a server on loopback and sets the variable to its address: /down
// takes every request and never answers it, anything else answers at once.
func flaky(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flaky VARIABLE")
	}
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			select {
			case <-r.Context().Done():
			case <-stop:
			}
			return
		}
		_, _ = fmt.Fprintln(w, "answer to", r.URL.Path)
	}))
	ts.Defer(func() {
		close(stop)
		s.Close()
	})
	ts.Setenv(args[0], s.URL)
}
