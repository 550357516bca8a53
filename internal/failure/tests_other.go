package failure

import (
	"encoding/xml"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// pytest reads "=== 4 failed, 3 passed in 0.11s ===", also without the rules.
func pytest(t text) (Tests, bool) {
	out := Tests{Runner: "pytest"}
	errors := 0
	ok := lastWith(t, " in ", func(l string) bool {
		s := strings.Trim(l, "= ")
		i := strings.LastIndex(s, " in ")
		if i < 0 || !strings.HasSuffix(strings.TrimRight(strings.Split(s[i+4:], " ")[0], " "), "s") {
			return false
		}
		if strings.HasPrefix(s, "no tests ran") {
			return true
		}
		if !isDigit((s + " ")[0]) || !has(s[:i], " passed", " failed", " error", " skipped", " deselected", " xfailed",
			" xpassed", " warning") {
			return false
		}
		errors = count(s, " error")
		out.add(s, counts{passed: " passed| xpassed", failed: " failed", skipped: " skipped| xfailed| deselected"})
		return true
	})
	if !ok {
		return out, false
	}
	if !strings.Contains(t.s, "error during collection") && !strings.Contains(t.s, "errors during collection") {
		out.Failed += errors
	}
	out.Items = pytestItems(t)
	return out, true
}

// pytestItems reads the sections "____ test ____" and the short summary.
func pytestItems(t text) []Item {
	return failures(t, func(f *failing, l string) {
		switch {
		case strings.HasPrefix(l, "___") && strings.HasSuffix(strings.TrimSpace(l), "___"):
			name := strings.TrimPrefix(strings.Trim(l, "_ "), "ERROR at setup of ")
			f.begin(Item{Test: strings.TrimPrefix(name, "ERROR collecting ")})
		case strings.HasPrefix(l, "==="):
			f.end()
		case strings.HasPrefix(l, "FAILED "), strings.HasPrefix(l, "ERROR "):
			f.items = pytestShort(f.items, l)
		case strings.HasPrefix(l, "E "):
			f.add(l[1:])
		case f.b != nil:
			if p, ok := placeIn(l); ok && p.from <= 1 && !foreign(p.file) {
				f.b.item.File, f.b.item.Line = p.file, p.line
			}
		}
	})
}

// pytestShort adds a line of the short summary: the file where the section
// did not tell it, or a failure of its own.
func pytestShort(items []Item, l string) []Item {
	_, rest, _ := strings.Cut(l, " ")
	id, msg, _ := strings.Cut(rest, " - ")
	file, test, _ := strings.Cut(id, "::")
	for i := range items {
		last := test[strings.LastIndex(test, "::")+1:]
		if n := items[i].Test; n == strings.ReplaceAll(strings.TrimPrefix(last, ":"), "::", ".") ||
			n == strings.ReplaceAll(test, "::", ".") || n == file {
			if items[i].File == "" {
				items[i].File = file
			}
			if items[i].Message == "" {
				items[i].Message = msg
			}
			return items
		}
	}
	if len(items) < maxItems {
		items = append(items, Item{Test: test, File: strings.TrimSpace(file), Message: msg})
	}
	return items
}

// unittest reads "Ran 3 tests in 0.001s" and what follows.
func unittest(t text) (Tests, bool) {
	out := Tests{Runner: "unittest"}
	ran := -1
	lastWith(t, "Ran ", func(l string) bool {
		if strings.HasPrefix(l, "Ran ") && has(l, " test in ", " tests in ") {
			ran = count(strings.TrimPrefix(l, "Ran"), " test")
		}
		return ran >= 0
	})
	if ran < 0 {
		return out, false
	}
	verdict := func(l string) bool {
		out.add(l, counts{failed: "failures=|errors=", skipped: "skipped="})
		return true
	}
	if lastWith(t, "FAILED (", verdict); out.Failed == 0 {
		out.Skipped = 0
		lastWith(t, "OK (", verdict)
	}
	out.Passed = max(0, ran-out.Failed-out.Skipped)
	out.Items = unittestItems(t)
	return out, true
}

var unittestHead = lazy.Regexp(`^(?:FAIL|ERROR): (.*?)(?: \(|$)`)

// unittestItems reads "FAIL: test (class)" and the trace below it.
func unittestItems(t text) []Item {
	return failures(t, func(f *failing, l string) {
		if m := unittestHead().FindStringSubmatch(l); m != nil {
			f.begin(Item{Test: m[1]})
			return
		}
		switch {
		case strings.HasPrefix(l, "Ran "), strings.HasPrefix(l, "====="):
			f.end()
		case strings.HasPrefix(l, `  File "`) && f.b != nil:
			if p, ok := placeIn(l); ok && !foreign(p.file) {
				f.b.item.File, f.b.item.Line = p.file, p.line
			}
		case !strings.HasPrefix(l, "Traceback") && !strings.HasPrefix(l, "-----") && !strings.HasPrefix(l, "    "):
			f.add(l)
		}
	})
}

// cargo reads "test result: FAILED. 92 passed; 1 failed; 0 ignored; …", once
// for each test program.
func cargo(t text) (Tests, bool) {
	out := Tests{Runner: "cargo"}
	seen := false
	out.Items = failures(t, func(f *failing, l string) {
		switch {
		case strings.HasPrefix(l, "test result: "):
			f.end()
			seen = true
			out.add(l, counts{passed: " passed", failed: " failed", skipped: " ignored"})
		case strings.HasPrefix(l, "---- ") && strings.HasSuffix(l, " ----"):
			name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(l[5:], " ----"), " stdout"), " stderr")
			f.begin(Item{Test: strings.TrimSpace(name)}) // a test in the documents is "src/lib.rs - double (line 1)"
		case l == "failures:":
			f.end()
		case !strings.HasPrefix(l, "note: ") && !strings.HasPrefix(l, "stack backtrace"):
			f.add(l)
		}
	})
	return out, seen
}

