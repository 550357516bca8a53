package control

import (
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
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
		failure.Medium: "medium|moderate|minor|p2|p2 badge|s2|sev3|sev 3|medium severity|medium priority|med|should fix|should|warning|issue|todo|chore|refactor|concern|correctness|performance|reject|rejected",
		failure.Low: "low|nit|nits|nitpick|nitpicks|nitpick comment|style|suggestion|suggestions|typo|typos|p3|p3 badge|p4|s3|trivial|info|optional|low severity|low priority|question|thought|note|" +
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
	// boilerplate is what services and tools add.
	boilerplate = lazy.Regexp(`(?i)^\W*(?:hey there - i've reviewed|actionable comments posted|copilot reviewed|generated (?:with|by)|co-authored|useful\?|tip:|suggested change|resolve conversation|was this (?:helpful|useful)|` +
		`(?:if )?this (?:code )?review was|if this (?:code )?review|react with|give feedback|add copilot|comments? suppressed|<promise>|[\w ]{1,30}: ?(?:[\d.]+ ?(?:/ ?\d+|%)|[⭐★☆]+)\W*$|nothing (?:else |more )?to (?:add|change|fix|report)|/[a-z]+\b(?: |$)|cc @|@[\w-]+$)`)
	// courtesy are sentences that ask for nothing.
	courtesy = lazy.Regexp(`(?i)^\W*(?:hi|hey|hello|thanks?|thank you|thx|cheers|regards|best|cc|ping|let me know|happy to|feel free|hope (?:this|that)|looking forward|otherwise(?:$|,? (?:good|fine|lgtm))|` +
		`great (?:work|job|stuff)|(?:nice|good|well) (?:work|job|done|one)|see (?:my |the )?(?:comments?|inline|below|notes)|(?:a )?few (?:comments|thoughts|notes|things)|here (?:is|are)|here's|` +
		`overall|in summary|to summarize|reviewed|found \d+ |i (?:found|have|left|see) (?:a few|some|several|\d+|two|three|one) |` +
		`\d+ (?:issues?|comments?|findings?)(?: found)?$|no action|nothing (?:else|to|more)|ready (?:to|for)|ship it|merging|` +
		`(?:my )?(?:verdict|decision|recommendation|review|status)[: ]+(?:request|changes|reject|approve)\w*|request(?:ing)? changes|changes requested|reject(?:ed)?$|approved?$)`)
	// narration is what a reviewer did, and what the change does.
	narration = lazy.Regexp(`(?i)^\W*(?:(?:i|we)(?:'ve| have)? (?:\w+ly )?(?:reviewed|looked|read|tested|checked|ran|verified|went|examined|compared|pulled|tried|inspected)\b|` +
		`(?:this|the) (?:pr|pull request|mr|merge request|change|patch|commit|diff|branch|changeset)s? (?:\w+ly )?(?:adds?|implements?|introduces?|updates?|refactors?|fixes|improves?|replaces|moves|changes|extends|does|refines|migrates|removes|renames)\b)`)
	// nothingWrong counts what did not happen.
	nothingWrong = lazy.Regexp(`(?i)\b(?:no|without|zero|0|any|free of) (?:\w+ ){0,2}(?:issues?|problems?|concerns?|errors?|bugs?|blockers?|comments?|complaints?|regressions?|findings|failures|vulnerabilities|objections)\b|` +
		`\b(?:not|n't) (?:see|find|found|spot|have|break|notice)\b(?: \w+)*|nothing (?:blocking|wrong|major|else)|\bonly nits\b`)
	// good are words of praise, begins where praise for a thing that might be wrong begins.
	good = lazy.Regexp(`(?i)(?:\b(?:lgtm|good|great|nice(?:ly)?|solid|clean(?:ly)?|clear(?:ly)?|well|excellent|elegant|love|thanks?|impressive|awesome|perfect|works(?: well| fine| great| nicely| as (?:expected|intended))|correct(?:ly)?|thorough|readable|` +
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
