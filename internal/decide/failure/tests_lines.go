package failure

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// runner is a test runner and how its output is read: line by line, by
// expressions, each of which but sum may be nil.
type runner struct {
	name  string
	words []string // one of these is in what it prints
	// fails begins a failing test: its name, and what the line says of it, in
	// groups called test, said and file.
	fails func() *regexp.Regexp
	files func() *regexp.Regexp // names the file of the tests below it
	names func() *regexp.Regexp // names the test whose lines stand above
	says  func() *regexp.Regexp // the place of the failure: what was said before is not its message
	at    func() *regexp.Regexp // nothing but a place; the first in the project is the failure's
	calls func() *regexp.Regexp // a call of a trace; the last in the project is the failure's place
	noise func() *regexp.Regexp // a line that says nothing of the test
	drops func() *regexp.Regexp // the test has passed
	ends  func() *regexp.Regexp // the lines of the test end
	// sum is a line of counts. Its groups are called passed, failed, skipped
	// and all; digits behind a name do not count.
	sum  func() *regexp.Regexp
	last bool                  // only the last sum counts, not all together
	none func() *regexp.Regexp // tests were looked for, and there were none
	// numbered: the failures are numbered, "  1) name", up to ends; below: they stand
	// below the counts.
	numbered, below bool
	// read reads what no expression can, instead of all that.
	read func(t text) (Tests, bool)
}

