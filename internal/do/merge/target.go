package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// target is the branch that the queue lands on: where it is, here and at its remote, and how
// it and the files of the work trees that have it checked out are moved.
type target struct {
	o      Options
	ref    string // full name
	shadow *git.Shadow
	remote remote
}

// Target is the full name of the branch that the queue lands on.
func (t *target) Target() string { return t.ref }

// Branch is its short name.
func (t *target) Branch() string { return branchName(t.ref) }

// findRemote finds where the target is pushed to. One that follows no branch goes where
// the work of other machines comes from.
func (t *target) findRemote(ctx context.Context) (err error) {
	if t.remote.name, t.remote.ref, err = t.o.Repo.UpstreamOf(ctx, t.ref); err != nil {
		return err
	}
	if t.remote.name != "" || t.o.Travel == "" {
		return nil
	}
	if _, err := t.o.Repo.RemoteURL(ctx, t.o.Travel); err == nil {
		t.remote.name, t.remote.ref = t.o.Travel, t.ref
	}
	return nil
}

// bringWork fetches the work of another machine.
func (t *target) bringWork(ctx context.Context, e *Entry) error {
	if t.o.Travel == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	found, err := t.o.Repo.FetchWork(ctx, t.o.Travel, e.ID, e.Commit, queuedTaskRef(e.ID))
	if err == nil && !found {
		err = errMissing
	}
	return err
}

// readFacts reads where the target is, and how that is to where it was last.
// Before a batch the remote is asked in any case.
func (t *target) readFacts(ctx context.Context, last string, batch bool) (queue.Facts, []string, error) {
	var f queue.Facts
	if t.isShared() {
		f.Remote = t.remote.name
	}
	hold, left, err := t.lockTrees(ctx)
	if err != nil {
		return f, nil, err
	}
	_ = hold.Close()
	warnings, err := t.fetchTarget(ctx, &f, batch)
	if err != nil {
		return f, nil, err
	}
	warnings = append(left, warnings...)
	if f.Tip, err = t.Tip(ctx); err != nil || f.Tip == "" {
		return f, warnings, err
	}
	if f.Tree, err = t.o.Repo.TreeOf(ctx, f.Tip); err != nil {
		return f, nil, err
	}
	f.Past = true
	if last == "" || last == f.Tip {
		return f, warnings, nil
	}
	if f.Past, err = t.o.Repo.IsAncestor(ctx, last, f.Tip); err != nil || f.Past {
		return f, warnings, err
	}
	if t.isRemoteAway() {
		return f, warnings, t.remote.away
	}
	if t.isShared() || !t.remote.known {
		return f, warnings, nil
	}
	there, err := t.o.Repo.Find(ctx, t.trackingRef())
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

	answer atomic.Pointer[answer] // for goroutines beside the queue; nil before the first
}

// answer is what the remote said last.
type answer struct {
	none bool  // it has no such branch
	away error // it said nothing
}

const (
	fetchLimit = 20 * time.Second
	fetchAgain = 15 * time.Second // not more often, but for a batch
	pushLimit  = 2 * time.Minute
)

// trackingRef keeps the remote's state of the target, joinedRef the last one that the
// target here had all of.
func (t *target) trackingRef() string { return "refs/pawl/remote/" + branchName(t.ref) }
func (t *target) joinedRef() string   { return "refs/pawl/joined/" + branchName(t.ref) }

// fetchTarget asks the remote for the target, and brings the target to it when the
// remote is only ahead. A remote that does not answer is a warning: work continues
// with what is here.
func (t *target) fetchTarget(ctx context.Context, f *queue.Facts, batch bool) ([]string, error) {
	warnings, err := t.askRemote(ctx, batch || t.isShared())
	if err != nil || !t.remote.known {
		return warnings, err
	}
	if t.isRemoteAway() {
		return warnings, nil
	}
	if t.isShared() {
		return append(warnings, t.followRemote(ctx)...), nil
	}
	here, there, err := t.localAndRemoteTips(ctx)
	if err != nil || here == "" || there == "" {
		return warnings, err
	}
	moved, err := t.compareRemote(ctx, f, here, there)
	return append(warnings, moved...), err
}

// localAndRemoteTips are the commits of the branch here and of the remote's; "" for one that is not there.
func (t *target) localAndRemoteTips(ctx context.Context) (here, there string, err error) {
	if here, err = t.o.Repo.Find(ctx, t.ref); err == nil && here != "" {
		there, err = t.o.Repo.Find(ctx, t.trackingRef())
	}
	return here, there, err
}

// askRemote fetches the target, unless that was done just now.
func (t *target) askRemote(ctx context.Context, batch bool) (warnings []string, err error) {
	mayBeOld := t.remote.away != nil || !batch
	soon := mayBeOld && time.Since(t.remote.at) < fetchAgain
	if t.remote.name == "" || soon {
		return nil, nil
	}
	t.remote.at = time.Now()
	bounded, cancel := context.WithTimeout(ctx, fetchLimit)
	found, err := t.o.Repo.Fetch(bounded, t.remote.name, t.remote.ref, t.trackingRef())
	cancel()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	was := t.remote.away
	if t.remote.away = err; err == nil {
		t.remote.known = found
	}
	t.remote.answer.Store(&answer{none: err == nil && !found, away: err})
	switch { // a notice when it begins and when it is over
	case err != nil && was == nil:
		return []string{fmt.Sprintf("%v; the queue continues with the local branch, and tries again", err)}, nil
	case err == nil && was != nil:
		warnings = []string{t.remote.name + " answers again"}
	}
	return warnings, nil
}

