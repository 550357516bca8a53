package failure

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A rule says that a word in a certain context speaks for a class. Rules are
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
type rule struct {
	class  Class
	weight int
	words  string // one of these, separated by "|", without regard to case, as whole words
	re     string // and the line matches; empty: always
	not    string // and the line does not match; empty: always
	flags  flag
	when   func(line string) bool // and this holds; nil: always
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
	inside                    // the words may be parts of longer words
)

// compiled is a rule that is ready for use.
type compiled struct {
	rule
	re, not *regexp.Regexp
}

type ruleSet struct {
	rules []compiled
	words *scanner
	owner []int // word number to rule number
}

// rules is compiled at the first analysis, so that a program that never
// analyses a failure does not pay for it at its start.
var rules = sync.OnceValue(func() *ruleSet {
	set := &ruleSet{}
	var words []string
	for _, table := range [][]rule{
		providerRules, agentRules, statusRules, systemRules, networkRules, gitRules,
		packageRules, compilerRules, linterRules, runnerRules, exceptionRules, usageRules,
	} {
		for _, r := range table {
			c := compiled{rule: r}
			if r.re != "" {
				c.re = regexp.MustCompile(r.re)
			}
			if r.not != "" {
				c.not = regexp.MustCompile(r.not)
			}
			for w := range strings.SplitSeq(r.words, "|") {
				words = append(words, strings.ToLower(w))
				set.owner = append(set.owner, len(set.rules))
			}
			set.rules = append(set.rules, c)
		}
	}
	set.words = newScanner(words)
	return set
})

// matches tells whether the rule holds for line, in which one of its words was
// found.
func (c *compiled) matches(line string) bool {
	return (c.when == nil || c.when(line)) && (c.re == nil || c.re.MatchString(line)) && (c.not == nil || !c.not.MatchString(line))
}

// hit is a place at which a word of a rule stands. Whether the rule holds there
// is only looked at when somebody asks, the heaviest rules first: most places
// never have to be.
type hit struct {
	rule    *compiled
	number  int // of the rule
	line    int // of the text
	at      int // offset of the word in the line
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
	t     text
	all   []hit
	heavy []int // numbers in all, the heaviest rule first, of equals the later place
	tries []uint8
	mixed bool // all is not in the order of the text yet
}

// find returns where words of rules stand in t, at most one for a rule and a
// line.
func (set *ruleSet) find(t text) *hits {
	h := &hits{t: t, tries: make([]uint8, len(set.rules))}
	last := make([]int32, len(set.rules))
	slots := make([][]int, len(set.rules)) // where a rule's places are in h.all
	over := make([]int, len(set.rules))
	line, end := 0, 0
	set.words.each(t.s, func(word, from, to int) bool {
		n := set.owner[word]
		c := &set.rules[n]
		if c.flags&inside == 0 && !bounded(t.s, from, to) {
			return true
		}
		if from >= end || end == 0 {
			line = t.lineOf(from)
			end = len(t.s)
			if line+1 < t.len() {
				end = int(t.starts[line+1])
			}
		}
		if last[n] == int32(line)+1 {
			return true
		}
		last[n] = int32(line) + 1
		one := hit{rule: c, number: n, line: line, at: from - int(t.starts[line])}
		if len(slots[n]) < maxHits {
			slots[n] = append(slots[n], len(h.all))
			h.all = append(h.all, one)
		} else { // the end says more than the middle
			const half = maxHits / 2
			h.all[slots[n][half+over[n]%half]] = one
			over[n]++
			h.mixed = true
		}
		return true
	})
	h.sort()
	return h
}

func (h *hits) sort() {
	if h.mixed {
		slices.SortStableFunc(h.all, func(a, b hit) int {
			if a.line != b.line {
				return a.line - b.line
			}
			return a.at - b.at
		})
	}
	h.heavy = make([]int, len(h.all))
	for i := range h.heavy {
		h.heavy[i] = i
	}
	slices.SortStableFunc(h.heavy, func(a, b int) int {
		if d := h.all[b].rule.weight - h.all[a].rule.weight; d != 0 {
			return d
		}
		return b - a
	})
}

// holds tells whether the rule holds at hit i.
func (h *hits) holds(i int) bool {
	one := &h.all[i]
	if one.checked {
		return one.is
	}
	one.checked = true
	c := one.rule
	if c.re == nil && c.not == nil && c.when == nil {
		one.is = true
		return true
	}
	if h.tries[one.number] >= maxTries {
		return false
	}
	h.tries[one.number]++
	one.is = c.matches(window(h.t.line(one.line), one.at))
	return one.is
}

// windowMax is what an expression is shown of a long line.
const windowMax = 600

// window cuts a long line around the offset at.
func window(line string, at int) string {
	if len(line) <= windowMax {
		return line
	}
	from := min(max(0, at-windowMax/3), len(line)-windowMax)
	return line[from : from+windowMax]
}
