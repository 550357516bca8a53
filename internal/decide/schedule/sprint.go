package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
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
	FailedTasks    int `json:"failedTasks"`    // time-outs, and what a guard stopped, included
	ReviewingTasks int `json:"reviewingTasks"` // of the completed ones, those that wait for a person's review

	TaskStats []TaskStat     `json:"taskStats"`
	Settings  SprintSettings `json:"settings"`
}

// SprintTarget is when a sprint starts nothing new any more.
type SprintTarget struct {
	Type string `json:"type"` // count, duration, until_time, plan or no_ready
	// Value is a number of tasks, of hours, a time of day, or per cent.
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
	if s.findTask(id) != nil {
		return
	}
	s.TotalTasks++
	s.TaskStats = append(s.TaskStats, TaskStat{TaskID: id, StartedAt: at.UnixMilli()})
}

// RecordSettlement records the decision about a task.
func (s *SprintStats) RecordSettlement(id string, v Settlement, iterations int, at time.Time) {
	t := s.findTask(id)
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
	case v.endsBadly():
		s.FailedTasks++
	}
}

// Decided takes note of a person's decision about a task: approved, redo or
// rejected. It is false when the sprint did not ask for it.
func (s *SprintStats) Decided(id, decision string) bool {
	t := s.findTask(id)
	if t == nil || t.ReviewDecision != "" || !t.VerificationPassed {
		return false
	}
	t.ReviewDecision = decision
	s.ReviewingTasks = max(0, s.ReviewingTasks-1)
	return true
}

// End closes the statistics.
func (s *SprintStats) End(at time.Time) {
	s.EndedAt = new(at.UnixMilli())
}

func (s *SprintStats) findTask(id string) *TaskStat {
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

// Health is what is known of the target by itself.
type Health string

// The healths. The target is not verified while the queue stands still for another
// reason than a red one: tasks start on it as on a green one.
const (
	Unknown  Health = ""
	Green    Health = "green"
	Red      Health = "red"
	Diverged Health = "diverged" // from its remote, or it is gone: nothing lands until that is repaired
	Broken   Health = "broken"   // pawl cannot work with it: nothing starts, and waiting does not help
)

// Target is the branch that tasks start from and land on.
type Target struct {
	Health Health `json:"health,omitempty"`
	Why    string `json:"why,omitempty"` // of a red one: the commit, whose it is, and the gate
}

// Stuck is true while nothing lands on the target before that is repaired.
func (t Target) Stuck() bool { return slices.Contains([]Health{Red, Diverged, Broken}, t.Health) }

// verifyAgain is after how long a verdict that did not come is asked for again.
const verifyAgain = time.Minute

// noteCounts takes in what the board and the queue hold.
func (s *State) noteCounts(e *Event) {
	s.Counts, s.Stale = e.Counts, false
	switch t := s.Counts.Target; {
	case !t.Stuck():
		s.RedSince = time.Time{}
	case s.RedSince.IsZero():
		s.RedSince = s.At
	}
	if s.Counts.Target.Health != Unknown {
		s.VerifyAt = time.Time{}
	}
}

// allowsRepairsOnly is true while only repairs may start.
func (s *State) allowsRepairsOnly() bool {
	h := s.Counts.Target.Health
	if h == Broken {
		return true
	}
	return s.Settings.WaitGreen && h != Green && h != Diverged
}

// reasonTargetAwaited gives the words for why ready tasks do not start; "" when it is not for the target.
func (s *State) reasonTargetAwaited() string {
	switch {
	case !s.allowsRepairsOnly(), s.Counts.Ready == 0, s.reasonTargetReached() != "":
		return ""
	case s.Counts.Target.Health == Unknown:
		return "the target is verified before tasks start on it"
	case s.Counts.Target.Health == Broken:
		return s.Counts.Target.Why
	}
	return s.Counts.Target.Why + "; until then only its repair starts (pawl case add TITLE --tag " + board.RepairTag +
		"), or all with autopilot.on_red_target: work"
}

// verifyTarget asks for the verdict on the target that ready tasks wait for, or that
// those in the slots began from.
func (s *State) verifyTarget() (Command, bool) {
	due := s.VerifyAt.IsZero() || !s.VerifyAt.Add(verifyAgain).After(s.At)
	wanted := s.startsWhenVerified() || len(s.Slots) > 0
	if !s.Settings.Verify || s.Phase != Running || !due || !wanted || s.Counts.Target.Health != Unknown {
		return Command{}, false
	}
	s.VerifyAt = s.At
	return Command{Kind: Verify, Why: "is the target green, before tasks start on it"}, true
}

// awaitsTarget is true while ready tasks or verified work go on by themselves
// once the target is repaired, and that is not waited for too long yet.
func (s *State) awaitsTarget() bool {
	if !s.Counts.Target.Stuck() {
		return s.startsWhenVerified()
	}
	if s.Counts.Target.Health == Broken {
		return false
	}
	waiting := s.startsWhenVerified() || s.Counts.QueueHeld != ""
	if s.Settings.GreenFirst && s.Tally.Started == 0 && s.Counts.Queued == 0 {
		return false
	}
	return waiting && s.At.Before(s.RedSince.Add(s.Settings.TargetLimit))
}

// startsWhenVerified is true while ready tasks start by themselves once the target lets them.
func (s *State) startsWhenVerified() bool { return s.reasonTargetAwaited() != "" && s.Mode == Auto }

// targetTime is the next time to act on the target; zero for never.
func (s *State) targetTime() time.Time {
	switch {
	case !s.VerifyAt.IsZero():
		return s.VerifyAt.Add(verifyAgain)
	case !s.RedSince.IsZero():
		return s.RedSince.Add(s.Settings.TargetLimit)
	}
	return time.Time{}
}

// targetWait explains for what and how long the target is waited for; "" it is not.
func (s *State) targetWait() string {
	if !s.Counts.Target.Stuck() || !s.awaitsTarget() {
		return ""
	}
	why := s.Counts.Target.Why
	if s.reasonTargetAwaited() != "" {
		why = s.reasonTargetAwaited()
	}
	if s.Settings.Keep {
		return why
	}
	return fmt.Sprintf("%s (pawl waits up to %s)", why, loop.Duration(s.Settings.TargetLimit))
}
