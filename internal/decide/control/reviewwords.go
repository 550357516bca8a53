package control

import (
	"cmp"
	_ "embed" // reviewwords.json
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// This file knows the words of reviews: labels, praise, courtesy, and what asks for something.

// praiseLabel is what the label of praise says instead of how severe the finding is.
const praiseLabel failure.Severity = "praise"

//go:embed reviewwords.json
var reviewWordsJSON []byte

// wordLists are what reviewwords.json has.
type wordLists struct {
	Severities map[failure.Severity][]string // labels that say how severe a finding is, with "|" between them
	Marks      map[failure.Severity]string   // signs that say it, with blanks between them
	Signs      map[string]string             // what a name between colons stands for
	Words      map[string][]string           // sets of words
	Patterns   map[string][]string           // expressions, in pieces

	severities, marks map[string]failure.Severity // by label, and by sign
}

var reviewWords = sync.OnceValue(func() (all wordLists) {
	if err := json.Unmarshal(reviewWordsJSON, &all); err != nil {
		panic(err) // it is part of the program
	}
	all.severities, all.marks = map[string]failure.Severity{}, map[string]failure.Severity{}
	for severity, labels := range all.Severities { // order does not show: each label has one severity
		for label := range strings.SplitSeq(strings.Join(labels, "|"), "|") {
			all.severities[label] = severity
		}
	}
	for severity, signs := range all.Marks { // order does not show: no sign begins another
		for sign := range strings.FieldsSeq(signs) {
			all.marks[sign] = severity
		}
	}
	return all
})

// knownSeverities are how severe labels say that a finding is.
func knownSeverities() map[string]failure.Severity { return reviewWords().severities }

func patternNamed(name string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(strings.Join(reviewWords().Patterns[name], ""))
	})
}

func lazyWordSet(name string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		return lists.Set(strings.Fields(strings.Join(reviewWords().Words[name], " ")))
	})
}

// cutSeverityMark takes the sign off that said begins with, and says how severe it says that a finding is.
func cutSeverityMark(said string) (rest string, severity failure.Severity) {
	for sign, severity := range reviewWords().marks {
		if rest, is := strings.CutPrefix(said, sign); is {
			return rest, severity
		}
	}
	return said, ""
}

// labelForm is a label in front of a finding: "[critical] …", "(minor) …", "nit(style): …", "issue (blocking): …",
// "High - …", "P1 …", "`nit` …".
var labelForm = patternNamed("labelForm")

// cutSeverityLabel takes the label off a finding and says how severe it is; praiseLabel for praise.
func cutSeverityLabel(said string) (rest string, severity failure.Severity) {
	if rest, s := cutSeverityMark(said); s != "" {
		for next := s; next != ""; {
			rest, next = cutSeverityMark(rest)
		}
		return strings.TrimLeft(rest, "\ufe0f "), s
	}
	m := labelForm().FindStringSubmatch(said)
	if m == nil {
		return said, ""
	}
	rest = strings.TrimSpace(said[len(m[0]):])
	s, known := knownSeverities()[plainWords(m[1]+m[2]+m[4])]
	switch decoration := plainWords(m[3]); {
	case !known && rest != "" && begins().MatchString(m[2]) && len(strings.Fields(m[2])) == 1: // "Good: the tests"
		s = praiseLabel
	case !known, rest == "", m[3] == "" && strings.Contains(said[:len(m[0])], "`") && s == "":
		return said, ""
	case strings.Contains(decoration, "non blocking") || strings.Contains(decoration, "if minor"):
		s = failure.Low
	case words.Has(" "+decoration+" ", " blocking ", " security "):
		s = failure.Critical
	case strings.HasPrefix(decoration, "bug"):
		s = failure.High
	}
	return rest, s
}

var (
	sentenceEnd = lazy.Regexp("[.!?…]+[)\"'”`]* +(?:[A-Z👍🎉✅❌\"'(`*]|🙏)")
	// boilerplate is text that services and tools add.
	boilerplate = patternNamed("boilerplate")
	// thread is the line of a mail above the comments on one file.
	thread = patternNamed("thread")
	// another begins a point of its own.
	another = lazy.Regexp(`(?i)^(?:also|and|another|finally|secondly|besides|one more|in addition)\b`)
	// courtesy are sentences that ask for nothing.
	courtesy = patternNamed("courtesy")
	// narration is what a reviewer did, and what the change does.
	narration = patternNamed("narration")
	// nothingWrong counts what did not happen.
	nothingWrong = patternNamed("nothingWrong")
	// good are words of praise, begins where praise for a thing that might be wrong begins.
	good   = patternNamed("good")
	begins = patternNamed("begins")
	// isGood ends praise for a thing that might be wrong.
	isGood = patternNamed("isGood")
	// asks are words of a sentence that wants something changed, wrongs are words for what is wrong, which praise may name.
	asks   = patternNamed("asks")
	wrongs = patternNamed("wrongs")
)

