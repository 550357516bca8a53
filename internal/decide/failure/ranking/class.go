package ranking

import (
	_ "embed"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

//go:embed classes.txt
var classFile string

// classWeights has what each feature of a line counts for each class.
var classWeights = sync.OnceValue(func() map[string]map[string]float64 {
	table := map[string]map[string]float64{}
	for line := range strings.Lines(classFile) {
		name, counts, _ := strings.Cut(strings.TrimSpace(line), "\t")
		table[name] = map[string]float64{}
		for count := range strings.FieldsSeq(counts) {
			class, value, _ := strings.Cut(count, "=")
			hundredths, err := strconv.Atoi(value)
			if err != nil {
				panic("classes.txt: " + err.Error()) // a test reads it
			}
			table[name][class] = float64(hundredths) / 100
		}
	}
	return table
})

// always is the feature of every output: it holds how frequent the classes are.
const always = "always"

// classFeatures are the features of an output that its class is guessed by: its words, some marks of lines, the
// extensions of files, and all that is known of the line that says best what went wrong.
func classFeatures(texts []string, lines map[string]float64) []string {
	found := map[string]bool{}
	if best := bestLineOf(texts, lines); best >= 0 {
		addBestFeatures(found, readLine(best, texts[best]))
	}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		l := readLine(i, text)
		for _, file := range extension().FindAllStringSubmatch(l.text, -1) {
			found["ext "+strings.ToLower(file[1])] = true
		}
		l.eachOwnFeature(func(name string) {
			word := strings.HasPrefix(name, "word:") || strings.HasPrefix(name, "first:")
			if word || slices.Contains([]string{"place first", "named", "leveled", "coded", "counts", "exit"}, name) {
				found[name] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// addBestFeatures adds the features of the line that says best what went wrong.
func addBestFeatures(found map[string]bool, l line) {
	l.eachOwnFeature(func(name string) { found["best "+name] = true })
	last := ""
	for _, word := range wordsOfLine(l.text) {
		if last != "" {
			found["pair "+last+" "+word] = true
		}
		last = word
	}
	for _, file := range extension().FindAllStringSubmatch(l.text, -1) {
		found["best ext "+strings.ToLower(file[1])] = true
	}
}

// extension is that of a file's name.
var extension = lazy.Regexp(`[\w-]\.([A-Za-z]\w{0,7})(?:$|[:"'),(\]]|\s)`)

// other stands for the classes that are not guessed: what needs a person or passes by itself has to be said
// in so many words.
const other = "other"

// What a class must have to be guessed: how probable it is, from 0 to 1, that an agent repairs the failure at all,
// and how much the features of the output itself speak for the class.
const (
	leastProbable = 0.3
	leastSaid     = 1.25
)

// Class returns the most probable class of a failure that an agent repairs, by the words of its output; "" where
// they say too little.
func Class(texts []string) string { return classByWeights(classWeights(), weights(), texts) }

// classByWeights is [Class] by other weights than those that are built in.
func classByWeights(table map[string]map[string]float64, lines map[string]float64, texts []string) string {
	scores := maps.Clone(table[always])
	for _, name := range classFeatures(texts, lines) {
		for class, weight := range table[name] { // order does not show: a sum for each class
			scores[class] += weight
		}
	}
	best, sum := "", 0.0
	for _, class := range slices.Sorted(maps.Keys(scores)) {
		sum += math.Exp(scores[class])
		if class != other && (best == "" || scores[class] > scores[best]) {
			best = class
		}
	}
	said := scores[best] - table[always][best]
	if best == "" || said < leastSaid || 1-math.Exp(scores[other])/sum < leastProbable {
		return ""
	}
	return best
}

// bestLineOf returns the line that ranks best, -1 for none.
func bestLineOf(texts []string, table map[string]float64) int {
	best, most := -1, float64(None)
	for i, score := range scoreLinesBy(table, texts) {
		if score > most {
			best, most = i, score
		}
	}
	return best
}
