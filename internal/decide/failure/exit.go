package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// ExitStatus reads from the end of a CI system's or a build tool's log which
// exit status it reports for the command that failed; false when it does not.
func ExitStatus(output string) (int, bool) {
	t := newText(output)
	for i, seen := t.len()-1, 0; i >= 0 && seen < 12; i-- {
		l := strings.TrimSpace(t.line(i))
		if l == "" {
			continue
		}
		seen++
		if n, ok := exitIn(l); ok {
			return n, true
		}
	}
	return 0, false
}

func exitIn(l string) (int, bool) {
	small := words.Small(l)
	for _, w := range []string{
		"process completed with exit code ", "job failed: exit code ",
		"did not complete successfully: exit code: ", "exited with code ", "exited with status ",

		"exit status ", "exit code: ", "exit code ", "exited with ", "returned exit code ", "non-zero exit status ",
		"] error ",
	} {
		i := strings.Index(small, w)
		if i < 0 {
			continue
		}
		if n, end := words.Number(l, i+len(w)); end > i+len(w) && n > 0 && n < 256 {
			return n, true
		}
	}
	return 0, false
}
