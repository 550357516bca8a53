package board

import (
	"fmt"
	"strings"
)

// MaxRacers is how many agents race for one task at most.
const MaxRacers = 5

// RacerName is the name of the run and of the workspace of the nth agent that
// races for a task. The first has those of the task itself.
func RacerName(task string, n int) string {
	if n == 1 {
		return task
	}
	return fmt.Sprintf("%s-race%d", task, n)
}

// TaskOf is the task that a run or a workspace with a name is for: its own, that
// of an agent that races for it, or one where its work is merged.
func TaskOf(name string) string {
	at := len(name) - len("-merge")
	if at <= 0 {
		return name
	}
	if end := name[at:]; end == "-merge" || strings.TrimRight(end, "23456789") == "-race" {
		return name[:at]
	}
	return name
}
