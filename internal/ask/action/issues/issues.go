// Package issues makes tasks of the issues of a forge, and says there what becomes of the work.
package issues

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/action"
	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/report"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// Source says which issues of a forge are tasks of the board.
type Source struct {
	Forge    *forge.Client
	Label    string // of those that are
	StateDir string
	Target   string // that their work lands on
	Close    bool   // what has landed is there for all, so its issue is closed
}

// seenIssue is what pawl knows of an issue, in a file beside the board. Whatever
// is done is done before it is written here, and does no harm when it is
// done again.
type seenIssue struct {
	State   string `json:"state,omitempty"`   // that was looked at last
	Text    string `json:"text,omitempty"`    // of the task that was made of it, as a hash
	Since   string `json:"since,omitempty"`   // comments are asked for from here
	Heard   int64  `json:"heard,omitempty"`   // the last comment that an agent was given
	Comment int64  `json:"comment,omitempty"` // pawl's own
	Told    string `json:"told,omitempty"`    // what that says, as a hash
	Closed  bool   `json:"closed,omitempty"`  // by pawl
}

// issueSync is one pass over the issues.
type pass struct {
	*action.Operator
	o     Source
	path  string
	known struct {
		Board  string               `json:"board"` // of which the comment is: several boards may write one
		Issues map[int64]*seenIssue `json:"issues"`
	}
	me      string
	writers map[string]bool
	tasks   map[int64]board.Case
	open    map[int64]bool
	fresh   []board.Case // to be added
}

// Sync makes tasks of issues, lets them follow what people write there until
// work has begun, gives answers to agents, and says there what became of the
// work. It is safe to repeat, and to end at any moment.
func Sync(ctx context.Context, p *action.Operator, o Source) error {
	s, done, err := beginSync(ctx, p, o)
	if err != nil {
		return err
	}
	defer done()
	list, err := o.Forge.Issues(ctx, o.Label)
	if err != nil {
		return err
	}
	cases, err := p.Store.Cases(ctx, store.CaseFilter{Issues: true})
	if err != nil {
		return err
	}
	for _, c := range cases {
		if n := c.Issue(); n > 0 {
			s.tasks[n] = c
		}
	}
	for i := range list {
		s.open[list[i].Number] = true
		if err := s.syncIssue(ctx, &list[i]); err != nil {
			return err
		}
	}
	if err := s.addTasks(ctx); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(s.tasks)) {
		if err := s.deferUnwantedTask(ctx, n, s.tasks[n]); err != nil {
			return err
		}
		if err := s.updateIssue(ctx, n, s.tasks[n]); err != nil {
			return err
		}
	}
	return s.saveKnown()
}

// beginSync begins a pass, which no other process makes at the same time.
func beginSync(ctx context.Context, p *action.Operator, o Source) (s *pass, done func(), err error) {
	s = &pass{Operator: p, o: o, path: filepath.Join(o.StateDir, "issues.json"), writers: map[string]bool{},
		tasks: map[int64]board.Case{}, open: map[int64]bool{}}
	lock, err := files.Lock(ctx, filepath.Join(o.StateDir, "issues.lock"))
	if err != nil {
		return nil, nil, err
	}
	done = func() { _ = lock.Close() }
	if err = s.loadKnown(); err != nil {
		done()
	}
	return s, done, err
}

// Claim says at a task's issue that work on it begins, unless the pawl of another board
// was first: then it says why the task is not to begin. It is safe to repeat.
func Claim(ctx context.Context, p *action.Operator, o Source, c board.Case) (why string, err error) {
	s, done, err := beginSync(ctx, p, o)
	if err != nil {
		return "", err
	}
	defer done()
	n := c.Issue()
	if err := s.writeComment(ctx, n, describeWorking(c)); err != nil {
		return "", err
	}
	said, err := s.trustedComments(ctx, &forge.Issue{Number: n, Said: 1}, "")
	if err != nil || !s.isElsewhere(said) {
		return "", err
	}
	return elsewhere, s.writeComment(ctx, n, "Another board works on this; this board does not.")
}

// loadKnown reads what is known. A file that cannot be read counts as none: then
// what was said before is not said again.
func (s *pass) loadKnown() error {
	text, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if json.Unmarshal(text, &s.known) != nil || s.known.Board == "" {
		s.known.Board, s.known.Issues = rand.Text()[:12], nil
	}
	if s.known.Issues == nil {
		s.known.Issues = map[int64]*seenIssue{}
	}
	return s.saveKnown()
}

