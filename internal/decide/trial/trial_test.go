package trial

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// What an agent is to do comes without what people and tools sign with.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message, title, text string
		ok                   bool
	}{
		{"Read the title from stdin\n\nIt was ignored.\n\nCo-authored-by: A <a@b>\nSigned-off-by: B <b@c>",
			"Read the title from stdin", "Read the title from stdin\n\nIt was ignored.", true},
		{"Merge pull request #7 from a/b\n\nAdd a parser for dates", "Add a parser for dates", "Add a parser for dates", true},
		{"cmd/go: fix the cache\n\nFixes: the race\nChange-Id: I1", "cmd/go: fix the cache",
			"cmd/go: fix the cache", true},
		{"parse: read more\n\nCloses: 7\nSee-also: 8", "parse: read more", "parse: read more", true},
		{"fix", "fix", "fix", false},
		{"Merge branch 'x'", "", "", false},
		{"", "", "", false},
	} {
		title, text, ok := Words(c.message)
		if title != c.title || text != c.text || ok != c.ok {
			t.Errorf("%q: got %q, %q, %v", c.message, title, text, ok)
		}
	}
}

// The number of a pull request is in the first line, where forges write it, and nowhere else.
func TestRequestOf(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]int64{
		"Merge pull request #7 from a/b\n\nAdd dates":                  7,
		"Merge pull request 'Add dates (#3)' (#12) from b into main\n": 12,
		"Add dates (#31)":                         31,
		"Add dates (#32)\n\nSee (#33)":            32,
		"Add dates\n\nSee (#33)":                  0,
		"Fix #34, which crashed":                  0,
		"Merge branch 'x' (#9999999999999999999)": 0,
		"": 0,
	} {
		if got := RequestOf(message); got != want {
			t.Errorf("%q: got %d", message, got)
		}
	}
}

// The figures are those that tables and other programs give.
func TestFigures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		solved, n int
		low, high float64
	}{{0, 0, 0, 1}, {0, 10, 0, .2775}, {10, 10, .7225, 1}, {7, 10, .3968, .8922}, {50, 100, .4038, .5962}} {
		low, high := Wilson(float64(c.solved)/float64(max(1, c.n)), c.n)
		if math.Abs(low-c.low) > 1e-4 || math.Abs(high-c.high) > 1e-4 {
			t.Errorf("%d of %d: %.4f to %.4f", c.solved, c.n, low, high)
		}
	}
	for _, c := range []struct {
		wins, losses int
		p            float64
	}{{0, 0, 1}, {1, 0, 1}, {5, 0, .0625}, {6, 0, .03125}, {3, 3, 1}, {9, 1, .0215}, {1, 9, .0215}, {600, 400, 2.7e-10}} {
		if p := SignTest(c.wins, c.losses); math.Abs(p-c.p) > 1e-4 {
			t.Errorf("%d to %d: %v", c.wins, c.losses, p)
		}
	}
}

// play makes the attempts of agents that solve a task at a known rate.
func play(r *rand.Rand, tasks, repeats int, rates map[string]float64, agents ...string) (list []Attempt) {
	for _, agent := range agents {
		for n := range tasks {
			for again := range repeats {
				solved := r.Float64() < rates[agent]
				list = append(list, Attempt{Variant: Variant{agent, AsIs}, Task: fmt.Sprint(n), Repeat: again, Solved: solved,
					Completed: true, CostKnown: true, Cost: 1e6, Iterations: 2, Millis: 500})
			}
		}
	}
	return list
}

// Agents of known rates are in the interval of their trial in about 95 of 100 trials, and an agent that is no better is
// proposed in few.
func TestTrialsOfKnownAgents(t *testing.T) {
	t.Parallel()
	const trials = 200
	for _, repeats := range []int{1, 3} {
		for _, rate := range []float64{.1, .3, .5, .8, .95} {
			within, wrong, found := 0, 0, 0
			for seed := range uint64(trials) {
				r := rand.New(rand.NewPCG(seed, uint64(1000*rate)))
				rates := map[string]float64{"now": rate, "same": rate, "strong": 1 - (1-rate)/10, "weak": rate / 3}
				attempts := play(r, 60, repeats, rates, "now", "same")
				result := Summarize(attempts)[0]
				within += oneIfTrue(result.Low <= rate && rate <= result.High)
				if _, why := Propose(attempts, Variant{"now", AsIs}); why == "" {
					wrong++
				}
				attempts = play(r, 60, repeats, rates, "now", "weak", "strong")
				best, _ := Propose(attempts, Variant{"now", AsIs})
				found += oneIfTrue(best.Agent == "strong")
				wrong += oneIfTrue(best.Agent == "weak")
			}
			if within < trials*91/100 || wrong > trials*8/100 {
				t.Errorf("rate %.2f, %d repeats: in the interval %d times of %d; wrongly proposed %d times", rate, repeats, within,
					trials, wrong)
			}
			if rate <= .5 && found < trials*95/100 {
				t.Errorf("rate %.2f, %d repeats: the better agent was found %d times of %d", rate, repeats, found, trials)
			}
		}
	}
}

