package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// jest reads "Tests:       3 failed, 10 passed, 13 total".
func jest(t text) (Tests, bool) {
	out := Tests{Runner: "jest"}
	ok := lastWith(t, "Tests:  ", func(l string) bool {
		total := strings.HasSuffix(strings.TrimSpace(l), " total")
		if total {
			out.add(l, counts{passed: " passed", failed: " failed", skipped: " skipped| todo"})
		}
		return total
	})
	if !ok {
		return out, strings.Contains(t.s, "No tests found, exiting") && strings.Contains(t.s, "testMatch")
	}
	out.Items = bulleted(t)
	return out, true
}

// bulleted reads jest's failures: "  ● suite › test" and the lines below. At
// the end jest prints those of all files again.
func bulleted(t text) []Item {
	file := ""
	seen := map[string]bool{}
	return failures(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		if rest, ok := strings.CutPrefix(said, "● "); ok && strings.HasPrefix(l, "  ●") {
			f.end()
			if !seen[rest] {
				f.begin(Item{Test: rest, File: file})
			}
			seen[rest] = true
			return
		}
		if rest, ok := strings.CutPrefix(strings.TrimPrefix(l, " "), "FAIL "); ok {
			f.end()
			file = strings.TrimPrefix(strings.Fields(rest + " ?")[0], "./")
			return
		}
		if strings.HasPrefix(l, "PASS ") || strings.HasPrefix(l, "Test Suites:") || strings.HasPrefix(l, "Tests:  ") ||
			strings.HasPrefix(l, "Summary of all failing") {
			f.end()
		}
		if f.b != nil && f.b.item.Line == 0 && strings.HasPrefix(said, "at ") {
			f.b.standOwn(said)
		}
		f.add(l)
	})
}

// vitest reads "      Tests  1 failed | 3 passed (4)".
func vitest(t text) (Tests, bool) {
	out := Tests{Runner: "vitest"}
	ok := lastWith(t, "  Tests  ", func(l string) bool {
		out.add(l, counts{passed: " passed", failed: " failed", skipped: " skipped| todo"})
		return out.Passed+out.Failed+out.Skipped > 0 || strings.Contains(l, "no tests")
	})
	if !ok && !strings.Contains(t.s, "No test files found") {
		return out, false
	}
	out.Items = failures(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(said, "FAIL  "):
			f.begin(vitestTest(said[len("FAIL  "):]))
		case f.b == nil:
		case strings.HasPrefix(said, "⎯⎯"), strings.HasPrefix(said, "Test Files "):
			f.end()
		case strings.HasPrefix(said, "❯ "):
			if f.b.item.Line == 0 {
				f.b.standOwn(said)
			}
		default:
			f.add(l)
		}
	})
	out.Items = slices.DeleteFunc(out.Items, func(i Item) bool { return i.Message == "" })
	return out, true
}

func vitestTest(name string) Item {
	file, test, ok := strings.Cut(name, " > ")
	file = strings.TrimSpace(file)
	if i := strings.Index(file, " ["); i > 0 {
		file = file[:i]
	}
	if !ok {
		test = file
	}
	return Item{File: file, Test: test}
}

// mocha reads "  3 passing (12ms)", "  1 failing" and the numbered failures.
func mocha(t text) (Tests, bool) {
	out := Tests{Runner: "mocha"}
	from := -1
	for i := t.len() - 1; i >= 0 && from < 0; i-- {
		if strings.Contains(t.line(i), " passing (") {
			from = i
		}
	}
	if from < 0 {
		return out, false
	}
	out.Passed = count(t.line(from), " passing")
	for i := from; i < t.len() && i < from+5; i++ {
		out.Failed += count(t.line(i), " failing")
		out.Skipped += count(t.line(i), " pending")
	}
	out.Items = blocks(t, from, func(l string) bool { return strings.HasPrefix(l, "npm ERR") })
	return out, true
}

// playwright reads "  1) [chromium] › pay.spec.ts:9:5 › cart › pays ────", its
// lines, and the counts at the end: "  1 failed", "  3 passed (4.2s)".
func playwright(t text) (Tests, bool) {
	out := Tests{Runner: "playwright"}
	seen := false
	out.Items = failures(t, func(f *failing, l string) {
		if name, ok := numbered(l); ok && strings.Contains(name, " › ") {
			f.end()
			if at, ok := placeIn(name); ok {
				name = strings.TrimRight(strings.TrimPrefix(at.rest, " › "), " ─")
				f.begin(Item{Test: name, File: at.file, Line: at.line, Column: at.col})
			}
			return
		}
		if !playwrightCount().MatchString(l) {
			f.add(l)
			return
		}
		f.end()
		seen = true
		out.add(l, counts{passed: " passed| flaky", failed: " failed", skipped: " skipped| did not run| interrupted"})
	})
	return out, seen
}

