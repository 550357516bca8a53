package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Control is what a task says of iteration control. What it leaves out is as the
// configuration has it.
type Control struct {
	MaxIterations     *int  `json:"max_iterations,omitempty" minimum:"1" doc:"Attempts before a person is asked."`
	RetryTestFail     *bool `json:"auto_retry_on_test_fail,omitempty" doc:"Try again when tests fail; else ask at once."`
	RetryReviewReject *bool `json:"auto_retry_on_review_reject,omitempty" doc:"The same for a review that rejects."`
	IncludeDiff       *bool `json:"escalation_includes_diff,omitempty" doc:"Add the diff to an escalation."`
	FeedbackMax       *int  `json:"feedback_max_length,omitempty" minimum:"1" doc:"Characters of summary and items."`
}

var controlKeys = []string{
	"max_iterations", "auto_retry_on_test_fail", "auto_retry_on_review_reject", "escalation_includes_diff",
	"feedback_max_length",
}

// With is the settings with one more, as people write it: max_iterations=5. An empty
// value takes the key out.
func (c *Control) With(setting string) (*Control, error) {
	var out Control
	if c != nil {
		out = *c
	}
	key, value, _ := strings.Cut(setting, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case value == "":
		value = "null"
	case !json.Valid([]byte(value)):
		value = strconv.Quote(value)
	}
	err := out.read(fmt.Appendf(nil, "{%q: %s}", key, value))
	return &out, err
}

// read takes over what a JSON object says.
func (c *Control) read(data []byte) error {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return fmt.Errorf("iteration_control must be an object of %s", strings.Join(controlKeys, ", "))
	}
	// order does not show: any unknown key refuses the whole
	for key := range keys {
		if !slices.Contains(controlKeys, key) {
			return fmt.Errorf("iteration_control has no key %q; it has %s", short(key), strings.Join(controlKeys, ", "))
		}
	}
	err := json.Unmarshal(data, c)
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := "a whole number"
		if bad.Type.Kind() == reflect.Bool {
			want = "true or false"
		}
		return fmt.Errorf("iteration_control.%s must be %s, not a %s", bad.Field, want, bad.Value)
	}
	return err
}

// wrong says what cannot be meant.
func (c *Control) wrong() string {
	switch {
	case c.MaxIterations != nil && *c.MaxIterations < 1:
		return fmt.Sprintf("iteration_control.max_iterations must be 1 or more, not %d", *c.MaxIterations)
	case c.FeedbackMax != nil && *c.FeedbackMax < 1:
		return fmt.Sprintf("iteration_control.feedback_max_length must be 1 or more, not %d", *c.FeedbackMax)
	}
	return ""
}

// String is the settings as [Control.With] reads them.
func (c *Control) String() string {
	if c == nil {
		return ""
	}
	var all []string
	var keys map[string]json.RawMessage
	if text, err := json.Marshal(c); err != nil || json.Unmarshal(text, &keys) != nil {
		return "" // numbers and truths go both ways
	}
	for _, key := range controlKeys {
		if value, ok := keys[key]; ok {
			all = append(all, key+"="+string(value))
		}
	}
	return strings.Join(all, " ")
}
