package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

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