// runners is made at its first use: it would be a part of every start. The order
// decides where one runner's summary contains another's.
var runners = sync.OnceValue(func() []runner {
	return []runner{
		{
			name: "tcltest", words: []string{"\tFailed\t"},
			fails: lazy.Regexp(`^==== (?P<test>.+) FAILED$`),
			ends:  lazy.Regexp(`^==== \S+ FAILED$`),
			sum:   lazy.Regexp(`\tPassed\t(?P<passed>\d+)\tSkipped\t(?P<skipped>\d+)\tFailed\t(?P<failed>\d+)`),
		},
		{
			name: "gtest", words: []string{"[ RUN      ]"},
			fails: lazy.Regexp(`^\[ RUN      \] (?P<test>\S+)`),
			says:  lazy.Regexp(`: Failure$|\): error: `),
			drops: lazy.Regexp(`^\[       OK \]|^\[  SKIPPED \]`),
			ends:  lazy.Regexp(`^\[  FAILED  \]|^\[-{10}\]`),
			sum: lazy.Regexp(`^\[  PASSED  \] (?P<passed>\d+) tests?\.|^\[  FAILED  \] (?P<failed>\d+) tests?, listed below` +
				`|^\[  SKIPPED \] (?P<skipped>\d+) tests?, listed below`),
		},
		{
			name: "catch2", words: []string{"test cases: "},
			fails: lazy.Regexp(`^(?P<said>(?P<test>\S+:\d+)): FAILED:$`),
			ends:  lazy.Regexp(`^={20}|^-{20}|^$`),
			sum:   lazy.Regexp(`^test cases: +(?P<all>\d+)(?: \| +\d+ passed)? \| +(?P<failed>\d+) failed`),
		},
		{
			name: "ctest", words: []string{"tests failed out of"},
			fails: lazy.Regexp(`^ *\d+/\d+ Test +#\d+: (?P<test>\S+) \.*\*\*\*\w`),
			ends:  lazy.Regexp(`^ *Start +\d+: |^ *\d+/\d+ Test +#\d+: |^\d+% tests passed`),
			sum:   lazy.Regexp(`(?P<failed>\d+) tests? failed out of (?P<all>\d+)`),
		},
		{
			name: "gradle", words: []string{" completed, "},
			fails: lazy.Regexp(`^(?P<test>\S.* > .+?) FAILED$`),
			ends:  lazy.Regexp(`^\S.* > .+ [A-Z_]+$|^> Task |^FAILURE: |^\d+ tests? completed`),
			sum:   lazy.Regexp(`^(?P<all>\d+) tests? completed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?`),
		},
		{
			name: "xctest", words: []string{"Test Suite '"},
			fails: lazy.Regexp(`^\S+:\d+: error: (?P<test>-?\[?[\w. ]+\]?) : (?P<said>.*)`),
			ends:  lazy.Regexp(`^Test (?:Case|Suite) '`),
			sum:   lazy.Regexp(`Executed (?P<all>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?(?P<failed>\d+) failures?`),
			last:  true,
		},
		{
			name: "swift-testing", words: []string{"Test run with "},
			fails: lazy.Regexp(`^\S+ +Test (?P<test>.+?) recorded an issue(?: with .*?)? at (?P<said>\S+:\d+:\d+: .*)`),
			ends:  lazy.Regexp(`^\S+ +(?:Test|Suite) .*(?:passed|failed|started)`),
			sum:   lazy.Regexp(`Test run with (?P<all>\d+) tests?.* with (?P<failed>\d+) issues?`),
		},
		{
			name: "zig", words: []string{" passed; ", " tests passed"},
			fails: lazy.Regexp(`^(?:\d+/\d+ |error: ')(?P<test>\S+?)(?:\.\.\.|' failed: ?)(?P<said>.*[a-z].*)`),
			ends:  lazy.Regexp(`^\d+/\d+ |^\d+ passed; |^Build Summary: |^error: (?:the|while) `),
			sum: lazy.Regexp(`^(?P<passed>\d+) passed; (?P<skipped>\d+) skipped; (?P<failed>\d+) failed` +
				`|^Build Summary: .*; \d+/(?P<all>\d+) tests passed; (?P<failed2>\d+) failed`),
			last: true,
		},
		{
			name: "nextest", words: []string{" Summary ["},
			fails: lazy.Regexp(`^ *(?:TRY \d+ )?(?:FAIL|ABORT|SIG[A-Z]+|TIMEOUT|LEAK-FAIL) \[.*?\] +(?:\(.*?\) +)?(?P<test>.+)`),
			ends:  lazy.Regexp(`^ *(?:PASS|SKIP|SLOW) \[|^ +(?:Summary|Canceling) |^error: test run failed`),
			noise: lazy.Regexp(`^ *(?:---|std(?:out|err) ─|running \d+ test|test \S+ \.\.\. |failures:|test result: |note: run with|\S+::\S+$)`),
			sum:   lazy.Regexp(`tests? run: (?P<passed>\d+) passed(?: \(.*?\))?(?:, (?P<failed>\d+) failed)?(?:, (?P<failed2>\d+) timed out)?(?:, (?P<skipped>\d+) skipped)?`),
		},
		{
			name: "deno", words: []string{" passed | "},
			fails: lazy.Regexp(`^(?P<test>.+?) => (?:\./|/|file:)\S*:\d+:\d+$`),
			noise: lazy.Regexp(`^ *(?:throw |\^+$)`),
			ends:  lazy.Regexp(`^ FAILURES |^(?:(?:FAILED|ok) \| )?\d+ passed`),
			sum:   lazy.Regexp(`^(?:(?:FAILED|ok) \| )?(?P<passed>\d+) passed(?: \(.*?\))? \| (?P<failed>\d+) failed(?: \(.*?\))?(?: \| (?P<skipped>\d+) ignored)?`),
		},
		{
			name: "bun", words: []string{"expect() calls", " pass\n"},
			fails: lazy.Regexp(`^error: (?P<said>.*)`),
			names: lazy.Regexp(`^(?:✗|\(fail\)) (.+?)(?: \[[\d.]+m?s\])?$`),
			drops: lazy.Regexp(`^(?:✓|»|\((?:pass|skip|todo)\)) `),
			ends:  lazy.Regexp(`^ *\d+ pass$|^\d+ tests failed:`),
			sum:   lazy.Regexp(`^ *(?P<passed>\d+) pass$|^ *(?P<failed>\d+) fail$|^ *(?P<skipped>\d+) (?:skip|todo)$`),
		},
		{
			name: "scalatest", words: []string{"Tests: succeeded "},
			fails: lazy.Regexp(`^(?:\[info\] )?\s*- (?P<test>.+) \*\*\* FAILED \*\*\*`),
			ends:  lazy.Regexp(`^\[info\] (?:\s*- |\S)|^[^\[\s]|^\[error\]`),
			sum: lazy.Regexp(`Tests: succeeded (?P<passed>\d+), failed (?P<failed>\d+), canceled (?P<skipped>\d+)` +
				`, ignored (?P<skipped2>\d+)`),
		},
		{
			name: "munit", words: []string{"==> X "},
			fails: lazy.Regexp(`^==> X (?P<test>\S+)\s+\S+ (?P<said>.*)`),
			ends:  lazy.Regexp(`^\[error\]|^==> |^  \+ `),
			sum:   lazy.Regexp(`(?:Failed|Passed): Total (?P<all>\d+), Failed (?P<failed>\d+), Errors (?P<failed2>\d+)`),
		},
		{
			name: "julia", words: []string{"Some tests did not pass: "},
			fails: lazy.Regexp(`^(?P<test>.+?): (?:Test Failed|Error During Test) at (?P<said>\S+:\d+)$`),
			ends:  lazy.Regexp(`^Stacktrace:|^Test Summary:`),
			sum: lazy.Regexp(`did not pass: (?P<passed>\d+) passed, (?P<failed>\d+) failed, (?P<failed2>\d+) errored` +
				`, (?P<skipped>\d+) broken`),
		},
		{
			name: "testthat", words: []string{"[ FAIL "},
			fails: lazy.Regexp(`^── (?:Failure|Error) \((?P<said>\S+?)\): (?P<test>.+?) ─*$`),
			ends:  lazy.Regexp(`^\[ FAIL |^══ `),
			sum:   lazy.Regexp(`^\[ FAIL (?P<failed>\d+) \| WARN \d+ \| SKIP (?P<skipped>\d+) \| PASS (?P<passed>\d+) \]`),
			last:  true,
		},
		{
			name: "forge", words: []string{"[FAIL"},
			fails: lazy.Regexp(`^\[FAIL(?:[.:] (?:Reason: )?(?P<said>.*?))?\] (?P<test>\w+\(.*?\))`),
			ends:  lazy.Regexp(`^\[PASS\]|^Suite result: |^Failing tests:`),
			sum: lazy.Regexp(`^Ran \d+ test suites? .*: (?P<passed>\d+) tests? passed, (?P<failed>\d+) failed` +
				`, (?P<skipped>\d+) skipped`),
		},
		{
			name: "cucumber", words: []string{" scenarios (", " scenario ("},
			fails: lazy.Regexp(`^\d+\) Scenario: (?P<test>.+?)(?: # \S+)?$`),
			noise: lazy.Regexp(`^ *(?:✔|[-✖] (?:Given|When|Then|And|But|\*) )`),
			ends:  lazy.Regexp(`^\d+ scenarios? \(`),
			sum: lazy.Regexp(`^\d+ scenarios? \((?:(?P<failed>\d+) failed)?(?:, )?(?:(?P<failed2>\d+) undefined)?(?:, )?` +
				`(?:(?P<skipped>\d+) (?:skipped|pending))?(?:, )?(?:(?P<passed>\d+) passed)?\)`),
		},
		{
			name: "behave", words: []string{" scenarios passed, ", " scenario passed, "},
			fails: lazy.Regexp(`^  (?P<said>\S+\.feature:\d+)  (?P<test>.+)`),
			ends:  lazy.Regexp(`^\d+ features? passed`),
			sum:   lazy.Regexp(`^(?P<passed>\d+) scenarios? passed, (?P<failed>\d+) failed(?:, \d+ error)?, (?P<skipped>\d+) skipped`),
		},
		{
			name: "dart", words: []string{": Some tests failed."},
			fails: lazy.Regexp(`^\d\d:\d\d \+\d+(?: ~\d+)? -\d+: (?:(?P<file>\S+\.dart): )?(?P<test>.+) \[E\]$`),
			noise: lazy.Regexp(`^  (?:Test failed\. See exception|The test description was)`),
			ends:  lazy.Regexp(`^\d\d:\d\d \+`),
			sum:   lazy.Regexp(`^\d\d:\d\d \+(?P<passed>\d+)(?: ~(?P<skipped>\d+))? -(?P<failed>\d+): Some tests failed\.`),
			last:  true,
		},
		{
			name: "ava", words: []string{"✘ [fail]: "},
			fails: lazy.Regexp(`^  ✘ \[fail\]: (?P<test>.+)`),
			ends:  lazy.Regexp(`^  [─✔-]`),
			sum:   lazy.Regexp(`^  (?P<passed>\d+) tests? passed|^  (?P<failed>\d+) tests? failed`),
		},
		{
			words: []string{"--- FAIL", "--- PASS", "--- SKIP", "ok  \t", "FAIL\t", "[no test files]",
				"no tests to run"},
			read: goTests,
		},
		{
			name: "jest", words: []string{"Test Suites:", "Tests:  "},
			fails: lazy.Regexp(`^  ● (?P<test>.+)`),
			files: lazy.Regexp(`^ ?FAIL (?:\./)?(\S+)`),
			at:    lazy.Regexp(`^ *at `),
			ends:  lazy.Regexp(`^ ?FAIL |^PASS |^Test Suites:|^Tests:  |^Summary of all failing`),
			sum: lazy.Regexp(`^Tests: +(?:(?P<failed>\d+) failed, )?(?:(?P<skipped>\d+) skipped, )?` +
				`(?:(?P<skipped2>\d+) todo, )?(?:(?P<passed>\d+) passed, )?\d+ total`),
			none: lazy.Regexp(`No tests found, exiting(?s:.*)testMatch`),
			last: true,
		},
		{
			name: "vitest", words: []string{"Test Files  ", "      Tests  "},
			fails: lazy.Regexp(`^ *FAIL  (?:(?P<file>.+?)(?: \[.*?\])? > )?(?P<test>.+?)(?: \[ \S+ \])?$`),
			at:    lazy.Regexp(`^ *❯ `),
			ends:  lazy.Regexp(`^ *⎯⎯|^ *Test Files `),
			sum: lazy.Regexp(`^ +Tests  (?:(?P<failed>\d+) failed)?(?: \| )?(?:(?P<passed>\d+) passed)?(?: \| )?` +
				`(?:(?P<skipped>\d+) skipped)?(?: \| )?(?:(?P<skipped2>\d+) todo)?`),
			none: lazy.Regexp(`No test files found`),
			last: true,
		},
		{
			name: "playwright", words: []string{" › "},
			fails: lazy.Regexp(`^ *\d+\) (?:\[.+?\] › )?(?P<said>\S+:\d+:\d+) › (?P<test>.+?)[ ─]*$`),
			ends:  lazy.Regexp(`^  \d+ (?:(?:failed|skipped|flaky|did not run|interrupted)|passed \(.*\))$`),
			sum: lazy.Regexp(`^  (?P<passed>\d+) (?:passed \(.*\)|flaky)$|^  (?P<failed>\d+) failed$` +
				`|^  (?P<skipped>\d+) (?:skipped|did not run|interrupted)$`),
		},
		{words: []string{" in ", "no tests ran", "short test summary"}, read: readPytest},
		{
			name: "unittest", words: []string{"Ran ", "NO TESTS RAN"},
			fails: lazy.Regexp(`^(?:FAIL|ERROR): (?P<test>.*?)(?: \(|$)`),
			calls: lazy.Regexp(`^  File "`),
			noise: lazy.Regexp(`^Traceback|^-----|^    |^ImportError: Failed to import test module`),
			ends:  lazy.Regexp(`^Ran |^=====`),
			sum: lazy.Regexp(`^Ran (?P<all>\d+) tests? in |^OK \(skipped=(?P<skipped2>\d+)` +
				`|^FAILED \((?:failures=(?P<failed>\d+))?(?:, )?(?:errors=(?P<failed2>\d+))?(?:, )?(?:skipped=(?P<skipped>\d+))?`),
		},
		{
			name: "cargo", words: []string{"test result: "},
			fails: lazy.Regexp(`^---- (?P<test>.+?)(?: std(?:out|err))? ----$`),
			noise: lazy.Regexp(`^note: |^stack backtrace`),
			ends:  lazy.Regexp(`^test result: |^failures:$`),
			sum:   lazy.Regexp(`^test result: .*?(?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored`),
		},
		{words: []string{"<testsuite"}, read: readJUnit},
		{words: []string{"Tests run: "}, read: readSurefire},
		{words: []string{"ℹ tests ", "# tests "}, read: nodeTest},
		{
			name: "mocha", words: []string{" passing ("}, numbered: true, below: true,
			ends: lazy.Regexp(`^npm ERR`),
			sum:  lazy.Regexp(`^ *(?P<passed>\d+) passing \(|^ *(?P<failed>\d+) failing\b|^ *(?P<skipped>\d+) pending$`),
		},
		{
			name: "rspec", words: []string{" examples, ", " example, "}, numbered: true,
			ends: lazy.Regexp(`^Finished in|^Failed examples:`),
			sum:  lazy.Regexp(`^(?P<all>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?`),
			last: true,
		},
		{
			name: "minitest", words: []string{" runs, ", " run, "}, numbered: true,
			ends: lazy.Regexp(`^Finished in|^\d.* failure`),
			sum: lazy.Regexp(`^(?P<all>\d+) runs?, (?:\d+ assertions?, )?(?P<failed>\d+) failures?` +
				`(?:, (?P<failed2>\d+) errors?)?(?:, (?P<skipped>\d+) skips?)?`),
		},
		{
			name: "exunit", words: []string{" tests, ", " test, "}, numbered: true,
			ends: lazy.Regexp(`^Finished in|^\d.* failure`),
			sum: lazy.Regexp(`^(?:(?P<all>\d+) doctests?, )?(?:(?P<all2>\d+) propert\w+, )?(?P<all3>\d+) tests?, ` +
				`(?:\d+ assertions?, )?(?P<failed>\d+) failures?(?:, (?P<failed2>\d+) errors?)?` +
				`(?:, (?P<skipped>\d+) excluded)?(?:, (?P<skipped2>\d+) skip)?`),
		},
		{
			name: "pest", words: []string{" assertions)"},
			fails: lazy.Regexp(`^ *FAILED  (?P<test>.+)`),
			ends:  lazy.Regexp(`^  Tests:`),
			sum: lazy.Regexp(`^ *Tests: +(?:(?P<failed>\d+) failed, )?(?:.*?(?P<skipped>\d+) skipped, )?` +
				`(?:(?P<passed>\d+) passed )?\(\d+ assertions?\)`),
			last: true,
		},
		{
			name: "phpunit", words: []string{"OK (", "Tests: ", "No tests executed"}, numbered: true,
			ends: lazy.Regexp(`^FAILURES!|^ERRORS!`),
			sum: lazy.Regexp(`^Tests: (?P<all>\d+), Assertions: \d+(?:.*?, Errors: (?P<failed>\d+))?` +
				`(?:.*?, Failures: (?P<failed2>\d+))?(?:.*?, Skipped: (?P<skipped>\d+))?` +
				`(?:.*?, Incomplete: (?P<skipped2>\d+))?|^OK \((?P<passed>\d+) tests?, \d+ assertion`),
			none: lazy.Regexp(`No tests executed!`),
			last: true,
		},
		{
			name: "dotnet", words: []string{"Failed:  ", "Passed!  - "},
			fails: lazy.Regexp(`^  Failed (?P<test>.+?) \[.*\]$`),
			noise: lazy.Regexp(`^ *(?:Error Message|Stack Trace):$`),
			ends:  lazy.Regexp(`(?:Failed|Passed)!  - `),
			sum: lazy.Regexp(`(?:Failed|Passed)!  - Failed: +(?P<failed>\d+), Passed: +(?P<passed>\d+)` +
				`, Skipped: +(?P<skipped>\d+)`),
		},
		{words: []string{"ok 1", "1..0", "not ok"}, read: readTAP},
	}
})

