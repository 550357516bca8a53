package failure

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Bounds of what a report holds.
const (
	maxSummary = 280
	maxNotes   = 8
	maxKey     = 60 // lines that go into the fingerprint
)

func makeAnalysis(e Evidence, h *hits, v verdict) Analysis {
	t := h.t
	a := Analysis{Class: v.class}
	if e.Source != "agent" {
		a.Step = e.Name
	}
	a.Provider = e.Source == "agent" && v.flags&provider != 0 && isProviderFault(v.class) && !e.TimedOut
	if a.Provider || v.class == QuotaExhausted {
		a.WaitUntil = waitUntilOf(e, t, v)
	}
	about := subjectOfVerdict(t, v)
	v.flags |= ownerOfMissing(e, h, v, about)
	a.Kind, a.Transient = kindOfFailure(e, v.class, v.flags, !a.WaitUntil.IsZero())
	a.Severity = severityOf(v.class, a.Kind)
	a.Actions = actionsFor(v, a.Kind, e.Source, about, t)
	o := outlineOf(h, e.Green)
	v.line = o.decisiveLine(v)
	var tests Tests
	a.Items, tests = findActionableItems(h, o, v)
	if v.typed == nil && v.class != Tampering && v.class != LimitExceeded {
		isEnding := e.CutOff && len(a.Items) == 0 // what it wrote last is said with that
		if !isEnding && !o.isCertain(v, a.Items) {
			a.Items, v.line = o.leadItems(a.Items, v.line)
		}
		a.Items = o.addGeneral(a.Items, v)
	}
	if a.Severity == Low && slices.ContainsFunc(a.Items, Item.IsCompilerError) {
		a.Severity = Medium
	}
	a.Summary = summaryOf(e, t, v, a, tests)
	if key := fingerprintLines(a, o, v.line); t.Short && v.class == Unknown && slices.Max(o.parts) < hinting {
		a.Fingerprint = Fingerprint(a, e.Output) // no cause was found: the same only when nothing differs
	} else {
		a.Fingerprint = Fingerprint(a, key...)
	}
	return a
}

// subjectOfVerdict reads the subject from the line that decided; "" if none did.
func subjectOfVerdict(t printed.Text, v verdict) string {
	if v.line < 0 {
		return ""
	}
	return subjectOf(v.class, t.LineAt(v.line))
}

// findActionableItems finds items that an agent can act on: failing tests, a compiler's or a linter's problems,
// else the most informative lines.
func findActionableItems(h *hits, o *outline, v verdict) ([]Item, Tests) {
	t := h.t
	var items []Item
	var tests Tests
	switch v.class {
	case TestFailure:
		tests, _ = runners.Read(t)
		tests.Items = o.explainLoads(tests.Items)
		items = tests.Items
	case CompileError, Lint:
		items = parseProblems(t)
	case Timeout, Dependency, Crash:
		if h.lastHitSince(func(r *rule) bool { return r.Class == TestFailure }, 0) != nil {
			parsed, _ := runners.Read(t)
			items = o.explainLoads(parsed.Items)
		}
	case Tampering, LimitExceeded:
		return nil, tests
	default:
	}
	switch v.class {
	case TestFailure, CompileError, Lint:
		if pasted := runners.ReadExcerpt(t); !sayEnough(items) && v.class == TestFailure && sayEnough(pasted) {
			items = pasted
		}
		if !sayEnough(items) {
			items = append(items, noteItems(h, o, v)...)
		}
	default:
		items = append(noteItems(h, o, v), items...)
	}
	return boundItems(items), tests
}

// sayEnough reports whether each item has a message and at least one has a place.
func sayEnough(items []Item) bool {
	placed := false
	for _, i := range items {
		if i.Message == "" {
			return false
		}
		placed = placed || i.File != "" || i.Line > 0
	}
	return placed
}

// boundItems bounds items and drops those that repeat another, in their place.
func boundItems(items []Item) []Item {
	out := items[:0]
	for n, i := range items {
		if at := slices.IndexFunc(items[n:], func(o Item) bool { // what says the same and where
			return i.Line == 0 && i.Test == "" && i.Message != "" && o.Line > 0 &&
				strings.HasPrefix(o.Message, i.Message)
		}); at > 0 {
			i = items[n+at]
		}
		i.File = words.Cut(i.File, 300)
		i.Test = printed.Shorten(i.Test, 300)
		i.Message = printed.Shorten(i.Message, runners.MaxMessage)
		i.Expected = printed.Shorten(i.Expected, 300)
		i.Received = printed.Shorten(i.Received, 300)
		if i == (Item{}) || slices.Contains(out, i) {
			continue
		}
		if out = append(out, i); len(out) == runners.MaxItems {
			break
		}
	}
	return out
}

