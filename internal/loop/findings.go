package loop

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/control"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// The bounds of what is read of a review.
const (
	maxFindings = 20
	maxFinding  = 1000      // bytes of one
	maxReviewed = 256 << 10 // bytes of the text that are looked at, from its end
)

var (
	bullet = lazy.Regexp(`^([ \t]*)(?:[-*+•]|\d{1,3}[.)])[ \t]+(\S.*)$`)
	// place is a file with a line, as reviewers and compilers write it.
	place = lazy.Regexp("[`(\\[*]*([A-Za-z0-9_@~.][A-Za-z0-9_@~./+\\-]*\\.[A-Za-z][A-Za-z0-9]*|[A-Za-z0-9_.\\-]+(?:/[A-Za-z0-9_@~.+\\-]+)+|Makefile|Dockerfile)" +
		"(?::|#L|, lines? | lines? |\\(|:L)(\\d{1,7})(?::(\\d{1,5}))?(?:[-–]L?\\d+)?[`)\\]*]*")
)

// Findings reads what a review's text lists: its bullets outside of code
// fences, with file and line where they name them, and how severe each is by
// its label or words. Bullets below one are part of it. Where some bullets name
// a place or a severity, those that do neither are remarks and left out. The
// most severe come first, at most 20.
func Findings(text string) []Finding {
	var all []found
	fenced, indent := false, 0
	for line := range strings.Lines(cutStart(text, maxReviewed)) {
		line = strings.TrimRight(line, "\r\n")
		if t := strings.TrimSpace(line); strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		m := bullet().FindStringSubmatch(line)
		switch {
		case m == nil && len(all) > 0 && strings.IndexAny(line, " \t") == 0:
			all[len(all)-1].more(line)
		case m == nil:
		case len(all) > 0 && len(m[1]) > indent:
			all[len(all)-1].more(m[2])
		default:
			indent = len(m[1])
			all = append(all, read(m[2]))
		}
	}
	return choose(all)
}

// found is a finding on its way.
type found struct {
	Finding
	marked bool // it names a place or a severity
}

func read(text string) found {
	f := found{}
	if m := place().FindStringSubmatchIndex(text); m != nil {
		f.File, f.marked = strings.TrimPrefix(text[m[2]:m[3]], "./"), true
		f.Line, _ = strconv.Atoi(text[m[4]:m[5]])
		if m[6] >= 0 {
			f.Column, _ = strconv.Atoi(text[m[6]:m[7]])
		}
		if strings.TrimSpace(text[:m[0]]) == "" {
			text = leading(text[m[1]:])
		}
	}
	text, severity, labelled := control.Grade(text)
	if labelled {
		f.marked = true
		if m := place().FindStringIndex(text); f.File != "" && m != nil && m[0] == 0 {
			text = leading(text[m[1]:])
		}
	}
	f.Severity, f.Message = severity, cut(text, maxFinding)
	return f
}

// leading takes off what joined a place to its sentence.
func leading(text string) string { return strings.TrimLeft(text, " \t:,*_`)]-–—") }

// more adds a line below the bullet.
func (f *found) more(line string) {
	if len(f.Message) < maxFinding {
		f.Message = cut(f.Message+"\n"+strings.TrimSpace(line), maxFinding)
	}
}

// choose keeps what can be acted on, graded and sorted.
func choose(all []found) []Finding {
	marked := slices.ContainsFunc(all, func(f found) bool { return f.marked })
	var out []Finding
	for _, f := range all {
		if marked && !f.marked {
			continue
		}
		out = append(out, f.Finding)
	}
	control.Sort(out)
	return out[:min(len(out), maxFindings)]
}

// firstLine is the first line of a text, at most 200 bytes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return cut(strings.TrimSpace(line), maxReason)
}

const maxReason = 200 // bytes of a review's summary

// cut is the first bytes of a text, at most limit with the mark of the cut.
func cut(text string, limit int) string {
	return fault.Cut(text, limit-len("…"))
}

// cutStart is the last bytes of a text, whole lines.
func cutStart(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	_, rest, _ := strings.Cut(text[len(text)-limit:], "\n")
	return rest
}
