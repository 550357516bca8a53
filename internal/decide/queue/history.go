package queue

import "github.com/pawl-dev/pawl/internal/decide/lists"

// RevertedLanding is a landing that was taken back by a commit.
type RevertedLanding struct {
	Landing
	Revert string
}

// Reverted lists the landings that were taken back from a target, of all of them. Both lists have the last first.
func Reverted(list []Landing) (all []RevertedLanding) {
	reverts := map[string]string{} // by task, until the landing before it is seen
	for _, l := range list {
		switch revert := reverts[l.Task]; {
		case l.Revert:
			reverts[l.Task] = l.Commit
		case revert != "" && !l.Empty:
			all = append(all, RevertedLanding{l, revert})
			delete(reverts, l.Task)
		}
	}
	return all
}

// TasksLanded are the tasks of some landings of a list.
func TasksLanded(list []Landing, is func(Landing) bool) []string {
	return lists.Pick(list, func(l Landing) (string, bool) { return l.Task, !l.Empty && is(l) })
}

// IsInside returns a function that is asked about the commits of a target in turn, the last first: whether one lies
// in the midst of a landing, where a forge put several commits on the target.
func IsInside(list []Landing) func(commit string) bool {
	starts := lists.ToMap(list, func(l Landing) (string, string) { return l.Commit, l.Since })
	start := ""
	return func(commit string) bool {
		if start != "" && commit != start {
			return true
		}
		start = starts[commit]
		return false
	}
}
