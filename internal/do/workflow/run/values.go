package run

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/workflow"
)

// valuesFor the texts and the condition of a step.
func (s *scope) valuesFor(n *node) workflow.Values {
	v := workflow.Values{Steps: map[string]workflow.Result{}, Env: map[string]string{}, Matrix: map[string]string{},
		Context: s.p.o.Context}
	for _, m := range n.in.Matrix {
		v.Matrix[m.Name] = m.Value
	}
	for k, builds := range s.stepsBefore(n) {
		if m := s.nodes[k]; builds && m.phase == settled {
			v.Steps[m.in.Step.ID] = mergeResult(v.Steps, m)
		}
	}
	for _, k := range n.in.Needs {
		m := s.nodes[k]
		switch {
		case m.phase == blocked, m.failedBefore, m.result.Conclusion == "failure":
			v.Failed = true
		case m.result.Conclusion == "skipped":
			v.Skipped = true
		}
	}
	return v
}

// stepsBefore marks each instance that n builds on. What an instance needs has a lower
// number.
func (s *scope) stepsBefore(n *node) []bool {
	builds := make([]bool, len(s.nodes))
	for _, k := range n.in.Needs {
		builds[k] = true
	}
	for k := len(builds) - 1; k >= 0; k-- {
		if builds[k] {
			for _, need := range s.nodes[k].in.Needs {
				builds[need] = true
			}
		}
	}
	return builds
}

// mergeResult adds the result of an instance to those of its step's other ones: the
// texts one below the other, the last of each output, the worst outcome.
func mergeResult(all map[string]workflow.Result, n *node) workflow.Result {
	r, more := all[n.in.Step.ID]
	if !more {
		r = n.result
		r.Outputs = map[string]string{}
		maps.Copy(r.Outputs, n.result.Outputs)
		return r
	}
	switch {
	case r.Output == "":
		r.Output = n.result.Output
	case n.result.Output != "":
		r.Output += "\n" + n.result.Output
	}
	maps.Copy(r.Outputs, n.result.Outputs)
	r.Outcome, r.Conclusion = worseOutcome(r.Outcome, n.result.Outcome), worseOutcome(r.Conclusion, n.result.Conclusion)
	return r
}

// worseOutcome of two instances: one failure is enough, and one success where the
// others were skipped.
func worseOutcome(a, b string) string {
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

// inputKey of a result: with another one the step runs again.
func (g *given) inputKey() []string {
	all := []string{g.content, g.dir}
	for _, list := range [][]string{g.env, g.verify, g.alternatives, g.needs} {
		all = append(all, fmt.Sprint(len(list)))
		all = append(all, list...)
	}
	return all
}

// fillTexts evaluates a step's condition and, where it holds, its texts.
func (s *scope) fillTexts(n *node, v workflow.Values) (holds bool, g given, err error) {
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
	if holds, err = st.Condition.Holds(v); err != nil {
		return false, g, fmt.Errorf("if: %v", err)
	}
	if !holds {
		return false, g, nil
	}
	text := func(where string, t workflow.Text) string {
		filled, wrong := t.Fill(v)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%s: %v", where, wrong)
		}
		return filled
	}
	g.content = text(string(st.Kind), st.Content)
	n.title = text("name", st.Title)
	g.dir = s.folderOf(text("working_directory", st.WorkingDirectory))
	for i, t := range st.Verify {
		g.verify = append(g.verify, text(fmt.Sprintf("verify[%d]", i), t))
	}
	for i, t := range st.Alternatives {
		g.alternatives = append(g.alternatives, text(fmt.Sprintf("alternatives[%d]", i), t))
	}
	for _, k := range n.in.Needs {
		g.needs = append(g.needs, s.nodes[k].result.Conclusion)
	}
	return true, g, err
}

// folderOf is the working folder of a step, relative to the root.
func (s *scope) folderOf(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(s.p.h.Plan().Root, dir)
}

// envWith are the variables of a step, the last of each name.
func (g *given) envWith(more ...string) []string {
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
