package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
	"github.com/pawl-dev/pawl/internal/queue"
	"github.com/pawl-dev/pawl/internal/supervisor"
)

const hostLimit = time.Minute // for one call of the host's program

// What pull requests need.
var (
	ErrNoRemote  = errors.New("has no remote")
	ErrNoProgram = errors.New("the program gh is not installed")
)

// CanPropose says why no pull request can be opened: [ErrNoRemote] or
// [ErrNoProgram]; nil in the mode that opens none.
func CanPropose(ctx context.Context, o *Options) error {
	if !o.Policy.Propose {
		return nil
	}
	target := Ref(o.Target)
	remote, _, err := o.Repo.UpstreamOf(ctx, target)
	if err == nil && remote == "" {
		err = fmt.Errorf("cannot open a pull request: %s %w", short(target), ErrNoRemote)
	}
	if err == nil && !hasProgram(o) {
		err = fmt.Errorf("cannot use pull requests: %w", ErrNoProgram)
	}
	return err
}

func hasProgram(o *Options) bool {
	_, err := process.Command{Args: []string{"gh"}, Env: o.HostEnviron}.Resolve()
	return err == nil
}

// propose opens a pull request for the one entry of a batch: the merge that was
// verified is pushed as a branch of the entry's own. A request that is open for
// that branch already is used again, so it is safe to repeat.
func (q *Queue) propose(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	if q.remote.name == "" {
		return queue.Event{}, fmt.Errorf("cannot open a pull request: %s %w", short(q.target), ErrNoRemote)
	}
	if len(c.IDs) != 1 {
		return queue.Event{}, errors.New("cannot open a pull request: it is for one task")
	}
	e, ok := s.Find(c.IDs[0])
	if !ok {
		return queue.Event{Kind: queue.Proposals}, nil
	}
	branch := "pawl/" + e.ID
	bounded, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	if err := q.o.Repo.PushOwn(bounded, q.remote.name, c.Commit, "refs/heads/"+branch); err != nil {
		return queue.Event{}, err
	}
	found, err := q.request(ctx, branch)
	if err != nil {
		return queue.Event{}, err
	}
	if found.URL == "" || found.State != "OPEN" {
		out, err := q.host(ctx, "pr", "create", "--head", branch, "--base", short(q.remote.ref), "--title", subject(&e),
			"--body", trailers([]queue.Entry{e}, c.Batch))
		if err != nil {
			return queue.Event{}, err
		}
		found.URL = lastWord(out)
	}
	return queue.Event{Kind: queue.Proposals, Requests: []queue.Request{{ID: e.ID, URL: found.URL}}}, nil
}

// review asks the host what became of pull requests. One that is merged is done
// once its commit is here and on the target.
func (q *Queue) review(ctx context.Context, _ *queue.State, c queue.Command) (queue.Event, error) {
	ev := queue.Event{Kind: queue.Proposals}
	for _, id := range c.IDs {
		found, err := q.request(ctx, "pawl/"+id)
		if err != nil {
			return ev, err
		}
		r := queue.Request{ID: id, URL: found.URL}
		switch found.State {
		case "MERGED":
			on, err := q.arrived(ctx, found.MergeCommit.OID)
			if err != nil {
				return ev, err
			}
			if on {
				r.Merged = found.MergeCommit.OID
			}
		case "CLOSED":
			r.Closed = "its pull request was closed without being merged: " + found.URL
		}
		ev.Requests = append(ev.Requests, r)
	}
	return ev, nil
}

// arrived brings the target here and reports whether a commit is on it.
func (q *Queue) arrived(ctx context.Context, commit string) (bool, error) {
	if commit == "" {
		return false, nil
	}
	q.remote.at = time.Time{}
	var f queue.Facts
	if _, err := q.fetch(ctx, &f, false); err != nil {
		return false, err
	}
	tip, err := q.o.Repo.Find(ctx, q.tracking())
	if err != nil || tip == "" {
		return false, err
	}
	return q.o.Repo.IsAncestor(ctx, commit, tip)
}

// pull is a pull request as gh prints it.
type pull struct {
	URL         string `json:"url"`
	State       string `json:"state"` // OPEN, MERGED, CLOSED
	MergeCommit struct {
		OID string `json:"oid"`
	} `json:"mergeCommit"`
}

// request is the last pull request of a branch; its zero value is none.
func (q *Queue) request(ctx context.Context, branch string) (pull, error) {
	out, err := q.host(ctx, "pr", "list", "--head", branch, "--state", "all", "--limit", "1", "--json",
		"url,state,mergeCommit")
	if err != nil {
		return pull{}, err
	}
	var list []pull
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return pull{}, fmt.Errorf("cannot read what gh says of the pull request of %s: %v", branch, err)
	}
	if len(list) == 0 {
		return pull{}, nil
	}
	return list[0], nil
}

// host runs gh in the repository, with the user's own environment, and returns
// what it prints.
func (q *Queue) host(ctx context.Context, args ...string) (string, error) {
	fail := func(why string) error {
		return fmt.Errorf("cannot use pull requests: gh %s: %s", strings.Join(args[:2], " "), why)
	}
	if !hasProgram(&q.o) {
		return "", fail(ErrNoProgram.Error() + "; install it and log in with: gh auth login, or set merge.mode to local")
	}
	dir, err := os.MkdirTemp(q.o.Dir, "host-*")
	if err != nil {
		return "", fail(err.Error())
	}
	defer func() { _ = os.RemoveAll(dir) }()
	client, err := q.supervisor(ctx, dir, true)
	if err != nil {
		return "", err
	}
	res, err := client.Run(ctx, supervisor.Job{
		ID: "gh", Files: filepath.Join(dir, "gh"), Args: append([]string{"gh"}, args...), Dir: q.o.Repo.Top,
		Env:    slices.Concat(q.o.HostEnviron, []string{"GH_PROMPT_DISABLED=1", "NO_COLOR=1"}),
		Limits: supervisor.Limits{Wall: hostLimit},
	}, nil)
	if cerr := client.Close(); err == nil {
		err = cerr
	}
	switch {
	case err != nil:
		return "", err
	case res.Error != "":
		return "", fail(res.Error)
	case res.Exit.Code != 0 || res.Exit.Signal != "":
		return "", fail(fmt.Sprintf("exit status %d: %s", res.Exit.Code, strings.TrimSpace(res.Stderr.Head)))
	}
	return res.Stdout.Head, nil
}

// lastWord is the last line of a text that is not empty: gh prints the address there.
func lastWord(text string) string {
	words := strings.Fields(text)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}
