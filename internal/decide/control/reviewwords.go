package control

import (
	"cmp"
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

// severities are how severe labels say that a finding is.
var severities = sync.OnceValue(func() map[string]failure.Severity {
	all := map[string]failure.Severity{}
	for severity, labels := range map[failure.Severity]string{ // order does not show: each label has one severity
		failure.Critical: "critical|crit|blocker|blockers|blocking|security|p0|p0 badge|s0|sev0|sev 0|sev1|sev 1|severe|fatal|urgent|issue blocking|blocking issue|security issue|critical severity|critical priority",
		failure.High: "high|major|bug|p1|p1 badge|s1|sev2|sev 2|important|must|must fix|required|high severity|high priority|high priority issue|error|todo blocking|" +
			"should fix before merge|request changes|changes requested",
		failure.Medium: "medium|moderate|minor|p2|p2 badge|s2|sev3|sev 3|medium severity|medium priority|med|should fix|should|warning|issue|todo|task|chore|refactor|concern|correctness|performance|reject|rejected",
		failure.Low: "low|nit|nits|nitpick|nitpicks|nitpick comment|style|suggestion|suggestions|typo|typos|p3|p3 badge|p4|s3|trivial|info|optional|low severity|low priority|nice to haves|question|thought|note|" +
			"polish|quibble|non blocking|nonblocking|could|cosmetic|naming|formatting|minor nit|nice to have|fyi",
		praiseLabel: "praise|kudos",
	} {
		for label := range strings.SplitSeq(labels, "|") {
			all[label] = severity
		}
	}
	return all
})

// marks are signs that say how severe a finding is.
var marks = []struct {
	sign     string
	severity failure.Severity
}{
	{"🔴", failure.Critical}, {"🚨", failure.Critical}, {"🛑", failure.Critical}, {"⛔", failure.Critical},
	{"🟥", failure.Critical},
	{"❌", failure.High}, {"✗", failure.High}, {"✘", failure.High}, {"🟠", failure.High}, {"🐛", failure.High},
	{"❗", failure.High}, {"‼", failure.High}, {"🟧", failure.High},
	{"🔒", failure.Critical}, {"🔐", failure.Critical},
	{"🟡", failure.Medium}, {"⚠", failure.Medium}, {"🟨", failure.Medium}, {"🛠", failure.Medium},
	{"🔵", failure.Low}, {"🟢", failure.Low}, {"⚪", failure.Low}, {"💡", failure.Low}, {"🧹", failure.Low},
	{"❓", failure.Low}, {"ℹ", failure.Low}, {"📝", failure.Low}, {"💭", failure.Low},
	{"✅", praiseLabel}, {"✔", praiseLabel}, {"👍", praiseLabel}, {"🎉", praiseLabel}, {"💯", praiseLabel},
	{"👏", praiseLabel}, {"🚀", praiseLabel}, {"❤", praiseLabel}, {"🙌", praiseLabel}, {"🔥", praiseLabel},
}

// signs are the signs that a name between colons stands for.
var signs = map[string]string{"white_check_mark": "✅", "heavy_check_mark": "✅", "+1": "👍", "thumbsup": "👍",
	"tada": "🎉", "rocket": "🚀", "x": "❌", "warning": "⚠",
	"bulb": "💡", "red_circle": "🔴", "large_orange_diamond": "🟠", "yellow_circle": "🟡", "bug": "🐛", "lock": "🔒",
	"rotating_light": "🚨", "question": "❓", "no_entry": "⛔"}

// markOf is how severe the sign at the start of said says that it is; "" for none.
func markOf(said string) failure.Severity {
	for _, m := range marks {
		if strings.HasPrefix(said, m.sign) {
			return m.severity
		}
	}
	return ""
}

// labelForm is a label in front of a finding: "[critical] …", "(minor) …", "nit(style): …", "issue (blocking): …",
// "High - …", "P1 …", "`nit` …".
var labelForm = lazy.Regexp("^(?:[\\[(`_*]{1,3}([A-Za-z][\\w /-]{0,22})[\\])`_*]{1,3}[ :–—-]*" +
	`|([A-Za-z][\w /-]{0,22}?) ?(?:\(([\w ,-]{1,30})\))? ?(?::|[–—]| - )\s+` +
	`|(P[0-4])(?: Badge)?[ :]+)`)

// labelOf takes the label off a finding and says how severe it is; praiseLabel for praise.
func labelOf(said string) (rest string, severity failure.Severity) {
	if s := markOf(said); s != "" {
		for _, m := range marks {
			said = strings.TrimPrefix(said, m.sign)
		}
		return strings.TrimLeft(said, "\ufe0f "), s
	}
	m := labelForm().FindStringSubmatch(said)
	if m == nil {
		return said, ""
	}
	rest = strings.TrimSpace(said[len(m[0]):])
	s, known := severities()[plainWords(m[1]+m[2]+m[4])]
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
	boilerplate = lazy.Regexp(`(?i)^\W*(?:hey there - i've reviewed|actionable comments posted|copilot reviewed|generated (?:with|by)|co-authored|useful\?|tip:|suggested change|resolve conversation|was this (?:helpful|useful)|` +
		`(?:if )?this (?:code )?review was|if this (?:code )?review|react with|give feedback|add copilot|comments? suppressed|<promise>|[\w ]{1,30}: ?(?:[\d.]+ ?(?:/ ?\d+|%)|[⭐★☆]+)\W*$|nothing (?:else |more )?to (?:add|change|fix|report)|(?:reply to|you(?:'re| are) receiving) this (?:e?mail|because)|@?[\w -]+ (?:requested changes|approved|commented) on this [\w ]+\.?$|let me know (?:if|when|once|what)|last reviewed commit|(?:fix|open|view) in \w+\b[\w ]*$|\[[\w -]+\]? reported by|` +
		`[\w ]+ finished @[\w-]+'s |resolved by |my (?:review|feedback|comments?) (?:focus|concentrate|cover)|(?:i|we)(?:'ve| have)? (?:found|identified|left|noted|flagged) ` +
		`(?:an?|one|two|three|a few|some|several|a couple of|\d+)(?: [\w-]+){0,3}? (?:issues?|comments?|suggestions?|points|notes|nits|findings|ones?)(?: and (?:an?|one|two|some|\d+)[\w -]*)?\W*$|/[a-z]+\b(?: |$)|cc @|@[\w-]+(?: (?:please )?review)?$)`)
	// thread is the line of a mail above the comments on one file.
	thread = lazy.Regexp(`^(?:In|.{1,60} (?:commented on|started a (?:new )?(?:discussion|thread) on)(?: a discussion on)?) ([^\s:]+)(?: <?https?:\S+)?:$|(?i)^comment on lines? \+?(\d+)(?: to \+?\d+)?(?: in|:) (\S+)$`)
	// another begins a point of its own.
	another = lazy.Regexp(`(?i)^(?:also|and|another|finally|secondly|besides|one more|in addition)\b`)
	// courtesy are sentences that ask for nothing.
	courtesy = lazy.Regexp(`(?i)^\W*(?:hi|hey|hello|thanks?|thank you|thx|\+1\b|cheers|regards|best|cc|ping|let me know|happy to|feel free|hope (?:this|that)|looking forward|otherwise(?:$|,? (?:good|fine|lgtm))|` +
		`great (?:work|job|stuff)|(?:nice|good|well) (?:work|job|done|one)|see (?:my |the )?(?:comments?|inline|below|above|notes|["“*])|(?:a )?few (?:comments|thoughts|notes|things)|here (?:is|are)|here's|` +
		`overall|in summary|to summarize|reviewed|found \d+ |i (?:found|have|left|see) (?:a few|some|several|\d+|two|three|one) |` +
		`\d+ (?:issues?|comments?|findings?)(?: found)?$|no action|nothing (?:else|to|more)|ready (?:to|for)|ship it|merging|` +
		`(?:my )?(?:verdict|decision|recommendation|review|status)[^\w]+(?:request|changes|reject|approve)\w*|request(?:ing)? changes|changes requested|reject(?:ed)?$|approved?$)`)
	// narration is what a reviewer did, and what the change does.
	narration = lazy.Regexp(`(?i)^\W*(?:(?:i|we)(?:'ve| have)? (?:\w+ly )?(?:reviewed|looked|read|tested|checked|ran|verified|went|examined|compared|pulled|tried|inspected)\b|` +
		`(?:this|the) (?:pr|pull request|mr|merge request|change|patch|commit|diff|branch|changeset)s? (?:\w+ly )?(?:adds?|implements?|introduces?|updates?|refactors?|fixes|improves?|replaces|moves|changes|extends|does|refines|migrates|removes|renames)\b)`)
	// nothingWrong counts what did not happen.
	nothingWrong = lazy.Regexp(`(?i)\b(?:no|without|zero|0|any|free of) (?:\w+ ){0,2}(?:issues?|problems?|concerns?|errors?|bugs?|blockers?|comments?|complaints?|regressions?|findings|failures|vulnerabilities|objections)\b|` +
		`\b(?:not|n't) (?:see|find|found|spot|have|break|notice)\b(?: \w+)*|nothing (?:blocking|wrong|major|else)|\bonly nits\b`)
	// good are words of praise, begins where praise for a thing that might be wrong begins.
	good = lazy.Regexp(`(?i)(?:\b(?:lgtm|kudos|bravo|good|great|nice(?:ly)?|solid|clean(?:ly)?|clear(?:ly)?|well|excellent|elegant|love|thanks?|impressive|awesome|perfect|works(?: well| fine| great| nicely| as (?:expected|intended))|correct(?:ly)?|thorough|readable|` +
		`comprehensive|approved?|fine|ok|okay|pass(?:es|ed|ing)?|green|happy|appreciate|impressed|beautiful|neat|robust|strong|consistent|sensible|reasonable|tidy|ship|helpful|simple|fantastic|wonderful|easy)\b|[👍🎉✅🚀💯❤👏🙌🔥])`)
	begins = lazy.Regexp(`(?i)^\W*(?:(?:the|overall|really|very|such|this is|it's|i|is|has|and|also|are) )*(?:(?:\w+ )?(?:error handling|test coverage|tests?|code|implementation|naming|logic|api|docs?|documentation|structure|approach|design|change)s? (?:is|are|looks?|seems?) )?` +
		`(?:very |really |quite |pretty |so |a )*(?:good|great|nice(?:ly)?|excellent|solid|clean|clear|love|like|well|proper(?:ly)?|comprehensive|thorough|strong|robust|elegant|correct(?:ly)?|impressive|awesome|perfect|appreciate|sensible|thoughtful|smart|fantastic)\b`)
	// isGood ends praise for a thing that might be wrong.
	isGood = lazy.Regexp(`(?i)\b(?:is|are|looks?|seems?|reads) (?:\w+ly |very |really |quite |all )?(?:good|great|fine|solid|clean|nice|clear|correct|excellent|sound|thorough|helpful|well \w+)(?: (?:here|now|to me|overall))?[.! ]*$`)
	// asks are words of a sentence that wants something changed, wrongs are words for what is wrong, which praise may name.
	asks = lazy.Regexp(`(?i)\b(?:but|however|though|although|except|should(?:n't)?|must|needs?|missing|please|fix(?:ed)?|consider|instead|cannot|can't|not|isn't|doesn't|don't|didn't|won't|never|lacks?|without|rename|remove|add|replace|` +
		`would (?:be|prefer|rather)|could|why|wrong|fails?|failing|broken|unless|too|only|swallow\w*|ignor\w+|incorrect|unused|unclear|unnecessary|duplicat\w+|concern|worr\w+|suggest|recommend|prefer|once|todo|instead of|better|breaks|still|no|will)\b`)
	wrongs = lazy.Regexp(`(?i)\b(?:errors?|bugs?|issues?|problems?|races?|leak\w*|crash\w*|panics?|null|injection|security|overflow|deadlock|vulnerab\w+|regression|exposes?|hard-?coded)\b`)
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
	strengths = lazy.Regexp(`\b(?:strengths?|positives?|highlights?|pros|praises?|kudos|liked?|well done|what works|works well|went well|good (?:parts|points|things)|` +
		`(?:what|what's|what is|looks?|the) good|great stuff|done well|thanks?|acknowledge?ments?|no issues|passed checks|strong points|resolved|already (?:fixed|addressed))\b`)
	telling = lazy.Regexp(`^(?:(?:code )?review(?:ed)? (?:by|of|for)|(?:pr |pull request |merge request |code |overall |review |change |executive |quick |high level )*(?:summary|overview|walkthrough|description|context|background|introduction|` +
		`verdict|conclusion|assessment|changes(?: made)?|what changed|change summary|status|decision|overall|rating|score|confidence(?: score)?|tl ?dr|scope|files?(?: changed| reviewed)?|` +
		`test plan|how (?:it was|i) tested|recommendation|final (?:verdict|thoughts|recommendation)|result|impact|reviewed changes|important files changed|reviewer(?:'s)? guide))\b`)
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
	bare, place, isHead := strings.Cut(strings.TrimPrefix(said, "**"), "** ")
	beginsBold := len(said)-len(bare)-len(place) == len("**** ")
	if isHead && beginsBold && !strings.HasSuffix(bare, ":") {
		place = strings.Trim(place, " -–—()`:") // "**1. It panics** - `a.go:12`"
		_, alone := placeAlone(place)
		bold = alone || places.IsFile(place)
	}
	colon := strings.HasSuffix(said, ":")
	if colon && !marked && !bold && r.open != nil && r.open.title != "" && r.codeFollows() {
		r.open.addLine(unmarkedText(said))
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

// This file reads tables of findings.

// readRow reads a row of a table of findings.
func (r *reviewReader) readRow(said string) bool {
	cells := cellsOf(said)
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
		r.cellsSay(cells)
	}
	r.open = nil
	return true
}

func cellsOf(said string) []string {
	if !strings.Contains(said, "|") {
		return nil
	}
	cells := strings.Split(strings.ReplaceAll(strings.Trim(said, "| "), `\|`, "¦"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "¦", "|"))
	}
	return cells
}

var (
	severityHeads = words.Set(`severity priority level sev prio importance impact`)
	fileHeads     = words.Set(`file location path where filename place`)
	lineHeads     = words.Set(`line lines`)
	statusHeads   = words.Set(`status result verdict ok pass state`)
	countHeads    = words.Set(`id no nr category type area confidence`)
	askingHeads   = words.Set(`issue issues problem problems finding findings concern concerns comment comments bug suggestion recommendation fix action
		violation defect risk todo request feedback`)
	wellWords = words.Set(`pass passed passes ok okay good done yes fixed resolved approved fine addressed complete completed correct none na praise`)
)

// asksInTable reports whether a table with these heads lists findings, and not what a change does.
func asksInTable(heads []string) bool {
	return slices.ContainsFunc(heads, func(h string) bool {
		return severityHeads()[h] || statusHeads()[h] ||
			slices.ContainsFunc(strings.Fields(h), func(w string) bool { return askingHeads()[w] })
	})
}

func (r *reviewReader) cellsSay(cells []string) {
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
		switch s, graded := severities()[name]; {
		case severityHeads()[head] && graded:
			d.Severity, d.labelled = s, true
			if s == praiseLabel {
				return
			}
		case severityHeads()[head] || statusHeads()[head]:
			if wellWords()[words.Cut(name, strings.IndexByte(name+" ", ' '))] || strings.HasPrefix(bare, "✅") || strings.HasPrefix(bare, "✔") {
				return
			}
			if said = append(said, strings.TrimLeft(bare, "❌✗✘✖⚠️🔴🟠🟡🟢⛔🚫 ")); name == "" {
				said = said[:len(said)-1]
			}
		case fileHeads()[head]:
			d.setField("file", bare, true)
		case lineHeads()[head]:
			d.setField("line", bare, true)
		case countHeads()[head], bare == "", bare == "-", bare == "—", head == "" && strings.Trim(bare, "#0123456789") == "":
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