var playwrightCount = lazy.Regexp(`^  \d+ (?:(?:failed|skipped|flaky|did not run|interrupted)|passed \(.*\))$`)

// nodeTest reads the summary of node:test, of its spec and its TAP reporter:
// "ℹ tests 5", "ℹ pass 3", "ℹ fail 2".
func nodeTest(t text) (Tests, bool) {
	out := Tests{Runner: "node"}
	seen := 0
	for i := max(0, t.len()-400); i < t.len(); i++ {
		l := t.line(i)
		rest, ok := strings.CutPrefix(l, "ℹ ")
		if !ok {
			if rest, ok = strings.CutPrefix(l, "# "); !ok {
				continue
			}
		}
		word, num, _ := strings.Cut(rest, " ")
		n, end := number(num, 0)
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
		out.Items = crossed(t)
	}
	return out, true
}

// crossed reads the part "✖ failing tests:" of node's spec reporter.
func crossed(t text) []Item {
	var at place
	found := false
	return failures(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		switch {
		case strings.HasPrefix(said, "✖ failing tests:"):
			found = true
		case !found:
		case strings.HasPrefix(said, "test at "):
			at, _ = placeIn(said)
		case strings.HasPrefix(said, "✖ "):
			name, _, _ := strings.Cut(said[len("✖ "):], " (")
			f.begin(Item{Test: name, File: at.file, Line: at.line, Column: at.col})
		case f.b != nil:
			nodeValues(f.b, said)
			f.add(said)
		}
	})
}

// nodeValues reads the fields of an assertion error: "expected: 2,".
func nodeValues(b *body, said string) {
	b.field(&b.item.Expected, said, "expected: ")
	b.field(&b.item.Received, said, "actual: ")
}

// field takes a value from its field; a difference had only a part of it.
func (b *body) field(value *string, said, name string) {
	v, ok := strings.CutPrefix(said, name)
	whole := ok && v != "{" && v != "["
	open := *value == "" || b.differ
	if whole && open {
		*value = strings.TrimSuffix(v, ",")
	}
}

// tap reads the Test Anything Protocol: a plan, and "ok" and "not ok" lines.
func tap(t text) (Tests, bool) {
	out := Tests{Runner: "tap"}
	plan := false
	for i := range t.len() {
		l := t.line(i)
		switch {
		case strings.HasPrefix(l, "1.."):
			_, end := number(l, 3)
			plan = plan || end > 3
		case strings.HasPrefix(l, "ok ") && directive(l, "skip"), strings.HasPrefix(l, "not ok ") &&
			(directive(l, "todo") || directive(l, "skip")):
			out.Skipped++
		case strings.HasPrefix(l, "ok ") && tapNumber(l[3:]):
			out.Passed++
		case strings.HasPrefix(l, "not ok ") && tapNumber(l[7:]):
			out.Failed++
		}
	}
	if !plan && out.Passed+out.Failed < 2 {
		return out, false
	}
	out.Items = tapItems(t)
	return out, true
}

func tapNumber(s string) bool { return s != "" && (isDigit(s[0]) || s[0] == '-') }

func directive(l, word string) bool {
	i := strings.LastIndex(l, " # ")
	return i >= 0 && len(l) >= i+3+len(word) && strings.EqualFold(l[i+3:i+3+len(word)], word)
}

// tapItems reads the failures of TAP: the innermost "not ok" with what stands
// below it in "#" lines or in a YAML block.
func tapItems(t text) []Item {
	stack := false // the frames follow; the first one in the test's file is nearer than the test
	return failures(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		if strings.HasPrefix(said, "not ok ") && !directive(l, "todo") && !directive(l, "skip") {
			f.begin(Item{Test: tapName(said)})
			stack = false
			return
		}
		if strings.HasPrefix(said, "ok ") || strings.HasPrefix(l, "1..") || strings.HasPrefix(said, "# Subtest") ||
			strings.HasPrefix(said, "# tests ") {
			f.end()
		}
		if said == "failureType: 'subtestsFailed'" { // only the sum of its subtests
			f.b = nil
		}
		if f.b == nil || tapField().MatchString(said) {
			return
		}
		said = strings.TrimSpace(strings.TrimPrefix(said, "#"))
		nodeValues(f.b, said)
		if v, ok := strings.CutPrefix(said, "location: '"); ok {
			if p, ok := placeIn(v); ok {
				f.b.stand(p)
			}
			return
		}
		stack = stack || said == "stack: |-"
		if p, ok := placeIn(said); ok && stack && p.file == f.b.item.File {
			f.b.stand(p)
			stack = false
		}
		f.add(said)
	})
}

// tapField is what a YAML block says about a test that is of no use.
var tapField = lazy.Regexp(`^(?:---$|\.\.\.$|failureType:|duration_ms:|type:|error: [|>]-?$)`)

func tapName(said string) string {
	s := strings.TrimPrefix(said, "not ok ")
	_, i := number(s, 0)
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s[i:]), "- "))
}
