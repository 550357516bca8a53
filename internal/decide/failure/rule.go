package failure

import (
	"bytes"
	"cmp"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"

	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// rules.json

// A rule says that a phrase in a certain context speaks for a class. Rules are
// about tools and protocols; a rule about one program's one message is one too
// many.
//
// Weights, so that rules of different files can be compared:
//
//	90  a tool names the cause in its own vocabulary (error codes, fixed phrases)
//	80  a tool's verdict: a failed test, an error of a compiler or a linter
//	70  the type of an exception, an error number of the system
//	60  a status or a phrase in the context of an error
//	50  an unhandled exception of any type
//	40  words that often speak for a class
//
// The rules are in rules.json. Their phrases are found in one pass. A condition is looked at only
// where one of its rule's phrases stands, so a rule names phrases that are as
// exact as they can be, and an expression only for the form of a line.
type rule struct {
	Class  Class               `json:"class"`
	Weight int                 `json:"weight"`
	Flags  flag                `json:"flags"`
	Words  []string            `json:"words"`  // one of these, without regard to case, as whole words
	Match  runners.Expression  `json:"match"`  // and the line matches
	Unless runners.Expression  `json:"unless"` // and the line does not match
	When   map[string][]string `json:"when"`   // and these conditions hold, see [conditions]
}

type flag uint16

const (
	retries  flag = 1 << iota // passes on a retry, although others of its class do not
	final                     // does not pass on a retry, although others of its class do
	provider                  // only a model provider or an agent program says this
	setup                     // the command line or configuration of the program itself is wrong
	loud                      // a warning counts as much as an error
	closing                   // counts only in the last lines
	loading                   // a test file could not be loaded: what stopped it is the cause
	inside                    // the phrase may go on as a longer word
	ours                      // what is missing is the repository's: the agent's to add
	machine                   // only a person can give the machine what it lacks
	stated                    // not where a test or a line of source code speaks of it, see [isQuotation]
	own                       // counts only in an agent program's word for an error of its own calls
)

var flagNames = []string{
	"retries", "final", "provider", "setup", "loud", "closing", "loading", "inside", "ours", "machine", "stated", "own",
}

// UnmarshalJSON reads the names of flags.
func (f *flag) UnmarshalJSON(data []byte) error {
	var names []string
	err := json.Unmarshal(data, &names)
	for _, name := range names {
		at := slices.Index(flagNames, name)
		if at < 0 {
			return fmt.Errorf("no flag is called %q", name)
		}
		*f |= 1 << at
	}
	return err
}

//go:embed rules.json
var ruleFile []byte

// readRules reads the table of rules, grouped by the tools whose words they know.
func readRules() (all []*rule, err error) {
	var tables []struct {
		About string  `json:"about"`
		Rules []*rule `json:"rules"`
	}
	d := json.NewDecoder(bytes.NewReader(ruleFile))
	d.DisallowUnknownFields()
	err = d.Decode(&tables)
	for _, t := range tables {
		all = append(all, t.Rules...)
	}
	return all, err
}

// alarm owns the words that make a line worth showing, doubt those that only
// hint at it.
var (
	alarm = &rule{Words: strings.Split("error|errors|fatal|failed|failure|failures|fail|panic|exception|cannot|can't|denied|refused|"+
		"not found|invalid|missing|unable|undefined|unexpected|expected|expecting|traceback|assertion|abort|aborted|killed|no such|"+
		"could not|couldn't|does not exist|not "+
		"exist|fehler|fehlgeschlagen|erreur|échec|Échec|ÉCHEC|Erreur|introuvable|fallo|falló|errore|erro|"+
		"falha|ошибка|Ошибка|не удалось|错误|失败|无法|エラー|失敗", "|")}
	doubt = &rule{Words: strings.Split("does not|doesn't|do not|don't|did not|didn't|is not|isn't|are not|was "+
		"not|has no|have no|"+
		"not|no|different|differs|no longer|never|must|should|wrong|bad|broken|corrupt|differ|mismatch|too "+
		"many|too long|too large|"+
		"too big|too small|too few|too short|exceeds|exceeded|above|below|over|unused|unreachable|timed "+
		"out|timeout|lost|"+
		"illegal|duplicate|duplicated|conflict|conflicts|forbidden|unrecognized|unsupported|unresolved|unknown|unhandled|"+
		"uncaught|violates|violation|violations|rejected|rejects|dead|stale|outdated|out of date|drift|empty|but|"+
		"instead of|only|problem|problems|issue|issues|leak|dangling|orphan|incomplete|insufficient|incorrect|inconsistent|"+
		"ambiguous|circular|refers "+
		"to|want|wants|wanted|nicht|kein|keine|fehlt|ungültig|unbekannt|impossible|invalide|manquant|"+
		"n'existe|no existe|falta|inválido|não|mancante|не найден|нет|不存在|缺少|見つかり|ません", "|")}
)

// phrases holds the words of all rules and of [alarm]. It is built at the first
// analysis, so that other programs do not pay for it at their start.
var phrases = sync.OnceValue(func() phraseSet {
	all, err := readRules()
	if err != nil {
		panic("rules.json: " + err.Error()) // a test reads it
	}
	set := phraseSet{}
	for _, r := range append(all, alarm, doubt) {
		set.addRuleWords(r)
	}
	return set
})

// spot is a place where a phrase of a rule stands.
type spot struct {
	l     string // the line, or what is examined of a long one
	small string // l in small letters
	at    int    // where in l the phrase begins
	size  int    // of the phrase
	h     *hits
	line  int // of the text
}

// textBefore and textAfter return the line in front of the phrase, and from its beginning on.
func (p spot) textBefore() string { return p.l[:min(p.at, len(p.l))] }
func (p spot) textAfter() string  { return p.l[min(p.at, len(p.l)):] }

// previousLine returns the line above that is not blank, "" at the start.
func (p spot) previousLine() string {
	for i := p.line - 1; i >= 0 && i > p.line-4; i-- {
		if l := p.h.t.LineAt(i); strings.TrimSpace(l) != "" {
			return l
		}
	}
	return ""
}

func (r *rule) matchesAt(p spot) bool {
	if r.Flags&stated != 0 {
		if p.isQuotation() || p.isPartOfName() || p.isMention() {
			return false
		}
	}
	for name, args := range r.When { // order does not show: all must hold
		if !conditions[name](p, args) {
			return false
		}
	}
	if r.Match.Compiled != nil && !r.Match.MatchesLine(p.l) {
		return false
	}
	return !r.Unless.MatchesLine(p.l)
}

// hit is a place at which a word of a rule stands. Whether the rule holds there
// is only looked at when somebody asks, the heaviest rules first: most places
// never have to be.
type hit struct {
	rule     *rule
	line     int // of the text
	from, to int // of the word in the text
	checked  bool
	is       bool
}

// maxTries bounds how many places of one rule are looked at, so that a hostile
// text costs no more than a large one.
const maxTries = 100

// hits are the places at which words of rules stand in a text.
type hits struct {
	t      printed.Text
	small  string // t.s in small letters
	all    []*hit // in the order of the text
	heavy  []*hit // the heaviest rule first, of equals the later place
	alarms []int  // the lines that speak of an error, in order
	doubts []int  // those that hint at one
	fences []int  // those that begin or end a block of code in Markdown
	tries  map[*rule]int
	own    bool // the text is an agent program's word for an error of its own calls
}

// findHits returns where words of rules stand in t, at most one for a rule and
// a line.
func findHits(t printed.Text) *hits {
	h := &hits{t: t, small: words.Small(t.All), tries: map[*rule]int{}, fences: fencesIn(t)}
	last := map[*rule]int{} // the line of a rule's last hit, plus one
	line := 0
	phrases().eachWordHit(t.All, h.small, func(r *rule, from, to int) {
		line = t.LineNumberOf(line, from)
		if last[r] == line+1 {
			return
		}
		last[r] = line + 1
		switch r {
		case alarm:
			h.alarms = append(h.alarms, line)
			return
		case doubt:
			h.doubts = append(h.doubts, line)
			return
		}
		h.all = append(h.all, &hit{rule: r, line: line, from: from, to: to})
	})
	h.heavy = slices.Clone(h.all)
	slices.Reverse(h.heavy)
	slices.SortStableFunc(h.heavy, func(a, b *hit) int { return cmp.Compare(b.rule.Weight, a.rule.Weight) })
	return h
}

// ruleHoldsAt reports whether the rule of a hit holds there. Each rule is tried at most maxTries times.
func (h *hits) ruleHoldsAt(one *hit) bool {
	counts := h.own || one.rule.Flags&own == 0
	if counts && !one.checked && h.tries[one.rule] < maxTries {
		h.tries[one.rule]++
		one.is = one.rule.matchesAt(h.spotOfHit(one))
	}
	one.checked = true
	return one.is
}

// windowMax is the length to which a condition sees a long line.
const windowMax = 600

// spotOfHit returns a hit in its line, without the prefixes of CI systems. A long line is cut around
// the hit.
func (h *hits) spotOfHit(one *hit) spot {
	from, to := h.t.Lines[one.line].Own, h.t.Lines[one.line].End
	if to-from > windowMax {
		from += min(max(0, one.from-from-windowMax/3), to-from-windowMax)
		to = from + windowMax
	}
	return spot{l: h.t.All[from:to], small: h.small[from:to], at: max(0, one.from-from), size: one.to - one.from, h: h,
		line: one.line}
}

// phraseSet finds all words of all rules in one pass over a text. Words are
// listed by their first two bytes.
type phraseSet map[string][]phrase

type phrase struct {
	word  string
	owner *rule
}

// addRuleWords adds the words of a rule, which are matched without regard to the case of ASCII letters.
// Each has at least two.
func (set phraseSet) addRuleWords(owner *rule) {
	for _, w := range owner.Words {
		w = strings.ToLower(w)
		set[w[:2]] = append(set[w[:2]], phrase{w, owner})
	}
}

// eachWordHit calls f for every place where a word of the set stands and begins where a word of the
// text does: the word's owner and the half-open range. small is the text in small letters.
func (set phraseSet) eachWordHit(text, small string, f func(owner *rule, from, to int)) {
	for i := range max(0, len(text)-1) {
		if !wordBegins(text, i) {
			continue
		}
		for _, p := range set[small[i:i+2]] {
			if !strings.HasPrefix(small[i:], p.word) {
				continue
			}
			if to := i + len(p.word); p.owner.Flags&inside != 0 || wordEnds(text, to) {
				f(p.owner, i, to)
			}
		}
	}
}

// wordBegins reports whether a word may begin at text[i]. A capital after a small letter begins
// one: "Timeout" in "ReadTimeout", "Error" in "OSError".
func wordBegins(text string, i int) bool {
	c := text[i]
	if i == 0 || !words.IsWord(c) || c >= 0x80 || !words.IsWord(text[i-1]) {
		return true
	}
	return words.IsUpper(c) && (words.IsLower(text[i-1]) || i+1 < len(text) && words.IsLower(text[i+1]))
}

// wordEnds reports whether a word may end at text[:to]. A capital after a small letter begins a new
// word, so that "Timeout" is one in "TimeoutError".
func wordEnds(text string, to int) bool {
	if to >= len(text) || text[to-1] >= 0x80 { // many scripts put no space between words
		return true
	}
	return !words.IsWord(text[to-1]) || !words.IsWord(text[to]) || words.IsLower(text[to-1]) && words.IsUpper(text[to])
}
