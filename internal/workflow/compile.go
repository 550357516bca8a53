package workflow

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	typecheck "github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/optimizer"
	"github.com/expr-lang/expr/vm"
)

// compilation compiles the expressions of one workflow. It keeps what the
// library would set up for each, so it belongs to one goroutine; what it
// compiled does not.
type compilation struct {
	known  map[string]bool // the ids of the steps
	config *conf.Config    // made for the first expression that needs it
}

// compile reads an expression in the words of GitHub Actions, or of the
// library beyond them. Its error is an *expressionError.
func (c *compilation) compile(source string) (*expression, error) {
	if utf8.RuneCountInString(source) > maxExpression {
		return nil, &expressionError{message: fmt.Sprintf("the expression is too long (over %d characters)", maxExpression)}
	}
	r := rewriter{in: []rune(source), known: c.known}
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
	if e.simple = r.simple(); e.simple != nil {
		return e, nil
	}
	var err error
	if e.program, err = c.program(text); err != nil {
		return nil, r.located(err)
	}
	return e, nil
}

// program does what expr.Compile does, with one configuration for all
// expressions. It turns a panic of the library into an error of the expression.
func (c *compilation) program(text string) (program *vm.Program, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.config = nil // whatever it left in there
			program, err = nil, fmt.Errorf("cannot be understood (%v)", p)
		}
	}()
	if c.config == nil {
		c.config = newConfig()
	}
	tree, err := typecheck.ParseCheck(text, c.config)
	if err != nil {
		return nil, err
	}
	if err := optimizer.Optimize(&tree.Node, c.config); err != nil {
		var at *file.Error
		if errors.As(err, &at) {
			return nil, at.Bind(tree.Source)
		}
		return nil, err
	}
	return compiler.Compile(tree, c.config)
}

func newConfig() *conf.Config {
	c := conf.CreateNew()
	for _, set := range options() {
		set(c)
	}
	for name := range c.Disabled { // order does not show: a map loses entries
		delete(c.Builtins, name)
	}
	c.Check()
	return c
}