func (s *pass) saveKnown() error {
	text, err := json.Marshal(s.known)
	if err != nil {
		return err
	}
	return files.Replace(s.path, text, 0o600, false)
}

func (s *pass) seenIssueOf(n int64) *seenIssue {
	if s.known.Issues[n] == nil {
		s.known.Issues[n] = &seenIssue{}
	}
	return s.known.Issues[n]
}

// skipRefused prints a warning for an error of the forge that is about one issue only, and
// returns nil. Any other error is returned, and ends the pass.
func (s *pass) skipRefused(n int64, err error) error {
	if no, ok := errors.AsType[*forge.Error](err); ok && no.Status != forge.NoToken {
		s.Say("Warning: issue #%d: %v", n, err)
		return nil
	}
	return err
}

// syncIssue takes over what has changed of an issue. A forge's times have a resolution of
// a second, so the time alone does not show a change.
func (s *pass) syncIssue(ctx context.Context, i *forge.Issue) error {
	seen, old := s.seenIssueOf(i.Number), s.tasks[i.Number]
	if old.Status == board.Deferred && strings.HasPrefix(old.Why, goneWhy) {
		if err := s.changeTaskStatus(ctx, i.Number, board.Undefer, "its issue is open again"); err != nil {
			return err
		}
	}
	state := i.Updated + " " + hashText(fmt.Sprintf("%q %q %q %d", i.Title, i.Body, i.Labels, i.Said))
	if seen.State == state || old.Status == board.Done { // also of a task that was removed
		return nil
	}
	run, begun, err := s.lastRunOf(ctx, old.ID)
	if err != nil {
		return err
	}
	since := ""
	if begun {
		since = seen.Since
	}
	said, err := s.trustedComments(ctx, i, since)
	if err != nil {
		return err
	}
	switch {
	case begun:
		if agentGetsComments(old.Status) {
			err = s.deliverComments(ctx, i, run, said)
			seen.Since = i.Updated
		}
	case s.isElsewhere(said):
		err = s.leaveToBoard(ctx, i.Number, old)
	default:
		err = s.updateTask(ctx, i, old, said)
	}
	notAdded := old.ID == "" && seen.Text != ""
	if err != nil || notAdded {
		return err
	}
	seen.State = state
	return s.saveKnown()
}

// agentGetsComments reports whether new comments on the issue reach the agent of a task
// with that status.
func agentGetsComments(status board.Status) bool {
	return status == board.Active || status == board.Pending || status == board.Blocked
}

// lastRunOf is the last run of a task; begun is false when there is none.
func (s *pass) lastRunOf(ctx context.Context, id string) (r store.Run, begun bool, err error) {
	if id == "" {
		return r, false, nil
	}
	r, err = s.Store.Latest(ctx, s.Root, id)
	if errors.Is(err, store.ErrNotFound) {
		return r, false, nil
	}
	return r, err == nil, err
}

// trustedComments returns the comments since then by people who may write to the
// repository, pawl's own included. An empty comment is left out.
func (s *pass) trustedComments(ctx context.Context, i *forge.Issue, since string) ([]forge.Remark, error) {
	if i.Said == 0 {
		return nil, nil
	}
	all, err := s.o.Forge.Talk(ctx, i.Number, since)
	if err != nil {
		return nil, s.skipRefused(i.Number, err)
	}
	all = slices.DeleteFunc(all, func(r forge.Remark) bool { return !r.May || strings.TrimSpace(r.Body) == "" })
	var ask []string
	for _, r := range slices.Backward(all) {
		_, known := s.writers[r.Author]
		if !known && !slices.Contains(ask, r.Author) && len(ask) < authorsMost {
			ask = append(ask, r.Author)
		}
	}
	if len(ask) > 0 {
		may, err := s.o.Forge.Writers(ctx, ask)
		if err != nil {
			return nil, s.skipRefused(i.Number, err)
		}
		for _, login := range ask {
			s.writers[login] = may[login]
		}
	}
	return slices.DeleteFunc(all, func(r forge.Remark) bool { return !s.writers[r.Author] }), nil
}

// authorsMost is how many people of one issue are asked for.
const authorsMost = 20