// What a small sample cannot tell is said, and not proposed.
func TestASmallSample(t *testing.T) {
	t.Parallel()
	rates := map[string]float64{"now": 0, "new": 1}
	now := Variant{"now", AsIs}
	few := play(rand.New(rand.NewPCG(1, 1)), 5, 3, rates, "now", "new")
	if _, why := Propose(few, now); !strings.Contains(why, "nothing that solves more than now") {
		t.Errorf("five tasks: %q", why)
	}
	if text := Build(nil, few, 30).Markdown(); !strings.Contains(text, "This sample does not show whether new or now solves more: of the 5 tasks that both tried, new was better on 5 and now on 0") {
		t.Error(text)
	}
	enough := play(rand.New(rand.NewPCG(1, 1)), 6, 1, rates, "now", "new")
	best, why := Propose(enough, now)
	if why != "" || best.Agent != "new" || len(best.Evidence) != 3 || !strings.Contains(best.Evidence[0], "new solves more") {
		t.Errorf("six tasks: %+v, %s", best, why)
	}
	if _, why := Propose(enough, Variant{"other", AsIs}); !strings.Contains(why, "what pawl.yaml says now (other)") {
		t.Error(why)
	}
	if _, why := Propose(enough[:6], now); !strings.Contains(why, "nothing to compare it with") {
		t.Error(why)
	}
}

// A report has results, false completions and what each solved task took; nothing in it becomes markup.
func TestReport(t *testing.T) {
	t.Parallel()
	evil := `<script>alert(1)</script> | x`
	a := Attempt{Variant: Variant{"mine", AsIs}, Task: "c1", Solved: true, Completed: true, Cost: 500_000, CostKnown: true,
		Iterations: 2, Millis: 4000, Strategies: []string{"reset"}}
	b := a
	b.Task, b.Solved, b.Setting = "c1", false, "fast.yaml"
	c := a
	c.Task, c.Solved, c.Completed = "c2", false, false
	r := Build([]Task{{Commit: "c1", Title: evil}, {Commit: "c2", Title: "two"}}, []Attempt{a, b, c}, 4)
	if got := r.Results[0]; got.Solved != 1 || got.Attempts != 2 || got.False != 0 || got.CostUSD != 1 || got.Seconds != 8 ||
		got.Strategies[0] != (Used{"reset", 2, 1}) {
		t.Errorf("%+v", got)
	}
	if got := r.Results[1]; got.False != 1 || got.PerSolved("cost") != "-" {
		t.Errorf("%+v", got)
	}
	text := r.Markdown()
	for _, want := range []string{"1 of 4 attempts are not made yet.", "| $1.00 | 8 s  | 4.0 ", `&lt;script>`, `\| x`, "| reset "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	html, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(html, "<script") || !strings.Contains(html, "<svg") ||
		strings.Contains(html, "http://") || !strings.Contains(html, "mine with fast.yaml") {
		t.Error(html)
	}
}

func TestDecidesHowTestsRun(t *testing.T) {
	t.Parallel()
	commands := []string{"sh ./run.sh && tools/check.py --fast", "cd web; npm test", "bash -c 'exec ci/all'"}
	for file, want := range map[string]bool{
		"run.sh": true, "tools/check.py": true, "ci/all": true, "Makefile": true, "web/package.json": true,
		"pytest.ini": true, "jest.config.ts": true, "lib/run.sh": false, "lib/makefile.go": false,
		"check.py": false, "go.mod": false,
	} {
		if got := DecidesHowTestsRun(file, commands); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}

func TestPairWords(t *testing.T) {
	t.Parallel()
	p := Pair{A: Variant{"a", AsIs}, B: Variant{"b", AsIs}, Tasks: 20, Better: 14, P: SignTest(14, 0), CostP: 1}
	if got := p.Words(); !strings.Contains(got, "(p < 0.001)") {
		t.Error(got)
	}
}
