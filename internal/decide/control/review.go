package control

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// FromReview reads what a reviewer's text asks for, the most severe first, at most 20: what it
// lists, rows of tables, headings that are findings, and sentences. Praise, thanks, what a section
// of strengths or a summary of the change says, code, boxes that are ticked, and what the service
// that carried the review adds are left out.
func FromReview(text string) []Finding { return readFindings(text, false) }

// Listed is [FromReview] without the sentences around the lists, in which an agent writes what it did.
func Listed(text string) []Finding { return readFindings(text, true) }

const (
	maxReviewed = 256 << 10 // bytes of a review that are read, from its end
	maxFinding  = 1000      // bytes of one finding
)

func readFindings(text string, listed bool) []Finding {
	text = text[max(0, len(text)-maxReviewed):]
	r := reviewReader{lines: strings.Split(comment().ReplaceAllStringFunc(text, keepPlaces), "\n")}
	for r.i = 0; r.i < len(r.lines); r.i++ {
		r.readLine(strings.TrimRight(r.lines[r.i], " \t\r"))
	}
	var sure, weak []Finding
	for _, d := range r.drafts {
		f, ok := d.toFinding()
		switch {
		case !ok, listed && !d.listed:
		case d.weak, d.mayBeName():
			weak = append(weak, f)
		default:
			sure = append(sure, f)
		}
	}
	if len(sure) == 0 { // a summary that says what is wrong is better than nothing
		sure = weak
	}
	Sort(sure)
	return sure[:min(len(sure), maxFindings)]
}

// keepPlaces reduces a comment, which a reader of the page does not see, to the lines with the
// places of the finding above it.
func keepPlaces(hidden string) string {
	kept := ""
	for l := range strings.Lines(hidden) {
		if _, ok := placeAlone(strings.TrimSpace(l)); ok {
			kept += "\n" + l
		}
	}
	return kept
}

// draft is a finding while its lines are read.
type draft struct {
	Finding
	title    string // of a heading that is a finding
	labelled bool   // the text said how severe it is
	listed   bool
	weak     bool // of a summary
	praised  bool // its label says that it is praise
	fields   bool // fields of a record said what it is
}

// section has what a heading decides for the findings below it.
type section struct {
	skip     bool // praise, or what no one has to act on
	weak     bool // a summary
	severity failure.Severity
	file     string
	line     int
}

// reviewReader reads a review line by line.
type reviewReader struct {
	lines  []string
	i      int
	drafts []*draft
	in     section
	next   section  // what a line of its own says of the finding below it
	open   *draft   // the finding that the lines below belong to
	indent int      // of the open finding's bullet, -1 for no bullet
	blank  bool     // a blank line stands above
	fence  string   // what ends the code that is read
	shown  bool     // the code is a suggestion, a part of the finding
	alert  bool     // the quoted lines are a notice of the reviewer
	head   string   // a sentence with a colon at its end, which code may follow
	hidden int      // how deep the details are that only a machine reads
	table  []string // the heads of the table that is read, in small letters
}

var (
	comment = lazy.Regexp(`(?s)<!--.*?-->`)
	tags    = lazy.Regexp(`(?i)</?(?:sub|sup|br|b|i|u|em|strong|p|a|div|span|center|blockquote|code|kbd` +
		`|picture|source|img)\b[^>]*>`)
	htmlHead  = lazy.Regexp(`^<h([1-6])[^>]*>(.*?)</h[1-6]>$`)
	images    = lazy.Regexp(`!\[([^\]]*)\]\([^)]*\)`)
	links     = lazy.Regexp(`\[([^\]]+)\]\((?:https?:|/|#)[^)]*\)`)
	linked    = lazy.Regexp(`^<?https?://\S+/blob/[^/]+/([^#\s]+)#L(\d+)\S*$`)
	wrapped   = lazy.Regexp(`^</?[a-z]+_?[a-z_]*>\s*|\s*</?[a-z]+_[a-z_]*>$|\s*</location>$`)
	signNames = lazy.Regexp(`(?:^|\s):[a-z][a-z_]{1,30}:|(?:^|\s):[+-]1:`)
	rule      = lazy.Regexp(`^(?:[-=*_~\s]{3,}|[—–]+)$`)
	divider   = lazy.Regexp(`^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$`)
	bullet    = lazy.Regexp(`^([ \t]*)(?:[-*+•–‣▪]|\(?\d{1,3}[.)]|\(?[a-h][.)])[ \t]+(\S.*)$`)
	box       = lazy.Regexp(`^\[([ xX~/-])\] +`)
	machine   = lazy.Regexp(`(?i)prompt for (?:all )?(?:review|ai)|committable suggestion|additional context` +
		`|review details|review info|configuration used|learnings|` +
		`sequence diagram|walkthrough|files? (?:not )?(?:selected|processed|ignored|reviewed)` +
		`|\babout \w+ in |commits|analysis chain|script executed|tips|finishing touches|show a summary per file|estimated code review|poem`)
)

