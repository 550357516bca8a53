package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/pawl-dev/pawl/internal/decide/lists"
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

// placeError puts the library's error back to where the person wrote it.
func (r *rewriter) placeError(err error) error {
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
			ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name},
				Arguments: []ast.Node{node.Left, node.Right}})
		}
	case *ast.UnaryNode:
		if name, ok := operators[node.Operator]; ok {
			ast.Patch(n, &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: []ast.Node{node.Node}})
		}
	}
}

// evaluateWith gives the expression its value. It has no side effects.
func (e *expression) evaluateWith(v *Values) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("cannot evaluate %q: %v", e.source, p)
		}
	}()
	out, err = expr.Run(e.program, v.scopeOfValues())
	if err != nil {
		return nil, fmt.Errorf("cannot evaluate %q: %s", e.source, firstLine(err.Error()))
	}
	return out, nil
}

// compileExpression reads an expression in the words of GitHub Actions, or of the
// library beyond them. Its error is an *expressionError.
func compileExpression(source string, known map[string]bool) (*expression, error) {
	if utf8.RuneCountInString(source) > maxExpression {
		return nil, &expressionError{message: fmt.Sprintf("the expression is too long (over %d characters)",
			maxExpression)}
	}
	r := rewriter{in: []rune(source), known: known}
	room := len(r.in) + 32 // brackets and quotes around names
	r.out, r.from = make([]rune, 0, room), make([]int, 0, room)
	if err := r.rewriteAll(); err != nil {
		return nil, err
	}
	text := string(r.out)
	if strings.TrimSpace(text) == "" {
		return nil, &expressionError{message: "the expression is empty"}
	}
	e := &expression{source: source, refs: r.refs, status: r.status}
	var err error
	if e.program, err = compileProgram(text); err != nil {
		return nil, r.placeError(err)
	}
	return e, nil
}

// compileProgram turns a panic of the library into an error of the expression.
func compileProgram(text string) (program *vm.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			program, err = nil, fmt.Errorf("cannot be understood (%v)", p)
		}
	}()
	return expr.Compile(text, options()...)
}

// function is one that expressions have beyond the library's own.
type function struct {
	name string // as the library calls it
	word string // as a person writes it; "" for operators
	call func(args ...any) (any, error)
	as   any // its type, as new(func(…) …)
}

func compareBy(hold func(order int, ok bool) bool) func(args ...any) (any, error) {
	return func(args ...any) (any, error) { return hold(compareLoose(args[0], args[1])), nil }
}

var functions = []function{
	{"_equal", "", compareBy(func(o int, ok bool) bool { return ok && o == 0 }), new(func(any, any) bool)},
	{"_unequal", "", compareBy(func(o int, ok bool) bool { return !ok || o != 0 }), new(func(any, any) bool)},
	{"_less", "", compareBy(func(o int, ok bool) bool { return ok && o < 0 }), new(func(any, any) bool)},
	{"_atMost", "", compareBy(func(o int, ok bool) bool { return ok && o <= 0 }), new(func(any, any) bool)},
	{"_greater", "", compareBy(func(o int, ok bool) bool { return ok && o > 0 }), new(func(any, any) bool)},
	{"_atLeast", "", compareBy(func(o int, ok bool) bool { return ok && o >= 0 }), new(func(any, any) bool)},
	{"_and", "", func(a ...any) (any, error) {
		if isTruthy(a[0]) {
			return a[1], nil
		}
		return a[0], nil
	}, new(func(any, any) any)},
	{"_or", "", func(a ...any) (any, error) {
		if isTruthy(a[0]) {
			return a[0], nil
		}
		return a[1], nil
	}, new(func(any, any) any)},
	{"_not", "", func(a ...any) (any, error) { return !isTruthy(a[0]), nil }, new(func(any) bool)},
	{"_contains", "contains", containsLoose, new(func(any, any) bool)},
	{"_startsWith", "startsWith", func(a ...any) (any, error) {
		return strings.HasPrefix(strings.ToLower(formatValue(a[0])), strings.ToLower(formatValue(a[1]))), nil
	}, new(func(any, any) bool)},
	{"_endsWith", "endsWith", func(a ...any) (any, error) {
		return strings.HasSuffix(strings.ToLower(formatValue(a[0])), strings.ToLower(formatValue(a[1]))), nil
	}, new(func(any, any) bool)},
	{"_format", "format", formatText, new(func(string, ...any) string)},
	{"_join", "join", joinList, new(func(any, ...string) string)},
	{"_toJSON", "toJSON", func(a ...any) (any, error) {
		data, err := json.MarshalIndent(a[0], "", "  ")
		return string(data), err
	}, new(func(any) string)},
	{"_fromJSON", "fromJSON", func(a ...any) (any, error) {
		var v any
		if err := json.Unmarshal([]byte(formatValue(a[0])), &v); err != nil {
			return nil, fmt.Errorf("fromJSON: the text is not JSON: %v", err)
		}
		return v, nil
	}, new(func(any) any)},
}

// isTruthy is false for nothing, false, 0 and the empty text.
func isTruthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	}
	if n, ok := asNumber(v); ok {
		return n != 0
	}
	return true
}

// compareLoose orders two values. ok is false where there is no order: lists,
// maps, and what is no number beside one.
func compareLoose(a, b any) (order int, ok bool) {
	x, xText := a.(string)
	y, yText := b.(string)
	if xText && yText {
		return strings.Compare(strings.ToLower(x), strings.ToLower(y)), true
	}
	m, mOK := asNumber(a)
	n, nOK := asNumber(b)
	switch {
	case !mOK || !nOK:
		return 0, false
	case m < n:
		return -1, true
	case m > n:
		return 1, true
	}
	return 0, m == n
}

// asNumber follows GitHub Actions: nothing and the empty text are 0, true is 1.
func asNumber(v any) (n float64, ok bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	case string:
		v = strings.TrimSpace(v)
		if v == "" {
			return 0, true
		}
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil
	}
	return 0, false
}

// formatValue is how a value stands in a text.
func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if data, err := json.Marshal(v); err == nil {
		return string(data)
	}
	return fmt.Sprint(v)
}

func containsLoose(a ...any) (any, error) {
	if list, ok := a[0].([]any); ok {
		for _, item := range list {
			if o, ok := compareLoose(item, a[1]); ok && o == 0 {
				return true, nil
			}
		}
		return false, nil
	}
	return strings.Contains(strings.ToLower(formatValue(a[0])), strings.ToLower(formatValue(a[1]))), nil
}

// formatText puts its arguments for {0}, {1} …; {{ and }} are braces.
func formatText(a ...any) (any, error) {
	text := formatValue(a[0])
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if pair := text[i:min(i+2, len(text))]; pair == "{{" || pair == "}}" {
			b.WriteByte(text[i])
			i++
			continue
		}
		if text[i] != '{' {
			b.WriteByte(text[i])
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return nil, fmt.Errorf("format: a { is not closed in %q", text)
		}
		n, err := strconv.Atoi(text[i+1 : i+end])
		if err != nil || n < 0 || n+1 >= len(a) {
			return nil, fmt.Errorf("format: there is no argument for %s", text[i:i+end+1])
		}
		b.WriteString(formatValue(a[n+1]))
		i += end
	}
	return b.String(), nil
}

func joinList(a ...any) (any, error) {
	separator := ","
	if len(a) > 1 {
		separator = formatValue(a[1])
	}
	list, ok := a[0].([]any)
	if !ok {
		return formatValue(a[0]), nil
	}
	words := lists.Each(list, formatValue)
	return strings.Join(words, separator), nil
}
