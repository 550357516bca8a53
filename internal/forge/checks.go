package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Check is what one job of the forge's CI says of a commit.
type Check struct {
	Name  string
	State CheckState
	Text  string // what it says about itself
	job   int64  // whose log can be read; 0 is none
}

// CheckState is how far a check is.
type CheckState string

// The states of a check.
const (
	Pending CheckState = "pending"
	Green   CheckState = "green"
	Red     CheckState = "red"
)

// stateOf reads the words of both kinds.
func stateOf(word string) CheckState {
	switch word {
	case "success", "neutral", "skipped", "warning":
		return Green
	case "failure", "error", "cancelled", "timed_out", "action_required", "stale", "startup_failure":
		return Red
	}
	return Pending
}

// Checks are the statuses and check runs of a commit, the newest of each name.
func (c *Client) Checks(ctx context.Context, commit string) ([]Check, error) {
	var all struct {
		Statuses []struct {
			Context     string `json:"context"`
			State       string `json:"state"`  // GitHub
			Status      string `json:"status"` // Gitea
			Description string `json:"description"`
			URL         string `json:"target_url"`
		} `json:"statuses"`
	}
	if err := c.get(ctx, c.repo("/commits/%s/status?%s=100", commit, c.sizeWord()), &all); err != nil {
		return nil, err
	}
	var checks []Check
	for _, s := range all.Statuses {
		state := stateOf(s.State + s.Status)
		checks = append(checks, Check{Name: s.Context, State: state, Text: strings.TrimSpace(s.Description + " " + s.URL)})
	}
	if c.gitea() {
		return checks, nil
	}
	for page := 1; page <= pageLimit; page++ {
		more, err := c.runs(ctx, commit, page)
		if err != nil {
			return nil, err
		}
		if checks = append(checks, more...); len(more) < runsPage {
			break
		}
	}
	return checks, nil
}

// runsPage is how many check runs a page has: GitHub gives no more.
const runsPage = 100

// runs is one page of GitHub's check runs.
func (c *Client) runs(ctx context.Context, commit string, page int) ([]Check, error) {
	var runs struct {
		Runs []struct {
			ID         int64  `json:"id"`
			Name       string `json:"name"`
			Status     string `json:"status"`
			Conclusion string `json:"conclusion"`
			URL        string `json:"html_url"`
			App        struct {
				Slug string `json:"slug"`
			} `json:"app"`
		} `json:"check_runs"`
	}
	if err := c.get(ctx, c.repo("/commits/%s/check-runs?per_page=%d&page=%d", commit, runsPage, page), &runs); err != nil {
		return nil, err
	}
	var checks []Check
	for _, r := range runs.Runs {
		k := Check{Name: r.Name, State: Pending, Text: r.URL}
		if r.Status == "completed" {
			k.State = stateOf(r.Conclusion)
		}
		if r.App.Slug == "github-actions" {
			k.job = r.ID
		}
		checks = append(checks, k)
	}
	return checks, nil
}

// logLines is how much of a log is read, from its end.
const logLines = 200

// Log is the end of what a check printed, or what it says about itself.
func (c *Client) Log(ctx context.Context, k Check) (string, error) {
	if k.job == 0 {
		return k.Text, nil
	}
	text, err := c.read(ctx, c.repo("/actions/jobs/%d/logs", k.job))
	if Is(err, http.StatusNotFound, http.StatusGone, http.StatusForbidden) {
		return k.Text, nil
	}
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(visible(text, true), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n"), nil
}

// read is a file that the forge may keep elsewhere. That place gets no token.
func (c *Client) read(ctx context.Context, path string) (string, error) {
	a, err := c.call(ctx, http.MethodGet, c.api()+path, nil)
	if err == nil || a.header == nil {
		return string(a.body), err
	}
	elsewhere, perr := url.Parse(a.header.Get("Location"))
	if perr != nil || elsewhere.Scheme != "https" {
		return "", err
	}
	away := New(Where{URL: "https://" + elsewhere.Host}, "")
	defer away.Close()
	if a, err = away.call(ctx, http.MethodGet, elsewhere.String(), nil); err != nil {
		return "", fmt.Errorf("cannot read a log: %w", err)
	}
	return string(a.body), nil
}