func (r *reviewReader) readLine(l string) {
	t := strings.TrimSpace(l)
	quoted := strings.HasPrefix(t, ">")
	t = htmlHead().ReplaceAllString(strings.TrimSpace(strings.TrimLeft(t, "> ")), "### $2")
	if alert := strings.HasPrefix(t, "[!"); alert || !quoted {
		r.alert = quoted && alert
		if alert {
			return
		}
	}
	if quoted && !r.alert && r.in.severity == "" { // somebody else's words
		weak := r.in.weak
		r.in.weak = true
		defer func() { r.in.weak = weak; r.open = nil }()
	}
	if r.readFence(t) || r.readFold(t) {
		return
	}
	said := plainText(t)
	switch {
	case said == "", rule().MatchString(said) && !strings.Contains(said, "|"):
		r.blank, r.table = true, nil
		return
	case r.readTableRow(said):
	case r.readThread(said):
	case r.listedPoint(l, said):
	case r.readHeading(said):
	case boilerplate().MatchString(unmarkedText(said)):
		r.blank = true
		return
	default:
		r.readSentence(l, said)
	}
	r.blank = false
}

// plainText is a line without tags, links and the names of signs.
func plainText(l string) string {
	l = wrapped().ReplaceAllString(l, "")
	l = links().ReplaceAllString(tags().ReplaceAllString(images().ReplaceAllString(l, "$1"), " "), "$1")
	if strings.Count(l, ":") > 1 {
		l = signNames().ReplaceAllStringFunc(l,
			func(name string) string { return reviewWords().Signs[strings.Trim(name, ": ")] + " " })
	}
	return strings.TrimSpace(l)
}

// lacksPlace reports whether the open finding takes a place that stands alone.
func (r *reviewReader) lacksPlace() bool {
	if r.open == nil || r.open.File != "" {
		return false
	}
	return !r.blank || r.open.fields
}

var markdownFences = []string{"```markdown", "```md"}

// readFence reads code. A suggestion is part of the finding that it stands in; other code is what the
// finding is about.
func (r *reviewReader) readFence(t string) bool {
	mark := words.Cut(t, 3)
	switch {
	case r.fence == "" && len(r.drafts) == 0 && slices.Contains(markdownFences, t): // the whole review stands in it
	case r.fence != "" && strings.Trim(t, r.fence[:1]) == "" && strings.HasPrefix(t, r.fence):
		r.fence = ""
	case r.fence != "":
		if r.shown && r.hidden == 0 {
			r.open.appendFindingLine(t)
		}
	case mark == "```" || mark == "~~~":
		r.fence = mark
		if r.head != "" && len(strings.Fields(r.head)) > 2 { // "The following is wrong:"
			r.beginFinding(r.head, false)
		}
		if r.shown = r.open != nil && strings.HasPrefix(strings.TrimLeft(t, "`~"), "suggestion"); r.shown {
			r.open.appendFindingLine("suggested:")
		}
		r.head, r.table = "", nil
	default:
		return false
	}
	return true
}

