package hook

import "github.com/pawl-dev/pawl/internal/queue"

// OfNote makes an event of a note of the merge queue; ok is false for a note that
// is no event.
func OfNote(n queue.Note, target string) (e Event, ok bool) {
	e = Event{Case: n.ID, Target: target, Why: n.Text}
	if n.ID == "" {
		e.Subject = "the merge queue of " + target
	}
	switch n.Kind {
	case queue.NoteLanded:
		e.Name, e.Status, e.Commit, e.Why = PostMerge, "done", n.Commit, ""
	case queue.NoteConflict:
		e.Name, e.Conflict = Conflict, &Clash{Level: string(n.Class), Files: n.Paths}
	case queue.NoteEscalated:
		e.Name, e.Status = Escalation, "blocked"
		e.Question = &Question{Text: n.Text, Answer: "pawl queue retry " + n.ID + ", or pawl queue drop " + n.ID}
	case queue.NoteStopped:
		e.Name, e.Status = Escalation, "paused"
		e.Question = &Question{Text: n.Text, Answer: "pawl queue resume"}
	default:
		return e, false
	}
	return e, true
}

// BeforeLanding is the event of an entry that is about to land.
func BeforeLanding(e queue.Entry, target, commit string) Event {
	return Event{Name: PreMerge, Case: e.ID, Title: e.Title, Run: e.Run, Target: target, Commit: commit}
}