// compareRemote compares the target here with the one there, and brings it there when
// it is only behind.
func (t *target) compareRemote(ctx context.Context, f *queue.Facts, here, there string) (warnings []string, err error) {
	last, err := t.o.Repo.Find(ctx, t.joinedRef())
	if moved := here != there || there != last; err != nil || !moved {
		return nil, err
	}
	behind, err := t.o.Repo.IsAncestor(ctx, here, there)
	if err == nil && behind && here != there {
		warnings, err = t.forwardTarget(ctx, here, there)
	}
	if err == nil && !behind {
		err = t.describeDivergence(ctx, f, here, there, last)
	}
	if err != nil || f.Diverged != "" {
		return warnings, err
	}
	return warnings, t.o.Repo.UpdateRef(ctx, t.joinedRef(), there, last, "pawl: together with its remote")
}

// describeDivergence explains why a target that is not behind its remote cannot move: each has commits of
// its own, or the remote's branch was forced and has not what it had, last.
func (t *target) describeDivergence(ctx context.Context, f *queue.Facts, here, there, last string) error {
	base, err := t.o.Repo.Base(ctx, here, there)
	if err != nil {
		return err
	}
	forced := base == ""
	if last != "" && !forced {
		old, err := t.o.Repo.IsAncestor(ctx, last, there)
		if err != nil {
			return err
		}
		forced = !old
	}
	name, far := branchName(t.ref), branchName(t.remote.ref)
	switch {
	case forced:
		f.Theirs, f.Apart = there, true
		f.Diverged = queue.ForcedText(name, far, t.remote.name, there, cmp.Or(last, here))
	case base != there:
		f.Theirs = there
		f.Diverged = fmt.Sprintf("%s here (%.10s) and at %s (%.10s) each have commits of their own; merge "+
			"them, or continue with the local branch: pawl queue resume", name, here, t.remote.name, there)
	}
	return nil
}

// forwardTarget moves the target to what the remote has, as a pull would.
func (t *target) forwardTarget(ctx context.Context, here, there string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), landLimit) // not ended half way
	defer cancel()
	hold, left, err := t.lockTrees(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = hold.Close() }()
	if err := t.o.Repo.SyncObjects(ctx, here, there); err != nil {
		return nil, err
	}
	c := queue.Command{From: here, To: there, IDs: []string{"what " + t.remote.name + " has"}}
	e, err := t.moveTarget(ctx, &queue.State{}, c, hold, false)
	if err != nil {
		return nil, err
	}
	if e.Refusal != nil && !e.Refusal.Moved {
		return nil, fmt.Errorf("cannot update %s to %s: %s", branchName(t.ref), t.remote.name, e.Refusal.Why)
	}
	return append(left, e.Warnings...), nil
}

// pushTarget sends the target to its remote. Where machines share the work it was sent to land.
func (t *target) pushTarget(ctx context.Context, c queue.Command) (queue.Event, error) {
	p := queue.Push{}
	if !t.isShared() {
		p = t.sendCommit(ctx, c.To, "")
	}
	return queue.Event{Kind: queue.Pushed, Push: &p}, ctx.Err()
}

// sendCommit pushes a commit as the target of the remote, never with force, and only where that
// is at from; "" is anywhere before the commit.
func (t *target) sendCommit(ctx context.Context, commit, from string) (p queue.Push) {
	if t.remote.name == "" {
		p.Refused = true
		p.Failed = fmt.Sprintf("%s %v; name one: git remote add origin URL; or set merge.push to false",
			branchName(t.ref),
			ErrNoRemote)
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	rejected, err := t.o.Repo.PushFrom(ctx, t.remote.name, commit, t.remote.ref, from)
	switch {
	case rejected:
		p.Diverged = fmt.Sprintf("%s has commits on %s that are not here; nothing was forced", t.remote.name,
			branchName(t.remote.ref))
		t.remote.at = time.Time{}
	case errors.Is(err, git.ErrRefused):
		p.Refused, p.Words = true, err.Error()
		do := "push it yourself"
		if t.isShared() { // nothing is on the branch here
			do = "let who works on " + t.o.Owner.Host + " push to " + branchName(t.remote.ref) + "; it is tried again"
		}
		p.Failed = err.Error() + "; " + do + ", or land by pull requests (merge.mode: pull-request)"
	case err != nil:
		p.Failed = err.Error()
	default: // else the next look sets them
		_ = t.o.Repo.UpdateRef(ctx, t.trackingRef(), commit, "", "pawl: pushed")
		_ = t.o.Repo.UpdateRef(ctx, t.joinedRef(), commit, "", "pawl: pushed")
	}
	return p
}

// maxRepair is how many landings are looked at, the last ones.
const maxRepair = 10_000

// repairLandings compares what landed with the target: a task whose landing is an
// ancestor is done, even after a crash; those whose landing is none any more are
// returned, and stay as they are.
func (t *target) repairLandings(ctx context.Context, tip string, entries []queue.Entry) ([]string, error) {
	if tip == "" {
		return nil, nil
	}
	landed, err := t.o.Store.Landings(ctx, t.ref, "", maxRepair)
	if err != nil || len(landed) == 0 {
		return nil, err
	}
	commits := lists.Each(landed, func(one queue.Landing) string { return one.Commit })
	gone, err := t.o.Repo.Unreachable(ctx, commits, tip)
	if err != nil {
		return nil, err
	}
	asks, err := t.o.Store.QueueAsks(ctx, t.ref, asksMax)
	if err != nil {
		return nil, err
	}
	// These are not done, although they have landed.
	reverting := lists.ToMap(entries, func(e queue.Entry) (string, bool) { return e.ID, e.Revert != "" })
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
	if _, err := t.o.Store.LandCases(ctx, there, time.Now()); err != nil {
		return nil, err
	}
	if t.isRemoteAway() {
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
