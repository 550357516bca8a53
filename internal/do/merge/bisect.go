package merge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/queue"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/git"
)

// maxStates is how many states of the target are looked at, the last ones.
const maxStates = 10_000

// Culprit is what made a command red on the target.
type Culprit struct {
	Commit string   `json:"commit"`          // the first in which it is red
	Good   string   `json:"good"`            // the one before, in which it is green
	Tasks  []string `json:"tasks,omitempty"` // that Commit landed and that are on the board; none where a person made it
	Title  string   `json:"title"`           // the first line of its message
	Tried  int      `json:"tried"`           // states that the command ran on
	// Summary is what the command says in Commit.
	Summary string `json:"summary"`
}

// ErrGreen is that nothing is red on the target as it is.
var ErrGreen = errors.New("is green")

// Bisect finds the landing that made gates red: by halves, among the states that the target had one after the
// other, each without what was taken back since. good is a commit in which they are known to be green; with
// "", or if it is not on the target, one is looked for. tried is called after each try; its error ends the search.
func (q *Queue) Bisect(ctx context.Context, gates []gate.Spec, good string,
	tried func(commit string, r gate.Report) error) (Culprit, error) {
	tip, err := q.askRemoteForTip(ctx)
	if err == nil && tip == "" {
		err = fault.Refuse("there is no branch %s", branchName(q.ref))
	}
	if err != nil {
		return Culprit{}, err
	}
	if on, err := q.o.Repo.IsAncestor(ctx, good, tip); err != nil || !on {
		good = "" // none is known, or the target was rewritten
	}
	b := bisection{q: q, gates: gates, tried: tried, seen: map[string]gate.Report{}}
	if b.landed, err = q.o.Store.Landings(ctx, q.ref, "", maxStates); err != nil {
		return Culprit{}, err
	}
	b.reverted = queue.Reverted(b.landed)
	line, err := q.o.Repo.Landings(ctx, good, tip, nil, maxStates)
	if err != nil {
		return Culprit{}, err
	}
	isInside := queue.IsInside(b.landed) // such a state was never verified
	line = slices.DeleteFunc(line, func(l git.Landing) bool { return isInside(l.Commit) })
	if good != "" {
		line = append(line, git.Landing{Commit: good})
	}
	red, err := b.isCommitRed(ctx, tip)
	switch {
	case err != nil:
		return Culprit{}, err
	case !red:
		return Culprit{}, fault.Refuse("it %w on %s, at %.10s: there is nothing to find", ErrGreen,
			branchName(q.ref), tip)
	}
	at, err := b.findFirstRed(ctx, line, good != "")
	if err != nil {
		return Culprit{}, err
	}
	found := Culprit{Commit: line[at].Commit, Good: line[at+1].Commit}
	title := line[at].Message
	together := func(l queue.Landing) bool { return l.To == found.Commit }         // messages may lie
	if found.Tasks = queue.TasksLanded(b.landed, together); len(found.Tasks) > 1 { // a line beside the target has each
		inside, err := q.o.Repo.Landings(ctx, found.Good, found.Commit+"^2", nil, maxStates)
		if err != nil {
			return Culprit{}, err
		}
		inside = append(inside, git.Landing{Commit: found.Good})
		if at, err = b.findFirstRed(ctx, inside, true); err != nil {
			return Culprit{}, err
		}
		found.Commit, found.Good, title = inside[at].Commit, inside[at+1].Commit, inside[at].Message
		found.Tasks = queue.TasksLanded(b.landed, func(l queue.Landing) bool { return l.Commit == found.Commit })
	}
	found.Tasks = slices.DeleteFunc(found.Tasks, func(id string) bool {
		_, err := q.o.Store.Case(ctx, id)
		return err != nil
	})
	found.Title, _, _ = strings.Cut(title, "\n")
	found.Tried, found.Summary = len(b.seen), b.seen[found.Commit].Summary
	return found, nil
}

