package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/drive"
	"github.com/pawl-dev/pawl/internal/forge"
	"github.com/pawl-dev/pawl/internal/git"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/queue"
)

// Its checks are asked for soon at first, then less often: twice 180 calls an hour.
const (
	firstAsk = time.Second
	lastAsk  = 20 * time.Second
)

// reportedIn is how soon a check has to be reported, while no other one goes on.
const reportedIn = 10 * time.Minute

// asksCI is true where work lands here, and the forge's CI has a say in it.
func (q *Queue) asksCI() bool { return len(q.o.Required) > 0 && !q.o.Policy.Propose }

// askCI has the forge's CI judge a commit that is green here: on a branch of
// pawl's own, which is for one target. A forge that does not answer is waited for,
// as long as for the checks; after that the queue tries again, and blames nobody.
func (q *Queue) askCI(ctx context.Context, commit string, v queue.Verdict) (queue.Verdict, error) {
	branch := branchOf("ci/" + short(q.target))
	bounded, cancel := context.WithTimeout(ctx, pushLimit)
	err := q.o.Repo.PushOwn(bounded, q.remote.name, commit, "refs/heads/"+branch)
	cancel()
	if errors.Is(err, git.ErrTheirs) {
		err = fmt.Errorf("the checks cannot run: %w: delete the branch %s there", err, branch)
	}
	if err != nil {
		return v, err
	}
	v.Green, v.Empty = false, false
	wait, quiet := firstAsk, time.Now()
	most := min(q.o.ChecksTimeout, reportedIn)
	for over := quiet.Add(q.o.ChecksTimeout); ; {
		all, err := q.o.Forge.Checks(ctx, commit)
		var later *forge.LaterError
		if err != nil && !errors.As(err, &later) {
			return v, err
		}
		red, left := required(all, q.o.Required)
		if err == nil && len(red) > 0 {
			return q.redCI(ctx, red, v)
		}
		if err == nil && len(left) == 0 {
			v.Green = true
			return v, nil
		}
		busy := err != nil || slices.ContainsFunc(all, isPending)
		if busy {
			quiet = time.Now() // what is required may begin after it
		}
		until := time.Now().Add(wait)
		switch {
		case !busy && until.After(quiet.Add(most)):
			v.Absent, v.Summary = true, unreported(all, left, most, branch)
			return v, nil
		case !until.After(over):
		case err != nil:
			return v, err // it says nothing of anybody's work
		default:
			v.Summary = fmt.Sprintf("the forge's checks are not over after %s: %s", loop.Duration(q.o.ChecksTimeout),
				strings.Join(left, ", "))
			return v, nil
		}
		if later != nil && later.Until.After(until) {
			until = later.Until
		}
		if drive.Sleep(ctx, until); ctx.Err() != nil {
			return v, ctx.Err()
		}
		wait = min(2*wait, lastAsk)
	}
}

func isPending(k forge.Check) bool { return k.State == forge.Pending }

// unreported says that no check goes on, and that some were never there.
func unreported(all []forge.Check, left []string, after time.Duration, branch string) string {
	var names []string
	for _, k := range all {
		names = append(names, strconv.Quote(k.Name))
	}
	slices.Sort(names)
	asked := "does its CI run for pushes to " + branch
	if len(names) > 0 {
		asked = "is it spelled as there? It reports " + strings.Join(slices.Compact(names), ", ")
	}
	return fmt.Sprintf("after %s the forge has not reported %s: %s", loop.Duration(after), strings.Join(left, ", "), asked)
}

// redCI is the verdict of checks that are red, with the ends of their logs.
func (q *Queue) redCI(ctx context.Context, red []forge.Check, v queue.Verdict) (queue.Verdict, error) {
	var names []string
	for _, k := range red {
		names = append(names, k.Name)
	}
	v.Summary = "red at the forge: " + strings.Join(names, ", ")
	var err error
	v.Log, err = q.logs(ctx, red)
	return v, err
}

// required says which of the checks that have to be green are red, and which are not
// over, or not there. Of one name the newest counts.
func required(all []forge.Check, names []string) (red []forge.Check, left []string) {
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