// readFold reads the folds of a page: what only a machine reads is left out.
func (r *reviewReader) readFold(t string) bool {
	opened := strings.Count(t, "<details") + strings.Count(t, "<code_context>")
	closed := strings.Count(t, "</details") + strings.Count(t, "</code_context>")
	if r.hidden > 0 || strings.HasPrefix(t, "<code_context>") {
		r.hidden += opened - closed
		return true
	}
	_, summary, ok := strings.Cut(t, "<summary>")
	if !ok {
		if strings.HasPrefix(t, "</details>") {
			r.open = nil
		}
		isClosing := strings.HasPrefix(t, "</") && strings.HasSuffix(t, ">")
		return isClosing || strings.HasPrefix(t, "<details")
	}
	summary, _, _ = strings.Cut(tags().ReplaceAllString(summary, ""), "</summary>")
	if machine().MatchString(summary) {
		r.hidden = 1
		return true
	}
	r.readHeading("# " + strings.TrimSpace(summary))
	return true
}

// beginFinding starts a finding.
func (r *reviewReader) beginFinding(said string, listed bool) *draft {
	if o := r.open; o != nil && listed && o.title != "" && o.title == o.Message && !o.labelled && !o.fields {
		o.praised = true // it only headed the list
	}
	r.head = ""
	d := &draft{listed: listed, weak: r.in.weak}
	d.Severity = cmp.Or(r.next.severity, r.in.severity)
	d.labelled, d.praised = r.next.severity != "", d.Severity == praiseLabel
	d.File, d.Line = cmp.Or(r.next.file, r.in.file), cmp.Or(r.next.line, r.in.line)
	r.next = section{}
	r.open, r.indent = d, -1
	if !r.in.skip {
		r.drafts = append(r.drafts, d)
	}
	d.setFindingText(said)
	return d
}

// listedPoint reads a bullet or a number. Points below a finding are part of it.
func (r *reviewReader) listedPoint(l, said string) bool {
	m := bullet().FindStringSubmatch(strings.TrimPrefix(l, "> "))
	if m == nil || rule().MatchString(said) {
		return false
	}
	r.table = nil
	said = plainText(m[2])
	ticked := false
	if b := box().FindStringSubmatch(said); b != nil {
		said, ticked = said[len(b[0]):], strings.EqualFold(b[1], "x")
	}
	bare := unmarkedText(said)
	below := r.open != nil && r.indent >= 0 && len(m[1]) > r.indent
	switch name, value, ok := splitField(bare); {
	case ticked:
		r.open, r.indent = &draft{}, len(m[1])
	case ok && r.open != nil && r.open.setField(name, value, below):
	case below:
		r.open.appendFindingLine(bare)
	case strings.HasSuffix(bare, ":") || places.IsFile(strings.Trim(bare, "`")):
		r.readHeading("# " + bare)
	default:
		r.beginFinding(said, true)
		r.indent = len(m[1])
	}
	return true
}

// readSentence reads a line that is in no list.
func (r *reviewReader) readSentence(l, said string) {
	if m := linked().FindStringSubmatch(said); m != nil {
		if r.open != nil {
			r.open.File = cmp.Or(r.open.File, m[1])
			r.open.setField("line", m[2], true)
		}
		return
	}
	bare := unmarkedText(said)
	name, value, ok := splitField(bare)
	at, alone := placeAlone(bare)
	indented := words.Indent(l) > 0 && r.open != nil && r.indent >= 0
	switch {
	case ok && r.open != nil && r.open.setField(name, value, indented), ok && r.next.setField(name, value):
	case alone && r.lacksPlace():
		r.open.setPlace(at)
	case alone:
		r.next.file, r.next.line = at.File, at.Line
	case r.severityAlone(said):
	case r.explainsLabelled(bare):
		r.open.appendFindingLine(bare)
	case indented, r.open != nil && !r.blank && continuesSentence(r.lines[r.i-1], bare), r.open != nil &&
		r.open.title != "":
		r.open.appendFindingLine(bare)
	default:
		r.beginFinding(said, false)
	}
}

