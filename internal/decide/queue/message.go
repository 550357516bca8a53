package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Subject names the entry in the message of its landing.
func (e *Entry) Subject() string {
	return e.ID + ": " + cmp.Or(strings.Join(strings.Fields(e.Title), " "), "landed by pawl")
}

// BatchMessage is for the merge which brings a batch to the target.
func BatchMessage(list []Entry, batch int64) string {
	names := lists.Each(list, func(one Entry) string { return one.ID })
	subject := strings.Join(names, ", ")
	if len(list) > 4 {
		subject = fmt.Sprintf("%s, … %s", strings.Join(names[:3], ", "), names[len(names)-1])
	}
	return fmt.Sprintf("%s: %d tasks\n\n%s", subject, len(list), Trailers(list, batch))
}

// Trailers say in the message of a landing which tasks it brings.
func Trailers(list []Entry, batch int64) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString("Pawl-Task: " + e.ID + "\n")
		if e.Run != "" {
			b.WriteString("Pawl-Run: " + e.Run + "\n")
		}
	}
	fmt.Fprintf(&b, "Pawl-Batch: %d\n", batch)
	return b.String()
}

// ForcedText explains that a branch at a remote was force-pushed and has not what it had last, and
// what a person can do.
func ForcedText(name, far, remote, there, last string) string {
	return fmt.Sprintf("%s at %s was force-pushed, or is another history: it is at %.10s now, and has not all that is "+
		"here from it (%.10s). Nothing was merged. To use its history: git switch %s && git fetch %s %s && git reset "+
		"--keep FETCH_HEAD. To use the local history: pawl queue resume, then git push --force-with-lease %s %s:%s",
		far, remote, there, last, name, remote, far, remote, name, far)
}

// UnreportedText explains that no check is under way at a forge, and some that are required were never there.
func UnreportedText(reported, left []string, after time.Duration, branch string) string {
	asked := "does its CI run for pushes to " + branch
	if names := lists.Each(reported, strconv.Quote); len(names) > 0 {
		slices.Sort(names)
		asked = "is it spelled as there? It reports " + strings.Join(slices.Compact(names), ", ")
	}
	return fmt.Sprintf("after %s the forge has not reported %s: %s", loop.Duration(after),
		strings.Join(left, ", "), asked)
}

// PathsWere is a list of at most five paths with its verb.
func PathsWere(paths []string) string {
	switch n := len(paths); {
	case n == 1:
		return paths[0] + " was"
	case n > 5:
		return fmt.Sprintf("%s and %d more were", strings.Join(paths[:5], ", "), n-5)
	}
	return strings.Join(paths, ", ") + " were"
}
