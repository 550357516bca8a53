package workflow

import (
	"fmt"
	"testing"
)

// A program may be run by many goroutines while others are compiled.
func TestCompiledIsShared(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"a": true}
	e, err := compileExpression("format('{0}', steps.a.output)", known)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 4 {
		go func() {
			value, err := e.evaluateWith(&Values{Steps: map[string]Result{"a": {Output: "x"}}})
			if err == nil && value != "x" {
				err = fmt.Errorf("%v", value)
			}
			done <- err
		}()
	}
	if _, err := compileExpression("contains(steps.a.output, 'y')", known); err != nil {
		t.Error(err)
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
