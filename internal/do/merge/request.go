package merge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// ErrNoRemote means that there is nowhere to push a branch to.
var ErrNoRemote = errors.New("has no remote")

// Proposing is what pull requests need.
type Proposing struct {
	Forge *forge.Client
	// Fork is where branches are pushed to; without a name it is the target's remote.
	Fork Fork
	// AutoMerge merges a request as soon as the forge lets it.
	AutoMerge bool
	// Required are the names of the forge's checks that have to be green. Where work
	// lands here they are waited for, for ChecksTimeout, before it lands.
	Required      []string
	ChecksTimeout time.Duration
}

// Fork is a copy of the repository at the same forge.
type Fork struct {
	Remote string // its name here
	Owner  string // whose it is at the forge
}

// requests are what the queue has at the forge: pull requests and checks.
type requests struct {
	*target
	looks queue.Looks
}

// branchOf is the branch of an entry's pull request.
func branchOf(id string) string { return "pawl/" + id }

// openRequest opens a pull request for the one entry of a batch: the merge that was
// verified is pushed as a branch of the entry's own. A request that is open for
// that branch already is used again, so it is safe to repeat.
func (rs *requests) openRequest(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	switch {
	case rs.remote.name == "":
		return queue.Event{}, fmt.Errorf("cannot open a pull request: %s %w", branchName(rs.ref), ErrNoRemote)
	case rs.o.Forge == nil:
		return queue.Event{}, errors.New("cannot open a pull request: no forge is known")
	case len(c.IDs) != 1:
		return queue.Event{}, errors.New("cannot open a pull request: it is for one task")
	}
	e, ok := s.Find(c.IDs[0])
	if !ok {
		return queue.Event{Kind: queue.Proposals}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, pushLimit)
	defer cancel()
	remote, head := rs.remote.name, branchOf(e.ID)
	if rs.o.Fork.Remote != "" {
		remote, head = rs.o.Fork.Remote, rs.o.Fork.Owner+":"+head
	}
	err := rs.o.Repo.PushOwn(bounded, remote, c.Commit, "refs/heads/"+branchOf(e.ID))
	if errors.Is(err, git.ErrTheirs) {
		why := err.Error() + "; merge that, or delete the branch there: pawl queue retry " + e.ID
		return queue.Event{Kind: queue.Proposals, Requests: []queue.Request{{ID: e.ID, Closed: why}}}, nil
	}
	if errors.Is(err, git.ErrRefused) && queue.IsAboutCommits(err.Error()) {
		r := queue.Request{ID: e.ID, Refused: err.Error()}
		return queue.Event{Kind: queue.Proposals, Requests: []queue.Request{r}}, nil
	}
	if err != nil {
		return queue.Event{}, err
	}
	found, err := rs.o.Forge.Propose(ctx, forge.Draft{
		Branch: head, Base: branchName(rs.remote.ref), Title: e.Subject(), Body: rs.requestText(ctx, &e, c.Batch),
	})
	if err != nil {
		return queue.Event{}, err
	}
	// What was said before is looked at still: Seen stays as it was.
	return queue.Event{Kind: queue.Proposals, Requests: []queue.Request{{ID: e.ID, URL: found.URL, Seen: e.Seen}}}, nil
}

// storyMost is how many bytes of a task's description a pull request shows.
const storyMost = 8 << 10

