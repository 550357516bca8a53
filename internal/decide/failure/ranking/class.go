package ranking

import (
	_ "embed"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// always is a feature of every output.
const always = "always"

// classFeatures are the features of an output that its class is guessed by: its words, and some marks of lines.
func classFeatures(texts []string) []string {
	found := map[string]bool{always: true}
	for i, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		l := readLine(i, text)
		l.eachOwn(func(name string) {
			word := strings.HasPrefix(name, "word:") || strings.HasPrefix(name, "first:")
			if word || slices.Contains([]string{"place first", "named", "leveled", "coded", "counts", "exit"}, name) {
				found[name] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// other stands for the classes that are not guessed: what needs a person or passes by itself has to be said
// in so many words.
const other = "other"

// Class returns the most probable class of a failure that an agent repairs, by the words of its output, and
// how probable it is, from 0 to 1, that it is one of these classes at all.
func Class(texts []string) (class string, probability float64) {
	scores := map[string]float64{}
	for _, name := range classFeatures(texts) {
		for class, weight := range classWeights()[name] {
			scores[class] += weight
		}
	}
	sum := 0.0
	for _, candidate := range slices.Sorted(maps.Keys(scores)) {
		sum += math.Exp(scores[candidate])
		if candidate != other && (class == "" || scores[candidate] > scores[class]) {
			class = candidate
		}
	}
	if class == "" {
		return "", 0
	}
	return class, 1 - math.Exp(scores[other])/sum
}
