package workflow

import (
	"slices"
	"strings"
)

// graph is who needs whom, by the steps' numbers.
type graph struct {
	ids   []string
	needs [][]int
}

// cycle returns the steps of a cycle, the first again at its end, or nil. It is
// the first that is found from the top of the file.
func (g *graph) cycle() []int {
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
// from 0. The graph has no cycle.
func (g *graph) layers() []int {
	layer := make([]int, len(g.ids))
	var visit func(step int) int
	visit = func(step int) int {
		if layer[step] == 0 {
			layer[step] = 1
			for _, n := range g.needs[step] {
				layer[step] = max(layer[step], visit(n)+1)
			}
		}
		return layer[step]
	}
	for step := range g.ids {
		visit(step)
	}
	for step := range layer {
		layer[step]--
	}
	return layer
}

// before says, for each step, which ones are done before it.
func (g *graph) before() [][]bool {
	all := make([][]bool, len(g.ids))
	var visit func(step int) []bool
	visit = func(step int) []bool {
		if all[step] == nil {
			all[step] = make([]bool, len(g.ids))
			for _, n := range g.needs[step] {
				all[step][n] = true
				for i, is := range visit(n) {
					all[step][i] = all[step][i] || is
				}
			}
		}
		return all[step]
	}
	for step := range g.ids {
		visit(step)
	}
	return all
}
