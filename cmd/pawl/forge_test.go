package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl/internal/test/forgetest"
)

// atForge starts a GitHub of one repository, olga/project, on loopback, and sets
// FORGE to its address, FORGE_REMOTE to where is pushed to, FORGE_FORK to where the one
// who may look has a fork, and FORGE_TOKEN. With arguments it makes a call in a reviewer's name: METHOD PATH [BODY].
func atForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 1 {
		ts.Fatalf("usage: forge [METHOD PATH [BODY]]")
	}
	if len(args) > 1 {
		body := strings.NewReader(strings.Join(args[2:], " "))
		r, err := http.NewRequestWithContext(context.Background(), args[0], ts.Getenv("FORGE")+"/api/v3/repos/olga/project"+args[1], body)
		ts.Check(err)
		r.Header.Set("Authorization", "token "+forgetest.HubToken(forgetest.Reviewer))
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Do(r)
		ts.Check(err)
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			ts.Fatalf("%s: %s %v", res.Status, text, err)
		}
		_, err = ts.Stdout().Write(text)
		ts.Check(err)
		return
	}
	hub, err := forgetest.NewHub(ts.Getenv("HOME"))
	ts.Check(err)
	s := httptest.NewServer(hub)
	ts.Defer(s.Close)
	ts.Setenv("FORGE", s.URL)
	ts.Setenv("FORGE_REMOTE", hub.Bare)
	fork, err := hub.Fork(forgetest.Stranger)
	ts.Check(err)
	ts.Setenv("FORGE_FORK", fork)
	ts.Setenv("FORGE_TOKEN", forgetest.HubToken(forgetest.Owner))
}