// noteItems makes items of the lines that made the verdict, the place in the project that a stack
// trace leads to, and the end of the output.
func noteItems(h *hits, o *outline, v verdict) []Item {
	t := h.t
	var lines []int
	add := func(i int) {
		if i < 0 || i >= t.LineCount() || len(lines) >= maxNotes || strings.TrimSpace(t.LineAt(i)) == "" {
			return
		}
		said := strings.TrimSpace(t.LineAt(i))
		for _, j := range lines {
			if strings.TrimSpace(t.LineAt(j)) == said {
				return
			}
		}
		lines = append(lines, i)
	}
	add(v.line)
	for _, one := range slices.Backward(h.all) {
		if !traceHead().MatchString(o.textAt(one.line)) && len(lines) < maxNotes &&
			one.rule.Class == v.class && one.rule.Weight >= v.weight-15 && h.ruleHoldsAt(one) {
			add(one.line)
		}
	}
	telling := o.errorLines(6)
	items := make([]Item, 0, len(lines)+1+len(telling))
	for _, i := range lines {
		it := o.noteItem(i)
		items = append(items, it)
		for p, ok := places.In(o.t.LineAt(i)); ok && it.Line > 0; p, ok = places.In(p.Rest) { // a line may name several
			if p.Line > 0 && p.File != it.File && !places.IsForeign(p.File) {
				items = append(items, Item{File: p.File, Line: p.Line, Column: p.Col, Message: it.Message})
			}
		}
	}
	if p, said := projectFrame(t); said != "" && !places.IsForeign(p.File) {
		if at, itself := places.In(o.textAt(max(0, v.line))); len(lines) > 0 && (!itself || places.IsForeign(at.File)) {
			setThrownAt(&items[0], p, v.class)
		}
		items = append(items, Item{File: p.File, Line: p.Line, Column: p.Col, Message: strings.TrimSpace(said)})
	}
	for _, i := range telling {
		it := o.noteItem(i)
		it.Message = strings.TrimSpace(t.LineAt(i))
		items = append(items, it)
	}
	return distinctItems(items)
}

// setThrownAt takes the innermost call of the project as the place of an exception.
func setThrownAt(i *Item, p places.Place, c Class) {
	if c == Crash || exception().MatchString(i.Message) {
		i.File, i.Line, i.Column = p.File, p.Line, p.Col
	}
}

// traceHead stands above the calls of a trace.
var traceHead = lazy.Regexp(`^(?:Traceback |goroutine \d|The above exception was|During handling of the above` +
	`|stack traceback|Stack trace|Backtrace)`)

// pytestMark is what pytest puts before the lines of an error.
var pytestMark = lazy.Regexp(`^E {3,}`)

// noteItem makes an item of line i and of the lines that continue it.
func (o *outline) noteItem(i int) Item {
	t := o.t
	l := strings.TrimSpace(pytestMark().ReplaceAllString(t.LineAt(i), ""))
	it := Item{Message: l}
	if p, ok := places.In(l); ok && !places.IsForeign(p.File) {
		it.File, it.Line, it.Column = p.File, p.Line, p.Col
	}
	if from := importingFile(l); places.IsFile(from) {
		it.File = from
	}
	it.InProject()
	if want, got := places.Values(l); want != "" && got != "" {
		it.Expected, it.Received = want, got
	}
	for j := i + 1; j < t.LineCount() && j < i+4 && len(it.Message) < 300; j++ {
		next := t.LineAt(j)
		if !strings.HasPrefix(next, "  ") && !strings.HasPrefix(next, "\t") ||
			strings.HasPrefix(strings.TrimSpace(next), "at ") || strings.Trim(next, " \t{}[],") == "" {
			break
		}
		it.Message += "\n" + strings.TrimSpace(next)
	}
	if o.parts[i] != result {
		o.completeItem(&it, i)
	}
	return it
}

// aroundMax bounds how far from a line its place and its values are looked for.
const aroundMax = 12

