package workflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// DefaultParallelism is how many steps run at once where nothing says so.
const DefaultParallelism = 5

// Plan is a checked workflow: what runs, in which order, and with what.
type Plan struct {
	Name, Description string
	Parallelism       int
	Timeout           time.Duration // of the whole workflow; 0 is none
	ContinueOnError   bool
	Agents            []string // instead of the configuration's, the first one first
	Steps             []*Planned
	// Instances are in topological order: by layer, then as in the file.
	Instances []Instance
	// Layers are the numbers of the instances that may run side by side. A step
	// starts when what it needs is done, so layers need not wait for each other.
	Layers [][]int
	// Context are the names that --context must give.
	Context []string
	// Hash is that of all instances.
	Hash string
}

// Planned is a step with its texts compiled.
type Planned struct {
	Step
	Condition        Condition
	Content          Text
	Title            Text
	WorkingDirectory Text
	Environment      []Named // the workflow's and the step's
	Outputs          []Named
	Verify           []Text
	Alternatives     []Text
	Timeout          time.Duration
	Retry            Retry
}

// Named is a name and its text.
type Named struct {
	Name string
	Text Text
}

// Instance is a step once, or with one combination of its matrix.
type Instance struct {
	ID     string // unique: "build", or "build (linux, 1.26)"
	Step   *Planned
	Matrix []Pair // nil without a matrix
	Needs  []int  // numbers of instances, ascending
	Hash   string // see hash
}

// New checks a workflow and plans it. With faults there is no plan.
func New(f File) (*Plan, []Fault) {
	c := &checker{file: f, number: map[string]int{}, known: map[string]bool{}}
	c.checkIDs()
	if !c.resolveNeeds() {
		return nil, c.faults
	}
	c.before = c.g.stepsBefore()
	for i := range f.Steps {
		c.steps = append(c.steps, c.compileStep(i))
	}
	c.checkSize()
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	p := &Plan{
		Name: f.Name, Description: f.Description, Parallelism: f.Config.Parallelism, Timeout: f.Config.Timeout,
		ContinueOnError: f.Config.ContinueOnError, Agents: f.Config.Agents, Steps: c.steps, Context: c.context,
	}
	p.Parallelism = cmp.Or(p.Parallelism, DefaultParallelism)
	slices.Sort(p.Context)
	p.expandSteps(c.g)
	p.hashInstances(f.Env)
	return p, nil
}

// expandSteps makes the instances of all steps, layer by layer.
func (p *Plan) expandSteps(g *graph) {
	layer := g.layersOfSteps()
	order := make([]int, len(p.Steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return layer[a] - layer[b] })
	of := make([][]int, len(p.Steps)) // the instances of each step
	for _, s := range order {
		step := p.Steps[s]
		combinations := [][]Pair{nil}
		if step.Matrix != nil {
			combinations = step.Matrix.listCombinations()
		}
		var needs []int
		for _, n := range g.needs[s] {
			needs = append(needs, of[n]...)
		}
		slices.Sort(needs)
		for len(p.Layers) <= layer[s] {
			p.Layers = append(p.Layers, nil)
		}
		for _, with := range combinations {
			number := len(p.Instances)
			of[s] = append(of[s], number)
			p.Layers[layer[s]] = append(p.Layers[layer[s]], number)
			one := Instance{ID: instanceID(step.ID, with), Step: step, Matrix: with, Needs: needs}
			p.Instances = append(p.Instances, one)
		}
	}
	taken := map[string]int{}
	for i := range p.Instances { // values that look alike are numbered
		id := p.Instances[i].ID
		if taken[id]++; taken[id] > 1 {
			p.Instances[i].ID = fmt.Sprintf("%s #%d", id, taken[id])
		}
	}
}

// Width is the most instances that one layer has.
func (p *Plan) Width() int {
	width := 0
	for _, l := range p.Layers {
		width = max(width, len(l))
	}
	return width
}

// Multiplier of the wait after each attempt, per mille.
func (r Retry) Multiplier() int {
	switch {
	case r.Factor > 0:
		return r.Factor
	case r.Backoff == "exponential":
		return 2000
	}
	return 1000
}

// hashed is what the hash of an instance is made of, as JSON in this order.
// What says how a step is run, not what it does, is left out: title, timeout,
// retry, optional, parallelism. Fields are added at the end, never renamed, and
// a change of meaning raises Version.
type hashed struct {
	Version      int      `json:"version"`
	ID           string   `json:"id"`
	Work         Work     `json:"work"`
	If           string   `json:"if"`
	Env          []Pair   `json:"env"` // the workflow's, then the step's
	Matrix       []Pair   `json:"matrix"`
	Outputs      []Pair   `json:"outputs"`
	Alternatives []Work   `json:"alternatives"`
	Verify       []string `json:"verify"`
	Dir          string   `json:"dir"`
	Needs        []string `json:"needs"` // hashes, in topological order
}

