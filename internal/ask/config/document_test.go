package config_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/config"
)

const check = `iteration_check:
  task_id: "task-003"
  current_iteration: 2
  max_iterations: 3

  test_result:
    status: "fail"  # pass | fail
    output: |
      FAIL src/auth/login.test.ts
      Expected: token to contain userId
      Received: undefined

  review_result:
    status: "pending"  # approve | reject | pending
    feedback: ""
`

// The document's input is read, as YAML and as JSON.
func TestReadIterationCheck(t *testing.T) {
	t.Parallel()
	want := config.IterationCheck{
		TaskID: "task-003", CurrentIteration: 2, MaxIterations: 3,
		TestResult:   config.CheckTests{Status: "fail", Output: "FAIL src/auth/login.test.ts\nExpected: token to contain userId\nReceived: undefined\n"},
		ReviewResult: &config.CheckReview{Status: "pending"},
	}
	got, err := config.ReadIterationCheck("in.yaml", []byte(check))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	json := `{"iteration_check":{"task_id":"task-003","current_iteration":2,"max_iterations":3,"test_result":{"status":"fail",` +
		`"output":"FAIL src/auth/login.test.ts\nExpected: token to contain userId\nReceived: undefined\n"},"review_result":{"status":"pending","feedback":""}}}`
	want.JSON = true
	got, err = config.ReadIterationCheck("in.json", []byte(json))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is absent stays absent: the configuration's maximum and the recorded
// attempts hold then.
func TestReadIterationCheckAbsent(t *testing.T) {
	t.Parallel()
	got, err := config.ReadIterationCheck("in", []byte("iteration_check: {task_id: t, current_iteration: 1, test_result: {status: pass}}"))
	if err != nil || got.MaxIterations != 0 || got.ReviewResult != nil || got.Attempts != nil {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = config.ReadIterationCheck("in", []byte("iteration_check: {task_id: t, current_iteration: 1, test_result: {status: pass}, attempts: []}"))
	if err != nil || got.Attempts == nil || len(got.Attempts) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadDocumentPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ data, want string }{
		{"{\n\t\"iteration_check\": {\n\t\t\"task_id\": \"é\", \"current_iteration\": \"2\",\n\t\t\"test_result\": {\"status\": \"pass\"}}}", "in:3:39"},
		{`{"iteration_check": [1, 2]}`, "in:1:21"},
		{`[]`, "in:1:1"}, {`"text"`, "in:1:1"}, {"", "in:0:0"}, {"null", "in:0:0"}, {"[[[", "in:1:3"},
		{"iteration_check:\n\ttask_id: x\n", "in:2:1"},
		{strings.Repeat("[", 200) + strings.Repeat("]", 200), "in:1:65"},
		{strings.Repeat("{\"a\":", 200) + "1" + strings.Repeat("}", 200), "in:1:321"},
	} {
		_, err := config.ReadIterationCheck("in", []byte(c.data))
		var e *config.Error
		if !errors.As(err, &e) {
			t.Errorf("%.30q: %v", c.data, err)
			continue
		}
		if got := fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column); got != c.want {
			t.Errorf("%.30q: %s, want %s: %s", c.data, got, c.want, e.Message)
		}
	}
}

// Whatever comes, it is a value or an error with a message, never a panic.
func FuzzReadDocument(f *testing.F) {
	f.Add([]byte(check))
	f.Add([]byte(`{"iterationNumber": 11, "config": {"maxIterations": 10, "completionPromises": ["x"]}, "history": [{"validationResult": {"flags": [{"message": "file: a"}]}}]}`))
	f.Add([]byte("\x1b[31miteration_check\x1b]0;t\x07: {\xff: \u0085}"))
	f.Add([]byte(`{"a": 1e999, "a": {"b": [null, true, "\ud800"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := config.ReadIterationCheck("in", data)
		_, herr := config.ReadGuardHistory("in", data)
		for _, err := range []error{err, herr} {
			if err != nil && strings.TrimSpace(err.Error()) == "" {
				t.Errorf("an error without words for %q", data)
			}
		}
	})
}
