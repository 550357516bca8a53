package simulate

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// This file is the loop that pawl's is compared with. It looks for keywords in the
// last message, and takes the strategy for what it found that succeeded most often,
// else that of the next lower priority. What succeeded is kept from loop to loop.

// keywordStrategy is one of its strategies.
type keywordStrategy struct {
	name      string
	errors    []string
	factor    int // of the time
	parallel  bool
	fallback  bool
	linear    bool
	successes int
}

// byKeyword plays loops this way. The strategies are in the order of priority.
type byKeyword struct {
	classifier
	strategies []keywordStrategy
}

func (d *byKeyword) forget() {
	d.classifier = newClassifier()
	d.strategies = []keywordStrategy{
		{name: "default", factor: 1, parallel: true},
		{name: "aggressive-timeout", errors: []string{"timeout", "ETIMEDOUT", "ECONNRESET"}, factor: 2, parallel: true},
		{name: "fallback-providers", errors: []string{"rate_limit", "api_error", "429", "503"}, factor: 1,
			parallel: true, fallback: true},
		{name: "reduced-parallelism", errors: []string{"resource_exhausted", "EMFILE", "ENOMEM"}, factor: 1, linear: true},
		{name: "skip-optional", errors: []string{"partial_failure", "non_critical_error"}, factor: 1, parallel: true},
	}
}

var keywords = []struct {
	pattern   *regexp.Regexp
	kind      string
	transient bool
}{
	{regexp.MustCompile(`(?i)timeout|ETIMEDOUT`), "timeout", true},
	{regexp.MustCompile(`(?i)rate limit|429`), "rate_limit", true},
	{regexp.MustCompile(`(?i)ECONNREFUSED|ENOTFOUND`), "network", true},
	{regexp.MustCompile(`(?i)unauthorized|401|403`), "auth", false},
	{regexp.MustCompile(`(?i)validation|invalid`), "validation", false},
	{regexp.MustCompile(`(?i)ENOMEM|EMFILE`), "resource_exhausted", true},
	{regexp.MustCompile(`(?i)503|502|504`), "service_unavailable", true},
}

// classifier is its classifyError, with the answers that it gave; there are few
// messages.
type classifier struct{ known map[string]int }

func newClassifier() classifier { return classifier{map[string]int{}} }

func (c classifier) classify(message string) (kind string, transient bool) {
	at, known := c.known[message]
	if !known {
		at = -1
		for i := range keywords {
			if keywords[i].pattern.MatchString(message) {
				at = i
				break
			}
		}
		c.known[message] = at
	}
	if at < 0 {
		return "unknown", false
	}
	return keywords[at].kind, keywords[at].transient
}

// next is the strategy after a failure of a kind.
func (d *byKeyword) next(previous int, kind string) int {
	best := -1
	for i := range d.strategies {
		s := &d.strategies[i]
		fits := slices.ContainsFunc(s.errors, func(e string) bool { return strings.Contains(kind, e) })
		better := best < 0 || s.successes > d.strategies[best].successes // they are in the order of priority
		if fits && better {
			best = i
		}
	}
	if best >= 0 {
		return best
	}
	return min(previous+1, len(d.strategies)-1) // the next lower priority, at the end the same
}

func (d *byKeyword) play(p *project, w *world, _ time.Time) tally {
	var sum tally
	j := judge{tally: &sum}
	current, failed := 0, 0
	for i := 1; i <= maxIterations && sum.time <= maxTime && sum.cost <= maxCost; i++ {
		s := &d.strategies[current]
		t := try{at: sum.time, limit: baseLimit * time.Duration(s.factor), longer: s.factor > 1, parallel: s.parallel}
		if s.fallback && p.fallbacks > 0 {
			t.agent = 1 + failed%p.fallbacks
		}
		res := w.try(&t)
		j.ended(res)
		sum.iterations, sum.time, sum.cost = i, sum.time+res.took, sum.cost+res.cost
		if res.done {
			s.successes++
			sum.success = true
			return sum
		}
		if res.trouble == nil {
			s.successes++
			failed = 0
			continue
		}
		failed++
		kind, transient := d.classify(res.trouble.message)
		current = d.next(current, kind)
		if transient {
			sum.time += d.strategies[current].wait(failed)
		}
	}
	return sum
}

func (s *keywordStrategy) wait(n int) time.Duration {
	if s.linear {
		return time.Duration(n) * time.Second
	}
	return min(time.Second<<(n-1), 5*time.Minute)
}