// requestText is the text of a pull request: what was asked, and what it took.
func (rs *requests) requestText(ctx context.Context, e *queue.Entry, batch int64) string {
	var b strings.Builder
	c, err := rs.o.Store.Case(ctx, e.ID)
	switch n := c.Issue(); {
	case e.Revert != "": // its issue stays open
		fmt.Fprintf(&b, "## What is reverted\n\nWhat %s landed as %.10s: %s\n\n", e.ID, e.Base,
			fault.Cut(e.Revert, storyMost))
	case err == nil && n > 0: // its words are there: quoted here, they could close others and call people
		fmt.Fprintf(&b, "Closes #%d\n\n", n)
	case err == nil && c.Description != "":
		b.WriteString("## What was asked\n\n" + fault.Cut(c.Description, storyMost) + "\n\n")
	}
	b.WriteString("## What was done\n\n")
	if r, err := rs.o.Store.Run(ctx, e.Run); err == nil && e.Run != "" {
		fmt.Fprintf(&b, "- %s worked on it, in %s", cmp.Or(r.Agent, "An agent"),
			fault.Numbered(r.Iteration, "iteration"))
		if cost := loop.Money(loop.MicroUSD(r.Cost), r.CostKnown, r.CostPartial); cost != "" {
			b.WriteString(", for " + cost)
		}
		b.WriteString("\n")
	}
	records, _ := rs.o.Store.Iterations(ctx, e.Run) // none: the run is gone
	for _, proof := range report.ProofsOf(&c, records) {
		fmt.Fprintf(&b, "- `%s`\n", strings.ReplaceAll(report.Line(proof.String(), remarkMax), "`", "'"))
	}
	rules, _ := rs.rulesNow(ctx) // what they are could be read a moment ago
	for _, g := range rules.Gates {
		fmt.Fprintf(&b, "- `%s` passes, merged onto `%s`\n", strings.ReplaceAll(g.Name, "`", "'"), branchName(rs.ref))
	}
	return b.String() + "\n" + queue.Trailers([]queue.Entry{*e}, batch)
}

// lookAtRequests asks the forge what became of pull requests. One that is merged is done
// once its commit is here and on the target. Where nothing has changed it costs
// one call, whatever the number of requests.
func (rs *requests) lookAtRequests(ctx context.Context, s *queue.State, c queue.Command) (queue.Event, error) {
	ev := queue.Event{Kind: queue.Proposals}
	if rs.o.Forge == nil {
		return ev, errors.New("cannot look at pull requests: no forge is known")
	}
	rs.looks.BeginRound(c.Fresh)
	recent, err := rs.o.Forge.Recent(ctx)
	if err != nil {
		return ev, err
	}
	for _, id := range c.IDs {
		e, ok := s.Find(id)
		if !ok || e.Request == "" {
			continue
		}
		r, err := rs.viewRequest(ctx, &e, recent)
		if err != nil {
			return ev, err
		}
		ev.Requests = append(ev.Requests, r)
	}
	return ev, nil
}

// viewRequest is how one entry's pull request is.
func (rs *requests) viewRequest(ctx context.Context, e *queue.Entry, recent map[int64]forge.Request,
) (queue.Request, error) {
	r := queue.Request{ID: e.ID, URL: e.Request, Seen: e.Seen}
	number, err := strconv.ParseInt(path.Base(e.Request), 10, 64)
	if err != nil {
		r.Closed = "its pull request is unknown: " + e.Request
		return r, nil //nolint:nilerr // a person is asked
	}
	found, ok := recent[number]
	if !ok {
		found, err = rs.o.Forge.Request(ctx, number)
		if forge.Is(err, forge.NotFound) {
			r.Closed = "its pull request no longer exists: " + e.Request
			return r, nil
		}
	}
	if err == nil && found.State == forge.Opened && e.Status == queue.Proposed {
		found, err = rs.lookAtOpen(ctx, e, found, &r)
	}
	if err != nil {
		return r, err
	}
	switch found.State {
	case forge.Merged:
		on, err := rs.hasArrived(ctx, found.Commit)
		if on {
			r.Merged = found.Commit
			r.Since, err = rs.beforeMerged(ctx, e, found)
		}
		return r, err
	case forge.Closed:
		r.Closed = "its pull request was closed without being merged: " + e.Request
	}
	return r, nil
}

// once is before the state of a request that was looked at once.
const once = "once "