// explainsLabelled reports whether a paragraph is of the comment that the one above begins with its label.
func (r *reviewReader) explainsLabelled(said string) bool {
	o := r.open
	if !r.blank || o == nil || namedPlace().MatchString(said) {
		return false
	}
	if !o.labelled || o.praised || o.listed || o.title != "" {
		return false
	}
	_, severity := cutSeverityLabel(said)
	return severity == "" && !another().MatchString(said)
}

// readThread reads what heads one file in a mail: "In a.go:", "Dana commented on a discussion on a.go:".
func (r *reviewReader) readThread(said string) bool {
	m := thread().FindStringSubmatch(said)
	if len(m) == 0 || !places.IsFile(m[1]+m[3]) {
		return false
	}
	r.in, r.next, r.open = section{file: m[1] + m[3]}, section{}, nil
	r.in.line, _ = words.Number(m[2], 0)
	return true
}

// severityAlone reads a line that only says how severe the finding below it is.
func (r *reviewReader) severityAlone(said string) bool {
	top := failure.Severity("")
	for part := range strings.SplitSeq(said, "|") {
		name := plainWords(part)
		s, ok := knownSeverities()[name]
		if !ok && name != "potential issue" && name != "refactor suggestion" && name != "verification agent" &&
			!strings.HasSuffix(name, " win") {
			return false
		}
		severer := top == "" || ranks[s] > ranks[top]
		if s != "" && severer {
			top = s
		}
	}
	r.next.severity = top
	r.open = nil
	return true
}

// continuesSentence reports whether a line continues a sentence that the line above did not end.
func continuesSentence(above, said string) bool {
	above = strings.TrimSpace(above)
	if above == "" || strings.ContainsAny(above[len(above)-1:], ".!?:;>`") || strings.ContainsAny(above[:1], "#|") {
		return false
	}
	_, severity := cutSeverityLabel(said)
	if m := namedPlace().FindStringIndex(said); len(m) > 0 && m[0] == 0 {
		return false
	}
	return severity == "" && (len(above) >= 60 || len(above) >= 30 && words.IsLower(said[0]))
}

// setFindingText takes the text of a finding, its label and its place off it.
func (d *draft) setFindingText(said string) {
	if bare := lineLabel().ReplaceAllString(said, ""); strings.HasPrefix(bare, "**") && strings.HasSuffix(bare, "**") {
		d.title = unmarkedText(bare)
	}
	said = unmarkedText(said)
	if m := namedPlace().FindStringSubmatchIndex(said); len(m) > 0 && strings.TrimSpace(said[:m[0]]) == "" {
		d.setPlaceFromMatch(said, m)
		said = trimJoint(said[m[1]:])
	} else if m := lineLabel().FindStringSubmatch(said); m != nil && d.File != "" {
		d.Line, _ = words.Number(m[1]+m[2], 0)
		said = said[len(m[0]):]
	}
	if m := labelBehind().FindStringSubmatch(said); m != nil { // "Unbounded cache (High)"
		if s, ok := knownSeverities()[plainWords(m[1])]; ok && s != praiseLabel {
			d.Severity, d.labelled = s, true
			said = strings.TrimSuffix(said, m[0])
		}
	}
	for range 3 { // "🔴 [P0] **bug**: …"
		rest, severity := cutSeverityLabel(said)
		if rest == said {
			break
		}
		d.praised = d.praised || severity == praiseLabel
		severer := !d.labelled || ranks[severity] > ranks[d.Severity] || d.Severity == ""
		if severer && severity != praiseLabel {
			d.Severity = cmp.Or(severity, d.Severity)
		}
		d.labelled = d.labelled || severity != ""
		said = rest
	}
	if m := namedPlace().FindStringSubmatchIndex(said); m != nil {
		d.setPlaceFromMatch(said, m)
		if m[0] == 0 {
			said = trimJoint(said[m[1]:])
		}
	}
	d.Message = words.Cut(said, maxFinding)
}

func (d *draft) setPlaceFromMatch(said string, m []int) {
	d.File = strings.TrimPrefix(said[m[2]:m[3]], "./")
	d.Line, _ = words.Number(said, m[4])
	if d.Column = 0; m[6] >= 0 {
		d.Column, _ = words.Number(said, m[6])
	}
}

