package runners

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// nameForm is the name of a test as one word, with its class or the names around it.
const nameForm = `[^\s:][^\s]*[^\s:,]?(?: \([\w.]+\)| [>›] \S.*?)?`

var (
	// markedName is a test behind the mark of a failure: "FAIL: name", "✗ name", "[-] name", "  1) name".
	markedName = lazy.Regexp(`^(?:\d+s )?[^\w(\[✗✘×✖❌●-]{0,8}` +
		`(?:(?:FAIL(?:ED|URE)?:?|\[ *FAILED *\]|ERROR:|not ok \d+(?: -)?|Failed(?: tests?:)?|--- FAIL:|----)` +
		`\s+(` + nameForm +
		`)|(?:[✗✘×✖❌●]|\[-\]|\d+\))\s+(\pL.{0,150}?))` +
		`(?:  .*| stdout ----| [\[(]?<?\s*\d+(?:\.\d+)? ?m?s[\])]?| - .*|: .*)?:?$`)
	// nameMarked is a test before the mark: "name ... FAILED", "name [FAIL]", "3 - name (Failed)".
	nameMarked = lazy.Regexp(`^\s*(?:\[[^\]]*\] +|Test: |\d+ - )*(` + nameForm +
		`)(?: ?\.{2,} ?|\s+)[\[(]?(?:FAILED|FAIL|Failed)[\])]?(?: in .*)?$`)
)

// Named returns the failing tests that stand beside the mark of a failure, whatever runner prints it.
func Named(t printed.Text) []Item {
	items, seen := []Item(nil), map[string]bool{}
	for i := range t.LineCount() {
		l := t.LineAt(i)
		name := ""
		if m := markedName().FindStringSubmatch(l); m != nil {
			name = m[1] + m[2]
		} else if m := nameMarked().FindStringSubmatch(l); m != nil {
			name = m[1]
		}
		if name = strings.TrimSpace(name); name != "" && !seen[name] && len(items) < MaxItems {
			seen[name] = true
			items = append(items, Item{Test: name})
		}
	}
	return items
}