// lookAtOpen takes in what people pushed, looks for what they and checks say of an open request, brings it
// up to date and merges it, in this order.
func (rs *requests) lookAtOpen(ctx context.Context, e *queue.Entry, found forge.Request, r *queue.Request,
) (forge.Request, error) {
	own, err := rs.o.Repo.Find(ctx, "refs/pawl/pushed/"+branchOf(e.ID))
	if err != nil {
		return found, err
	}
	if found.Head != own {
		return found, rs.bringPushed(ctx, e, found, own, r)
	}
	seen := found.Updated + " " + found.Head
	if seen != e.Seen {
		if err := rs.readComments(ctx, e, found, r); err != nil || r.Said != "" {
			return found, err
		}
		// Each state is looked at twice: a forge counts in seconds, and something may
		// be said in the second of the first look.
		if r.Seen = seen; e.Seen != once+seen {
			r.Seen = once + seen
		}
	}
	look := rs.looks.Of(e.ID, seen)
	in := slices.Contains(e.Heard, queuedNote(found)) // the forge's merge queue, which drops what pawl pushes to
	if !rs.looks.IsDue(look) {
		if r.Why = look.Why; !in {
			r.Behind, err = rs.isBehind(ctx, found.Head)
		}
		return found, err
	}
	green, err := rs.askChecks(ctx, e, found, r)
	if look.Why = r.Why; err != nil || r.Red != "" {
		return found, err
	}
	if green && rs.o.AutoMerge {
		in, err = rs.enqueueHead(ctx, found, r, in)
		if look.Why = r.Why; err != nil || in {
			return found, err
		}
	}
	r.Behind, err = rs.isBehind(ctx, found.Head)
	if err != nil || r.Behind || !green || !rs.o.AutoMerge || r.Why != "" {
		return found, err
	}
	r.Why, err = rs.o.Forge.Merge(ctx, found.Number, found.Head)
	if look.Why = r.Why; err != nil || r.Why != "" {
		return found, err
	}
	return rs.o.Forge.Request(ctx, found.Number)
}

// bringPushed brings here what somebody put on top of pawl's commits. What replaced them is left alone.
func (rs *requests) bringPushed(ctx context.Context, e *queue.Entry, found forge.Request, own string,
	r *queue.Request) error {
	here, err := rs.fetchHead(ctx, e.ID, found)
	if err != nil || found.Head == e.Commit { // it is being verified
		return err
	}
	on, err := rs.o.Repo.IsAncestor(ctx, own, found.Head)
	switch {
	case err != nil:
	case on:
		r.Pushed = found.Head
		return rs.o.Repo.SetRefs(ctx, queuedTaskRef(e.ID), found.Head)
	case !here: // else it is one of pawl's: the forge has not seen the last push yet
		r.Why = "somebody else replaced its commits, so pawl leaves it alone"
	}
	return err
}

// fetchHead brings the head of a request here. wasHere: it was.
func (rs *requests) fetchHead(ctx context.Context, id string, found forge.Request) (wasHere bool, err error) {
	if here, err := rs.o.Repo.Find(ctx, found.Head); err != nil || here != "" {
		return here != "", err
	}
	bounded, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	head := queuedTaskRef("request/" + id)
	_, err = rs.o.Repo.Fetch(bounded, rs.remote.name, fmt.Sprintf("refs/pull/%d/head", found.Number), head)
	return false, errors.Join(err, rs.o.Repo.DropRefs(ctx, head))
}

// queuedNote is the note that a request was put into the forge's merge queue, as it is.
func queuedNote(found forge.Request) string { return "in the merge queue: " + found.Head }

// enqueueHead puts a request into the forge's merge queue, once, and follows it there. It is
// true while it is in; where the branch has no such queue nothing is done.
func (rs *requests) enqueueHead(ctx context.Context, found forge.Request, r *queue.Request, was bool,
) (in bool, err error) {
	place, err := rs.o.Forge.Enqueue(ctx, found.Number, found.Head, !was)
	switch in = place.At > 0; {
	case in && !was:
		r.Heard = append(r.Heard, queuedNote(found))
		fallthrough
	case in:
		r.Why = fmt.Sprintf("it is in the forge's merge queue, at place %d", place.At)
	case place.Why != "":
		r.Why = "the forge's merge queue does not take it: " + place.Why
	case place.Queue:
		r.Why = "the forge's merge queue took it out; put it there again, or comment on what is to change"
	}
	return in, err
}