func (d *draft) setPlace(at places.Place) { d.File, d.Line, d.Column = at.File, at.Line, at.Col }

// appendFindingLine adds a line below the first.
func (d *draft) appendFindingLine(said string) {
	if d.title != "" && len(d.Message) == 0 {
		d.Message = d.title
	}
	if len(d.Message) < maxFinding {
		d.Message = words.Cut(strings.TrimSpace(d.Message+"\n"+strings.TrimSpace(said)), maxFinding)
	}
	if m := namedPlace().FindStringSubmatchIndex(said); m != nil && d.File == "" {
		d.setPlaceFromMatch(said, m)
	}
}

// mayBeName reports whether the draft is a few words only, e.g. the name below a letter.
func (d *draft) mayBeName() bool {
	return !d.listed && !d.labelled && d.File == "" && len(strings.Fields(d.Message)) < 3 && !asksFor(d.Message)
}

// toFinding makes the finding; false when the draft asks for nothing.
func (d *draft) toFinding() (Finding, bool) {
	f := d.Finding
	// it only heads something
	bare := d.title != "" && d.title == f.Message && !d.labelled && !d.fields && !asksFor(d.title)
	if d.praised || bare {
		return f, false
	}
	first, rest, _ := strings.Cut(f.Message, "\n")
	first = withoutChatter(first, d.weak, d.labelled || d.title != "" || d.fields)
	if first == "" && rest != "" {
		first, rest = withoutChatter(strings.ReplaceAll(rest, "\n", " "), d.weak, d.labelled), ""
	}
	if first == "" {
		return f, false
	}
	f.Message = strings.TrimSpace(first + "\n" + rest)
	f.Severity = cmp.Or(f.Severity, wordsTell(f.Message))
	return f, true
}

var (
	// namedPlace is a file with a line, as reviewers and compilers write it.
	namedPlace = lazy.Regexp("[`(\\[*]*([A-Za-z0-9_@~.][A-Za-z0-9_@~./+\\-]*\\.[A-Za-z][A-Za-z0-9]*|" +
		"[A-Za-z0-9_.\\-]+(?:/[A-Za-z0-9_@~.+\\-]+)+|Makefile|Dockerfile)" +
		"(?:`?:|`?#L|`?, lines? |`? lines? |`? ?\\((?:lines? " +
		"|L)?|:L)(\\d{1,7})(?::(\\d{1,5}))?(?:[-–]L?\\d+)?[`)\\]*]*")
	// labelBehind ends a finding with how severe it is.
	labelBehind = lazy.Regexp(` +[\[(]([A-Za-z][\w -]{1,20})[\])]$`)
	// lineLabel begins a finding with its line in a file that stands above.
	lineLabel = lazy.Regexp("^(?:`(\\d{1,6})(?:[-–]\\d+)?`|(?i:lines?|L) ?(\\d{1,6})(?:[-–]L?\\d+)?) *[:–—-] *")
)

// placeAlone is the place that a line is, and nothing else.
func placeAlone(said string) (places.Place, bool) {
	m := namedPlace().FindStringSubmatchIndex(said)
	if len(m) > 0 && strings.Trim(said[:m[0]]+said[m[1]:], " :*`") == "" {
		var d draft
		d.setPlaceFromMatch(said, m)
		return places.Place{File: d.File, Line: d.Line, Col: d.Column}, true
	}
	return places.Place{}, false
}

// trimJoint takes off what joined a place to its sentence.
func trimJoint(text string) string {
	rest := strings.TrimLeft(text, " \t:,*_`)]-–—")
	if strings.Count(rest, "`")%2 == 1 && strings.HasSuffix(text, "`"+rest) { // it opened what is quoted
		return "`" + rest
	}
	return rest
}

// unmarkedText is said without the marks of bold letters.
func unmarkedText(said string) string { return strings.TrimSpace(strings.ReplaceAll(said, "**", "")) }

// plainWords are the words of s in small letters.
func plainWords(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789'", r)
	}), " ")
}
