package failure

import (
	"slices"
	"strings"
	"sync"
)

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
// The phrases of all rules are found in one pass; a condition is looked at
// only where one of its rule's phrases stands, and the hands-on conditions of
// rule_lines.go are much cheaper than expressions. So a rule names phrases as
// exact as they can be, and needs an expression only for the form of a line.
type rule struct {
	class  Class
	weight int
	words  string // one of these, separated by "|", without regard to case, as whole words
	re     string // and the line matches; empty: always
	not    string // and the line does not match; empty: always
	flags  flag
	when   func(p spot) bool // and this holds; nil: always
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
	stated                    // not where a test or a line of source code speaks of it, see [quotes]
)

// compiled is a rule that is ready for use.
type compiled struct {
	rule
	re, not func() *expression // nil: none
}

type ruleSet struct {
	rules  []compiled
	inside []bool // which rules have the flag
	words  *scanner
}

// alarmed is the owner of the words that make a line worth showing, see
// [hits.alarms]. They belong to no rule.
const alarmed = 1 << 20

// repeated is the owner of the word that says that something is tried again,
// see [hits.goesOn].
const repeated = 1 << 21

const alarmWords = "error|errors|fatal|failed|failure|failures|fail|panic|exception|cannot|can't|denied|refused|not found|invalid|missing|unable|undefined|unexpected|expected|traceback|assertion|abort|aborted|killed|no such"

