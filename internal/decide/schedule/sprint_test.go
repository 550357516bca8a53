package schedule_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/schedule"
)

// The statistics have the keys of the document, in its order.
func TestSprintStats(t *testing.T) {
	at := func(s int) time.Time { return time.UnixMilli(1_000_000 + int64(s)*1000) }
	s := schedule.SprintStats{
		ID: "2026-02-06-001", StartedAt: at(0).UnixMilli(), Target: schedule.SprintTarget{Type: "until_time", Value: json.RawMessage(`"08:00"`)},
		Settings: schedule.SprintSettings{MaxIterations: 50, TaskTimeout: 30, PauseOnErrors: true}, TaskStats: []schedule.TaskStat{},
	}
	same(t, s, `{"id":"2026-02-06-001","startedAt":1000000,"endedAt":null,"target":{"type":"until_time","value":"08:00"},"totalTasks":0,"completedTasks":0,`+
		`"failedTasks":0,"reviewingTasks":0,"taskStats":[],"settings":{"maxIterations":50,"taskTimeout":30,"pauseOnStuck":false,"pauseOnErrors":true}}`)
	s.Begun("task-001", at(1))
	s.Begun("task-002", at(1))
	s.Begun("task-003", at(2))
	s.Begun("task-001", at(9)) // again, after a crash
	s.RecordSettlement("task-001", schedule.Settlement{Action: board.Verify, Worked: true, Review: true}, 3, at(10))
	s.RecordSettlement("task-002", schedule.Settlement{Action: board.Expire}, 50, at(11))
	s.RecordSettlement("task-003", schedule.Settlement{Action: board.Block}, 1, at(12))
	s.RecordSettlement("task-009", schedule.Settlement{Action: board.Fail}, 1, at(12)) // of no sprint
	s.End(at(20))
	tasks := `[{"taskId":"task-001","startedAt":1001000,"completedAt":1010000,"iterations":3,"verificationPassed":true%s},` +
		`{"taskId":"task-002","startedAt":1001000,"completedAt":1011000,"iterations":50,"verificationPassed":false},` +
		`{"taskId":"task-003","startedAt":1002000,"completedAt":1012000,"iterations":1,"verificationPassed":false}]`
	if s.TotalTasks != 3 || s.CompletedTasks != 1 || s.FailedTasks != 1 || s.ReviewingTasks != 1 || *s.EndedAt != at(20).UnixMilli() {
		t.Errorf("the counts are %+v", s)
	}
	same(t, s.TaskStats, fmt.Sprintf(tasks, ""))
	if !s.Decided("task-001", "redo") || s.Decided("task-001", "approved") || s.Decided("task-002", "approved") || s.ReviewingTasks != 0 {
		t.Errorf("the decisions are %+v", s)
	}
	same(t, s.TaskStats, fmt.Sprintf(tasks, `,"reviewDecision":"redo"`))
}

func same(t *testing.T, v any, want string) {
	t.Helper()
	got, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNextTimeOfDay(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("there are no time zones here")
	}
	for _, test := range []struct{ now, want string }{
		{"2026-02-06T10:00:00+01:00", "2026-02-06T18:00:00+01:00"},
		{"2026-02-06T18:00:00+01:00", "2026-02-07T18:00:00+01:00"},
		{"2026-02-06T23:59:00+01:00", "2026-02-07T18:00:00+01:00"},
		{"2026-03-28T19:00:00+01:00", "2026-03-29T18:00:00+02:00"}, // the clocks go forward
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := schedule.NextTimeOfDay(now.In(zone), 18, 0).Format(time.RFC3339); got != test.want {
			t.Errorf("after %s comes %s, want %s", test.now, got, test.want)
		}
	}
}
