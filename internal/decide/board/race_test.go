package board

import "testing"

func TestTaskOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"task-001": "task-001", "task-001-merge": "task-001", RacerName("task-001", 1): "task-001",
		RacerName("task-001", 2): "task-001", RacerName("task-1234", MaxRacers): "task-1234",
		"build": "build", "-merge": "-merge", "task-001-race": "task-001-race", "task-001-race1": "task-001-race1", "": "",
	} {
		if got := TaskOf(name); got != want {
			t.Errorf("%q is for %q, want %q", name, got, want)
		}
	}
}
