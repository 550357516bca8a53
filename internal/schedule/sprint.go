package schedule

import (
	"encoding/json"
	"time"
)

// SprintStats is a line of .pawl/sprints.jsonl. Times are milliseconds since
// 1970. What is written outlives the code: fields can be added, but names must
// not change.
type SprintStats struct {
	ID        string       `json:"id"` // YYYY-MM-DD-NNN
	StartedAt int64        `json:"startedAt"`
	EndedAt   *int64       `json:"endedAt"` // nil while it runs
	Target    SprintTarget `json:"target"`

	TotalTasks     int `json:"totalTasks"` // that were started
	CompletedTasks int `json:"completedTasks"`
	FailedTasks    int `json:"failedTasks"`    // time-outs included
	ReviewingTasks int `json:"reviewingTasks"` // of the completed ones, those that wait for a person's review

	TaskStats []TaskStat     `json:"taskStats"`
	Settings  SprintSettings `json:"settings"`
}

// SprintTarget is when a sprint starts nothing new any more.
type SprintTarget struct {
	Type string `json:"type"` // count, duration, until_time or no_ready
	// Value is a number of tasks, of hours, or a time of day.
	Value json.RawMessage `json:"value,omitempty"`
}

// TaskStat is one task of a sprint.
type TaskStat struct {
	TaskID             string `json:"taskId"`
	StartedAt          int64  `json:"startedAt"`
	CompletedAt        int64  `json:"completedAt"`
	Iterations         int    `json:"iterations"`
	VerificationPassed bool   `json:"verificationPassed"`
	ReviewDecision     string `json:"reviewDecision,omitempty"` // approved, redo or rejected
}

// SprintSettings are those in force.
type SprintSettings struct {
	MaxIterations int  `json:"maxIterations"`
	TaskTimeout   int  `json:"taskTimeout"` // minutes
	PauseOnStuck  bool `json:"pauseOnStuck"`
	PauseOnErrors bool `json:"pauseOnErrors"`
}

// Begun counts a task that was started. One that is started again counts once.
func (s *SprintStats) Begun(id string, at time.Time) {
	if s.find(id) != nil {
		return
	}
	s.TotalTasks++
	s.TaskStats = append(s.TaskStats, TaskStat{TaskID: id, StartedAt: at.UnixMilli()})
}

// Settled takes note of what became of a task.
func (s *SprintStats) Settled(id string, v Settlement, iterations int, at time.Time) {
	t := s.find(id)
	if t == nil {
		return
	}
	t.CompletedAt, t.Iterations, t.VerificationPassed = at.UnixMilli(), iterations, v.Worked
	switch {
	case v.Worked && v.Action != "block":
		s.CompletedTasks++
		if v.Review {
			s.ReviewingTasks++
		}
	case v.Action == "fail", v.Action == "expire":
		s.FailedTasks++
	}
}

// Decided takes note of a person's decision about a task: approved, redo or
// rejected. It is false when the sprint did not ask for it.
func (s *SprintStats) Decided(id, decision string) bool {
	t := s.find(id)
	if t == nil || t.ReviewDecision != "" || !t.VerificationPassed {
		return false
	}
	t.ReviewDecision = decision
	s.ReviewingTasks = max(0, s.ReviewingTasks-1)
	return true
}

// End closes the statistics.
func (s *SprintStats) End(at time.Time) {
	ms := at.UnixMilli()
	s.EndedAt = &ms
}

func (s *SprintStats) find(id string) *TaskStat {
	for i := range s.TaskStats {
		if s.TaskStats[i].TaskID == id {
			return &s.TaskStats[i]
		}
	}
	return nil
}

// NextTimeOfDay is the next moment of a time of day; one that is past is
// tomorrow's.
func NextTimeOfDay(now time.Time, hour, minute int) time.Time {
	t := time.Date(now.Year(), now.Month(), now.Day(), hour, minute, 0, 0, now.Location())
	if !t.After(now) {
		t = time.Date(now.Year(), now.Month(), now.Day()+1, hour, minute, 0, 0, now.Location())
	}
	return t
}
