package workflow

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// maxNodes bounds an expression, maxExpression its characters.
const (
	maxNodes      = 500
	maxExpression = 4096
)

// expression is one compiled expression.
type expression struct {
	source  string
	program *vm.Program
	refs    []reference
	// status is true if the expression asks success, failure, always or cancelled.
	status bool
}

// reference is a name that an expression uses, as steps.build.output.
type reference struct {
	path   []string
	offset int // of the first word, in characters
}

// Names that an expression may use, as their types: the compiler checks them.
type scope struct {
	Steps     map[string]stepView `expr:"steps"`
	Needs     map[string]needView `expr:"needs"`
	Env       map[string]string   `expr:"env"`
	Matrix    map[string]string   `expr:"matrix"`
	Context   map[string]string   `expr:"context"`
	Output    string              `expr:"output"`
	Success   func() bool         `expr:"success"`
	Failure   func() bool         `expr:"failure"`
	Always    func() bool         `expr:"always"`
	Cancelled func() bool         `expr:"cancelled"`
}

type stepView struct {
	Output     string            `expr:"output"`
	Result     string            `expr:"result"` // the same: a dialect's name
	Outputs    map[string]string `expr:"outputs"`
	Outcome    string            `expr:"outcome"`
	Conclusion string            `expr:"conclusion"`
}

type needView struct {
	Output  string            `expr:"output"`
	Outputs map[string]string `expr:"outputs"`
	Result  string            `expr:"result"` // success, failure, cancelled, skipped
}

// roots are the names in scope, and statuses the functions without arguments.
var (
	roots    = []string{"steps", "needs", "env", "matrix", "context", "output"}
	statuses = []string{"success", "failure", "always", "cancelled"}
)

// expressionError is a mistake in an expression, offset in characters.
type expressionError struct {
	offset  int
	message string
	word    string
	among   []string
}

func (e *expressionError) Error() string { return e.message }

// options are made once: they hold the types and the functions.
var options = sync.OnceValue(func() []expr.Option {
	o := []expr.Option{expr.Env(scope{}), expr.Patch(loose{}), expr.MaxNodes(maxNodes)}
	for _, name := range []string{"now", "date", "duration", "timezone"} {
		o = append(o, expr.DisableBuiltin(name)) // a plan knows no clock
	}
	for _, f := range functions {
		o = append(o, expr.Function(f.name, f.call, f.as))
	}
	return o
})

// located puts the library's error back to where the person wrote it.
func (r *rewriter) located(err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return &expressionError{message: firstLine(err.Error())}
	}
	out := &expressionError{message: firstLine(at.Message)}
	if at.From >= 0 && at.From < len(r.from) {
		out.offset = r.from[at.From]
	} else if at.From > 0 {
		out.offset = len(r.in)
	}
	out.message = strings.NewReplacer("type workflow.stepView", "a step", "type workflow.needView", "a step", "EOF",
		"end of the expression").Replace(out.message)
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// loose gives operators the meaning that they have in GitHub Actions: values
// of different types are compared as numbers, texts whatever their case, and
// && and || give one of their operands.
type loose struct{}

var operators = map[string]string{
	"==": "_equal", "!=": "_unequal", "<": "_less", "<=": "_atMost", ">": "_greater", ">=": "_atLeast",
	"&&": "_and", "and": "_and", "||": "_or", "or": "_or", "!": "_not", "not": "_not",
}

// Visit implements [ast.Visitor].
func (loose) Visit(n *ast.Node) {
	switch node := (*n).(type) {
	case *ast.BinaryNode:
		if name, ok := operators[node.Operator]; ok {
			ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: []ast.Node{node.Left, node.Right}})
		}
	case *ast.UnaryNode:
		if name, ok := operators[node.Operator]; ok {
			ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: []ast.Node{node.Node}})
		}
	}
}

// eval gives the expression its value. It touches nothing.
func (e *expression) eval(v *Values) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("cannot evaluate %q: %v", e.source, p)
		}
	}()
	out, err = expr.Run(e.program, v.scope())
	if err != nil {
		return nil, fmt.Errorf("cannot evaluate %q: %s", e.source, firstLine(err.Error()))
	}
	return out, nil
}

// compile reads an expression in the words of GitHub Actions, or of the
// library beyond them. Its error is an *expressionError.
func compile(source string, known map[string]bool) (*expression, error) {
	if utf8.RuneCountInString(source) > maxExpression {
		return nil, &expressionError{message: fmt.Sprintf("the expression is too long (over %d characters)", maxExpression)}
	}
	r := rewriter{in: []rune(source), known: known}
	room := len(r.in) + 32 // brackets and quotes around names
	r.out, r.from = make([]rune, 0, room), make([]int, 0, room)
	if err := r.all(); err != nil {
		return nil, err
	}
	text := string(r.out)
	if strings.TrimSpace(text) == "" {
		return nil, &expressionError{message: "the expression is empty"}
	}
	e := &expression{source: source, refs: r.refs, status: r.status}
	var err error
	if e.program, err = program(text); err != nil {
		return nil, r.located(err)
	}
	return e, nil
}

// program turns a panic of the library into an error of the expression.
func program(text string) (program *vm.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			program, err = nil, fmt.Errorf("cannot be understood (%v)", p)
		}
	}()
	return expr.Compile(text, options()...)
}