// rspec reads "3 examples, 2 failures, 1 pending".
func rspec(t text) (Tests, bool) {
	out := Tests{Runner: "rspec"}
	ok := lastWith(t, " example", func(l string) bool {
		if !has(l, " failure") || !isDigit((l + " ")[0]) {
			return false
		}
		out.add(l, counts{all: " example", failed: " failure", skipped: " pending"})
		return true
	})
	if ok {
		out.Items = blocks(t, 0, func(l string) bool {
			return strings.HasPrefix(l, "Finished in") || strings.HasPrefix(l, "Failed examples:")
		})
	}
	return out, ok
}

// minitest reads minitest's "2 runs, 1 assertions, 1 failures, 1 errors, 0 skips"
// and ExUnit's "3 doctests, 119 tests, 1 failure", summed over the programs.
func minitest(t text) (Tests, bool) {
	out := Tests{Runner: "minitest"}
	isEnd := func(l string) bool { return l != "" && isDigit(l[0]) && has(l, " failure") }
	seen := false
	for i := range t.len() {
		l := t.line(i)
		c := counts{all: " run", failed: " failure| error", skipped: " skip| excluded"}
		switch {
		case !isEnd(l):
			continue
		case has(l, " runs, ", " run, "):
		case has(l, " tests, ", " test, "):
			c.all = " test| doctest| propert"
			out.Runner = "exunit"
		default:
			continue
		}
		seen = true
		out.add(l, c)
	}
	if seen {
		out.Items = blocks(t, 0, func(l string) bool { return strings.HasPrefix(l, "Finished in") || isEnd(l) })
	}
	return out, seen
}

// phpunit reads "Tests: 4, Assertions: 4, Failures: 3.", "OK (4 tests, …)",
// and Pest's "Tests:    3 failed, 171 passed (475 assertions)".
func phpunit(t text) (Tests, bool) {
	out := Tests{Runner: "phpunit"}
	ok := lastWith(t, "Tests: ", func(l string) bool {
		switch {
		case has(l, "Assertions: "):
			out.add(l, counts{all: "Tests:", failed: "Failures:|Errors:", skipped: "Skipped:|Incomplete:"})
		case has(l, " assertions)"):
			out.Runner = "pest"
			out.add(l, counts{passed: " passed", failed: " failed", skipped: " skipped"})
		default:
			return false
		}
		return true
	})
	ok = ok || lastWith(t, "OK (", func(l string) bool {
		out.Passed = count(strings.Replace(l, "(", " ", 1), " test")
		return has(l, " assertion")
	})
	if out.Runner == "pest" && out.Failed > 0 {
		out.Items = failures(t, func(f *failing, l string) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(l), "FAILED  "); ok {
				f.begin(Item{Test: name})
			} else if strings.HasPrefix(l, "  Tests:") {
				f.end()
			} else {
				f.add(l)
			}
		})
	} else if out.Failed > 0 {
		out.Items = blocks(t, 0, func(l string) bool {
			return strings.HasPrefix(l, "FAILURES!") || strings.HasPrefix(l, "ERRORS!")
		})
	}
	return out, ok || strings.Contains(t.s, "No tests executed!")
}

var surefireLevel = lazy.Regexp(`^(?:\[ERROR\] )?(?:\[INFO\] )?(?:\[WARNING\] )?(?:Tests in error)?(?:Failed tests:)?`)

