package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// sources starts a server on loopback and sets the variable to its address.
// /primary never answers: who asks it gives up by itself. /mirror answers, and
// /count says how often each was asked.
func sources(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sources VARIABLE")
	}
	var mu sync.Mutex
	asked := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		count := fmt.Sprintf("primary %d, mirror %d\n", asked["/primary"], asked["/mirror"])
		mu.Unlock()
		switch r.URL.Path {
		case "/primary":
			<-r.Context().Done()
		case "/mirror":
			_, _ = io.WriteString(w, "CVE-2026-0001 CVE-2026-0002\n")
		case "/count":
			_, _ = io.WriteString(w, count)
		default:
			http.NotFound(w, r)
		}
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// download prints what is at an address, and gives up after a time: a step's curl
// that needs no curl.
func download() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: download DURATION URL")
		os.Exit(2)
	}
	limit, err := time.ParseDuration(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	client := http.Client{Timeout: limit}
	res, err := client.Get(os.Args[2])
	if err == nil {
		_, err = io.Copy(os.Stdout, res.Body)
		_ = res.Body.Close()
	}
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // without the port, which is another one each time
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "download %s: %v\n", path.Base(os.Args[2]), err)
		os.Exit(28)
	}
}
