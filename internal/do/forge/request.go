package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// State is the state of a pull request.
type State string

// The states.
const (
	Opened State = "open"
	Closed State = "closed" // without being merged
	Merged State = "merged"
)

// Request is a pull request.
type Request struct {
	Number int64
	URL    string
	State  State
	Branch string // that it comes from
	Head   string // the commit there
	// Commit is what it was merged as: a merge, or the last of the commits that
	// a squash or a rebase made.
	Commit string
	// Updated changes with whatever is done or said at the request.
	Updated string
}

// Draft is a pull request that is to be opened.
type Draft struct {
	Branch string // "owner:branch" when it is in a fork
	Base   string // the branch it is for
	Title  string
	Body   string
}

// pull is a pull request in the words of both kinds.
type pull struct {
	Number int64      `json:"number"`
	URL    string     `json:"html_url"`
	State  string     `json:"state"`
	Merged *time.Time `json:"merged_at"`
	Update string     `json:"updated_at"`
	Commit string     `json:"merge_commit_sha"`
	Head   end        `json:"head"`
	Base   end        `json:"base"`
}

type end struct {
	Ref    string   `json:"ref"`
	Commit string   `json:"sha"`
	Repo   struct { // null when it is gone
		Name string `json:"full_name"`
	} `json:"repo"`
}

func (p *pull) asRequest() Request {
	r := Request{Number: p.Number, URL: p.URL, State: Opened, Updated: p.Update}
	r.Branch, r.Head = p.Head.Ref, p.Head.Commit
	switch {
	case p.Merged != nil:
		r.State, r.Commit = Merged, p.Commit
	case p.State == "closed":
		r.State = Closed
	}
	return r
}

// Request is one pull request.
func (c *Client) Request(ctx context.Context, number int64) (Request, error) {
	var p pull
	err := c.getDecoded(ctx, c.repoPath("/pulls/%d", number), &p)
	if err == nil && p.Number != number {
		err = c.laterError("it answers with another pull request than the one asked for")
	}
	return p.asRequest(), err
}

// Recent are the open pull requests that changed last, by number: one page of
// them, at the price of one call.
func (c *Client) Recent(ctx context.Context) (map[int64]Request, error) {
	sort := "sort=updated&direction=desc&per_page=" + pageSize
	if c.speaksGitea() {
		sort = "sort=recentupdate&limit=" + pageSize
	}
	var pulls []pull
	if err := c.getDecoded(ctx, c.repoPath("/pulls?state=open&%s", sort), &pulls); err != nil {
		return nil, err
	}
	recent := lists.ToMap(pulls, func(p pull) (int64, Request) { return p.Number, p.asRequest() })
	return recent, nil
}

// Find is the open pull request of a branch; found is false when there is none.
func (c *Client) Find(ctx context.Context, d Draft) (r Request, found bool, err error) {
	owner, branch := cutAtLast(d.Branch, ":")
	if owner == "" {
		owner, _, _ = strings.Cut(c.Repository, "/")
	}
	// Gitea knows neither head nor base here, and lists all.
	pulls, err := listAllPages[pull](ctx, c, c.repoPath("/pulls"),
		url.Values{"state": {"open"}, "head": {owner + ":" + branch}, "base": {d.Base}})
	if err != nil {
		return Request{}, false, err
	}
	for _, p := range pulls {
		from, _, _ := strings.Cut(p.Head.Repo.Name, "/")
		if strings.EqualFold(from, owner) && p.Head.Ref == branch && p.Base.Ref == d.Base {
			return p.asRequest(), true, nil
		}
	}
	return Request{}, false, nil
}

// Propose opens a pull request. One that is open for the branch already gets the
// new text instead, so it is safe to repeat.
func (c *Client) Propose(ctx context.Context, d Draft) (Request, error) {
	r, found, err := c.Find(ctx, d)
	if err != nil {
		return r, err
	}
	var p pull
	if found {
		text := map[string]string{"title": d.Title, "body": d.Body}
		err = c.sendJSON(ctx, http.MethodPatch, c.repoPath("/pulls/%d", r.Number), text, &p)
	} else {
		err = c.sendJSON(ctx, http.MethodPost, c.repoPath("/pulls"),
			map[string]string{"head": d.Branch, "base": d.Base, "title": d.Title, "body": d.Body}, &p)
	}
	if err != nil {
		return Request{}, fmt.Errorf("cannot open a pull request: %w", err)
	}
	return p.asRequest(), nil
}

// Merge merges a pull request whose head is a commit, by the first way that the
// repository allows. Why says what stands in its way: no approval, red
// checks, another head. It is empty when it was merged.
func (c *Client) Merge(ctx context.Context, number int64, head string) (why string, err error) {
	repo, err := c.About(ctx)
	if err != nil {
		return "", err
	}
	method, what := http.MethodPut, map[string]string{"merge_method": repo.Method, "sha": head}
	if c.speaksGitea() {
		method, what = http.MethodPost, map[string]string{"Do": repo.Method, "head_commit_id": head}
	}
	err = c.sendJSON(ctx, method, c.repoPath("/pulls/%d/merge", number), what, nil)
	if Is(err, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusForbidden,
		http.StatusNotFound) {
		return err.Error(), nil
	}
	return "", err
}

