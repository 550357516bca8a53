package ranking

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
)

var rewrite = flag.Bool("rewrite", false, "learn weights.txt anew from the labelled outputs")

// sets are the labelled outputs in the order in which they were made.
var sets = strings.Fields("open kept second third fourth fifth sixth seventh seventh-kept eighth eighth-kept " +
	"ninth ninth-kept tools loads tenth eleventh eleventh-kept twelfth thirteenth fourteenth")

// sample is an output, and which of its lines say what went wrong.
type sample struct {
	ID       string   `json:"id"`
	Source   string   `json:"source"`
	Command  string   `json:"command"`
	Output   string   `json:"output"`
	Headline string   `json:"headline"`
	Accept   []string `json:"accept"`
	Class    []string `json:"class"`
	lines    []string
	right    []bool
	set      string
}

func plainly(s string) string {
	return strings.ToLower(strings.Join(strings.Fields(printed.Read(s).Text), " "))
}

func readSamples(t *testing.T, set string) (samples []*sample) {
	f, err := os.Open("../testdata/fresh/" + set + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		s := &sample{}
		if err := json.Unmarshal(lines.Bytes(), s); err != nil {
			t.Fatal(err)
		}
		text := printed.Split(printed.Read(printed.Bound(s.Output)).Text)
		for i := max(0, text.LineCount()-400); i < text.LineCount(); i++ {
			said := plainly(text.LineAt(i))
			s.lines = append(s.lines, text.LineAt(i))
			s.right = append(s.right, slices.ContainsFunc(s.Accept, func(part string) bool {
				return strings.Contains(said, plainly(part))
			}))
		}
		samples = append(samples, s)
	}
	return samples
}

// row is one line of a sample: the numbers of its features.
type row struct {
	features []int
	right    bool
}

const (
	seldom  = 5   // features of fewer outputs are left out
	decay   = 2.0 // how much a weight costs
	rounds  = 300
	minimum = 0.02
)

// learn finds the weights with which the right lines of samples come first: the softmax over the lines
// of an output gives the right ones the most, less what the weights cost.
func learn(samples []*sample) map[string]float64 {
	outputs := map[string]int{}
	for _, s := range samples {
		seen := map[string]bool{}
		eachFeature(s.lines, func(_ int, name string) { seen[name] = true })
		for name := range seen {
			outputs[name]++
		}
	}
	names := slices.Sorted(maps.Keys(outputs))
	names = slices.DeleteFunc(names, func(name string) bool { return outputs[name] < seldom })
	number := map[string]int{}
	for i, name := range names {
		number[name] = i
	}
	var groups [][]row
	for _, s := range samples {
		rows := make([]row, len(s.lines))
		eachFeature(s.lines, func(i int, name string) {
			if n, ok := number[name]; ok {
				rows[i].features = append(rows[i].features, n)
			}
			rows[i].right = s.right[i]
		})
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.features == nil })
		if slices.ContainsFunc(rows, func(r row) bool { return r.right }) {
			groups = append(groups, rows)
		}
	}
	w, g, speed := make([]float64, len(names)), make([]float64, len(names)), make([]float64, len(names))
	momentum := make([]float64, len(names))
	for round := range rounds {
		for i := range g {
			g[i] = decay * w[i]
		}
		for _, rows := range groups {
			addGradient(rows, w, g)
		}
		rate := 0.1 / (1 + float64(round)/50)
		for i := range w {
			momentum[i] = 0.9*momentum[i] + 0.1*g[i]
			speed[i] = 0.99*speed[i] + 0.01*g[i]*g[i]
			w[i] -= rate * momentum[i] / (math.Sqrt(speed[i]) + 1e-6)
		}
	}
	table := map[string]float64{}
	for i, name := range names {
		if math.Abs(w[i]) >= minimum {
			table[name] = math.Round(w[i]*100) / 100
		}
	}
	return table
}

func addGradient(rows []row, w, g []float64) {
	z, most := make([]float64, len(rows)), math.Inf(-1)
	for i, r := range rows {
		for _, f := range r.features {
			z[i] += w[f]
		}
		most = max(most, z[i])
	}
	all, right := 0.0, 0.0
	for i, r := range rows {
		z[i] = math.Exp(z[i] - most)
		all += z[i]
		if r.right {
			right += z[i]
		}
	}
	for i, r := range rows {
		d := z[i] / all
		if r.right {
			d -= z[i] / max(right, 1e-300)
		}
		for _, f := range r.features {
			g[f] += d
		}
	}
}