// surefire reads maven's "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0":
// the total where there is one, else the sum over the classes.
func surefire(t text) (Tests, bool) {
	out := Tests{Runner: "surefire"}
	total, seen := false, false
	for i := range t.len() {
		l := t.line(i)
		l = l[len(surefireLevel().FindString(l)):]
		if !strings.HasPrefix(l, "Tests run: ") {
			if it, ok := surefireItem(l); ok && len(out.Items) < maxItems {
				out.Items = append(out.Items, it)
			}
			continue
		}
		isTotal := !has(l, "Time elapsed")
		if total && !isTotal {
			continue
		}
		seen = true
		if isTotal && !total {
			out = Tests{Runner: out.Runner, Items: out.Items}
			total = true
		}
		out.add(l, counts{all: "Tests run:", failed: "Failures:|Errors:", skipped: "Skipped:"})
	}
	return out, seen
}

// surefireItem reads "Class.test:45 expected: <a> but was: <b>" and
// "Class.test  Time elapsed: 1 s  <<< FAILURE!".
func surefireItem(l string) (Item, bool) {
	said := strings.TrimSpace(l)
	if name, _, ok := strings.Cut(said, "  Time elapsed"); ok && has(said, "<<< FAIL", "<<< ERROR") &&
		!strings.HasPrefix(said, "Tests run") {
		test, class, ok := strings.Cut(name, "(")
		if ok {
			return Item{Test: strings.TrimSuffix(class, ")") + "." + test, Message: said}, true
		}
		return Item{Test: strings.TrimSpace(name), Message: said}, true
	}
	head, msg, ok := strings.Cut(said, " ")
	i := strings.LastIndexByte(head, ':')
	if !ok || i <= 0 || !strings.Contains(head[:i], ".") || strings.ContainsAny(head, `/\[(`) {
		return Item{}, false
	}
	n, end := number(head, i+1)
	if n == 0 || end != len(head) {
		return Item{}, false
	}
	want, got := expectation(msg)
	return Item{Test: head[:i], Line: n, Message: said, Expected: want, Received: got}, true
}

// dotnet reads "Failed!  - Failed:     1, Passed:     2, Skipped:     0, …".
func dotnet(t text) (Tests, bool) {
	out := Tests{Runner: "dotnet"}
	seen := false
	out.Items = failures(t, func(f *failing, l string) {
		said := strings.TrimSpace(l)
		switch {
		case has(l, "Failed!  - ", "Passed!  - "):
			f.end()
			seen = true
			out.add(l, counts{passed: "Passed:", failed: "Failed:", skipped: "Skipped:"})
		case strings.HasPrefix(l, "  Failed ") && strings.HasSuffix(said, "]"):
			name, _, _ := strings.Cut(said[len("Failed "):], " [")
			f.begin(Item{Test: name})
		case said == "Error Message:", said == "Stack Trace:":
		default:
			f.add(said)
		}
	})
	return out, seen
}

type junitSuite struct {
	Suites []junitSuite `xml:"testsuite"`
	Cases  []junitCase  `xml:"testcase"`
}

type junitCase struct {
	Name    string       `xml:"name,attr"`
	Class   string       `xml:"classname,attr"`
	File    string       `xml:"file,attr"`
	Line    string       `xml:"line,attr"`
	Failed  *junitResult `xml:"failure"`
	Broken  *junitResult `xml:"error"`
	Skipped *junitResult `xml:"skipped"`
}

type junitResult struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit reads JUnit's XML inside of an output.
func junit(t text) (Tests, bool) {
	_, report, _ := strings.Cut(t.s, "<testsuite")
	d := xml.NewDecoder(strings.NewReader("<testsuite" + report))
	d.Strict = false
	var all junitSuite
	_ = d.Decode(&all) // of a report that was cut what came before the cut counts
	out := Tests{Runner: "junit"}
	out.addSuite(all)
	return out, true
}

func (t *Tests) addSuite(suite junitSuite) {
	for _, c := range suite.Cases {
		if c.Failed == nil {
			c.Failed = c.Broken
		}
		switch {
		case c.Failed != nil:
			t.Failed++
			t.Items = append(t.Items, c.item())
		case c.Skipped != nil:
			t.Skipped++
		default:
			t.Passed++
		}
	}
	for _, s := range suite.Suites {
		t.addSuite(s)
	}
}

func (c junitCase) item() Item {
	b := body{item: Item{Test: c.Name, File: c.File, Message: c.Failed.Message}}
	b.item.Line, _ = number(c.Line, 0)
	if c.Class != "" && !strings.HasPrefix(c.Name, c.Class) {
		b.item.Test = c.Class + "." + c.Name
	}
	said := strings.TrimSpace(c.Failed.Text)
	if p, ok := placeIn(said); ok && b.item.Line == 0 {
		b.stand(p)
	}
	if b.item.Message == "" {
		b.item.Message = cut(said, maxMessage)
	}
	b.item.Expected, b.item.Received = expectation(b.item.Message)
	return b.item
}
