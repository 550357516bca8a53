package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// readFacts reads where the target is, and how that is to where it was last.
// Before a batch the remote is asked in any case.
func (q *Queue) readFacts(ctx context.Context, last string, batch bool) (queue.Facts, []string, error) {
	var f queue.Facts
	if q.isShared() {
		f.Remote = q.remote.name
	}
	hold, left, err := q.lockTrees(ctx)
	if err != nil {
		return f, nil, err
	}
	_ = hold.Close()
	warnings, err := q.fetchTarget(ctx, &f, batch)
	if err != nil {
		return f, nil, err
	}
	warnings = append(left, warnings...)
	if f.Tip, err = q.Tip(ctx); err != nil || f.Tip == "" {
		return f, warnings, err
	}
	if f.Tree, err = q.o.Repo.TreeOf(ctx, f.Tip); err != nil {
		return f, nil, err
	}
	f.Past = true
	if last == "" || last == f.Tip {
		return f, warnings, nil
	}
	if f.Past, err = q.o.Repo.IsAncestor(ctx, last, f.Tip); err != nil || f.Past {
		return f, warnings, err
	}
	if q.isRemoteAway() {
		return f, warnings, q.remote.away
	}
	if q.isShared() || !q.remote.known {
		return f, warnings, nil
	}
	there, err := q.o.Repo.Find(ctx, q.trackingRef())
	f.Past = there == f.Tip // who rewrote it did so at both places
	return f, warnings, err
}

// remote is where the target is pushed to. An empty name is none.
type remote struct {
	name, ref string
	at        time.Time // of the last try to fetch
	away      error     // why it failed; nil when it did not
	known     bool      // it has the target: the tracking ref says where that was
	told      string    // why the branch here does not follow

	mu     sync.Mutex // of what others than who works on the queue ask for
	answer answer
}

// answer is what the remote said last.
type answer struct {
	none bool  // it has no such branch
	away error // it said nothing; nil where it was not asked yet
}

// recordAnswer keeps the answer for goroutines beside the queue.
func (r *remote) recordAnswer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer{none: r.away == nil && !r.known, away: r.away}
}

func (r *remote) lastAnswer() answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answer
}

const (
	fetchLimit = 20 * time.Second
	fetchAgain = 15 * time.Second // not more often, but for a batch
	pushLimit  = 2 * time.Minute
)

// trackingRef keeps the remote's state of the target, joinedRef the last one that the
// target here had all of.
func (q *Queue) trackingRef() string { return "refs/pawl/remote/" + branchName(q.target) }
func (q *Queue) joinedRef() string   { return "refs/pawl/joined/" + branchName(q.target) }

// fetchTarget asks the remote for the target, and brings the target to it when the
// remote is only ahead. A remote that does not answer is a warning: work continues
// with what is here.
func (q *Queue) fetchTarget(ctx context.Context, f *queue.Facts, batch bool) ([]string, error) {
	warnings, err := q.askRemote(ctx, batch || q.isShared())
	if err != nil || !q.remote.known {
		return warnings, err
	}
	if q.isRemoteAway() {
		return warnings, nil
	}
	if q.isShared() {
		return append(warnings, q.followRemote(ctx)...), nil
	}
	here, err := q.o.Repo.Find(ctx, q.target)
	if err != nil || here == "" {
		return warnings, err
	}
	there, err := q.o.Repo.Find(ctx, q.trackingRef())
	if err != nil || there == "" {
		return warnings, err
	}
	moved, err := q.compareRemote(ctx, f, here, there)
	return append(warnings, moved...), err
}

// askRemote fetches the target, unless that was done just now.
func (q *Queue) askRemote(ctx context.Context, batch bool) (warnings []string, err error) {
	mayBeOld := q.remote.away != nil || !batch
	soon := mayBeOld && time.Since(q.remote.at) < fetchAgain
	if q.remote.name == "" || soon {
		return nil, nil
	}
	q.remote.at = time.Now()
	bounded, cancel := context.WithTimeout(ctx, fetchLimit)
	found, err := q.o.Repo.Fetch(bounded, q.remote.name, q.remote.ref, q.trackingRef())
	cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	was := q.remote.away
	if q.remote.away = err; err == nil {
		q.remote.known = found
	}
	q.remote.recordAnswer()
	switch { // a notice when it begins and when it is over
	case err != nil && was == nil:
		return []string{fmt.Sprintf("%v; the queue goes on with what is here, and tries again", err)}, nil
	case err == nil && was != nil:
		warnings = []string{q.remote.name + " answers again"}
	}
	return warnings, nil
}

// compareRemote compares the target here with the one there, and brings it there when
// it is only behind.
func (q *Queue) compareRemote(ctx context.Context, f *queue.Facts, here, there string) (warnings []string, err error) {
	last, err := q.o.Repo.Find(ctx, q.joinedRef())
	if moved := here != there || there != last; err != nil || !moved {
		return nil, err
	}
	behind, err := q.o.Repo.IsAncestor(ctx, here, there)
	if err == nil && behind && here != there {
		warnings, err = q.forwardTarget(ctx, here, there)
	}
	if err == nil && !behind {
		err = q.describeDivergence(ctx, f, here, there, last)
	}
	if err != nil || f.Diverged != "" {
		return warnings, err
	}
	return warnings, q.o.Repo.UpdateRef(ctx, q.joinedRef(), there, last, "pawl: together with its remote")
}

