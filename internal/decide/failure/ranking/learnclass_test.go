package ranking

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// classDecay is how much a weight of a class costs.
const classDecay = 1.0

// learnClasses finds for each feature what it counts for each class: a softmax over the classes.
func learnClasses(samples []*sample, lines map[string]float64) map[string]map[string]float64 {
	outputs, classes := map[string]int{}, map[string]int{}
	features := make([][]string, len(samples))
	for n, s := range samples {
		features[n] = append(classFeatures(lastLines(s.lines), lines), always)
		for _, name := range features[n] {
			outputs[name]++
		}
		for _, class := range s.Class {
			classes[guessable(class)] = 0
		}
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(outputs)), func(name string) bool { return outputs[name] < 3 })
	number := map[string]int{}
	for i, name := range names {
		number[name] = i
	}
	order := slices.Sorted(maps.Keys(classes))
	for i, class := range order {
		classes[class] = i
	}
	k := len(order)
	w, g, speed, momentum := make([]float64, len(names)*k), make([]float64, len(names)*k), make([]float64, len(names)*k), make([]float64, len(names)*k)
	rows := make([][]int, len(samples))
	for n := range samples {
		for _, name := range features[n] {
			if i, ok := number[name]; ok {
				rows[n] = append(rows[n], i)
			}
		}
	}
	accepted := make([][]int, len(samples))
	for n, s := range samples {
		named := slices.ContainsFunc(s.Class, func(class string) bool { return guessable(class) == class })
		for _, class := range s.Class {
			if named && class == "unknown" {
				continue
			}
			if at := classes[guessable(class)]; !slices.Contains(accepted[n], at) {
				accepted[n] = append(accepted[n], at)
			}
		}
	}
	p := make([]float64, k)
	for round := range 200 {
		for i := range g {
			g[i] = classDecay * w[i]
		}
		for n := range samples {
			clear(p)
			for _, f := range rows[n] {
				for c := range k {
					p[c] += w[f*k+c]
				}
			}
			most, sum := slices.Max(p), 0.0
			for c := range k {
				p[c] = math.Exp(p[c] - most)
				sum += p[c]
			}
			for c := range k {
				p[c] /= sum
			}
			right := 0.0
			for _, class := range accepted[n] {
				right += p[class]
			}
			for _, class := range accepted[n] {
				p[class] -= p[class] / max(right, 1e-300)
			}
			for _, f := range rows[n] {
				for c := range k {
					g[f*k+c] += p[c]
				}
			}
		}
		rate := 0.1 / (1 + float64(round)/50)
		for i := range w {
			momentum[i] = 0.9*momentum[i] + 0.1*g[i]
			speed[i] = 0.99*speed[i] + 0.01*g[i]*g[i]
			w[i] -= rate * momentum[i] / (math.Sqrt(speed[i]) + 1e-6)
		}
	}
	table := map[string]map[string]float64{}
	for i, name := range names {
		for c, class := range order {
			if math.Abs(w[i*k+c]) >= 0.08 || name == always {
				if table[name] == nil {
					table[name] = map[string]float64{}
				}
				table[name][class] = w[i*k+c]
			}
		}
	}
	return table
}

func printClasses(table map[string]map[string]float64) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&out, "%s\t", name)
		for i, class := range slices.Sorted(maps.Keys(table[name])) {
			fmt.Fprintf(&out, "%s%s=%d", strings.Repeat(" ", min(i, 1)), class, int(math.Round(table[name][class]*100)))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// guessable is the class, or other for one that is never guessed.
func guessable(class string) string {
	if slices.Contains(strings.Fields("test_failure compile_error lint dependency validation"), class) {
		return class
	}
	return other
}

// readTexts reads the texts of ../testdata/labelled, of which only the class is known.
func readTexts(t *testing.T) (samples []*sample) {
	files, err := filepath.Glob("../testdata/labelled/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split("\n"+string(data), "\n##### ")[1:] {
			head, body, _ := strings.Cut(text, "\n")
			_, rest, _ := strings.Cut(head, ": ")
			s := &sample{Class: []string{strings.Fields(rest)[0]}}
			for line := range strings.SplitSeq(body, "\n") {
				if !strings.HasPrefix(line, "#fact ") {
					s.lines = append(s.lines, line)
				}
			}
			samples = append(samples, s)
		}
	}
	return samples
}
