package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// fetch is a program of the scripts: it asks the server that 'pawl serve' runs
// for this repository, as a script of a person would.
//
//	fetch [-stranger] METHOD PATH [BODY]
//
// PATH is below /api/v1, or anywhere after a second slash; LAST in it is the id
// of the run that was started last. The body of the
// answer goes to stdout, its status to stderr; it fails from 400 on.
func fetch() {
	if err := fetching(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func fetching(args []string) error {
	stranger := len(args) > 0 && args[0] == "-stranger"
	if stranger {
		args = args[1:]
	}
	if len(args) < 2 || len(args) > 3 {
		return fmt.Errorf("usage: fetch [-stranger] METHOD PATH [BODY]")
	}
	out, err := exec.Command("pawl", "serve", "--url", "--json").Output()
	if err != nil {
		return fmt.Errorf("no server: %v", err)
	}
	var server struct{ Address, Token string }
	if err := json.Unmarshal(out, &server); err != nil {
		return err
	}
	path, found := strings.CutPrefix(args[1], "//")
	if path = "/" + path; !found {
		path = "/api/v1" + args[1]
	}
	if stranger {
		server.Token = ""
	}
	if strings.Contains(path, "LAST") {
		res, err := request(server.Token, http.MethodGet, server.Address+"/api/v1/runs?limit=1", "")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var page struct{ Runs []struct{ Run string } }
		if err := json.NewDecoder(res.Body).Decode(&page); err != nil || len(page.Runs) == 0 {
			return fmt.Errorf("there is no run: %v", err)
		}
		path = strings.ReplaceAll(path, "LAST", page.Runs[0].Run)
	}
	res, err := request(server.Token, args[0], server.Address+path, strings.Join(args[2:], ""))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(os.Stdout, res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return errors.New(res.Status)
	}
	fmt.Fprintln(os.Stderr, res.Status)
	return nil
}

func request(token, method, address, body string) (*http.Response, error) {
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(req)
}