// withoutChatter is said without the sentences that ask for nothing. Of a summary only those stay that surely ask; of what
// was listed with a label all but praise does.
func withoutChatter(said string, summary, labelled bool) string {
	kept := ""
	for _, one := range splitSentences(said) {
		switch {
		case strings.Trim(one, " -=*_#`>|.,:;!") == "", boilerplate().MatchString(one):
		case labelled && !courtesy().MatchString(one):
			kept += " " + one
		case isPraise(one), courtesy().MatchString(one) && !asksFor(one), narration().MatchString(one) && !asksFor(one):
		case summary && !asksFor(one):
		default:
			kept += " " + one
		}
	}
	return strings.TrimSpace(kept)
}

// asksFor reports whether a sentence wants something changed, or says what is wrong.
func asksFor(said string) bool {
	said = nothingWrong().ReplaceAllString(said, " ")
	namesFault := wrongs().MatchString(said) && !begins().MatchString(said)
	return namesFault || asks().MatchString(said)
}

// isPraise reports whether the sentence only says that the work, or a part of it, is good.
func isPraise(said string) bool {
	left := nothingWrong().ReplaceAllString(said, " ")
	well := left != said || good().MatchString(said)
	if asks().MatchString(left) || !well {
		return false
	}
	return begins().MatchString(said) || isGood().MatchString(said) || !wrongs().MatchString(left)
}

// splitSentences splits a line.
func splitSentences(said string) []string {
	var all []string
	for {
		at := sentenceEnd().FindStringIndex(said)
		if at == nil {
			return append(all, said)
		}
		end := at[0] + strings.IndexByte(said[at[0]:at[1]], ' ')
		if abbreviated().MatchString(said[:end]) {
			rest := splitSentences(said[end:])
			return append(all, append([]string{said[:end] + rest[0]}, rest[1:]...)...)
		}
		all = append(all, said[:end])
		said = strings.TrimSpace(said[end:])
	}
}

var abbreviated = lazy.Regexp(`(?:^|\W)(?:e\.g|i\.e|etc|vs|cf|No|Mr|Dr)\.$`)

// This file reads what heads a part of a review.

var (
	numberedHead = lazy.Regexp(`^(?:(?i:issue|finding|comment|problem|concern) )?#?\d{1,2}(?:[.):]| -) *`)
	countBehind  = lazy.Regexp(`\s*\(\d+\)$`)
	// strengths and telling are heads of what no one has to act on, and of what only sums up.
	strengths = patternNamed("strengths")
	telling   = patternNamed("telling")
	asking    = patternNamed("asking")
)

