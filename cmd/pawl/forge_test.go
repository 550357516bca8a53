package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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
		r.Header.Set("Authorization", "token "+forgetest.HubToken(cmp.Or(ts.Getenv("FORGE_AS"), forgetest.Reviewer)))
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

// gh is a program of the tutorial: as much of the GitHub CLI as its pages use.
func gh() {
	words, method, path := os.Args[1:], http.MethodPost, "/issues"
	var body map[string]any
	switch strings.Join(words[:min(2, len(words))], " ") {
	case "auth token":
		fmt.Println(os.Getenv("GH_USER"))
		os.Exit(0)
	case "issue create": // --title T --body B --label L
		body = map[string]any{"title": words[3], "body": words[5], "labels": []string{words[7]}}
	case "pr merge": // N --squash
		method, path, body = http.MethodPut, "/pulls/"+words[2]+"/merge", map[string]any{"merge_method": strings.TrimLeft(words[3], "-")}
	default:
		fmt.Fprintln(os.Stderr, "gh: unknown:", words)
		os.Exit(2)
	}
	data, err := json.Marshal(body)
	if err == nil {
		err = askGitHub(method, path, data)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func askGitHub(method, path string, body []byte) error {
	r, err := http.NewRequestWithContext(context.Background(), method, os.Getenv("GH_SITE")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "token "+os.Getenv("GH_USER"))
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode >= 300 {
		return fmt.Errorf("gh: %s %s: %s", method, path, res.Status)
	}
	return nil
}
