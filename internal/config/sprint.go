package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SprintTarget is when a sprint starts nothing new any more.
type SprintTarget struct {
	Type  string `yaml:"type" default:"no_ready" enum:"count|duration|until_time|no_ready"`
	Value string `yaml:"value" loose:"true"`

	// Count is set for count.
	Count int `yaml:"-"`
	// Duration is set for duration.
	Duration Duration `yaml:"-"`
	// Hour and Minute are set for until_time.
	Hour   int `yaml:"-"`
	Minute int `yaml:"-"`
}

// Sprint targets.
const (
	TargetCount     = "count"
	TargetDuration  = "duration"
	TargetUntilTime = "until_time"
	TargetNoReady   = "no_ready"
)

// ParseTarget reads a target's value. A missing, unreadable or zero value is
// an error; so is a value for no_ready.
func ParseTarget(kind, value string) (SprintTarget, error) {
	t := SprintTarget{Type: kind, Value: value}
	value = strings.TrimSpace(value)
	switch kind {
	case TargetCount:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return t, fmt.Errorf("must be a whole number of tasks, 1 or more, for the target count; not %q", value)
		}
		t.Count = n
	case TargetDuration:
		d, err := bareDuration(value, time.Hour)
		if err != nil || d == 0 {
			return t, fmt.Errorf("must be hours or a duration over 0, e.g. 2 or 90m, for the target duration; not %q", value)
		}
		t.Duration = d
	case TargetUntilTime:
		at, err := time.Parse("15:04", value)
		if err != nil {
			return t, fmt.Errorf("must be a time of day, e.g. 18:30, for the target until_time; not %q", value)
		}
		t.Hour, t.Minute = at.Hour(), at.Minute()
	case TargetNoReady:
		if value != "" {
			return t, fmt.Errorf("has no meaning for the target no_ready: remove it")
		}
	}
	return t, nil
}
