package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Variant is an agent with settings: what is compared.
type Variant struct {
	Agent   string `json:"agent"`
	Setting string `json:"setting"` // the name of the file that is laid over pawl.yaml; AsIs is none
}

// AsIs is the setting of pawl.yaml as it is.
const AsIs = "pawl.yaml"

// String is the name of the variant in texts.
func (v Variant) String() string {
	if v.Setting == AsIs {
		return v.Agent
	}
	return v.Agent + " with " + v.Setting
}

// Attempt is one try of a variant at a task. What is stored outlives the code.
type Attempt struct {
	Variant
	Task   string `json:"task"` // its commit
	Repeat int    `json:"repeat"`
	// Solved: the commit's tests and all gates are green on what the agent left.
	Solved bool `json:"solved"`
	// Completed: the agent claimed it, and the gates that it knew were green.
	Completed  bool     `json:"completed"`
	Status     string   `json:"status"`
	Why        string   `json:"why,omitempty"`
	Cost       int64    `json:"cost_micro_usd"`
	CostKnown  bool     `json:"cost_known"`
	Iterations int      `json:"iterations"`
	Millis     int64    `json:"milliseconds"`
	Strategies []string `json:"strategies,omitempty"` // that were chosen, beside the default
}

// Outcome is the end of an attempt in words.
func (a Attempt) Outcome() string {
	switch {
	case a.Solved:
		return "solved"
	case a.Completed:
		return "a false completion: the agent was done and its gates were green, and the tests of the commit are red"
	}
	return strings.TrimSuffix("not solved: "+a.Status+": "+a.Why, ": ")
}

// Result is what the attempts of a variant add up to.
type Result struct {
	Variant
	Tasks    int     `json:"tasks"` // that it was tried at
	Attempts int     `json:"attempts"`
	Solved   int     `json:"solved"`      // attempts
	Low      float64 `json:"solved_low"`  // of the interval of the rate, see [Wilson]
	High     float64 `json:"solved_high"` //
	// False are attempts that were completed and green, while the commit's tests are red.
	False      int     `json:"false_completions"`
	CostUSD    float64 `json:"cost_usd"`
	CostKnown  bool    `json:"cost_known"` // of every attempt
	Iterations int     `json:"iterations"`
	Seconds    float64 `json:"seconds"`
	Strategies []Used  `json:"strategies,omitempty"`
}

// Used counts the attempts in which a strategy was chosen.
type Used struct {
	Name     string `json:"name"`
	Attempts int    `json:"attempts"`
	Solved   int    `json:"solved"`
}

// Rate is the share of attempts that were solved.
func (r Result) Rate() float64 { return float64(r.Solved) / float64(max(1, r.Attempts)) }

// Summarize adds attempts up by variant, in the order in which variants appear. Attempts at one task are alike, so
// that the interval is that of so many tasks, however often each was repeated.
func Summarize(attempts []Attempt) []Result {
	var results []Result
	for _, v := range variantsOf(attempts) {
		r := Result{Variant: v, CostKnown: true}
		tasks, used := map[string]bool{}, map[string]*Used{}
		for _, a := range attempts {
			if a.Variant != v {
				continue
			}
			tasks[a.Task] = true
			r.Attempts++
			r.Solved += oneIfTrue(a.Solved)
			r.False += oneIfTrue(a.Completed && !a.Solved)
			r.CostUSD += float64(a.Cost) / 1e6
			r.CostKnown = r.CostKnown && a.CostKnown
			r.Iterations += a.Iterations
			r.Seconds += float64(a.Millis) / 1000
			for _, name := range a.Strategies {
				u := cmp.Or(used[name], &Used{Name: name})
				u.Attempts, u.Solved = u.Attempts+1, u.Solved+oneIfTrue(a.Solved)
				used[name] = u
			}
		}
		r.Tasks = len(tasks)
		r.Low, r.High = Wilson(r.Rate(), r.Tasks)
		for _, name := range slices.Sorted(maps.Keys(used)) {
			r.Strategies = append(r.Strategies, *used[name])
		}
		results = append(results, r)
	}
	return results
}

func variantsOf(attempts []Attempt) []Variant {
	return lists.Union(nil, lists.Each(attempts, func(a Attempt) Variant { return a.Variant })...)
}

func oneIfTrue(is bool) int {
	if is {
		return 1
	}
	return 0
}

// Pair compares two variants on the tasks that both were tried at.
type Pair struct {
	A     Variant `json:"a"`
	B     Variant `json:"b"`
	Tasks int     `json:"tasks"`
	// Better are tasks that A solved more often than B, Worse those that B did.
	Better int     `json:"a_better"`
	Worse  int     `json:"b_better"`
	P      float64 `json:"p"` // see [SignTest]
	// Cheaper and Dearer are tasks that cost less, or more, with A, where all costs are known.
	Cheaper int     `json:"a_cheaper"`
	Dearer  int     `json:"b_cheaper"`
	CostP   float64 `json:"cost_p"`
	// Untold: the sample does not show which of them solves more.
	Untold bool `json:"indistinguishable"`
}