// readHeading reads a line that heads what is below it: with "#", in bold letters, or with a colon at
// its end. A heading may be a finding itself.
func (r *reviewReader) readHeading(said string) bool {
	level := len(said) - len(strings.TrimLeft(said, "#"))
	marked := level > 0 && strings.HasPrefix(said[level:], " ")
	bold := strings.HasPrefix(said, "**") && strings.HasSuffix(strings.TrimRight(said, ":"), "**") &&
		strings.Count(said, "**") == 2
	bare, place, isHead := strings.Cut(strings.TrimPrefix(said, "**"), "** ")
	beginsBold := len(said)-len(bare)-len(place) == len("**** ")
	if isHead && beginsBold && !strings.HasSuffix(bare, ":") {
		place = strings.Trim(place, " -–—()`:") // "**1. It panics** - `a.go:12`"
		_, alone := placeAlone(place)
		bold = alone || places.IsFile(place)
	}
	colon := strings.HasSuffix(said, ":")
	if colon && !marked && !bold && r.open != nil && r.open.title != "" && r.codeFollows() {
		r.open.appendFindingLine(unmarkedText(said))
		return true
	}
	if !marked && !bold && !colon {
		return false
	}
	title := strings.TrimSpace(unmarkedText(strings.TrimLeft(said, "#")))
	title = strings.TrimSpace(countBehind().ReplaceAllString(strings.TrimSuffix(title, ":"), ""))
	number := numberedHead().FindString(title)
	rest := title[len(number):]
	r.table, r.blank = nil, false
	file := strings.Trim(rest, "` ")
	named, severity := cutSeverityLabel(rest)
	topic := plainWords(rest)
	switch s, plain := headSeverity(rest); {
	case machine().MatchString(rest), strengths().MatchString(topic) && !words.Has(topic, "but ", "not ") &&
		len(strings.Fields(topic)) < 7:
		r.in, r.open = section{skip: true}, nil
	case severity == praiseLabel, s == praiseLabel:
		r.in, r.open = section{skip: true}, nil
	case places.IsFile(file):
		r.in, r.open = section{severity: r.in.severity, file: file}, nil
	case plain && number == "", plain && named == rest && !marked:
		r.in, r.open = section{severity: s}, nil
	case severity != "" && !colon && len(strings.Fields(named)) > 2, number != "" && rest != "" &&
		!telling().MatchString(topic):
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

// codeFollows reports whether the next line that is not blank begins code.
func (r *reviewReader) codeFollows() bool {
	for _, l := range r.lines[r.i+1:] {
		if l = strings.TrimSpace(l); l != "" {
			return strings.HasPrefix(l, "```") || strings.HasPrefix(l, "~~~")
		}
	}
	return false
}

// headSeverity is how severe a heading says that all below it is: "Critical issues", "🟡 Nits"; plain is whether it says
// nothing else.
func headSeverity(title string) (s failure.Severity, plain bool) {
	all := strings.Fields(plainWords(title))
	left := 0
	for _, w := range all {
		switch one := knownSeverities()[w]; {
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
	} else if whole, ok := knownSeverities()[name]; ok {
		s = whole
	}
	if _, severity := cutSeverityMark(title); s == "" {
		s = severity
	}
	return s, s != "" && left == 0
}

var headWords = lazyWordSet("headWords")

// This file reads tables of findings.

// readTableRow reads a row of a table of findings.
func (r *reviewReader) readTableRow(said string) bool {
	cells := splitTableCells(said)
	if len(cells) < 2 {
		return false
	}
	if divider().MatchString(said) {
		return true
	}
	if r.table == nil {
		if r.i+1 >= len(r.lines) || !divider().MatchString(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(r.lines[r.i+1]), "> "))) {
			return false
		}
		r.table = append(r.table, lists.Each(cells, plainWords)...)
		return true
	}
	if asksInTable(r.table) || r.in.severity != "" {
		r.addRowFinding(cells)
	}
	r.open = nil
	return true
}

func splitTableCells(said string) []string {
	if !strings.Contains(said, "|") {
		return nil
	}
	cells := strings.Split(strings.ReplaceAll(strings.Trim(said, "| "), `\|`, "¦"), "|")
	return lists.Each(cells, func(cell string) string { return strings.TrimSpace(strings.ReplaceAll(cell, "¦", "|")) })
}

var (
	severityHeads = lazyWordSet("severityHeads")
	statusHeads   = lazyWordSet("statusHeads")
	countHeads    = lazyWordSet("countHeads")
	askingHeads   = lazyWordSet("askingHeads")
	wellWords     = lazyWordSet("wellWords")
)

// asksInTable reports whether a table with these heads lists findings, and not what a change does.
func asksInTable(heads []string) bool {
	return slices.ContainsFunc(heads, func(h string) bool {
		return severityHeads()[h] || statusHeads()[h] ||
			slices.ContainsFunc(strings.Fields(h), func(w string) bool { return askingHeads()[w] })
	})
}

func (r *reviewReader) addRowFinding(cells []string) {
	d := draft{}
	var said []string
	for i, c := range cells {
		head, bare := "", strings.TrimSpace(unmarkedText(c))
		if strings.Count(bare, "`") == 2 && bare[0] == '`' {
			bare = strings.Trim(bare, "`")
		}
		if i < len(r.table) {
			head = r.table[i]
		}
		name := plainWords(bare)
		switch s, graded := knownSeverities()[name]; {
		case severityHeads()[head] && graded:
			d.Severity, d.labelled = s, true
			if s == praiseLabel {
				return
			}
		case severityHeads()[head] || statusHeads()[head]:
			if wellWords()[words.Cut(name, strings.IndexByte(name+" ", ' '))] || strings.HasPrefix(bare, "✅") ||
				strings.HasPrefix(bare, "✔") {
				return
			}
			if said = append(said, strings.TrimLeft(bare, "❌✗✘✖⚠️🔴🟠🟡🟢⛔🚫 ")); name == "" {
				said = said[:len(said)-1]
			}
		case words.Has(" file location path where filename place ", " "+head+" "):
			d.setField("file", bare, true)
		case head == "line", head == "lines":
			d.setField("line", bare, true)
		case countHeads()[head], bare == "", bare == "-", bare == "—", head == "" &&
			strings.Trim(bare, "#0123456789") == "":
		default:
			said = append(said, bare)
		}
	}
	if len(said) == 0 {
		return
	}
	f := r.beginFinding(strings.Join(said, ": "), true)
	if d.labelled {
		f.Severity, f.labelled = d.Severity, true
	}
	f.File, f.Line = cmp.Or(d.File, f.File), cmp.Or(d.Line, f.Line)
}
