package issues

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/engine/storedrun"
	"github.com/pawl-dev/pawl/internal/do/forge"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// deliverComments gives the agent of a task what people said since: as the answer, where it asks.
func (s *pass) deliverComments(ctx context.Context, i *forge.Issue, run store.Run, said []forge.Remark) error {
	seen := s.seenIssueOf(i.Number)
	var b strings.Builder
	last := seen.Heard
	for _, r := range said {
		if last = max(last, r.ID); r.ID > seen.Heard && !strings.Contains(r.Body, forge.Mark) && b.Len() < 32<<10 {
			b.WriteString(board.Saying{Author: r.Author, Text: r.Body}.Quoted())
		}
	}
	if b.Len() > 0 {
		text := strings.TrimSpace(fmt.Sprintf("On issue #%d %s", i.Number, b.String()))
		if err := s.storeMessage(ctx, i.Number, run, text); err != nil {
			return err
		}
		s.Say("Passed the comments on issue #%d to %s.", i.Number, run.Name)
	}
	seen.Heard = last
	return nil
}

// storeMessage stores words for a run once, and lets a task that waited for them go on.
func (s *pass) storeMessage(ctx context.Context, n int64, run store.Run, text string) error {
	quiet := s.WithoutWords()
	waiting, err := s.Store.Controls(ctx, run.ID)
	if err != nil {
		return err
	}
	stored := slices.ContainsFunc(waiting, func(c store.Control) bool { return c.Text == text })
	blocked := s.tasks[n].Status == board.Blocked
	switch {
	case stored && blocked:
		return quiet.Reopen(ctx, run, "answered on the issue")
	case stored:
		return nil
	case blocked:
		if _, err = quiet.Answer(ctx, run, "", []string{text}); err == nil {
			return nil
		}
	}
	if err = quiet.Message(ctx, run, text, fmt.Sprintf("issue #%d", n)); err != nil {
		s.Say("Warning: cannot pass on the comments on issue #%d: %v", n, err)
	}
	return nil
}

// updateIssue writes the state of a task into pawl's one comment on its issue, and closes
// the issue if the task has landed.
func (s *pass) updateIssue(ctx context.Context, n int64, c board.Case) error {
	if s.known.Issues[n] == nil && !s.open[n] {
		return nil // of an earlier time
	}
	text, err := s.describeTask(ctx, n, c)
	if err != nil || text == "" {
		return err
	}
	seen := s.seenIssueOf(n)
	if seen.Told != hashText(text) {
		if err := s.writeComment(ctx, n, text); err != nil {
			return err
		}
	}
	if c.Status != board.Done || !s.o.Close || !s.open[n] || seen.Closed {
		return nil
	}
	if err := s.skipRefused(n, s.o.Forge.SetIssueOpen(ctx, n, false)); err != nil {
		return err
	}
	seen.Closed = true
	s.Say("Issue #%d is closed: %s has landed.", n, c.ID)
	return s.saveKnown()
}

// writeComment writes pawl's comment of an issue. Where it is not known, the one of an
// earlier pawl that was cut off is looked for.
func (s *pass) writeComment(ctx context.Context, n int64, text string) (err error) {
	seen := s.seenIssueOf(n)
	if s.me == "" {
		if s.me, err = s.o.Forge.User(ctx); err != nil {
			return err
		}
	}
	if seen.Comment == 0 {
		said, err := s.o.Forge.Talk(ctx, n, "")
		if err != nil {
			return s.skipRefused(n, err)
		}
		for _, r := range said {
			if r.Author == s.me && strings.Contains(r.Body, s.boardMark()) {
				seen.Comment = r.ID
			}
		}
	}
	id, err := s.o.Forge.Comment(ctx, n, seen.Comment, text+"\n\n"+forge.Mark+"\n"+s.boardMark()+"\n")
	if err != nil {
		if err := s.skipRefused(n, err); err != nil {
			return err
		}
	}
	seen.Comment, seen.Told = cmp.Or(id, seen.Comment), hashText(text)
	return s.saveKnown()
}

// describeTask describes what has become of a task; "" if that is not worth a comment.
func (s *pass) describeTask(ctx context.Context, n int64, c board.Case) (string, error) {
	run, begun, err := s.lastRunOf(ctx, c.ID)
	switch {
	case err != nil:
		return "", err
	case c.Status == board.Active:
		return describeWorking(c), nil
	case c.Status == board.Done:
		return s.describeLanded(ctx, c)
	case !begun:
		return "", nil
	}
	switch c.Status {
	case board.Blocked:
		why := c.Why
		if state, err := storedrun.StateOf(run); err == nil && state.Question != nil {
			why = state.Question.Text
		}
		if may, err := s.mayQuoteAgent(ctx, n); err != nil || !may {
			return c.ID + " has a question.", err
		}
		return fmt.Sprintf("%s has a question:\n\n%s\nAnyone who may write to this repository can answer in a comment.",
			c.ID, fenceText(why)), nil
	case board.Failed, board.Timeout:
		if may, err := s.mayQuoteAgent(ctx, n); err != nil || !may {
			return c.ID + " was abandoned.", err
		}
		return fmt.Sprintf("%s was abandoned:\n\n%s", c.ID, fenceText(c.Why)), nil
	case board.Review:
		row, _, err := s.Store.Queue(ctx, s.o.Target)
		e, _ := row.State.Find(c.ID)
		if e.Request != "" {
			return fmt.Sprintf("%s is verified, and its pull request is open: %s", c.ID, e.Request), err
		}
		return c.ID + " is verified, and waits for a review or to land.", err
	}
	return "", nil
}

// mayQuoteAgent asks whether an agent's words may stand at an issue: where its author may write. A stranger's issue
// can have an agent ask what only the person may read; the question waits in the inbox then.
func (s *pass) mayQuoteAgent(ctx context.Context, n int64) (bool, error) {
	i, err := s.o.Forge.Issue(ctx, n)
	if err != nil {
		return false, s.skipRefused(n, err)
	}
	return s.authorMayWrite(ctx, &i)
}

func describeWorking(c board.Case) string { return fmt.Sprintf("An agent works on this, as %s.", c.ID) }

func (s *pass) describeLanded(ctx context.Context, c board.Case) (string, error) {
	list, err := s.Store.Landings(ctx, s.o.Target, c.ID, 1)
	if len(list) > 0 {
		return fmt.Sprintf("%s has landed, as %s.", c.ID, list[0].Commit), err
	}
	return c.ID + " has landed.", err
}

// fenceText returns the text so that a forge shows it as it is: without markup, and
// without mentioning an account.
func fenceText(text string) string {
	const most = 4000
	text = fault.Cut(strings.ReplaceAll(board.Visible(text), "`", "'"), most)
	return "```text\n" + strings.TrimSpace(text) + "\n```\n"
}

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
