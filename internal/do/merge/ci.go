package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// reportedIn is how soon a check has to be reported, while no other one runs.
const reportedIn = 10 * time.Minute

// checkBranch names the branch on which the forge checks a batch.
func (rs *requests) checkBranch(b *queue.Batch) string {
	branch := branchOf("ci/" + branchName(rs.ref))
	if b.Place > 0 {
		branch += fmt.Sprint("-", b.Place+1)
	}
	return branch
}

// checkAtForge gives the forge the batches that it is to check, each on a branch of pawl's own,
// and asks about the first. A forge that does not answer is waited for as long as its
// checks; after that the queue tries again, and blames no entry.
func (rs *requests) checkAtForge(ctx context.Context, s *queue.State) (queue.Event, error) {
	e := queue.Event{Kind: queue.Checked}
	for i := range s.Checking {
		if err := rs.pushCheck(ctx, &s.Checking[i]); err != nil {
			return e, err
		}
	}
	b := &s.Checking[0]
	v, commit := queue.Verdict{Tree: b.Result}, b.Head
	if b.Target {
		v.Tree, commit = b.Tree, b.Tip
	}
	over, quiet := time.Now().After(b.Asked.Add(rs.o.ChecksTimeout)), min(rs.o.ChecksTimeout, reportedIn)
	all, err := rs.o.Forge.Checks(ctx, commit)
	if later := (*forge.LaterError)(nil); errors.As(err, &later) && !over {
		e.Busy = true
		return e, nil
	}
	if err != nil {
		return e, err
	}
	red, left := splitRequired(all, rs.o.Required)
	e.Busy = slices.ContainsFunc(all, isPending) // what is required may begin after it
	switch {
	case len(red) > 0:
		v.Summary = "red at the forge: " + strings.Join(lists.Each(red, nameOfCheck), ", ")
		if v.Log, err = rs.endsOfRedLogs(ctx, red); err != nil {
			return e, err
		}
	case len(left) == 0:
		v.Green = true
	case !e.Busy && time.Now().After(b.Busy.Add(quiet)):
		v.Absent, v.Summary = true, queue.UnreportedText(lists.Each(all, nameOfCheck), left, quiet, rs.checkBranch(b))
	case over:
		v.Summary = fmt.Sprintf("the forge's checks have not finished after %s: %s", loop.Duration(rs.o.ChecksTimeout),
			strings.Join(left, ", "))
	default:
		return e, nil
	}
	if e.Verdict = &v; !v.Green {
		v.By, err = rs.authorText(ctx, commit)
	}
	return e, err
}

// pushCheck pushes a batch to the branch at which the forge checks it, if that was not done.
func (rs *requests) pushCheck(ctx context.Context, b *queue.Batch) error {
	branch, commit := rs.checkBranch(b), b.Head
	if b.Target {
		commit = b.Tip
	}
	if was, err := rs.o.Repo.Find(ctx, "refs/pawl/pushed/"+branch); err != nil || was == commit {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	err := rs.o.Repo.PushOwn(ctx, rs.remote.name, commit, "refs/heads/"+branch)
	if errors.Is(err, git.ErrTheirs) {
		err = fmt.Errorf("the checks cannot run: %w: delete the branch %s there", err, branch)
	}
	return err
}

func nameOfCheck(k forge.Check) string { return k.Name }

func isPending(k forge.Check) bool { return k.State == forge.Pending }

// splitRequired finds the checks that have to be green and are red, and those that are
// not over, or not there. Of one name the newest counts.
func splitRequired(all []forge.Check, names []string) (red []forge.Check, left []string) {
	for _, name := range names {
		i := slices.IndexFunc(all, func(k forge.Check) bool { return k.Name == name })
		switch {
		case i >= 0 && all[i].State == forge.Red:
			red = append(red, all[i])
		case i < 0, all[i].State != forge.Green:
			left = append(left, name)
		}
	}
	return red, left
}
