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
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(g.ids))
	next := make([]int, len(g.ids))
	for root := range g.ids {
		if state[root] != unseen {
			continue
		}
		path := []int{root} // no recursion: a chain may be as long as the file
		state[root] = open
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(g.needs[at]) {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			to := g.needs[at][next[at]]
			next[at]++
			switch state[to] {
			case open:
				return append(slices.Clone(path[slices.Index(path, to):]), to)
			case unseen:
				state[to] = open
				path = append(path, to)
			}
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
	for _, s := range g.order() {
		for _, n := range g.needs[s] {
			layer[s] = max(layer[s], layer[n]+1)
		}
	}
	return layer
}

// order is a topological one, that of the file where it may.
func (g *graph) order() []int {
	waits := make([]int, len(g.ids))
	after := make([][]int, len(g.ids))
	var out []int
	for s, needs := range g.needs {
		waits[s] = len(needs)
		if len(needs) == 0 {
			out = append(out, s)
		}
		for _, n := range needs {
			after[n] = append(after[n], s)
		}
	}
	for i := 0; i < len(out); i++ {
		for _, s := range after[out[i]] {
			if waits[s]--; waits[s] == 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

// set is a set of steps, a bit each.
type set []uint64

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }

// before is, for each step, all that is done before it.
func (g *graph) before() []set {
	out := make([]set, len(g.ids))
	for _, s := range g.order() {
		out[s] = make(set, (len(g.ids)+63)/64)
		for _, n := range g.needs[s] {
			for w, bits := range out[n] {
				out[s][w] |= bits
			}
			out[s][n/64] |= 1 << (n % 64)
		}
	}
	return out
}
