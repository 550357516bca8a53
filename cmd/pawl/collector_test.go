package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// collect starts a server on loopback that appends the body of every request,
// with its path, to a file, and sets the variable to its address.
func collect(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: collect VARIABLE FILE")
	}
	path := filepath.Join(ts.Getenv("WORK"), args[1])
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s ", r.URL.Path)
		}
		if err == nil {
			_, err = io.Copy(f, r.Body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = f.WriteString("\n")
		_ = f.Close()
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}
