package forge

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// Place is where a pull request is in the merge queue of its branch.
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

// Enqueue says where a pull request is in the merge queue. One whose head is a commit is
// put there, if put is set. Of Gitea, and of a GitHub that knows no queue, there is none.
func (c *Client) Enqueue(ctx context.Context, number int64, head string, put bool) (p Place, err error) {
	if c.gitea() {
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
	why, err := c.graphql(ctx, placed, map[string]any{"owner": owner, "name": name, "number": number}, &found)
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
	if p.Why, err = c.graphql(ctx, enqueue, map[string]any{"id": pull.ID, "head": head}, &done); err == nil && p.Why == "" {
		p.At = max(done.Put.Entry.Position, 1)
	}
	return p, err
}

// graphql asks GitHub's other API. Why is its word where it refuses.
func (c *Client) graphql(
	ctx context.Context, query string, variables map[string]any, into any,
) (why string, err error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return "", err
	}
	a, err := c.call(ctx, http.MethodPost, strings.TrimSuffix(c.api(), "/v3")+"/graphql", body)
	if err != nil {
		return "", err
	}
	var said struct {
		Data   json.RawMessage `json:"data"`
		Errors []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err = c.decode(a, &said); err == nil && len(said.Errors) > 0 {
		return said.Errors[0].Message, nil
	}
	if err == nil {
		err = c.decode(answer{body: said.Data, header: a.header}, into)
	}
	return "", err
}