// isElsewhere is true when another board's pawl was the first to say something.
func (s *pass) isElsewhere(said []forge.Remark) bool {
	i := slices.IndexFunc(said, func(r forge.Remark) bool { return strings.Contains(r.Body, forge.Mark) })
	return i >= 0 && !strings.Contains(said[i].Body, s.boardMark())
}

const elsewhere = "another board works on its issue"

func (s *pass) boardMark() string { return "<!-- board " + s.known.Board + " -->" }

// leaveToBoard leaves an issue to another board.
func (s *pass) leaveToBoard(ctx context.Context, n int64, old board.Case) error {
	switch old.Status {
	case "":
		s.Say("Issue #%d did not become a task: another board works on it.", n)
	case board.Pending, board.Blocked:
		return s.changeTaskStatus(ctx, n, board.Defer, elsewhere)
	}
	return nil
}

// updateTask makes a task of an issue, or updates it to the issue's present text.
func (s *pass) updateTask(ctx context.Context, i *forge.Issue, old board.Case, said []forge.Remark) error {
	issue := board.Issue{Number: i.Number, URL: i.URL, Title: i.Title, Body: i.Body, Author: i.Author}
	isOurs := func(label string) bool { return strings.EqualFold(label, s.o.Label) }
	issue.Labels = slices.DeleteFunc(slices.Clone(i.Labels), isOurs)
	seen := s.seenIssueOf(i.Number)
	for _, r := range said {
		if seen.Heard = max(seen.Heard, r.ID); !strings.Contains(r.Body, forge.Mark) {
			issue.Said = append(issue.Said, board.Saying{Author: r.Author, Text: r.Body})
		}
	}
	c := issue.Case()
	named := fmt.Sprintf("%q %q %q %q %q", c.Title, c.Description, c.Acceptance, c.Needs, c.Tags)
	confirm := false
	if len(c.Verify) > 0 {
		named += fmt.Sprintf(" %q", c.Verify)
		may, err := s.authorMayWrite(ctx, i)
		if confirm = !may; err != nil {
			return err
		}
	}
	text := hashText(named)
	if was := seen.Text; was == text && old.ID != "" {
		return nil
	}
	seen.Text = text
	if old.ID == "" {
		if confirm {
			c.Status, c.Why = board.Blocked, board.ChecksToConfirm
		}
		s.fresh = append(s.fresh, c)
		return nil
	}
	_, err := s.Store.EditCase(ctx, old.ID, board.Pawl, time.Now(), func(to *board.Case) error {
		own := slices.DeleteFunc(slices.Clone(to.Needs), s.isTaskOfIssue)
		checks := append(slices.DeleteFunc(slices.Clone(to.Verify), board.TaskCheck.OfIssue), c.Verify...)
		now := board.Checks{Verify: checks, Sealed: to.Sealed}
		confirm = confirm && !now.Same(to.Checks)
		to.Checks = now
		// A tag that acts is a person's: no label becomes one.
		set := slices.DeleteFunc(slices.Clone(to.Tags), func(tag string) bool { return !board.Acts(tag) })
		to.Title, to.Description, to.Acceptance = c.Title, c.Description, c.Acceptance
		to.Tags = slices.Concat(c.Tags, set)
		to.Needs = slices.Concat(own, s.needsOnBoard(c.Needs))
		return nil
	})
	if fault.Is[*board.CycleError](err) || fault.Is[*board.RefusalError](err) {
		s.Say("Warning: %s does not follow its issue: %v", old.ID, err)
		return nil
	}
	if err == nil && confirm && old.Status == board.Pending {
		err = s.changeTaskStatus(ctx, i.Number, board.Block, board.ChecksToConfirm)
	}
	if err == nil {
		s.Say("%s follows issue #%d: %s", old.ID, i.Number, report.Line(c.Title, 100))
	}
	return err
}

// authorMayWrite reports whether who wrote an issue may write in the repository, too.
func (s *pass) authorMayWrite(ctx context.Context, i *forge.Issue) (bool, error) {
	if _, known := s.writers[i.Author]; !known {
		may, err := s.o.Forge.WritersOf(ctx, []forge.Remark{{Author: i.Author}})
		if err != nil {
			return false, s.skipRefused(i.Number, err)
		}
		s.writers[i.Author] = may[i.Author]
	}
	return s.writers[i.Author], nil
}

func (s *pass) isTaskOfIssue(id string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.tasks)), func(c board.Case) bool { return c.ID == id })
}

