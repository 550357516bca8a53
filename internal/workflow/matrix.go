package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// size is how many combinations the axes have, at most MaxMatrix+1.
func (m *Matrix) size() int {
	n := 1
	for _, a := range m.Axes {
		if n *= len(a.Values); n > MaxMatrix {
			return MaxMatrix + 1
		}
	}
	if len(m.Axes) == 0 {
		n = 0
	}
	return n
}

// combinations are the instances of a step, as GitHub Actions makes them: all
// combinations of the axes, less the excluded ones; an included entry adds its
// names to those that it agrees with on every axis, else it is one more.
func (m *Matrix) combinations() [][]Pair {
	var out [][]Pair
	if len(m.Axes) > 0 {
		out = [][]Pair{nil}
	}
	for _, a := range m.Axes {
		var next [][]Pair
		for _, c := range out {
			for _, v := range a.Values {
				next = append(next, append(slices.Clone(c), Pair{a.Name, v}))
			}
		}
		out = next
	}
	out = slices.DeleteFunc(out, func(c []Pair) bool {
		return slices.ContainsFunc(m.Exclude, func(e []Pair) bool { return len(e) > 0 && agrees(c, e, nil) })
	})
	original := len(out)
	for _, in := range m.Include {
		added := false
		for i := range out[:original] {
			if agrees(out[i], in, m.Axes) {
				out[i], added = extended(out[i], in, m.Axes), true
			}
		}
		if !added {
			out = append(out, slices.Clone(in))
		}
	}
	return out
}

func lookup(pairs []Pair, name string) (string, bool) {
	for _, p := range pairs {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// agrees is true if c has every pair of with; of axes, only those names count.
func agrees(c, with []Pair, axes []Axis) bool {
	for _, p := range with {
		if axes != nil && !slices.ContainsFunc(axes, func(a Axis) bool { return a.Name == p.Name }) {
			continue
		}
		if v, ok := lookup(c, p.Name); !ok || v != p.Value {
			return false
		}
	}
	return true
}

func extended(c, with []Pair, axes []Axis) []Pair {
	c = slices.Clone(c)
	for _, p := range with {
		if slices.ContainsFunc(axes, func(a Axis) bool { return a.Name == p.Name }) {
			continue
		}
		if i := slices.IndexFunc(c, func(q Pair) bool { return q.Name == p.Name }); i >= 0 {
			c[i].Value = p.Value
		} else {
			c = append(c, p)
		}
	}
	return c
}

// names are all names that an instance may have.
func (m *Matrix) names() []string {
	var out []string
	for _, a := range m.Axes {
		out = append(out, a.Name)
	}
	for _, in := range m.Include {
		for _, p := range in {
			if !slices.Contains(out, p.Name) {
				out = append(out, p.Name)
			}
		}
	}
	return out
}

// instanceID is "build (linux, 1.26)".
func instanceID(id string, with []Pair) string {
	if with == nil {
		return id
	}
	values := make([]string, len(with))
	for i, p := range with {
		values[i] = p.Value
	}
	return fmt.Sprintf("%s (%s)", id, strings.Join(values, ", "))
}
