package failure

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// lineRunner is a test runner whose output is read line by line. Each
// expression but fails and sum may be nil.
type lineRunner struct {
	name  string
	words []string // one of these is in what it prints
	// fails begins a failing test: its name, and what the line says of it, in
	// this order or in groups called test and said.
	fails func() *regexp.Regexp
	names func() *regexp.Regexp // names the test whose lines stand above
	says  func() *regexp.Regexp // the place of the failure: what was said before is not its message
	noise func() *regexp.Regexp // a line that says nothing of the test
	drops func() *regexp.Regexp // the test has passed
	ends  func() *regexp.Regexp // the lines of the test end
	// sum is a line of counts. Its groups are called passed, failed, skipped
	// and all; digits behind a name do not count.
	sum  func() *regexp.Regexp
	last bool // only the last sum counts, not all together
}

// lineRunners is made at its first use: it would be a part of every start.
var lineRunners = sync.OnceValue(func() []lineRunner {
	return []lineRunner{
		{
			name: "gtest", words: []string{"[ RUN      ]"},
			fails: lazy.Regexp(`^\[ RUN      \] (\S+)()`),
			says:  lazy.Regexp(`: Failure$|\): error: `),
			drops: lazy.Regexp(`^\[       OK \]|^\[  SKIPPED \]`),
			ends:  lazy.Regexp(`^\[  FAILED  \]|^\[-{10}\]`),
			sum: lazy.Regexp(`^\[  PASSED  \] (?P<passed>\d+) tests?\.|^\[  FAILED  \] (?P<failed>\d+) tests?, listed below` +
				`|^\[  SKIPPED \] (?P<skipped>\d+) tests?, listed below`),
		},
		{
			name: "ctest", words: []string{"tests failed out of"},
			fails: lazy.Regexp(`^ *\d+/\d+ Test +#\d+: (\S+) \.*()\*\*\*\w`),
			ends:  lazy.Regexp(`^ *Start +\d+: |^ *\d+/\d+ Test +#\d+: |^\d+% tests passed`),
			sum:   lazy.Regexp(`(?P<failed>\d+) tests? failed out of (?P<all>\d+)`),
		},
		{
			name: "gradle", words: []string{" completed, "},
			fails: lazy.Regexp(`^(\S.* > .+?) FAILED()$`),
			ends:  lazy.Regexp(`^\S.* > .+ [A-Z_]+$|^> Task |^FAILURE: |^\d+ tests? completed`),
			sum:   lazy.Regexp(`^(?P<all>\d+) tests? completed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?`),
		},
		{
			name: "xctest", words: []string{"Test Suite '"},
			fails: lazy.Regexp(`^\S+:\d+: error: (-?\[?[\w. ]+\]?) : (.*)`),
			ends:  lazy.Regexp(`^Test (?:Case|Suite) '`),
			sum:   lazy.Regexp(`Executed (?P<all>\d+) tests?, with (?:(?P<skipped>\d+) tests? skipped and )?(?P<failed>\d+) failures?`),
			last:  true,
		},
		{
			name: "swift-testing", words: []string{"Test run with "},
			fails: lazy.Regexp(`^\S+ +Test (.+?) recorded an issue(?: with .*?)? at (\S+:\d+:\d+: .*)`),
			ends:  lazy.Regexp(`^\S+ +(?:Test|Suite) .*(?:passed|failed|started)`),
			sum:   lazy.Regexp(`Test run with (?P<all>\d+) tests?.* with (?P<failed>\d+) issues?`),
		},
		{
			name: "zig", words: []string{" passed; ", " tests passed"},
			fails: lazy.Regexp(`^(?:\d+/\d+ |error: ')(\S+?)(?:\.\.\.|' failed: ?)(.*[a-z].*)`),
			ends:  lazy.Regexp(`^\d+/\d+ |^\d+ passed; |^Build Summary: |^error: (?:the|while) `),
			sum: lazy.Regexp(`^(?P<passed>\d+) passed; (?P<skipped>\d+) skipped; (?P<failed>\d+) failed` +
				`|^Build Summary: .*; \d+/(?P<all>\d+) tests passed; (?P<failed2>\d+) failed`),
			last: true,
		},
		{
			name: "nextest", words: []string{" Summary ["},
			fails: lazy.Regexp(`^ *(?:TRY \d+ )?(?:FAIL|ABORT|SIG[A-Z]+|TIMEOUT|LEAK-FAIL) \[.*?\] +(?:\(.*?\) +)?(.+)()`),
			ends:  lazy.Regexp(`^ *(?:PASS|SKIP|SLOW) \[|^ +(?:Summary|Canceling) |^error: test run failed`),
			noise: lazy.Regexp(`^ *(?:---|std(?:out|err) ─|running \d+ test|test \S+ \.\.\. |failures:|test result: |note: run with|\S+::\S+$)`),
			sum:   lazy.Regexp(`tests? run: (?P<passed>\d+) passed(?: \(.*?\))?(?:, (?P<failed>\d+) failed)?(?:, (?P<failed2>\d+) timed out)?(?:, (?P<skipped>\d+) skipped)?`),
		},
		{
			name: "deno", words: []string{" passed | "},
			fails: lazy.Regexp(`^(.+?) => (?:\./|/|file:)\S*:\d+:\d+()$`),
			noise: lazy.Regexp(`^ *(?:throw |\^+$)`),
			ends:  lazy.Regexp(`^ FAILURES |^(?:(?:FAILED|ok) \| )?\d+ passed`),
			sum:   lazy.Regexp(`^(?:(?:FAILED|ok) \| )?(?P<passed>\d+) passed(?: \(.*?\))? \| (?P<failed>\d+) failed(?: \(.*?\))?(?: \| (?P<skipped>\d+) ignored)?`),
		},
		{
			name: "bun", words: []string{"expect() calls", " pass\n"},
			fails: lazy.Regexp(`^()error: (.*)`),
			names: lazy.Regexp(`^(?:✗|\(fail\)) (.+?)(?: \[[\d.]+m?s\])?$`),
			drops: lazy.Regexp(`^(?:✓|»|\((?:pass|skip|todo)\)) `),
			ends:  lazy.Regexp(`^ *\d+ pass$|^\d+ tests failed:`),
			sum:   lazy.Regexp(`^ *(?P<passed>\d+) pass$|^ *(?P<failed>\d+) fail$|^ *(?P<skipped>\d+) (?:skip|todo)$`),
		},
		{
			name: "scalatest", words: []string{"Tests: succeeded "},
			fails: lazy.Regexp(`^(?:\[info\] )?\s*- (.+) \*\*\* FAILED \*\*\*()`),
			ends:  lazy.Regexp(`^\[info\] (?:\s*- |\S)|^[^\[\s]|^\[error\]`),
			sum: lazy.Regexp(`Tests: succeeded (?P<passed>\d+), failed (?P<failed>\d+), canceled (?P<skipped>\d+)` +
				`, ignored (?P<skipped2>\d+)`),
		},
		{
			name: "munit", words: []string{"==> X "},
			fails: lazy.Regexp(`^==> X (\S+)\s+\S+ (.*)`),
			ends:  lazy.Regexp(`^\[error\]|^==> |^  \+ `),
			sum:   lazy.Regexp(`(?:Failed|Passed): Total (?P<all>\d+), Failed (?P<failed>\d+), Errors (?P<failed2>\d+)`),
		},
		{
			name: "julia", words: []string{"Some tests did not pass: "},
			fails: lazy.Regexp(`^(.+?): (?:Test Failed|Error During Test) at (\S+:\d+)$`),
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
			fails: lazy.Regexp(`^\d+\) Scenario: (.+?)(?: # \S+)?()$`),
			noise: lazy.Regexp(`^ *(?:✔|[-✖] (?:Given|When|Then|And|But|\*) )`),
			ends:  lazy.Regexp(`^\d+ scenarios? \(`),
			sum: lazy.Regexp(`^\d+ scenarios? \((?:(?P<failed>\d+) failed)?(?:, )?(?:(?P<failed2>\d+) undefined)?(?:, )?` +
				`(?:(?P<skipped>\d+) (?:skipped|pending))?(?:, )?(?:(?P<passed>\d+) passed)?\)`),
		},
	}
})

