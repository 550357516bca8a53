package prompt

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/pawl-dev/pawl/internal/lazy"
)

const (
	// maxExpanded is the size of one fragment after its template has run.
	maxExpanded = 1 << 20
	// maxPrinted is the size of what one print in a template may make.
	maxPrinted = 64 << 10
)

// data is what a template sees. These names are the user's interface.
type data struct {
	Procedure     string
	Iteration     int
	MaxIterations int
	// Work is the text of the section TASK; empty when the user said none.
	Work     string
	Case     Case
	Run      string
	Agent    string
	Strategy string
	// Feedback is the text of the section FEEDBACK; empty in a first iteration.
	Feedback string
	Gates    []string
}

func newData(in Input, told string) *data {
	return &data{
		Procedure:     oneLine(in.Procedure),
		Iteration:     in.Iteration,
		MaxIterations: in.MaxIterations,
		Work:          strings.TrimSpace(in.Work),
		Case: Case{
			ID:          oneLine(in.Case.ID),
			Title:       oneLine(in.Case.Title),
			Description: prose(in.Case.Description),
			Acceptance:  oneLines(in.Case.Acceptance),
			Tags:        oneLines(in.Case.Tags),
		},
		Run:      oneLine(in.Run),
		Agent:    oneLine(in.Agent),
		Strategy: oneLine(in.Strategy),
		Feedback: told,
		Gates:    oneLines(in.Gates),
	}
}

func oneLines(texts []string) []string {
	var out []string
	for _, text := range texts {
		out = append(out, oneLine(text))
	}
	return out
}

// Expand returns one fragment's text, its template carried out, for a prompt
// that is no iteration's, such as a review's. The error is as in [Compose].
func Expand(f Fragment, in Input) (string, error) {
	text, err := expand(f, newData(in, feedback(&in, maxItems)))
	return strings.TrimSpace(text), err
}

// expand returns the fragment's text, its template carried out.
func expand(f Fragment, d *data) (string, error) {
	if !isTemplate(f.Text) {
		return f.Text, nil
	}
	t, err := parsed(f.Name, f.Text)
	if err != nil {
		return "", err
	}
	return execute(t, f.Name, d)
}

func isTemplate(text string) bool { return strings.Contains(text, "{{") }

// CheckTemplate says whether a fragment is fine, for the time when the
// configuration is loaded. A fragment without "{{" always is. The error has the
// fragment's name and line: a mistake in the template, a field that there is
// not, or something that a fragment may not do.
func CheckTemplate(name, text string) error {
	if !isTemplate(text) {
		return nil
	}
	t, err := parsed(name, text)
	if err != nil {
		return err
	}
	for _, sample := range samples() {
		if _, err := execute(t, name, sample); err != nil {
			return err
		}
	}
	return nil
}

// samples are a first iteration of a procedure and a later one of a case, so
// that both sides of a condition are tried.
func samples() []*data {
	return []*data{
		{Procedure: "build", Iteration: 1, Run: "01J0", Agent: "claude"},
		{
			Procedure: "build", Iteration: 2, MaxIterations: 10, Run: "01J0", Agent: "claude", Strategy: "focused",
			Work: "Do this.",
			Case: Case{
				ID: "task-001", Title: "A title", Description: "A description.",
				Acceptance: []string{"It works."}, Tags: []string{"a-tag"},
			},
			Feedback: "Iteration 1: a test is red.", Gates: []string{"tests"},
		},
	}
}

// parsed reads a template and refuses what a fragment may not do.
func parsed(name, text string) (*template.Template, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(functions()).Parse(text)
	if err != nil {
		return nil, templateError(name, err)
	}
	if t.Tree == nil || t.Root == nil {
		return t, nil // nothing but comments and definitions
	}
	if len(t.Templates()) > 1 {
		return nil, fmt.Errorf("cannot use the template in %s: it defines another one; write one fragment for each part",
			name)
	}
	c := checker{tree: t.Tree, name: name}
	c.list(t.Root, true)
	return t, c.err
}

func execute(t *template.Template, name string, d *data) (string, error) {
	var out limited
	if err := t.Execute(&out, d); err != nil {
		return "", templateError(name, err)
	}
	return out.b.String(), nil
}

// wordsOfTemplate is how package text/template begins its errors.
const wordsOfTemplate = "template: "

// templateError keeps the place that text/template names and drops its own
// type names.
func templateError(name string, err error) error {
	why := strings.TrimPrefix(err.Error(), wordsOfTemplate)
	if rest, ok := strings.CutPrefix(why, name+":"); ok {
		why = name + ":" + rest
	}
	why = strings.ReplaceAll(why, "in type *prompt.data", "in a prompt; there are "+fieldNames(reflect.TypeFor[data]()))
	why = strings.ReplaceAll(why, "in type prompt.Case", "in a case; there are "+fieldNames(reflect.TypeFor[Case]()))
	return fmt.Errorf("cannot use the template in %s", why)
}