// matchesLine reports whether a line matches an expression that may be nil.
func matchesLine(e func() *regexp.Regexp, l string) bool { return e != nil && e().MatchString(l) }

func (r runner) readTests(t text) (Tests, bool) {
	if r.read != nil {
		return r.read(t)
	}
	counts, from := map[string]int{}, 0
	seen := r.none != nil && r.none().MatchString(t.s)
	for i := range t.lineCount() {
		m := r.sum().FindStringSubmatch(t.lineAt(i))
		if m == nil {
			continue
		}
		if seen = true; r.last {
			clear(counts)
		}
		if r.below {
			from = i
		}
		for g, name := range r.sum().SubexpNames() {
			n, _ := words.Number(m[g], 0)
			counts[strings.TrimRight(name, "0123456789")] += n
		}
	}
	if !seen {
		return Tests{}, false
	}
	out := Tests{Runner: r.name, Failed: counts["failed"], Skipped: counts["skipped"]}
	out.Passed = counts["passed"] + max(counts["all"]-out.Failed-out.Skipped, 0)
	if r.numbered {
		out.Items = numberedFailures(t, from, func(l string) bool { return matchesLine(r.ends, l) })
	} else {
		out.Items = r.failingItems(t)
	}
	return out, true
}

// failingItems returns the failing tests, with the lines of each.
func (r runner) failingItems(t text) []Item {
	started, file := map[string]bool{}, ""
	items := failingTests(t, func(f *failing, l string) {
		if matchesLine(r.drops, l) {
			f.b = nil
		}
		if matchesLine(r.ends, l) {
			f.endTest()
		}
		if matchesLine(r.files, l) {
			file = r.files().FindStringSubmatch(l)[1]
		}
		it, said, ok := r.readFailure(l)
		if !ok {
			r.readLine(f, l)
			return
		}
		f.endTest()
		if !started[it.Test] || it.Test == "" {
			it.File = cmp.Or(it.File, file)
			f.beginTest(it)
			f.b.readHead(l, said)
		}
		started[it.Test] = true
	})
	return slices.DeleteFunc(items, func(i Item) bool { return i.Test == "" })
}

