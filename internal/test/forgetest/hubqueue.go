package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
)

// This file is the merge queue of a [Hub]. Its fields are those of schema.graphql in
// @octokit/graphql-schema 15.26.1: PullRequest and EnqueuePullRequestInput.

// UseQueue has all that is merged go through the merge queue.
func (h *Hub) UseQueue() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queues = true
}

// Queued are the numbers of the pull requests in the merge queue.
func (h *Hub) Queued() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.queue)
}

// Advance merges the first of the merge queue, or takes it out.
func (h *Hub) Advance(merge bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.queue[0]
	defer func() { h.queue = h.queue[1:] }()
	if merge {
		if answer, no := h.merge(Owner, n, object{"merge_method": "squash"}); answer == nil {
			return fmt.Errorf("it is not merged: %s", no.text)
		}
	}
	return nil
}

// graphql answers the two calls that pawl makes of it.
func (h *Hub) graphql(w http.ResponseWriter, login string, body object) {
	asked, _ := body["variables"].(object)
	query, _ := body["query"].(string)
	answer := object{"errors": []object{{"message": "Field is not known: " + query}}}
	switch {
	case strings.HasPrefix(query, "query") && strings.Contains(query, "{ id isMergeQueueEnabled isInMergeQueue mergeQueueEntry { position } }"):
		n, _ := asked["number"].(float64)
		place := slices.Index(h.queue, int(n))
		found := object{"id": fmt.Sprint("PR_", n), "isMergeQueueEnabled": h.queues, "isInMergeQueue": place >= 0, "mergeQueueEntry": nil}
		if place >= 0 {
			found["mergeQueueEntry"] = object{"position": place + 1}
		}
		answer = object{"data": object{"repository": object{"pullRequest": found}}}
	case strings.Contains(query, "enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { mergeQueueEntry { position } }"):
		answer = h.enqueue(login, fmt.Sprint(asked["id"]), asked["head"])
	}
	data, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(data)
}

func (h *Hub) enqueue(login, id string, head any) object {
	for _, p := range h.pulls {
		h.refresh(p)
		at, _ := p["head"].(object)
		if n, _ := p["number"].(int); fmt.Sprint("PR_", n) == id && p["state"] == "open" && at["sha"] == head && mayWrite(login) {
			h.queue = append(h.queue, n)
			return object{"data": object{"enqueuePullRequest": object{"mergeQueueEntry": object{"position": len(h.queue)}}}}
		}
	}
	return object{"data": nil, "errors": []object{{"message": "Head branch is not what was expected"}}}
}

func (h *Hub) mergeCommit(base, head, title string, both bool) (string, error) {
	tree, err := h.git("merge-tree", "--write-tree", "refs/heads/"+base, head)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-m", title, "-p", "refs/heads/" + base}
	if both {
		args = append(args, "-p", head)
	}
	return h.git(args...)
}

// rebase makes the commits of a branch anew on top of another, without its merges.
func (h *Hub) rebase(base, head string) (string, error) {
	dir, err := os.MkdirTemp("", "rebase")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if _, err = h.git("worktree", "add", "--quiet", "--detach", dir, head); err != nil {
		return "", err
	}
	defer func() { _, _ = h.git("worktree", "remove", "--force", dir) }()
	if _, err = h.git("--git-dir", dir+"/.git", "--work-tree", dir, "rebase", "--quiet", "refs/heads/"+base); err != nil {
		return "", err
	}
	return h.git("--git-dir", dir+"/.git", "rev-parse", "HEAD")
}