// Place is the position of a pull request in the merge queue of its branch.
type Place struct {
	Queue bool   // the branch has one
	At    int    // 1 is the next; 0 is not in it
	Why   string // it cannot be put there
}

// placed and enqueue are in the words of GitHub's GraphQL API: its REST API has no merge queue.
const (
	placed = `query($owner: String!, $name: String!, $number: Int!) { repository(owner: $owner, name: $name) {
		pullRequest(number: $number) { id isMergeQueueEnabled isInMergeQueue mergeQueueEntry { position } } } }`
	enqueue = `mutation($id: ID!, $head: GitObjectID!) {
		enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { mergeQueueEntry { position } } }`
)

// Enqueue finds the place of a pull request in the merge queue. One whose head is a commit is
// put there, if put is set. Of Gitea, and of a GitHub that knows no queue, there is none.
func (c *Client) Enqueue(ctx context.Context, number int64, head string, put bool) (p Place, err error) {
	if c.speaksGitea() {
		return p, nil
	}
	type entry struct {
		Position int `json:"position"`
	}
	var found struct {
		Repository struct {
			Pull struct {
				ID    string `json:"id"`
				Queue bool   `json:"isMergeQueueEnabled"`
				In    bool   `json:"isInMergeQueue"`
				Entry entry  `json:"mergeQueueEntry"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	owner, name, _ := strings.Cut(c.Repository, "/")
	why, err := c.askGraphQL(ctx, placed, map[string]any{"owner": owner, "name": name, "number": number}, &found)
	pull := found.Repository.Pull
	if p.Queue = pull.Queue; pull.In {
		p.At = max(pull.Entry.Position, 1)
	}
	if err != nil || why != "" || !p.Queue || pull.In || !put {
		return p, err
	}
	var done struct {
		Put struct {
			Entry entry `json:"mergeQueueEntry"`
		} `json:"enqueuePullRequest"`
	}
	p.Why, err = c.askGraphQL(ctx, enqueue, map[string]any{"id": pull.ID, "head": head}, &done)
	if err == nil && p.Why == "" {
		p.At = max(done.Put.Entry.Position, 1)
	}
	return p, err
}

// askGraphQL asks GitHub's other API. Why is its word where it refuses.
func (c *Client) askGraphQL(
	ctx context.Context, query string, variables map[string]any, into any,
) (why string, err error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return "", err
	}
	a, err := c.callOnce(ctx, http.MethodPost, strings.TrimSuffix(c.apiAddress(), "/v3")+"/graphql", body)
	if err != nil {
		return "", err
	}
	var said struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err = c.decodeAnswer(a, &said); err == nil && len(said.Errors) > 0 {
		return said.Errors[0].Message, nil
	}
	if err == nil {
		err = c.decodeAnswer(answer{body: said.Data, header: a.header}, into)
	}
	return "", err
}

// Check is the result of one job of the forge's CI for a commit.
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

// stateOfCheck reads the words of both kinds.
func stateOfCheck(word string) CheckState {
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
	if err := c.getDecoded(ctx, c.repoPath("/commits/%s/status?%s=100", commit, c.sizeWord()), &all); err != nil {
		return nil, err
	}
	var checks []Check
	for _, s := range all.Statuses {
		state := stateOfCheck(s.State + s.Status)
		text := strings.TrimSpace(s.Description + " " + s.URL)
		checks = append(checks, Check{Name: s.Context, State: state, Text: text})
	}
	if c.speaksGitea() {
		return checks, nil
	}
	for page := 1; page <= pageLimit; page++ {
		more, err := c.checkRuns(ctx, commit, page)
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

// checkRuns is one page of GitHub's check runs.
func (c *Client) checkRuns(ctx context.Context, commit string, page int) ([]Check, error) {
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
	path := c.repoPath("/commits/%s/check-runs?per_page=%d&page=%d", commit, runsPage, page)
	if err := c.getDecoded(ctx, path, &runs); err != nil {
		return nil, err
	}
	var checks []Check
	for _, r := range runs.Runs {
		k := Check{Name: r.Name, State: Pending, Text: r.URL}
		if r.Status == "completed" {
			k.State = stateOfCheck(r.Conclusion)
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
	text, err := c.readElsewhere(ctx, c.repoPath("/actions/jobs/%d/logs", k.job))
	if Is(err, http.StatusNotFound, http.StatusGone, http.StatusForbidden) {
		return k.Text, nil
	}
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(visibleText(text, true), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n"), nil
}

// readElsewhere is a file that the forge may keep elsewhere. That place gets no token.
func (c *Client) readElsewhere(ctx context.Context, path string) (string, error) {
	a, err := c.callOnce(ctx, http.MethodGet, c.apiAddress()+path, nil)
	if err == nil || a.header == nil {
		return string(a.body), err
	}
	elsewhere, perr := url.Parse(a.header.Get("Location"))
	if perr != nil || elsewhere.Scheme != "https" {
		return "", err
	}
	away := New(Where{URL: "https://" + elsewhere.Host}, "")
	defer away.Close()
	if a, err = away.callOnce(ctx, http.MethodGet, elsewhere.String(), nil); err != nil {
		return "", fmt.Errorf("cannot read a log: %w", err)
	}
	return string(a.body), nil
}