// Compare compares each two variants.
func Compare(attempts []Attempt) (pairs []Pair) {
	all := variantsOf(attempts)
	for i, a := range all {
		pairs = append(pairs, lists.Each(all[i+1:], func(b Variant) Pair { return comparePair(attempts, a, b) })...)
	}
	return pairs
}

// onTask is what a variant's attempts at one task come to.
type onTask struct {
	tries, solved, cost float64
	unknown             bool // some cost
}

func comparePair(attempts []Attempt, a, b Variant) Pair {
	p := Pair{A: a, B: b}
	ofA, ofB := attemptsByTask(attempts, a), attemptsByTask(attempts, b)
	for _, task := range slices.Sorted(maps.Keys(ofA)) {
		x, y := ofA[task], ofB[task]
		if y.tries == 0 {
			continue
		}
		p.Tasks++
		p.Better += oneIfTrue(x.solved/x.tries > y.solved/y.tries)
		p.Worse += oneIfTrue(x.solved/x.tries < y.solved/y.tries)
		if !x.unknown && !y.unknown {
			p.Cheaper += oneIfTrue(x.cost/x.tries < y.cost/y.tries)
			p.Dearer += oneIfTrue(x.cost/x.tries > y.cost/y.tries)
		}
	}
	p.P, p.CostP = SignTest(p.Better, p.Worse), SignTest(p.Cheaper, p.Dearer)
	p.Untold = p.P >= 1-sure
	return p
}

func attemptsByTask(attempts []Attempt, v Variant) map[string]onTask {
	tasks := map[string]onTask{}
	for _, a := range attempts {
		if a.Variant != v {
			continue
		}
		t := tasks[a.Task]
		t.unknown = t.unknown || !a.CostKnown
		t.tries++
		t.solved += float64(oneIfTrue(a.Solved))
		t.cost += float64(a.Cost)
		tasks[a.Task] = t
	}
	return tasks
}

func (p Pair) winMargin() int { return p.Better - p.Worse }

// Words say what the comparison shows.
func (p Pair) Words() string {
	first, second, wins, losses := p.A, p.B, p.Better, p.Worse
	if wins < losses {
		first, second, wins, losses = second, first, losses, wins
	}
	verdict := fmt.Sprintf("%s solves more", first)
	if p.Untold {
		verdict = fmt.Sprintf("This sample does not show whether %s or %s solves more", first, second)
	}
	verdict += fmt.Sprintf(": of the %s that both tried, %s was better on %d and %s on %d (%s).",
		fault.Numbered(p.Tasks, "task"), first, wins, second, losses, chanceText(p.P))
	if p.CostP < 1-sure {
		cheap, n := p.A, p.Cheaper
		if p.Dearer > p.Cheaper {
			cheap, n = p.B, p.Dearer
		}
		verdict += fmt.Sprintf(" %s costs less, on %d of %d tasks (%s).", cheap, n, p.Cheaper+p.Dearer,
			chanceText(p.CostP))
	}
	return verdict
}

// chanceText never calls a small chance none.
func chanceText(p float64) string {
	if p < 0.001 {
		return "p < 0.001"
	}
	return fmt.Sprintf("p = %.3f", p)
}

// Proposal is a variant that the sample shows to be better than what is in force.
type Proposal struct {
	Variant
	Instead  Variant  `json:"instead_of"`
	Evidence []string `json:"evidence"`
}

// Propose proposes the variant that solves more tasks than what is in force does. The more variants are compared,
// the stronger the evidence has to be. why says why there is none.
func Propose(attempts []Attempt, now Variant) (best Proposal, why string) {
	all := variantsOf(attempts)
	switch {
	case !slices.Contains(all, now):
		return best, fmt.Sprintf("the trial has no attempt of what pawl.yaml says now (%s) to compare with", now)
	case len(all) == 1:
		return best, fmt.Sprintf("the trial has attempts of %s alone, so there is nothing to compare it with", now)
	}
	var chosen Pair
	for _, v := range all {
		if v == now {
			continue
		}
		p := comparePair(attempts, v, now)
		shown := p.Better > p.Worse && p.P*float64(len(all)-1) < 1-sure
		if shown && p.winMargin() > chosen.winMargin() {
			chosen = p
		}
	}
	if chosen.winMargin() == 0 {
		return best, fmt.Sprintf("this sample shows nothing that solves more than %s; more tasks may", now)
	}
	best = Proposal{Variant: chosen.A, Instead: now, Evidence: []string{chosen.Words()}}
	for _, r := range Summarize(attempts) {
		if r.Variant == chosen.A || r.Variant == now {
			best.Evidence = append(best.Evidence, r.Sentence())
		}
	}
	return best, ""
}

// Sentence is a result with its interval, in words.
func (r Result) Sentence() string {
	return fmt.Sprintf("%s solved %d of %d attempts at %s (%s; the true rate is between %s and %s), with %s", r.Variant,
		r.Solved, r.Attempts, fault.Numbered(r.Tasks, "task"), Percent(r.Rate()), Percent(r.Low), Percent(r.High),
		fault.Numbered(r.False, "false completion"))
}
