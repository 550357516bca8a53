package runners

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// nodeTest reads the summary of node:test, of its spec and its TAP reporter:
// "ℹ tests 5", "ℹ pass 3", "ℹ fail 2".
func nodeTest(t printed.Text) (Tests, bool) {
	out := Tests{Runner: "node"}
	seen := 0
	for i := max(0, t.LineCount()-400); i < t.LineCount(); i++ {
		l := t.LineAt(i)
		rest, ok := strings.CutPrefix(l, "ℹ ")
		if !ok {
			if rest, ok = strings.CutPrefix(l, "# "); !ok {
				continue
			}
		}
		word, num, _ := strings.Cut(rest, " ")
		n, end := words.Number(num, 0)
		if end == 0 || end != len(strings.TrimSpace(num)) {
			continue
		}
		switch word {
		case "pass":
			out.Passed = n
		case "fail":
			out.Failed = n
		case "skipped", "todo":
			out.Skipped += n
		case "tests":
		default:
			continue
		}
		seen++
	}
	if seen < 3 {
		return out, false
	}
	if out.Items = tapItems(t); len(out.Items) == 0 {
		out.Items = specFailures(t)
	}
	return out, true
}

// specFailures reads the part "✖ failing tests:" of node's spec reporter.
func specFailures(t printed.Text) []Item {
	var at places.Place
	found := false
	return failingTests(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(said, "✖ failing tests:"):
			found = true
		case !found:
		case strings.HasPrefix(said, "test at "):
			at, _ = places.In(said)
		case strings.HasPrefix(said, "✖ "):
			name, _, _ := strings.Cut(said[len("✖ "):], " (")
			f.beginTest(Item{Test: name, File: at.File, Line: at.Line, Column: at.Col})
		case f.b != nil:
			nodeValues(f.b, said)
			f.addTestLine(said)
		}
	})
}

// nodeValues reads the fields of an assertion error: "expected: 2,".
func nodeValues(b *Body, said string) {
	b.readField(&b.Item.Expected, said, "expected: ")
	b.readField(&b.Item.Received, said, "actual: ")
}

// readTestAnything reads the Test Anything Protocol: a plan, and "ok" and "not ok" lines.
func readTestAnything(t printed.Text) (Tests, bool) {
	out := Tests{Runner: "tap"}
	plan := false
	for i := range t.LineCount() {
		l := t.LineAt(i)
		switch {
		case strings.HasPrefix(l, "1.."):
			_, end := words.Number(l, 3)
			plan = plan || end > 3
		case strings.HasPrefix(l, "ok ") && hasDirective(l, "skip"), strings.HasPrefix(l, "not ok ") &&
			(hasDirective(l, "todo") || hasDirective(l, "skip")):
			out.Skipped++
		case strings.HasPrefix(l, "ok ") && tapNumber(l[3:]):
			out.Passed++
		case strings.HasPrefix(l, "not ok ") && tapNumber(l[7:]):
			out.Failed++
		}
	}
	if !plan && out.Failed == 0 && out.Passed < 2 {
		return out, false
	}
	out.Items = tapItems(t)
	return out, true
}

func tapNumber(s string) bool { return s != "" && (words.IsDigit(s[0]) || s[0] == '-') }

func hasDirective(l, word string) bool {
	i := strings.LastIndex(l, " # ")
	return i >= 0 && len(l) >= i+3+len(word) && strings.EqualFold(l[i+3:i+3+len(word)], word)
}

// tapItems reads the failures of TAP: the innermost "not ok" with what stands
// below it in "#" lines or in a YAML block.
func tapItems(t printed.Text) []Item {
	stack := false // the frames follow; the first one in the test's file is nearer than the test
	return failingTests(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		if strings.HasPrefix(said, "not ok ") && !hasDirective(l, "todo") && !hasDirective(l, "skip") {
			f.beginTest(Item{Test: nameOfTAPLine(said)})
			stack = false
			return
		}
		if strings.HasPrefix(said, "ok ") || strings.HasPrefix(l, "1..") || strings.HasPrefix(said, "# Subtest") ||
			strings.HasPrefix(said, "# tests ") {
			f.keepTest()
		}
		if said == "failureType: 'subtestsFailed'" { // only the sum of its subtests
			f.b = nil
		}
		if f.b == nil || tapField().MatchString(said) {
			return
		}
		said = strings.TrimSpace(strings.TrimPrefix(said, "#"))
		deep := l[:words.Indent(l)]
		nodeValues(f.b, said)
		if v, ok := strings.CutPrefix(said, "location: '"); ok {
			if p, ok := places.In(v); ok {
				f.b.setAt(p)
			}
			return
		}
		stack = stack || said == "stack: |-"
		if p, ok := places.In(said); ok && stack && p.File == f.b.Item.File {
			f.b.setAt(p)
			stack = false
		}
		f.addTestLine(deep + said)
	})
}

// tapField matches the useless fields of a test's YAML block.
var tapField = lazy.Regexp(`^(?:---$|\.\.\.$|failureType:|duration_ms:|type:|operator:|error: [|>]-?$)`)

func nameOfTAPLine(said string) string {
	s := strings.TrimPrefix(said, "not ok ")
	_, i := words.Number(s, 0)
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s[i:]), "- "))
}