// rules is built at the first analysis, so that a program that never analyses
// a failure does not pay for it at its start; expressions are compiled when
// they are first looked at.
var rules = sync.OnceValue(func() *ruleSet {
	set := &ruleSet{}
	var words []string
	var owners []int32
	for _, table := range [][]rule{
		providerRules, accountRules, agentRules, statusRules, systemRules, networkRules, gitRules,
		packageRules, compilerRules, linterRules, runnerRules, exceptionRules, usageRules,
	} {
		for _, r := range table {
			for w := range strings.SplitSeq(r.words, "|") {
				words, owners = append(words, w), append(owners, int32(len(set.rules)))
			}
			set.rules = append(set.rules, compiled{rule: r, re: lazily(r.re), not: lazily(r.not)})
			set.inside = append(set.inside, r.flags&inside != 0)
		}
	}
	for w := range strings.SplitSeq(alarmWords, "|") {
		words, owners = append(words, w), append(owners, alarmed)
	}
	words, owners = append(words, "retrying"), append(owners, repeated)
	set.words = newScanner(words, owners)
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

// before and after are the line without the phrase's own bytes being known:
// what stands in front of it, and from its beginning on.
func (p spot) before() string { return p.l[:min(p.at, len(p.l))] }
func (p spot) after() string  { return p.l[min(p.at, len(p.l)):] }

// previous is the line above that is not blank, "" at the start.
func (p spot) previous() string {
	for i := p.line - 1; i >= 0 && i > p.line-4; i-- {
		if l := p.h.t.line(i); strings.TrimSpace(l) != "" {
			return l
		}
	}
	return ""
}

func (c *compiled) matches(p spot) bool {
	return (c.flags&stated == 0 || !p.quotes() && !p.named()) && (c.when == nil || c.when(p)) &&
		(c.re == nil || c.re().matches(p)) && (c.not == nil || !c.not().matches(p))
}

// hit is a place at which a word of a rule stands. Whether the rule holds there
// is only looked at when somebody asks, the heaviest rules first: most places
// never have to be.
type hit struct {
	rule    *compiled
	number  int32 // of the rule
	line    int32 // of the text
	at      int32 // offset of the word in the line
	size    int16 // of the word
	checked bool
	is      bool
}

// Limits on hits, so that a hostile text costs no more than a large one.
const (
	maxTries = 100 // expressions of one rule that are tried
	maxHits  = 120 // of one rule: the first half of them, and then the last
)

// hits are the places at which words of rules stand in a text.
type hits struct {
	t      text
	small  string // t.s in small letters
	all    []hit
	heavy  []int32 // places in all, the heaviest rule first, of equals the later place
	alarms []int32 // the lines that speak of an error, in order
	tries  []uint8
	facts  []fact // of the lines, those that were asked for
	again  bool   // the text says somewhere that something is tried again
	differ bool   // the text holds a difference of files
	mixed  bool   // all is not in the order of the text yet
}

// find returns where words of rules stand in t, at most one for a rule and a
// line.
func (set *ruleSet) find(t text) *hits {
	small := smallLetters(t.s)
	h := &hits{
		t: t, small: small, differ: strings.Contains(small, "@@ -"), all: make([]hit, 0, 32),
		tries: make([]uint8, len(set.rules)), facts: make([]fact, t.len()),
	}
	seen := make([]places, len(set.rules))
	var over map[int32][]int32 // where the places of rules with many are
	line, end := int32(0), 0
	set.words.each(t.s, h.small, func(n int32, from, to int) {
		if n == repeated {
			h.again = true
			return
		}
		known := n != alarmed
		if (!known || !set.inside[n]) && !closed(t.s, to) {
			return
		}
		if from >= end || end == 0 {
			line, end = t.lineAfter(line, from)
		}
		if !known {
			if len(h.alarms) == 0 || h.alarms[len(h.alarms)-1] != line {
				h.alarms = append(h.alarms, line)
			}
			return
		}
		c := &seen[n]
		if c.line == line+1 {
			return
		}
		c.line = line + 1
		one := hit{rule: &set.rules[n], number: n, line: line, at: int32(from) - t.starts[line], size: int16(to - from)}
		if c.n++; c.n <= maxHits {
			if c.n > maxHits/2 {
				if over == nil {
					over = map[int32][]int32{}
				}
				over[n] = append(over[n], int32(len(h.all)))
			}
			h.all = append(h.all, one)
			return
		}
		ring := over[n] // the end says more than the middle
		h.all[ring[int(c.n-maxHits-1)%len(ring)]] = one
		h.mixed = true
	})
	h.sort()
	return h
}

// places is how often a rule's words were found, and the last line plus one.
type places struct{ line, n int32 }

func (h *hits) sort() {
	if h.mixed {
		slices.SortStableFunc(h.all, func(a, b hit) int {
			if a.line != b.line {
				return int(a.line - b.line)
			}
			return int(a.at - b.at)
		})
	}
	var from [maxWeight + 1]int32 // where the hits of a weight go
	for i := range h.all {
		from[h.all[i].rule.weight]++
	}
	at := int32(0)
	for w := maxWeight; w >= 0; w-- {
		at, from[w] = at+from[w], at
	}
	h.heavy = make([]int32, len(h.all))
	for i := len(h.all) - 1; i >= 0; i-- {
		w := h.all[i].rule.weight
		h.heavy[from[w]] = int32(i)
		from[w]++
	}
}

// maxWeight is the most that a rule weighs.
const maxWeight = 100

// holds tells whether the rule holds at hit i.
func (h *hits) holds(i int) bool {
	one := &h.all[i]
	if one.checked {
		return one.is
	}
	one.checked = true
	c := one.rule
	if c.re == nil && c.not == nil && c.when == nil && c.flags&stated == 0 {
		one.is = true
		return true
	}
	if h.tries[one.number] >= maxTries {
		return false
	}
	h.tries[one.number]++
	from, to, at := h.t.around(int(one.line), int(one.at))
	one.is = c.matches(spot{l: h.t.s[from:to], small: h.small[from:to], at: at, size: int(one.size), h: h, line: int(one.line)})
	return one.is
}

// windowMax is what a condition is shown of a long line.
const windowMax = 600

// around returns the range of line i without the prefixes of CI systems, cut
// around the offset at if it is long, and where the offset is in that.
func (t text) around(i, at int) (from, to, in int) {
	own := int(t.ownAt(i))
	from = int(t.starts[i]) + own
	to = from + len(t.raw(i)) - own
	at -= own
	if to-from <= windowMax {
		return from, to, max(0, at)
	}
	skip := min(max(0, at-windowMax/3), to-from-windowMax)
	return from + skip, from + skip + windowMax, max(0, at-skip)
}
