package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file knows where a phrase is only spoken of: in quotes, in code that
// prose shows, in a difference of files, in what an agent says that it did.

// mentioned tells whether the phrase at a place is spoken of and reports nothing.
func (p *spot) mentioned() bool {
	return narrated().MatchString(p.l) || p.inQuotes() || p.inDifference() || p.inFence()
}

// narrated begins what an agent tells of its work.
var narrated = lazy.Regexp(`^\W*(?:(?:I|We)(?:'ve| have)? (?:also |then |now )?)?(?i:added|implemented|wrote|changed|updated|fixed|documented|` +
	`replaced|created|refactored|tested|removed|handled|renamed) `)

var (
	// quotedName ends what stands before the name of a thing, and not a message.
	quotedName = lazy.Regexp(`(?i)\b(?:column|table|relation|type|variable|property|function|field|key|method|constant|heading|member) $`)
	// aboutIt ends what stands before a quotation in a sentence.
	aboutIt = lazy.Regexp(`[a-z] $`)
	// advised ends what stands before a command that should be run.
	advised = lazy.Regexp(`(?i)(?:run|use|try|using|with)[: ]+$`)
)

// reporting are words of a sentence that reports an error, and quotes it.
var reporting = []string{"error", "fatal", "fail", "exception", "cannot", "could", "unable", "refused"}

// inQuotes tells whether the phrase is in quotes or backticks, and what stands
// around them reports no error.
func (p *spot) inQuotes() bool {
	before := p.before()
	for _, mark := range []string{"`", `"`, "'"} {
		if strings.Count(before, mark)%2 == 0 {
			continue
		}
		from := strings.LastIndex(before, mark)
		head, rest := before[:from], p.after()
		_, tail, closed := strings.Cut(rest, mark)
		if !closed {
			continue
		}
		reports := words.HasAny(words.Small(head+tail), reporting)
		switch {
		case quotedName().MatchString(head), mark == "`" && !advised().MatchString(head) &&
			!strings.Contains(rest[:len(rest)-len(tail)], " "):
			return true
		case aboutIt().MatchString(head) && !reports && !advised().MatchString(head):
			return true
		}
	}
	return false
}

// inDifference tells whether the line is one of a difference of two files.
func (p *spot) inDifference() bool {
	for i := p.line; i >= max(0, p.line-maxTries); i-- {
		l := p.h.t.line(i)
		switch {
		case l == "" || !strings.ContainsAny(l[:1], "+-@ "):
			return false
		case strings.HasPrefix(l, "@@ "), strings.HasPrefix(l, "+++ "):
			return i < p.line
		}
	}
	return false
}

// inFence tells whether the line is in a block of code of a text in Markdown.
func (p *spot) inFence() bool {
	before, _ := slices.BinarySearch(p.h.fences, p.line)
	return before%2 == 1 && before < len(p.h.fences)
}

// fencesIn are the lines that begin or end a block of code.
func fencesIn(t text) (lines []int) {
	if !strings.Contains(t.s, "```") {
		return nil
	}
	for i := range t.len() {
		if strings.HasPrefix(strings.TrimLeft(t.line(i), " "), "```") {
			lines = append(lines, i)
		}
	}
	return lines
}