func (s *sample) best(table map[string]float64) int {
	scores := make([]float64, len(s.lines))
	for i := range scores {
		scores[i] = None
	}
	eachFeature(s.lines, func(i int, name string) {
		if scores[i] == None {
			scores[i] = 0
		}
		scores[i] += table[name]
	})
	best := 0
	for i, score := range scores {
		if score > scores[best] {
			best = i
		}
	}
	return best
}

// reasons names the features that lift line i most, with what they count.
func reasons(lines []string, i int, table map[string]float64) string {
	var found []string
	eachFeature(lines, func(at int, name string) {
		if at == i && table[name] >= 0.3 {
			found = append(found, fmt.Sprintf("%s %.2f", name, table[name]))
		}
	})
	return strings.Join(found, ", ")
}

// folds are how many parts the kinds of outputs are divided into.
const folds = 10

func foldOf(kind string) int { return int(crc32.ChecksumIEEE([]byte(kind)) % folds) }

// kind is what printed an output: outputs of one kind are alike, so that one must not teach how another
// is read.
func (s *sample) kind() string {
	for _, said := range []string{s.Source, s.Command} {
		if s.Source != "" && !slices.Contains(strings.Fields("run tool in public home-made"), strings.Fields(said)[0]) {
			return programOf(said)
		}
	}
	return s.ID
}

// programOf is the program that a command runs, without what only starts it.
func programOf(command string) string {
	starts := strings.Fields("npx npm yarn pnpm exec run python python3 /usr/bin/python3 -m bundle tool: bash sh -c . node")
	for word := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(" ,'\"", r) }) {
		if !slices.Contains(starts, word) && !strings.Contains(word, "=") {
			return strings.ToLower(filepath.Base(word))
		}
	}
	return command
}

// unseenCount is how many outputs were read rightly, and how many of those whose class is guessed.
type unseenCount struct{ headline, class, samples, classes int }

func (c *unseenCount) add(s *sample, best int, class string) {
	c.samples++
	if s.right[best] {
		c.headline++
	}
	if slices.ContainsFunc(s.Class, func(c string) bool { return guessable(c) == c }) {
		c.classes++
	}
	if slices.Contains(s.Class, class) {
		c.class++
	}
}

// TestUnseen learns from all kinds of outputs but a tenth of them, and measures those. RANK_UNSEEN=1 asks for it.
func TestUnseen(t *testing.T) {
	if os.Getenv("RANK_UNSEEN") == "" {
		t.Skip("RANK_UNSEEN is not set: it takes half a minute")
	}
	var all []*sample
	for _, set := range sets {
		for _, s := range readSamples(t, set) {
			s.set = set
			all = append(all, s)
		}
	}
	texts := readTexts(t)
	counts := map[string]*unseenCount{"all": {}}
	for _, set := range sets {
		counts[set] = &unseenCount{}
	}
	for fold := range folds {
		var known, unseen []*sample
		for _, s := range all {
			if foldOf(s.kind()) == fold {
				unseen = append(unseen, s)
			} else {
				known = append(known, s)
			}
		}
		table := learn(known)
		classes := learnClasses(slices.Concat(texts, known), table)
		for _, s := range unseen {
			best := s.best(table)
			class := classByWeights(classes, table, lastLines(s.lines))
			if !s.right[best] && os.Getenv("FAILURE_MISSES") != "" {
				t.Logf("%s: %q, not %q, since %s", s.ID, s.lines[best], s.Headline, reasons(s.lines, best, table))
			}
			counts["all"].add(s, best, class)
			counts[s.set].add(s, best, class)
		}
	}
	for _, set := range append(sets, "all") {
		c := counts[set]
		t.Logf("%-14s headline %4d of %4d (%.1f %%), class %4d of %4d (%.1f %%)", set, c.headline, c.samples,
			100*float64(c.headline)/float64(c.samples), c.class, c.classes, 100*float64(c.class)/float64(c.classes))
	}
}

// lastLines are as many lines as a class is guessed by.
func lastLines(lines []string) []string { return lines[max(0, len(lines)-100):] }

func printWeights(table map[string]float64) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&out, "%s\t%d\n", name, int(math.Round(table[name]*100)))
	}
	return out.String()
}

// TestWeights: weights.txt can be read; with -rewrite it is learnt anew.
func TestWeights(t *testing.T) {
	if *rewrite {
		var samples []*sample
		for _, set := range sets {
			samples = append(samples, readSamples(t, set)...)
		}
		table := learn(samples)
		classes := learnClasses(append(readTexts(t), samples...), table)
		for name, text := range map[string]string{"weights.txt": printWeights(table), "classes.txt": printClasses(classes)} {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if len(weights()) < 100 {
		t.Errorf("%d weights", len(weights()))
	}
}