// limited takes a template's output up to its bound.
type limited struct{ b strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxExpanded {
		return 0, errors.New("its output is over 1 MiB")
	}
	return l.b.Write(p)
}

// functions replaces the built-in functions with which a short template can
// make a long text. None reads a file or starts anything.
func functions() template.FuncMap {
	refused := func(...any) (string, error) {
		return "", errors.New("this function is not available in a fragment")
	}
	return template.FuncMap{
		"print":   func(args ...any) (string, error) { return printed(fmt.Sprint, args) },
		"println": func(args ...any) (string, error) { return printed(fmt.Sprintln, args) },
		"printf": func(format string, args ...any) (string, error) {
			if wideVerb().MatchString(format) || len(format) > maxLine {
				return "", errors.New("the format of printf is too wide")
			}
			return printed(func(a ...any) string { return fmt.Sprintf(format, a...) }, args)
		},
		"call": refused, "html": refused, "js": refused, "urlquery": refused,
		"join": func(sep string, list []string) (string, error) {
			return printed(func(...any) string { return strings.Join(list, sep) }, []any{list, sep})
		},
	}
}

// wideVerb finds a width in a printf format that pads to more than a line.
var wideVerb = lazy.Regexp(`[0-9]{3}|\*`)

// printed refuses to make a long text out of long ones.
func printed(format func(...any) string, args []any) (string, error) {
	size := 0
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			size += len(v)
		case []string:
			for _, s := range v {
				size += len(s)
			}
		}
	}
	if size > maxPrinted {
		return "", errors.New("a text is over 64 KiB")
	}
	return format(args...), nil
}

// checker walks a template and finds fields that do not exist, also in
// branches that no sample reaches, and loops without a bound.
type checker struct {
	tree *parse.Tree
	name string
	err  error
}

func (c *checker) fail(n parse.Node, format string, args ...any) {
	if c.err != nil {
		return
	}
	place, _ := c.tree.ErrorContext(n)
	c.err = fmt.Errorf("cannot use the template in %s: %s", place, fmt.Sprintf(format, args...))
}

// list walks a list of nodes; root is true while the dot is the data.
func (c *checker) list(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		c.node(n, root)
	}
}

func (c *checker) node(n parse.Node, root bool) {
	switch n := n.(type) {
	case *parse.ActionNode:
		c.pipe(n.Pipe, root)
	case *parse.IfNode:
		c.branch(&n.BranchNode, root, root)
	case *parse.WithNode:
		c.branch(&n.BranchNode, root, false)
	case *parse.RangeNode:
		if !rangesOverField(n.Pipe) {
			c.fail(n, "range works on a field only, such as .Case.Acceptance")
		}
		c.branch(&n.BranchNode, root, false)
	case *parse.TemplateNode:
		c.fail(n, "a fragment cannot call another template")
	}
}

func (c *checker) branch(b *parse.BranchNode, root, inside bool) {
	c.pipe(b.Pipe, root)
	c.list(b.List, inside)
	c.list(b.ElseList, root)
}

// rangesOverField is true for a plain field: what is computed, and a number
// in a variable, could be a loop without an end.
func rangesOverField(p *parse.PipeNode) bool {
	if p == nil || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	switch n := p.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return n.Ident[len(n.Ident)-1] != "MaxIterations" && n.Ident[len(n.Ident)-1] != "Iteration"
	case *parse.VariableNode:
		return n.Ident[0] == "$" && len(n.Ident) == 3
	}
	return false
}

func (c *checker) pipe(p *parse.PipeNode, root bool) {
	if p == nil {
		return
	}
	for _, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			switch n := arg.(type) {
			case *parse.FieldNode:
				if root {
					c.field(n, n.Ident)
				}
			case *parse.VariableNode:
				if n.Ident[0] == "$" {
					c.field(n, n.Ident[1:])
				}
			case *parse.PipeNode:
				c.pipe(n, root)
			}
		}
	}
}

// field follows a chain of fields through the types.
func (c *checker) field(n parse.Node, chain []string) {
	at := reflect.TypeFor[data]()
	for _, name := range chain {
		if at.Kind() != reflect.Struct {
			c.fail(n, "%s has no fields, so .%s means nothing", at.Kind(), name)
			return
		}
		f, ok := at.FieldByName(name)
		if !ok {
			c.fail(n, "there is no .%s; there are %s", strings.Join(chain, "."), fieldNames(at))
			return
		}
		at = f.Type
	}
}

func fieldNames(t reflect.Type) string {
	names := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		names = append(names, "."+t.Field(i).Name)
	}
	return strings.Join(names, ", ")
}