// needsOnBoard returns the ids of issues that are on the board.
func (s *pass) needsOnBoard(refs []string) (ids []string) {
	for _, ref := range refs {
		if c, ok := s.tasks[(&board.Case{Ref: ref}).Issue()]; ok {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// addTasks adds the new tasks, each after those that it needs. Where they need each
// other in a circle, one of them waits for less.
func (s *pass) addTasks(ctx context.Context) error {
	var linked []board.Case
	for len(s.fresh) > 0 {
		at := slices.IndexFunc(s.fresh, func(c board.Case) bool {
			return !slices.ContainsFunc(s.fresh, func(o board.Case) bool { return slices.Contains(c.Needs, o.Ref) })
		})
		at = max(at, 0)
		c := s.fresh[at]
		s.fresh = slices.Delete(s.fresh, at, at+1)
		if len(c.Needs) > 0 {
			linked = append(linked, c)
		}
		c.Needs = s.needsOnBoard(c.Needs)
		added, err := s.Store.AddCases(ctx, []board.Draft{{Case: c}}, board.Pawl, time.Now())
		if err != nil {
			return fmt.Errorf("cannot create a task from issue #%d: %w", c.Issue(), err)
		}
		s.tasks[c.Issue()] = added[0]
		s.Say("Issue #%d is %s: %s", c.Issue(), added[0].ID, report.Line(c.Title, 100))
	}
	for _, c := range linked {
		if err := s.addNeeds(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// addNeeds gives a new task the needs that were not on the board when it was added.
func (s *pass) addNeeds(ctx context.Context, c board.Case) error {
	id, needs := s.tasks[c.Issue()].ID, s.needsOnBoard(c.Needs)
	isHere := func(ref string) bool { return len(s.needsOnBoard([]string{ref})) > 0 }
	if away := slices.DeleteFunc(slices.Clone(c.Needs), isHere); len(away) > 0 {
		s.Say("Note: issue #%d depends on something that is not on the board: %s", c.Issue(), strings.Join(away, ", "))
	}
	for _, need := range needs {
		if slices.Contains(s.tasks[c.Issue()].Needs, need) {
			continue
		}
		_, err := s.Store.EditCase(ctx, id, board.Pawl, time.Now(), func(to *board.Case) error {
			to.Needs = append(to.Needs, need)
			return nil
		})
		switch {
		case fault.Is[*board.CycleError](err), fault.Is[*board.RefusalError](err):
			s.Say("Note: %s does not wait for %s: %v", id, need, err)
		case err != nil:
			return err
		}
	}
	return nil
}

const goneWhy = "its issue "

// deferUnwantedTask defers a task that is not worked on and whose issue is not wanted any more.
func (s *pass) deferUnwantedTask(ctx context.Context, n int64, c board.Case) error {
	waits := c.Status == board.Pending || c.Status == board.Blocked
	if s.open[n] || !waits {
		return nil
	}
	i, err := s.o.Forge.Issue(ctx, n)
	why := goneWhy
	switch {
	case forge.Is(err, forge.NotFound):
		why += "no longer exists"
	case err != nil:
		return s.skipRefused(n, err)
	case !i.Open && s.seenIssueOf(n).Closed: // by pawl, when it landed, which was taken back
		if err := s.o.Forge.SetIssueOpen(ctx, n, true); err != nil {
			return s.skipRefused(n, err)
		}
		s.seenIssueOf(n).Closed = false
		s.Say("Issue #%d is open again: what %s landed was reverted.", n, c.ID)
		return s.saveKnown()
	case !i.Open:
		why += "is closed"
	case !i.HasLabel(s.o.Label):
		why += "has lost the label " + s.o.Label
	default:
		return nil
	}
	return s.changeTaskStatus(ctx, n, board.Defer, why)
}

// changeTaskStatus changes the status of a task in the name of the people at the forge.
func (s *pass) changeTaskStatus(ctx context.Context, n int64, action board.Action, why string) error {
	c := s.tasks[n]
	moved, err := s.Store.MoveCase(ctx, c.ID, board.Change{Action: action, By: board.Person, Why: why, At: time.Now()})
	if fault.Is[*board.RefusalError](err) { // an autopilot took it meanwhile
		return nil
	}
	if err == nil {
		s.tasks[n] = moved
		s.Say("%s is %s: %s", c.ID, moved.Status, report.Line(why, 200))
	}
	return err
}