// is tells whether a line fits an expression that may be nil.
func is(e func() *regexp.Regexp, l string) bool { return e != nil && e().MatchString(l) }

// read reads what the runner printed.
func (r lineRunner) read(t text) (Tests, bool) {
	out := Tests{Runner: r.name}
	seen, started := false, map[string]bool{}
	out.Items = failures(t, func(f *failing, l string) {
		if m := r.sum().FindStringSubmatch(l); m != nil {
			if r.last {
				out.Passed, out.Failed, out.Skipped = 0, 0, 0
			}
			out.addGroups(r.sum().SubexpNames(), m)
			seen = true
		}
		if is(r.drops, l) {
			f.b = nil
		}
		if is(r.ends, l) {
			f.end()
		}
		test, said, ok := r.begins(l)
		if !ok {
			r.line(f, l)
			return
		}
		f.end()
		if !started[test] || test == "" {
			f.begin(Item{Test: test})
			f.b.head(l, said)
		}
		started[test] = true
	})
	out.Items = slices.DeleteFunc(out.Items, func(i Item) bool { return i.Test == "" })
	return out, seen
}

// begins reads the first line of a failing test.
func (r lineRunner) begins(l string) (test, said string, ok bool) {
	m := r.fails().FindStringSubmatch(l)
	if m == nil {
		return "", "", false
	}
	if at := r.fails().SubexpIndex("test"); at > 0 {
		return m[at], m[r.fails().SubexpIndex("said")], true
	}
	return m[1], m[2], true
}

// line reads a line that begins no test.
func (r lineRunner) line(f *failing, l string) {
	switch {
	case r.names != nil && r.names().MatchString(l):
		if f.b == nil {
			f.begin(Item{})
		}
		f.b.item.Test = r.names().FindStringSubmatch(l)[1]
		f.end()
	case f.b == nil || is(r.noise, l):
	case f.b.item.File == "" && is(r.says, l):
		f.b.item.Message, f.b.n = "", 0
		f.b.standOwn(l)
	default:
		f.add(l)
	}
}

// head takes what the first line of a failure says, and the place in front of it.
func (b *body) head(l, said string) {
	if p, ok := placeIn(l); ok && said != "" && strings.HasSuffix(p.rest, said) {
		b.stand(p)
	}
	if p, ok := placeIn(said); ok && p.from == 0 {
		b.stand(p)
		said = strings.TrimLeft(p.rest, ": ")
	}
	b.add(said)
}

// addGroups adds the counts of a line by the names of an expression's groups.
func (t *Tests) addGroups(names, values []string) {
	all, failed, skipped := 0, 0, 0
	for i, v := range values {
		n, _ := number(v, 0)
		switch strings.TrimRight(names[i], "0123456789") {
		case "all":
			all += n
		case "passed":
			t.Passed += n
		case "failed":
			failed += n
		case "skipped":
			skipped += n
		}
	}
	t.Passed += max(all-failed-skipped, 0)
	t.Failed += failed
	t.Skipped += skipped
}