// isBehind reports whether the target has commits that a request lacks.
func (rs *requests) isBehind(ctx context.Context, head string) (bool, error) {
	if _, err := rs.askRemote(ctx, false); err != nil || !rs.remote.known {
		return false, err
	}
	tip, err := rs.o.Repo.Find(ctx, rs.trackingRef())
	if err != nil || tip == "" {
		return false, err
	}
	has, err := rs.o.Repo.IsAncestor(ctx, tip, head)
	return !has, err
}

// beforeMerged is the target's commit before those that the forge put there for a request, where they are several:
// by a rebase or a fast-forward.
func (rs *requests) beforeMerged(ctx context.Context, e *queue.Entry, found forge.Request) (string, error) {
	_, err := rs.fetchHead(ctx, e.ID, found) // another machine's, or somebody else pushed to it
	own, ferr := rs.o.Repo.Find(ctx, "refs/pawl/pushed/"+branchOf(e.ID))
	if err != nil || ferr != nil {
		return "", errors.Join(err, ferr)
	}
	return rs.o.Repo.BeforeSeries(ctx, cmp.Or(own, found.Head), found.Head, found.Commit)
}

// hasArrived brings the target here and reports whether a commit is on it.
func (rs *requests) hasArrived(ctx context.Context, commit string) (bool, error) {
	if commit == "" {
		return false, nil
	}
	rs.remote.at = time.Time{}
	var f queue.Facts
	if _, err := rs.fetchTarget(ctx, &f, false); err != nil {
		return false, err
	}
	tip, err := rs.o.Repo.Find(ctx, rs.trackingRef())
	if err != nil || tip == "" {
		return false, err
	}
	return rs.o.Repo.IsAncestor(ctx, commit, tip)
}

const (
	saidMost  = 32 << 10 // bytes of all that is said, for an agent
	remarkMax = 4 << 10  // of one remark
)

// readComments takes in what people who may write said since. It was written outside of
// pawl, so it is quoted.
func (rs *requests) readComments(ctx context.Context, e *queue.Entry, found forge.Request, r *queue.Request) error {
	heard := lists.Set(e.Heard)
	said, err := rs.o.Forge.Remarks(ctx, found.Number, heard)
	if err != nil || len(said) == 0 {
		return err
	}
	may, err := rs.o.Forge.WritersOf(ctx, said)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, m := range said {
		r.Heard = append(r.Heard, m.Key)
		if !may[m.Author] {
			continue
		}
		b.WriteString("\n" + m.Author)
		if m.Path != "" {
			fmt.Fprintf(&b, " at %s:%d", m.Path, m.Line)
		}
		b.WriteString(":\n" + board.Quoted(m.Body, remarkMax))
	}
	r.Said = fault.Cut(b.String(), saidMost)
	return nil
}

// askChecks asks for those that are required. Red ones are reported once for a commit.
func (rs *requests) askChecks(ctx context.Context, e *queue.Entry, found forge.Request, r *queue.Request,
) (green bool, err error) {
	told := "checks of " + found.Head
	if len(rs.o.Required) == 0 || slices.Contains(e.Heard, told+" are green") {
		return true, nil
	}
	all, err := rs.o.Forge.Checks(ctx, found.Head)
	if err != nil {
		return false, err
	}
	red, left := splitRequired(all, rs.o.Required)
	green = len(red)+len(left) == 0
	switch {
	case green:
		r.Heard = append(r.Heard, told+" are green")
	case len(red) == 0:
		r.Why = "it waits for its checks: " + strings.Join(left, ", ")
	case !slices.Contains(e.Heard, told):
		r.Heard = append(r.Heard, told)
		r.Red, err = rs.endsOfRedLogs(ctx, red)
	default:
		r.Why = "its checks are red"
	}
	return green, err
}

// endsOfRedLogs is the end of what red checks printed.
func (rs *requests) endsOfRedLogs(ctx context.Context, red []forge.Check) (string, error) {
	var b strings.Builder
	for _, k := range red {
		text, err := rs.o.Forge.Log(ctx, k)
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(text)
		text = strings.ToValidUTF8(text[max(0, len(text)-saidMost/len(red)):], "")
		fmt.Fprintf(&b, "\nThe check %s is red:\n> %s\n", k.Name, strings.ReplaceAll(text, "\n", "\n> "))
	}
	return b.String(), nil
}