// hashInstances gives every instance the hash of what it does and of all that it builds
// on, and the plan that of all of them. Two plans in which an instance has the
// same hash do the same up to and with it, as far as the file says.
func (p *Plan) hashInstances(env []Pair) {
	all := sha256.New()
	for i := range p.Instances {
		in := &p.Instances[i]
		s := in.Step.Step
		h := hashed{
			Version: 1, ID: in.ID, Work: s.Work, If: s.If, Env: append(append([]Pair{}, env...), s.Env...),
			Matrix:  in.Matrix,
			Outputs: s.Outputs, Alternatives: s.Alternatives, Verify: s.Verify, Dir: s.WorkingDirectory,
		}
		h.Needs = append(h.Needs, lists.Each(in.Needs, func(n int) string { return p.Instances[n].Hash })...)
		in.Hash = digestOf(h)
		_, _ = all.Write([]byte(in.Hash)) // a hash takes everything
	}
	p.Hash = hex.EncodeToString(all.Sum(nil))[:hashLength]
}

// hashLength is in hexadecimal digits: 128 bits.
const hashLength = 32

// InputHash is the hash of an instance with what it was really given: the
// texts as they were filled in, in the order in which the step has them. A
// result is good for a later run if this is the same.
func (in Instance) InputHash(filled []string) string {
	return digestOf(struct {
		Plan   string   `json:"plan"`
		Filled []string `json:"filled"`
	}{in.Hash, filled})
}

func digestOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("workflow: hash: " + err.Error()) // made of texts only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:hashLength]
}

// graph is who needs whom, by the steps' numbers.
type graph struct {
	ids   []string
	needs [][]int
	order []int // each step after all that it needs
}

// sortSteps finds the order, or returns the steps of a cycle, the first again at its
// end. It is the first that is found from the top of the file.
func (g *graph) sortSteps() (cycle []int) {
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

func (g *graph) pathOfSteps(steps []int) string {
	words := lists.Each(steps, func(s int) string { return g.ids[s] })
	if len(words) > 12 {
		words = append(append(words[:6:6], "…"), words[len(words)-5:]...)
	}
	return strings.Join(words, " → ")
}

// layersOfSteps gives each step the first layer in which all that it needs is done,
// from 0.
func (g *graph) layersOfSteps() []int {
	layer := make([]int, len(g.ids))
	for _, step := range g.order {
		for _, n := range g.needs[step] {
			layer[step] = max(layer[step], layer[n]+1)
		}
	}
	return layer
}

// stepsBefore gives, for each step, which ones are done before it.
func (g *graph) stepsBefore() [][]bool {
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

// countCombinations is how many combinations the axes have, at most MaxMatrix+1.
func (m *Matrix) countCombinations() int {
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

// listCombinations are the instances of a step, as GitHub Actions makes them: all
// combinations of the axes, less the excluded ones; an included entry adds its
// names to those that it agrees with on every axis, else it is one more.
func (m *Matrix) listCombinations() [][]Pair {
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
		return slices.ContainsFunc(m.Exclude, func(e []Pair) bool { return len(e) > 0 && agreesWith(c, e, nil) })
	})
	original := len(out)
	for _, in := range m.Include {
		added := false
		for i := range out[:original] {
			if agreesWith(out[i], in, m.Axes) {
				out[i], added = extendPairs(out[i], in, m.Axes), true
			}
		}
		if !added {
			out = append(out, slices.Clone(in))
		}
	}
	return out
}

func valueOfName(pairs []Pair, name string) (string, bool) {
	for _, p := range pairs {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// agreesWith is true if c has every pair of with; of axes, only those names count.
func agreesWith(c, with []Pair, axes []Axis) bool {
	for _, p := range with {
		if axes != nil && !slices.ContainsFunc(axes, func(a Axis) bool { return a.Name == p.Name }) {
			continue
		}
		if v, ok := valueOfName(c, p.Name); !ok || v != p.Value {
			return false
		}
	}
	return true
}

func extendPairs(c, with []Pair, axes []Axis) []Pair {
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

// axisNames are all names that an instance may have.
func (m *Matrix) axisNames() []string {
	out := lists.Each(m.Axes, func(a Axis) string { return a.Name })
	for _, in := range m.Include {
		out = lists.Union(out, lists.Each(in, func(p Pair) string { return p.Name })...)
	}
	return out
}

// instanceID is "build (linux, 1.26)".
func instanceID(id string, with []Pair) string {
	if with == nil {
		return id
	}
	values := lists.Each(with, func(p Pair) string { return p.Value })
	return fmt.Sprintf("%s (%s)", id, strings.Join(values, ", "))
}