// completeItem adds the place and the values that stand around line i.
func (o *outline) completeItem(it *Item, i int) {
	b := runners.Body{Item: *it, Silent: true}
	b.ReadLine(o.t.LineAt(i))
	for j := i + 1; j < o.t.LineCount() && j <= i+aroundMax && !o.beginsOther(i, j); j++ {
		b.ReadLine(o.t.LineAt(j))
	}
	o.valuesAround(&b, i)
	if it.File == "" && !places.IsForeign(b.Item.File) {
		it.File, it.Line, it.Column = b.Item.File, b.Item.Line, b.Item.Column
	}
	if b.Item.Expected != "" && b.Item.Received != "" && b.Item.Expected != b.Item.Received {
		it.Expected, it.Received = b.Item.Expected, b.Item.Received
	}
	if p, ok := o.scatteredPlace(i); ok && it.Line == 0 {
		it.File, it.Line, it.Column = p.File, p.Line, p.Col
	}
	for j := i - 1; it.File == "" && j >= max(0, i-3) && o.parts[j] < erring; j-- {
		if p, ok := places.In(o.t.LineAt(j)); ok && !places.IsForeign(p.File) &&
			!runners.RunnerLine().MatchString(o.t.LineAt(j)) {
			it.File, it.Line, it.Column = p.File, p.Line, p.Col
		}
	}
	for _, j := range []int{i, i - 1, i + 1} {
		if it.File != "" || j < 0 || j >= o.t.LineCount() {
			break
		}
		l, said := o.t.LineAt(j), o.textAt(j)
		about := j <= i || places.IsFile(said) || strings.Contains(it.Message, said)
		if about && !passed().MatchString(l) {
			it.File = places.FileIn(l)
		}
	}
	for j := i - 2; it.File == "" && j >= max(0, i-aroundMax); j-- { // the file above the list that line i is in
		said := strings.TrimRight(strings.ReplaceAll(o.textAt(j), `"`, ""), ",")
		if file := places.Heading(said); !places.IsForeign(file) && !strings.Contains(file, " ") {
			it.File = places.Tidy(file)
		}
	}
}

// passed is a line about a test that passed.
var passed = lazy.Regexp(`\bPASS(?:ED)?\b|^\s*(?:ok|✓|✔|√)\b| \.\.\. ok$`)

// valuesAround looks for values in the columns of a table, and above line i.
func (o *outline) valuesAround(b *runners.Body, i int) {
	lacks := func() bool { return b.Item.Expected == "" || b.Item.Received == "" }
	if lacks() {
		b.Item.Expected, b.Item.Received = o.comparedValues(i)
	}
	for j := max(0, i-3); j < i && lacks(); j++ {
		if said := strings.TrimLeft(o.textAt(j), "#|;│ "); places.ValueLine().MatchString(said) {
			b.ReadExpectation(said, 0)
		}
	}
}

// beginsOther reports whether line j begins another subject than that of line i.
func (o *outline) beginsOther(i, j int) bool {
	l := o.t.LineAt(j)
	if pytestMark().MatchString(l) && pytestMark().MatchString(o.t.LineAt(i)) {
		return false
	}
	if o.parts[j] < hinting || words.Indent(l) > words.Indent(o.t.LineAt(i)) {
		return false
	}
	want, got := places.Values(strings.TrimSpace(l))
	return want+got == "" && !places.ValueLine().MatchString(strings.TrimSpace(l))
}

// distinctItems drops items whose message an earlier one contains, in their place.
func distinctItems(items []Item) []Item {
	out := items[:0]
next:
	for _, i := range items {
		for n := range out {
			if i.Message != "" && strings.Contains(out[n].Message, i.Message) &&
				(i.File == "" || i.File == out[n].File && i.Line == out[n].Line) {
				continue next
			}
		}
		out = append(out, i)
	}
	return out
}

