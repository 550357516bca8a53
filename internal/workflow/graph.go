package workflow

import (
	"slices"
	"strings"
)

// graph is who needs whom, by the steps' numbers.
type graph struct {
	ids   []string
	needs [][]int
	order []int // each step after all that it needs
}

// sort finds the order, or returns the steps of a cycle, the first again at its
// end. It is the first that is found from the top of the file.
func (g *graph) sort() (cycle []int) {
	done := make([]bool, len(g.ids))
	var path []int
	var visit func(step int) []int
	visit = func(step int) []int {
		if i := slices.Index(path, step); i >= 0 {
			return append(slices.Clone(path[i:]), step)
		}
		if done[step] {
			return nil
		}
		path = append(path, step)
		for _, n := range g.needs[step] {
			if found := visit(n); found != nil {
				return found
			}
		}
		path = path[:len(path)-1]
		done[step] = true
		g.order = append(g.order, step)
		return nil
	}
	for step := range g.ids {
		if found := visit(step); found != nil {
			return found
		}
	}
	return nil
}

func (g *graph) path(steps []int) string {
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = g.ids[s]
	}
	if len(words) > 12 {
		words = append(append(words[:6:6], "…"), words[len(words)-5:]...)
	}
	return strings.Join(words, " → ")
}

// layers gives each step the first layer in which all that it needs is done,
// from 0.
func (g *graph) layers() []int {
	layer := make([]int, len(g.ids))
	for _, step := range g.order {
		for _, n := range g.needs[step] {
			layer[step] = max(layer[step], layer[n]+1)
		}
	}
	return layer
}

// before says, for each step, which ones are done before it.
func (g *graph) before() [][]bool {
	all := make([][]bool, len(g.ids))
	for _, step := range g.order {
		all[step] = make([]bool, len(g.ids))
		for _, n := range g.needs[step] {
			all[step][n] = true
			for i, is := range all[n] {
				all[step][i] = all[step][i] || is
			}
		}
	}
	return all
}