// describeDivergence explains why a target that is not behind its remote cannot move: each has commits of
// its own, or the remote's branch was forced and has not what it had, last.
func (q *Queue) describeDivergence(ctx context.Context, f *queue.Facts, here, there, last string) error {
	base, err := q.o.Repo.Base(ctx, here, there)
	if err != nil {
		return err
	}
	forced := base == ""
	if last != "" && !forced {
		old, err := q.o.Repo.IsAncestor(ctx, last, there)
		if err != nil {
			return err
		}
		forced = !old
	}
	name, far := branchName(q.target), branchName(q.remote.ref)
	switch {
	case forced:
		f.Theirs, f.Apart = there, true
		f.Diverged = fmt.Sprintf("%s at %s was force-pushed, or is another history: it is at %.10s now, and has not all "+
			"that is here from it (%.10s). Nothing was merged. To go on with what it has: git switch %s && git fetch %s "+
			"%s && git reset --keep FETCH_HEAD. To go on with what is here: pawl queue resume, then git push "+
			"--force-with-lease %s %s:%s", far, q.remote.name, there, cmp.Or(last, here), name, q.remote.name, far, q.remote.name, name, far)
	case base != there:
		f.Theirs = there
		f.Diverged = fmt.Sprintf("%s here (%.10s) and at %s (%.10s) each have commits of their own; bring them "+
			"together, or go on with what is here: pawl queue resume", name, here, q.remote.name, there)
	}
	return nil
}

// forwardTarget moves the target to what the remote has, as a pull would.
func (q *Queue) forwardTarget(ctx context.Context, here, there string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), landLimit) // not ended half way
	defer cancel()
	hold, left, err := q.lockTrees(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = hold.Close() }()
	if err := q.o.Repo.SyncObjects(ctx, here, there); err != nil {
		return nil, err
	}
	c := queue.Command{From: here, To: there, IDs: []string{"what " + q.remote.name + " has"}}
	e, err := q.moveTarget(ctx, &queue.State{}, c, hold)
	if err != nil {
		return nil, err
	}
	if e.Refusal != nil && !e.Refusal.Moved {
		return nil, fmt.Errorf("cannot bring %s to what %s has: %s", branchName(q.target), q.remote.name, e.Refusal.Why)
	}
	return append(left, e.Warnings...), nil
}

// pushTarget sends the target to its remote. Where machines share the work it was sent to land.
func (q *Queue) pushTarget(ctx context.Context, c queue.Command) (queue.Event, error) {
	p := queue.Push{}
	if !q.isShared() {
		p = q.sendCommit(ctx, c.To, "")
	}
	return queue.Event{Kind: queue.Pushed, Push: &p}, ctx.Err()
}

// sendCommit pushes a commit as the target of the remote, never with force, and only where that
// is at from; "" is anywhere before the commit.
func (q *Queue) sendCommit(ctx context.Context, commit, from string) (p queue.Push) {
	if q.remote.name == "" {
		p.Refused = true
		p.Failed = fmt.Sprintf("%s %v; name one: git remote add origin URL; or set merge.push to false",
			branchName(q.target),
			ErrNoRemote)
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	rejected, err := q.o.Repo.PushFrom(ctx, q.remote.name, commit, q.remote.ref, from)
	switch {
	case rejected:
		p.Diverged = fmt.Sprintf("%s has commits on %s that are not here; nothing was forced", q.remote.name,
			branchName(q.remote.ref))
		q.remote.at = time.Time{}
	case errors.Is(err, git.ErrRefused):
		p.Refused = true
		do := "push it yourself"
		if q.isShared() { // nothing is on the branch here
			do = "let who works on " + q.o.Owner.Host + " push to " + branchName(q.remote.ref) + "; it is tried again"
		}
		p.Failed = err.Error() + "; " + do + ", or land by pull requests (merge.mode: pull-request)"
	case err != nil:
		p.Failed = err.Error()
	default: // else the next look sets them
		_ = q.o.Repo.UpdateRef(ctx, q.trackingRef(), commit, "", "pawl: pushed")
		_ = q.o.Repo.UpdateRef(ctx, q.joinedRef(), commit, "", "pawl: pushed")
	}
	return p
}

// maxRepair is how many landings are looked at, the last ones.
const maxRepair = 10_000

// repairLandings compares what landed with the target: a task whose landing is an
// ancestor is done, even after a crash; those whose landing is none any more are
// returned, and stay as they are.
func (q *Queue) repairLandings(ctx context.Context, tip string, entries []queue.Entry) ([]string, error) {
	if tip == "" {
		return nil, nil
	}
	landed, err := q.o.Store.Landings(ctx, q.target, "", maxRepair)
	if err != nil || len(landed) == 0 {
		return nil, err
	}
	commits := lists.Each(landed, func(one queue.Landing) string { return one.Commit })
	gone, err := q.o.Repo.Unreachable(ctx, commits, tip)
	if err != nil {
		return nil, err
	}
	asks, err := q.o.Store.QueueAsks(ctx, q.target, asksMax)
	if err != nil {
		return nil, err
	}
	reverting := map[string]bool{} // these are not done, although they have landed
	for i := range entries {
		reverting[entries[i].ID] = entries[i].Revert != ""
	}
	for _, a := range asks {
		if e := a.Event.Entry; e != nil && e.Revert != "" {
			reverting[e.ID] = true
		}
	}
	var there []queue.Landing
	state := map[string]bool{} // of a task: is its change on the target
	for _, l := range landed {
		if !gone[l.Commit] && !state[l.Task] && !l.Revert && !reverting[l.Task] {
			there = append(there, l)
		}
		state[l.Task] = state[l.Task] || !gone[l.Commit]
	}
	if _, err := q.o.Store.LandCases(ctx, there, time.Now()); err != nil {
		return nil, err
	}
	if q.isRemoteAway() {
		return nil, nil
	}
	var lost []string
	for task, on := range state {
		if !on {
			lost = append(lost, task)
		}
	}
	slices.SortFunc(lost, strings.Compare)
	return lost[:min(len(lost), 100)], nil
}