// summaryOf says it in one line.
func summaryOf(e Evidence, t printed.Text, v verdict, a Analysis, tests Tests) string {
	said := ""
	switch {
	case v.typed != nil && v.typed.Message != "":
		said = v.typed.Message
	case v.typed != nil:
		said = v.typed.Type
		if v.typed.Status != 0 {
			said = strings.TrimSpace("HTTP " + strconv.Itoa(v.typed.Status) + " " + said)
		}
	case tests.Failed > 0:
		said = failedTests(tests) + testNames(tests.Items)
		if len(a.Items) > 0 {
			if first, _, _ := strings.Cut(a.Items[0].Message, "\n"); first != "" {
				said += ": " + first
			}
		}
	case e.TimedOut && v.class == Timeout:
		said = "ended at its time limit"
	case e.CutOff && v.weight == onlyCutOff:
		said = describeEnding(e)
	case len(a.Items) > 0:
		first := a.Items[0]
		said = first.Message
		if v.line >= 0 && strings.HasSuffix(said, "…") { // the line is longer, and may end in its cause
			said = t.LineAt(v.line)
		}
		problem := v.class == CompileError || v.class == Lint
		switch {
		case first.Test != "":
			said, _, _ = strings.Cut(said, "\n")
			said = first.Test + ": " + said
		case problem && first.Line > 0 && !strings.Contains(said, first.File):
			said = first.File + ":" + strconv.Itoa(first.Line) + ": " + said
		}
	case v.line >= 0:
		said = t.LineAt(v.line)
	}
	// else its first line fills it
	chain := strings.Count(said, ": ") >= 3 && strings.IndexByte(said, '\n') < maxSummary*3/4
	said = strings.Join(strings.Fields(said), " ")
	if said == "" {
		said = describeEnding(e)
	}
	if len(said) > maxSummary {
		said = recorded().ReplaceAllString(said, "$1$2$3")
	}
	if v.class == Unknown {
		status := ""
		if e.ExitCode > 1 && !strings.HasPrefix(said, "exit status") {
			status = " (exit status " + strconv.Itoa(e.ExitCode) + ")"
		}
		return printed.Shorten(said, maxSummary-len(status)) + status
	}
	what := strings.ReplaceAll(string(v.class), "_", " ")
	if chain && len(said) > maxSummary { // of a chain of errors the last is the cause
		start := printed.Shorten(said, maxSummary/3)
		said = start + strings.ToValidUTF8(said[len(said)-(maxSummary-len(what)-len(start)-2):], "")
	}
	return printed.Shorten(what+": "+said, maxSummary)
}

// recorded is a record that follows an error, and what it says: a result of Ansible, the body of an answer.
var recorded = lazy.Regexp(`^(.*?(?: => | - |: ))\{.*(?:"(?:stderr|msg|message|detail)": ?"((?:[^"\\]|\\.)+)` +
	`|'(?:msg|message|detail)': ?'((?:[^'\\]|\\.)+)).*$`)

// failedTests counts them, out of all where the runner says how many passed.
func failedTests(t Tests) string {
	switch {
	case t.Passed > 0:
		return strconv.Itoa(t.Failed) + " of " + strconv.Itoa(t.Passed+t.Failed) + " tests failed"
	case t.Failed == 1:
		return "1 test failed"
	}
	return strconv.Itoa(t.Failed) + " tests failed"
}

// testNames lists the first failing tests in brackets.
func testNames(items []Item) string {
	var n []string
	for _, i := range items {
		if i.Test != "" && len(n) < 3 {
			n = append(n, i.Test)
		}
	}
	if len(n) == 0 {
		return ""
	}
	return " (" + strings.Join(n, ", ") + ")"
}

// maxLastLines bounds [LastLines], in bytes.
const maxLastLines = 1000

// LastLines are the last lines of an output that say anything, without what colours them.
func LastLines(output string, most int) string {
	var lines []string
	for _, line := range slices.Backward(strings.Split(printed.Read(printed.Bound(output)).Text, "\n")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
		if len(lines) == most {
			break
		}
	}
	slices.Reverse(lines)
	return printed.Shorten(strings.Join(lines, "\n"), maxLastLines)
}

func describeEnding(e Evidence) string {
	switch {
	case e.Signal != "":
		return "ended by signal " + e.Signal
	case e.CutOff && e.ExitCode == 0 && !e.TimedOut:
		return "it exited 0, but its output has no readable end: is `output` right for this agent?"
	case e.CutOff:
		const cut = "its output ended early"
		if last := LastLines(e.Output, 1); last != "" {
			return cut + "; it wrote last: " + last
		}
		return cut
	case e.ExitCode > 0 && strings.TrimSpace(e.Output) == "":
		return "exit status " + strconv.Itoa(e.ExitCode) + ", and it printed nothing"
	case e.ExitCode > 0:
		return "exit status " + strconv.Itoa(e.ExitCode) + "; its output names no cause"
	}
	return "no cause in the output"
}
