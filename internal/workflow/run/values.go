package run

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/workflow"
)

// values is what a step's texts and condition may ask for.
func (s *scope) values(n *node) workflow.Values {
	v := workflow.Values{Steps: map[string]workflow.Result{}, Env: map[string]string{}, Matrix: map[string]string{}, Context: s.p.o.Context}
	for _, m := range n.in.Matrix {
		v.Matrix[m.Name] = m.Value
	}
	for _, k := range s.before(n) {
		m := s.nodes[k]
		if m.phase == settled {
			v.Steps[m.in.Step.ID] = merged(v.Steps, m)
		}
	}
	for _, k := range n.in.Needs {
		m := s.nodes[k]
		switch {
		case m.phase == barred, m.lead, m.result.Conclusion == "failure":
			v.Failed = true
		case m.result.Conclusion == "skipped":
			v.Skipped = true
		}
	}
	return v
}

// before are the numbers of all instances that n builds on, ascending.
func (s *scope) before(n *node) []int {
	seen := make([]bool, len(s.nodes))
	stack := append([]int(nil), n.in.Needs...)
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !seen[k] {
			seen[k] = true
			stack = append(stack, s.nodes[k].in.Needs...)
		}
	}
	var list []int
	for k, is := range seen {
		if is {
			list = append(list, k)
		}
	}
	return list
}

// merged adds the result of an instance to those of its step's other ones: the
// texts one below the other, the last of each output, the worst outcome.
func merged(all map[string]workflow.Result, n *node) workflow.Result {
	r, more := all[n.in.Step.ID]
	if !more {
		r = n.result
		r.Outputs = copied(n.result.Outputs)
		return r
	}
	switch {
	case r.Output == "":
		r.Output = n.result.Output
	case n.result.Output != "":
		r.Output += "\n" + n.result.Output
	}
	for k, v := range n.result.Outputs {
		r.Outputs[k] = v
	}
	r.Outcome, r.Conclusion = worse(r.Outcome, n.result.Outcome), worse(r.Conclusion, n.result.Conclusion)
	return r
}

func copied(m map[string]string) map[string]string {
	c := make(map[string]string, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// worse is what two instances came to together: one failure is one, and one
// success is enough where the others were skipped.
func worse(a, b string) string {
	for _, word := range []string{"failure", "cancelled", "success"} {
		if a == word || b == word {
			return word
		}
	}
	return a
}

// given is what a step is given: its texts, filled in.
type given struct {
	content, dir         string
	env                  []string // K=V, later ones count
	verify, alternatives []string
	needs                []string // how each one ended
}

// input is what a result belongs to: with another one the step runs again.
func (g *given) input() []string {
	all := []string{g.content, g.dir}
	for _, list := range [][]string{g.env, g.verify, g.alternatives, g.needs} {
		all = append(all, fmt.Sprint(len(list)))
		all = append(all, list...)
	}
	return all
}

// fill evaluates a step's condition and, where it holds, its texts.
func (s *scope) fill(n *node, v workflow.Values) (holds bool, g given, err error) {
	st := n.in.Step
	g.env = append(g.env, s.env...)
	for _, e := range st.Environment {
		text, err := e.Text.Fill(v)
		if err != nil {
			return false, g, fmt.Errorf("env.%s: %v", e.Name, err)
		}
		v.Env[e.Name] = text
		g.env = append(g.env, e.Name+"="+text)
	}
	if holds, err = st.Condition.Holds(v); err != nil || !holds {
		return false, g, wrap("if", err)
	}
	if g.content, err = st.Content.Fill(v); err != nil {
		return false, g, wrap(string(st.Kind), err)
	}
	if n.title, err = st.Title.Fill(v); err != nil {
		return false, g, wrap("name", err)
	}
	if g.dir, err = s.folder(st, v); err != nil {
		return false, g, err
	}
	for i, t := range st.Verify {
		text, err := t.Fill(v)
		if err != nil {
			return false, g, wrap(fmt.Sprintf("verify[%d]", i), err)
		}
		g.verify = append(g.verify, text)
	}
	for i, t := range st.Alternatives {
		text, err := t.Fill(v)
		if err != nil {
			return false, g, wrap(fmt.Sprintf("alternatives[%d]", i), err)
		}
		g.alternatives = append(g.alternatives, text)
	}
	for _, k := range n.in.Needs {
		g.needs = append(g.needs, s.nodes[k].result.Conclusion)
	}
	return true, g, nil
}

func wrap(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %v", where, err)
}

// folder is where a step works: below the root, wherever its text leads.
func (s *scope) folder(st *workflow.Planned, v workflow.Values) (string, error) {
	dir, err := st.WorkingDirectory.Fill(v)
	if err != nil {
		return "", wrap("working_directory", err)
	}
	root := s.p.h.Plan().Root
	if dir == "" {
		return root, nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return filepath.Clean(dir), nil
}

// environ are the variables of a step, the last of each name.
func (g *given) environ(more ...string) []string {
	var out []string
	at := map[string]int{}
	for _, kv := range append(append([]string(nil), g.env...), more...) {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}