// Judge runs gates on a commit as they run before a landing. What they come to is not kept.
func (q *Queue) Judge(ctx context.Context, commit string, gates []gate.Spec) (gate.Report, error) {
	tree, err := q.o.Repo.TreeOf(ctx, commit)
	if err != nil {
		return gate.Report{}, err
	}
	r, err := q.checks.runGates(ctx, commit, tree, gates, false)
	switch {
	case err != nil:
	case r.Stopped:
		err = fmt.Errorf("cannot judge %.10s: the gates were interrupted", commit)
	case r.Failure != nil && strings.HasPrefix(r.Failure.Step, setUpName):
		err = fault.Refuse("cannot judge %.10s: %s", commit, r.Summary).
			Hint("Name a later commit in which it is green: --good COMMIT")
	}
	return r, err
}

// bisection is one search.
type bisection struct {
	q        *Queue
	gates    []gate.Spec
	tried    func(string, gate.Report) error
	seen     map[string]gate.Report
	landed   []queue.Landing
	reverted []queue.RevertedLanding
}

// withoutReverted returns a commit with the files of a state of the target, less what was taken back after it.
// What made that state red is known already, and would hide what else does. A landing that cannot be taken out
// without a conflict stays in.
func (b *bisection) withoutReverted(ctx context.Context, commit string) (string, error) {
	repo, shadow := b.q.o.Repo, b.q.shadow
	for _, r := range b.reverted {
		has, err := repo.IsAncestor(ctx, r.Commit, commit) // an error: the target was rewritten, and it is gone
		gone, rerr := repo.IsAncestor(ctx, r.Revert, commit)
		if err != nil || rerr != nil || !has || gone {
			continue
		}
		before, err := repo.TreeOf(ctx, r.Before())
		if err != nil {
			return "", err
		}
		undo, err := shadow.CommitTree(ctx, shadow.Who, before, "Revert "+r.Commit, r.Commit)
		if err != nil {
			return "", err
		}
		m, err := repo.MergeTree(ctx, commit, undo)
		if err == nil && m.Clean {
			commit, err = shadow.CommitTree(ctx, shadow.Who, m.Tree, "Without "+r.Commit, commit)
		}
		if err != nil {
			return "", err
		}
	}
	return commit, nil
}

// isCommitRed runs the gates on a commit, once.
func (b *bisection) isCommitRed(ctx context.Context, commit string) (bool, error) {
	r, ok := b.seen[commit]
	if ok {
		return r.Failure != nil, nil
	}
	state, err := b.withoutReverted(ctx, commit)
	if err == nil {
		r, err = b.q.Judge(ctx, state, b.gates)
	}
	if err != nil {
		return false, err
	}
	b.seen[commit] = r
	return r.Failure != nil, b.tried(commit, r)
}

// findFirstRed finds the place in a line, the last commit first, of the first red commit that follows a green one. The
// last is red; with greenEnd the first is taken for green if it is.
func (b *bisection) findFirstRed(ctx context.Context, line []git.Landing, greenEnd bool) (int, error) {
	red, green := 0, len(line)-1
	if !greenEnd { // most often the cause is not long ago
		for green = 1; green < len(line)-1; green *= 2 {
			isRed, err := b.isCommitRed(ctx, line[green].Commit)
			if err != nil {
				return 0, err
			}
			if !isRed {
				break
			}
			red = green
		}
		green = min(green, len(line)-1)
	}
	if isRed, err := b.isCommitRed(ctx, line[green].Commit); err != nil || isRed {
		if err == nil {
			err = fault.Refuse("it is already red in %.10s, and no earlier commit is known", line[green].Commit).
				Hint("Name a commit in which it is green: --good COMMIT")
		}
		return 0, err
	}
	for green-red > 1 {
		middle := (red + green) / 2
		isRed, err := b.isCommitRed(ctx, line[middle].Commit)
		if err != nil {
			return 0, err
		}
		if isRed {
			red = middle
		} else {
			green = middle
		}
	}
	return red, nil
}
