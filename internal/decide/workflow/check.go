package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// checker finds the faults of a workflow and compiles what its steps say.
type checker struct {
	file    File
	number  map[string]int // of each step's id, the first where two have one
	ids     []string
	before  [][]bool
	g       *graph
	steps   []*Planned
	context []string
	faults  faults
	known   map[string]bool // the ids of the steps
}

func (c *checker) addFault(path, format string, args ...any) {
	c.faults.addFault(Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// checkIDs checks that there are steps with an id each.
func (c *checker) checkIDs() {
	switch n := len(c.file.Steps); {
	case n == 0:
		c.addFault("steps", "a workflow needs at least one step")
	case n > MaxSteps:
		c.addFault(c.file.Steps[MaxSteps].Where, "a workflow has at most %d steps; this one has %d: split it with a "+
			"step `workflow: FILE`", MaxSteps, n)
	}
	for i, s := range c.file.Steps {
		first, taken := c.number[s.ID]
		switch {
		case s.ID == "":
			c.addFault(s.Where, "a step needs an id")
			continue
		case taken:
			c.faults.addFault(Fault{Path: s.Where + ".id", Message: fmt.Sprintf("the id %q is taken", s.ID),
				First: c.file.Steps[first].Where + ".id"})
			continue
		case !isValidStepID(s.ID):
			c.addFault(s.Where+".id", "an id has at most 100 characters, without quotes, brackets and line ends: "+
				"not %q", s.ID)
			continue
		}
		c.number[s.ID], c.known[s.ID] = i, true
		c.ids = append(c.ids, s.ID)
	}
}

func isValidStepID(id string) bool {
	return len(id) <= 100 && !strings.ContainsFunc(id, func(r rune) bool {
		return r < ' ' || strings.ContainsRune("'\"{}[]", r)
	})
}

// resolveNeeds resolves what steps need. It is false if there is no order.
func (c *checker) resolveNeeds() bool {
	c.g = &graph{needs: make([][]int, len(c.file.Steps))}
	for i, s := range c.file.Steps {
		c.g.ids = append(c.g.ids, s.ID)
		for k, id := range s.Needs {
			path := fmt.Sprintf("%s.needs[%d]", s.Where, k)
			n, ok := c.number[id]
			switch {
			case !ok:
				c.faults.addFault(Fault{Path: path,
					Message: fmt.Sprintf("%s needs %q, which no step has as its id", labelOfStep(s), id),
					Word:    id, Among: c.ids})
			case slices.Contains(c.g.needs[i], n):
				c.addFault(path, "%s needs %q twice", labelOfStep(s), id)
			default:
				c.g.needs[i] = append(c.g.needs[i], n)
			}
		}
	}
	if len(c.faults) > 0 {
		return false
	}
	if cycle := c.g.sortSteps(); cycle != nil {
		at := c.file.Steps[cycle[0]]
		k := slices.Index(at.Needs, c.g.ids[cycle[1]])
		c.addFault(fmt.Sprintf("%s.needs[%d]", at.Where, k), "Dependency cycle detected: %s", c.g.pathOfSteps(cycle))
		return false
	}
	return true
}

func labelOfStep(s Step) string {
	if s.ID == "" {
		return "the step"
	}
	return fmt.Sprintf("step %q", s.ID)
}

// checkSize bounds what the matrices make.
func (c *checker) checkSize() {
	total := 0
	for _, s := range c.file.Steps {
		n := 1
		if s.Matrix != nil {
			n = s.Matrix.countCombinations()
			if n <= MaxMatrix {
				n = len(s.Matrix.listCombinations())
			}
			switch {
			case n > MaxMatrix:
				c.addFault(s.Where+".matrix", "the matrix makes more than %d instances of %s: use fewer values",
					MaxMatrix, labelOfStep(s))
			case n == 0:
				c.addFault(s.Where+".matrix", "the matrix makes no instance of %s: give it a name with values, or "+
					"entries under include", labelOfStep(s))
			}
		}
		if total += n; total > MaxInstances {
			c.addFault(s.Where+".matrix", "the matrices make more than %d instances of all steps: use fewer values",
				MaxInstances)
			return
		}
	}
}

// where is what an expression stands in: it says which names it may use.
type where struct {
	step    int // number, or -1 for the workflow's own texts
	path    string
	prompt  bool // {{ word }} is a value of the context
	outputs bool // `output` is known
	status  bool // success() and the like are known
	env     []string
}

// compileStep compiles all texts of a step.
func (c *checker) compileStep(i int) *Planned {
	s := c.file.Steps[i]
	p := &Planned{Step: s, Timeout: s.Timeout, Retry: c.file.Config.Retry}
	p.Timeout = cmp.Or(p.Timeout, c.file.Config.StepTimeout)
	if s.Retry != nil {
		p.Retry = *s.Retry
	}
	at := where{step: i, path: s.Where}
	for _, v := range c.file.Env {
		p.Environment = append(p.Environment, Named{v.Name, c.compileText(at.atPath("env."+v.Name, true), v.Value)})
		at.env = append(at.env, v.Name)
	}
	for _, v := range s.Env {
		text := c.compileText(at.atPath(s.Where+".env."+v.Name, false), v.Value)
		p.Environment = append(p.Environment, Named{v.Name, text})
	}
	at.env = append(at.env, lists.Each(s.Env, func(v Pair) string { return v.Name })...)
	p.Condition = c.compileCondition(at, s.If)
	content := at.atPath(s.Where+"."+contentKey(s.Kind), false)
	content.prompt = s.Kind == Agent || s.Kind == Ask
	p.Content = c.compileText(content, s.Content)
	p.Title = c.compileText(at.atPath(s.Where+".name", false), s.Title)
	p.WorkingDirectory = c.compileText(at.atPath(s.Where+".working_directory", false), s.WorkingDirectory)
	for k, v := range s.Verify {
		p.Verify = append(p.Verify, c.compileText(at.atPath(fmt.Sprintf("%s.verify[%d]", s.Where, k), false), v))
	}
	for k, w := range s.Alternatives {
		alt := at.atPath(fmt.Sprintf("%s.alternatives[%d].%s", s.Where, k, contentKey(w.Kind)), false)
		alt.prompt = w.Kind == Agent
		p.Alternatives = append(p.Alternatives, c.compileText(alt, w.Content))
	}
	at.outputs = true
	for _, v := range s.Outputs {
		text := c.compileText(at.atPath(s.Where+".outputs."+v.Name, false), v.Value)
		p.Outputs = append(p.Outputs, Named{v.Name, text})
	}
	return p
}

// contentKey is the key under which a kind has its content.
func contentKey(k Kind) string {
	if k == Agent {
		return "prompt"
	}
	return string(k)
}

func (w where) atPath(path string, workflow bool) where {
	w.path = path
	if workflow {
		w.step, w.env = -1, nil
	}
	return w
}

// compileText compiles one text and checks the names in it.
func (c *checker) compileText(at where, text string) Text {
	if !strings.Contains(text, "{{") {
		return Text{parts: []part{{text: text}}}
	}
	t, errs := parseText(text, at.prompt, c.known)
	for _, e := range errs {
		c.addExpressionFault(at.path, e.find, e.err)
	}
	for _, p := range t.parts {
		if p.expr != nil {
			c.checkReferences(at, p.expr, firstLine(p.text))
		}
	}
	return t
}

func (c *checker) addExpressionFault(path, find string, e *expressionError) {
	c.faults.addFault(Fault{Path: path, Find: find, Offset: e.offset, Message: e.message, Word: e.word, Among: e.among})
}

// compileCondition compiles an `if:`, which may stand in ${{ }} or not.
func (c *checker) compileCondition(at where, text string) Condition {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return Condition{}
	}
	source, lead := trimmed, 0
	if inner, ok := strings.CutPrefix(trimmed, "${{"); ok && closingBraces(inner, true) == len(inner)-2 {
		source, lead = inner[:len(inner)-2], 3
	}
	at.path, at.status = at.path+".if", true
	e, err := compileExpression(source, c.known)
	if err != nil {
		c.addExpressionFault(at.path, firstLine(trimmed), shiftError(err, lead))
		return Condition{}
	}
	for i := range e.refs {
		e.refs[i].offset += lead
	}
	c.checkReferences(at, e, firstLine(trimmed))
	return Condition{e}
}

// checkReferences checks that an expression uses what is there by then.
func (c *checker) checkReferences(at where, e *expression, find string) {
	if e.status && !at.status {
		c.addExpressionFault(at.path, find, &expressionError{message: "success(), failure(), always() and " +
			"cancelled() are for if:"})
	}
	for _, r := range e.refs {
		if err := c.checkReference(at, r); err != nil {
			err.offset = r.offset
			c.addExpressionFault(at.path, find, err)
		}
	}
}

func (c *checker) checkReference(at where, r reference) *expressionError {
	root := r.path[0]
	switch {
	case root == "output" && !at.outputs:
		return &expressionError{message: "output is available only under outputs; use steps.ID.output"}
	case root == "output":
		return nil
	case len(r.path) == 1 && slices.Contains([]string{"steps", "needs"}, root):
		return &expressionError{message: fmt.Sprintf("name the step: %s.ID.output", root)}
	case len(r.path) == 1:
		return nil // the whole map, as for toJSON(matrix)
	}
	name := r.path[1]
	switch root {
	case "context":
		c.context = lists.Union(c.context, name)
		return nil
	case "env":
		if !slices.Contains(at.env, name) {
			return &expressionError{message: fmt.Sprintf("env.%s is not set above in this file; in a command write $%s",
				name, name), word: name, among: at.env}
		}
		return nil
	case "matrix":
		return c.matrixName(at, name)
	}
	return c.stepName(at, r)
}

func (c *checker) matrixName(at where, name string) *expressionError {
	if at.step < 0 || c.file.Steps[at.step].Matrix == nil {
		return &expressionError{message: "matrix is available only in steps that have one"}
	}
	names := c.file.Steps[at.step].Matrix.axisNames()
	if !slices.Contains(names, name) {
		return &expressionError{message: fmt.Sprintf("the matrix has no %q", name), word: name, among: names}
	}
	return nil
}

func (c *checker) stepName(at where, r reference) *expressionError {
	if at.step < 0 {
		return &expressionError{message: "the workflow's own values cannot use results of steps"}
	}
	id, me := r.path[1], c.file.Steps[at.step]
	n, ok := c.number[id]
	switch {
	case !ok:
		return &expressionError{message: fmt.Sprintf("there is no step %q", id), word: id, among: c.ids}
	case id == me.ID:
		return &expressionError{message: "a step cannot use its own result"}
	case r.path[0] == "needs" && !slices.Contains(c.g.needs[at.step], n), !c.before[at.step][n]:
		return &expressionError{message: fmt.Sprintf("step %q does not need %q, so its result may not be there: add "+
			"it to needs", me.ID, id)}
	case len(r.path) > 3 && r.path[2] == "outputs" && len(c.file.Steps[n].Outputs) > 0:
		if _, ok := valueOfName(c.file.Steps[n].Outputs, r.path[3]); ok {
			return nil
		}
		names := lists.Each(c.file.Steps[n].Outputs, func(o Pair) string { return o.Name })
		return &expressionError{message: fmt.Sprintf("step %q has no output %q", id, r.path[3]), word: r.path[3],
			among: names}
	}
	return nil
}
