package control

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file reads what heads a part of a review.

var (
	numberedHead = lazy.Regexp(`^(?:(?i:issue|finding|comment|problem|concern) )?#?\d{1,2}(?:[.):]| -) *`)
	countBehind  = lazy.Regexp(`\s*\(\d+\)$`)
	// strengths and telling are heads of what no one has to act on, and of what only sums up.
	strengths = lazy.Regexp(`\b(?:strengths?|positives?|highlights?|pros|praises?|kudos|liked?|well done|what works|works well|went well|good (?:parts|points|things)|` +
		`(?:what|what's|what is|looks?|the) good|great stuff|done well|thanks?|acknowledge?ments?|no issues|passed checks|strong points|resolved|already (?:fixed|addressed))\b`)
	telling = lazy.Regexp(`^(?:pr |pull request |merge request |code |overall |review |change |executive |quick |high level )*(?:summary|overview|walkthrough|description|context|background|introduction|` +
		`verdict|conclusion|assessment|changes(?: made)?|what changed|change summary|status|decision|overall|rating|score|confidence(?: score)?|tl ?dr|scope|files?(?: changed| reviewed)?|` +
		`test plan|how (?:it was|i) tested|recommendation|final (?:verdict|thoughts|recommendation)|result|impact|reviewed changes|important files changed|reviewer(?:'s)? guide)\b`)
	asking = lazy.Regexp(`\b(?:issues|findings?|concerns|problems|bugs|comments?|suggestions?|feedback|required changes|todos?|action items?|improvements?|` +
		`recommendations|weakness\w*|cons|risks|remarks|notes|nits|violations|next steps|questions|nitpicks)\b`)
)

// readHeading reads a line that heads what is below it: with "#", in bold letters, or with a colon at
// its end. A heading may be a finding itself.
func (r *reviewReader) readHeading(said string) bool {
	level := len(said) - len(strings.TrimLeft(said, "#"))
	marked := level > 0 && strings.HasPrefix(said[level:], " ")
	bold := strings.HasPrefix(said, "**") && strings.HasSuffix(strings.TrimRight(said, ":"), "**") &&
		strings.Count(said, "**") == 2
	colon := strings.HasSuffix(said, ":")
	if !marked && !bold && !colon {
		return false
	}
	title := strings.TrimSpace(unmarkedText(strings.TrimLeft(said, "#")))
	title = strings.TrimSpace(countBehind().ReplaceAllString(strings.TrimSuffix(title, ":"), ""))
	number := numberedHead().FindString(title)
	rest := title[len(number):]
	r.table, r.blank = nil, false
	file := strings.Trim(rest, "` ")
	named, severity := labelOf(rest)
	topic := plainWords(rest)
	switch s, plain := headSeverity(rest); {
	case machine().MatchString(rest), strengths().MatchString(topic) && !words.Has(topic, "but ", "not ") && len(strings.Fields(topic)) < 7:
		r.in, r.open = section{skip: true}, nil
	case severity == praiseLabel, s == praiseLabel:
		r.in, r.open = section{skip: true}, nil
	case places.IsFile(file):
		r.in, r.open = section{severity: r.in.severity, file: file}, nil
	case plain && number == "", plain && named == rest && !marked:
		r.in, r.open = section{severity: s}, nil
	case severity != "" && !colon && len(strings.Fields(named)) > 2, number != "" && rest != "" && !telling().MatchString(topic):
		r.in.skip, r.in.weak = false, false
		d := r.beginFinding(rest, true)
		d.title, d.fields = rest, true
	case telling().MatchString(topic):
		r.in, r.open = section{weak: true}, nil
	case asking().MatchString(topic) && len(strings.Fields(rest)) < 5, colon, rest == "":
		if r.in, r.open = (section{severity: s}), nil; colon && !marked && !bold {
			r.head = strings.TrimSuffix(said, ":")
		}
	case len(strings.Fields(named)) > 2: // "Missing check for null"
		if marked {
			r.in = section{severity: r.in.severity}
		}
		r.beginFinding(rest, true).title = rest
	default: // a topic
		r.in, r.open = section{file: r.in.file}, nil
	}
	return true
}

// headSeverity is how severe a heading says that all below it is: "Critical issues", "🟡 Nits"; plain is whether it says
// nothing else.
func headSeverity(title string) (s failure.Severity, plain bool) {
	all := strings.Fields(plainWords(title))
	left := 0
	for _, w := range all {
		switch one := severities()[w]; {
		case one != "" && s == "", one != "" && ranks[one] > ranks[s] && w != "issues":
			s = one
		case one != "" || headWords()[w]:
		default:
			left++
		}
	}
	name := strings.Join(all, " ")
	if words.Has(name, "non blocking", "nonblocking", "not blocking") {
		s = failure.Low
	} else if whole, ok := severities()[name]; ok {
		s = whole
	}
	if emoji := markOf(title); s == "" && emoji != "" {
		s = emoji
	}
	return s, s != "" && left == 0
}

var headWords = words.Set(`issues issue findings finding problems problem concerns concern items item comments comment bugs suggestions fixes fix changes priority
	severity before merge merging to the and level high medium low review nice have improvements improvement required recommended points things must should could`)