// readFailure reads the first line of a failing test.
func (r runner) readFailure(l string) (it Item, said string, ok bool) {
	m := r.fails().FindStringSubmatch(l)
	if m == nil {
		return it, "", false
	}
	group := func(name string) string {
		if at := r.fails().SubexpIndex(name); at > 0 {
			return m[at]
		}
		return ""
	}
	it = Item{Test: group("test"), File: group("file")}
	if r.fails().SubexpIndex("file") > 0 && it.File == "" && places.IsFile(it.Test) { // a whole file failed
		it.File = it.Test
	}
	return it, group("said"), true
}

// readLine reads a line that begins no test.
func (r runner) readLine(f *failing, l string) {
	switch {
	case matchesLine(r.names, l):
		if f.b == nil {
			f.beginTest(Item{})
		}
		f.b.item.Test = r.names().FindStringSubmatch(l)[1]
		f.endTest()
	case f.b == nil || matchesLine(r.noise, l):
	case matchesLine(r.at, l):
		if f.b.item.Line == 0 {
			f.b.standOwn(l)
		}
	case matchesLine(r.calls, l):
		f.b.standOwn(l)
	case f.b.item.File == "" && matchesLine(r.says, l):
		f.b.item.Message, f.b.n = "", 0
		f.b.standOwn(l)
	default:
		f.addLine(l)
	}
}

// readHead reads the first line of a failure, and the place in front of it.
func (b *body) readHead(l, said string) {
	if p, ok := places.In(l); ok && said != "" && strings.HasSuffix(p.Rest, said) {
		b.setAt(p)
	}
	if p, ok := places.In(said); ok && p.From == 0 {
		b.setAt(p)
		said = strings.TrimLeft(p.Rest, ": ")
	}
	b.readLine(said)
}
