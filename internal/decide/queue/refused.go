package queue

import (
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// What remotes say against commits, and what they say where no other commits would help.
var (
	aboutCommits = lazy.Regexp(`(?i)commit\S*[ -](message|subject|title|description)|` +
		`message\S* (must|should|does|is|has|needs|lacks)|subject line|sign(ed)?[- ]?off|\bDCO\b|change-id|trailer|` +
		`conventional commit|commitlint|(ticket|issue|jira)\S* (key|number|id\b|reference)|` +
		`(reference|mention|contain|include|missing|without|no|needs?) .{0,30}(ticket|issue|jira)|` +
		`secret|large file|file size|too large|larger than|whitespace|conflict marker`)
	aboutBranch = lazy.Regexp(`(?i)protected branch|not allowed to push|permission|read[- ]only|archived|gpg|` +
		`verified signature|(pull|merge) request`)
)

// IsAboutCommits reports whether a remote that refused a push refuses what the commits say or bring, so that
// others may be taken. A branch that is protected takes none.
func IsAboutCommits(words string) bool {
	return aboutCommits().MatchString(words) && !aboutBranch().MatchString(words)
}

// takeRefusedCommits takes in that the remote takes no such commits, and that nothing has moved. Those of a batch
// are tried by halves.
func (s *turn) takeRefusedCommits(b *Batch, why string, now time.Time) {
	if len(b.Steps) > 1 {
		s.halveBatch(b, now)
		return
	}
	s.Suspects = nil // without it the others may be taken
	if e := s.entryOfTask(b.Steps[0].ID); e != nil {
		s.remakeRefused(e, why, now)
	}
	s.nextCommand(now)
}

// remakeRefused tries an entry once more with its own message, and then has an agent make its commits anew.
func (s *turn) remakeRefused(e *Entry, why string, now time.Time) {
	if !e.Worded {
		e.Worded, e.Status = true, Waiting
		return
	}
	s.askToResolve(e, why, &Problem{Class: Medium, Tip: s.Tip, Refused: why}, now)
}
