package failure

import (
	"encoding/xml"
	"strings"
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
		if !isDigit((s + " ")[0]) || !has(s[:i], " passed", " failed", " error", " skipped", " deselected", " xfailed", " xpassed", " warning") {
			return false
		}
		errors = count(s, " error")
		out.Passed = count(s, " passed") + count(s, " xpassed")
		out.Failed = count(s, " failed")
		out.Skipped = count(s, " skipped") + count(s, " xfailed") + count(s, " deselected")
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
	var items []Item
	var b *body
	flush := func() {
		if b != nil && len(items) < maxItems {
			items = append(items, b.item)
		}
		b = nil
	}
	for i := range t.len() {
		l := t.line(i)
		switch {
		case strings.HasPrefix(l, "___") && strings.HasSuffix(strings.TrimSpace(l), "___"):
			flush()
			name := strings.Trim(l, "_ ")
			name = strings.TrimPrefix(name, "ERROR at setup of ")
			b = &body{item: Item{Test: strings.TrimPrefix(name, "ERROR collecting ")}}
		case strings.HasPrefix(l, "==="):
			flush()
		case strings.HasPrefix(l, "FAILED "), strings.HasPrefix(l, "ERROR "):
			items = pytestShort(items, l)
		case b != nil && strings.HasPrefix(l, "E "):
			b.add(l[1:])
		case b != nil:
			if p, ok := placeIn(l); ok && p.from <= 1 && !foreign(p.file) {
				b.item.File, b.item.Line = p.file, p.line
			}
		}
	}
	flush()
	return items
}

// pytestShort adds a line of the short summary: the file where the section
// did not tell it, or a failure of its own.
func pytestShort(items []Item, l string) []Item {
	_, rest, _ := strings.Cut(l, " ")
	id, msg, _ := strings.Cut(rest, " - ")
	file, test, _ := strings.Cut(id, "::")
	for i := range items {
		last := test[strings.LastIndex(test, "::")+1:]
		if n := items[i].Test; n == strings.ReplaceAll(strings.TrimPrefix(last, ":"), "::", ".") || n == strings.ReplaceAll(test, "::", ".") || n == file {
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
	for _, head := range []string{"FAILED (", "OK ("} {
		lastWith(t, head, func(l string) bool {
			out.Failed, out.Skipped = count(l, "failures=")+count(l, "errors="), count(l, "skipped=")
			return true
		})
		if out.Failed > 0 {
			break
		}
	}
	out.Passed = max(0, ran-out.Failed-out.Skipped)
	var b *body
	flush := func() {
		if b != nil && len(out.Items) < maxItems {
			out.Items = append(out.Items, b.item)
		}
		b = nil
	}
	for i := range t.len() {
		l := t.line(i)
		name, ok := strings.CutPrefix(l, "FAIL: ")
		if !ok {
			name, ok = strings.CutPrefix(l, "ERROR: ")
		}
		if ok {
			flush()
			test, _, _ := strings.Cut(name, " (")
			b = &body{item: Item{Test: test}}
			continue
		}
		if strings.HasPrefix(l, "Ran ") || strings.HasPrefix(l, "=====") {
			flush()
		}
		if b == nil || strings.HasPrefix(l, "Traceback") || strings.HasPrefix(l, "-----") {
			continue
		}
		if strings.HasPrefix(l, `  File "`) {
			if p, ok := placeIn(l); ok && !foreign(p.file) {
				b.item.File, b.item.Line = p.file, p.line
			}
			continue
		}
		if !strings.HasPrefix(l, "    ") {
			b.add(l)
		}
	}
	flush()
	return out, true
}

// cargo reads "test result: FAILED. 92 passed; 1 failed; 0 ignored; …", once
// for each test program.
func cargo(t text) (Tests, bool) {
	out := Tests{Runner: "cargo"}
	seen := false
	var b *body
	flush := func() {
		if b != nil && len(out.Items) < maxItems {
			out.Items = append(out.Items, b.item)
		}
		b = nil
	}
	for i := range t.len() {
		l := t.line(i)
		switch {
		case strings.HasPrefix(l, "test result: "):
			flush()
			seen = true
			out.Passed += count(l, " passed")
			out.Failed += count(l, " failed")
			out.Skipped += count(l, " ignored")
		case strings.HasPrefix(l, "---- ") && strings.HasSuffix(l, " ----"):
			flush()
			name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(l[5:], " ----"), " stdout"), " stderr")
			b = &body{item: Item{Test: strings.TrimSpace(name)}} // a test in the documents is "src/lib.rs - double (line 1)"
		case l == "failures:":
			flush()
		case b != nil && !strings.HasPrefix(l, "note: ") && !strings.HasPrefix(l, "stack backtrace"):
			b.add(l)
		}
	}
	flush()
	return out, seen
}

// rspec reads "3 examples, 2 failures, 1 pending".
func rspec(t text) (Tests, bool) {
	out := Tests{Runner: "rspec"}
	ok := lastWith(t, " example", func(l string) bool {
		if !has(l, " failure") || !isDigit((l + " ")[0]) {
			return false
		}
		all := count(l, " example")
		out.Failed, out.Skipped = count(l, " failure"), count(l, " pending")
		out.Passed = max(0, all-out.Failed-out.Skipped)
		return true
	})
	if ok {
		out.Items = blocks(t, after(t, "Failures:"), func(l string) bool {
			return strings.HasPrefix(l, "Finished in") || strings.HasPrefix(l, "Failed examples:")
		})
	}
	return out, ok
}

// after returns the number of the line that is word, or 0.
func after(t text, word string) int {
	for i := range t.len() {
		if strings.TrimSpace(t.line(i)) == word {
			return i
		}
	}
	return 0
}

// minitest reads minitest's "2 runs, 1 assertions, 1 failures, 1 errors, 0 skips"
// and ExUnit's "3 doctests, 119 tests, 1 failure", summed over the programs.
func minitest(t text) (Tests, bool) {
	out := Tests{Runner: "minitest"}
	seen := false
	for i := range t.len() {
		l := t.line(i)
		if l == "" || !isDigit(l[0]) || !has(l, " failure") {
			continue
		}
		var all int
		switch {
		case has(l, " runs, ", " run, "):
			all = count(l, " run")
		case has(l, " tests, ", " test, "):
			all = count(l, " test") + count(l, " doctest") + count(l, " propert")
			out.Runner = "exunit"
		default:
			continue
		}
		seen = true
		failed := count(l, " failure") + count(l, " error")
		skipped := count(l, " skip") + count(l, " excluded")
		out.Failed += failed
		out.Skipped += skipped
		out.Passed += max(0, all-failed-skipped)
	}
	if seen {
		out.Items = blocks(t, 0, func(l string) bool {
			return strings.HasPrefix(l, "Finished in") || l != "" && isDigit(l[0]) && has(l, " failure")
		})
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
			out.Failed, out.Skipped = count(l, "Failures:")+count(l, "Errors:"), count(l, "Skipped:")+count(l, "Incomplete:")
			out.Passed = max(0, count(l, "Tests:")-out.Failed-out.Skipped)
		case has(l, " assertions)"):
			out.Runner = "pest"
			out.Failed, out.Passed, out.Skipped = count(l, " failed"), count(l, " passed"), count(l, " skipped")
		default:
			return false
		}
		return true
	})
	if !ok {
		ok = lastWith(t, "OK (", func(l string) bool {
			out.Passed = count(strings.Replace(l, "(", " ", 1), " test")
			return has(l, " assertion")
		})
	}
	if !ok && !strings.Contains(t.s, "No tests executed!") {
		return out, false
	}
	if out.Failed > 0 {
		out.Items = blocks(t, 0, func(l string) bool {
			return strings.HasPrefix(l, "FAILURES!") || strings.HasPrefix(l, "ERRORS!")
		})
	}
	return out, true
}

// surefire reads maven's "Tests run: 2, Failures: 1, Errors: 0, Skipped: 0":
// the total where there is one, else the sum over the classes.
func surefire(t text) (Tests, bool) {
	out := Tests{Runner: "surefire"}
	total, seen := false, false
	for i := range t.len() {
		l := strings.TrimPrefix(t.line(i), "[ERROR] ")
		for _, p := range []string{"[INFO] ", "[WARNING] ", "Tests in error", "Failed tests:"} {
			l = strings.TrimPrefix(l, p)
		}
		if strings.HasPrefix(l, "Tests run: ") {
			isTotal := !has(l, "Time elapsed")
			if total && !isTotal {
				continue
			}
			seen = true
			n := Tests{Failed: count(l, "Failures:") + count(l, "Errors:"), Skipped: count(l, "Skipped:")}
			n.Passed = max(0, count(l, "Tests run:")-n.Failed-n.Skipped)
			if isTotal && !total {
				out.Passed, out.Failed, out.Skipped = 0, 0, 0
				total = true
			}
			out.Passed, out.Failed, out.Skipped = out.Passed+n.Passed, out.Failed+n.Failed, out.Skipped+n.Skipped
			continue
		}
		if it, ok := surefireItem(l); ok && len(out.Items) < maxItems {
			out.Items = append(out.Items, it)
		}
	}
	return out, seen
}

// surefireItem reads "Class.test:45 expected: <a> but was: <b>" and
// "Class.test  Time elapsed: 1 s  <<< FAILURE!".
func surefireItem(l string) (Item, bool) {
	said := strings.TrimSpace(l)
	if name, _, ok := strings.Cut(said, "  Time elapsed"); ok && has(said, "<<< FAIL", "<<< ERROR") && !strings.HasPrefix(said, "Tests run") {
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
	var b *body
	for i := range t.len() {
		l := t.line(i)
		said := strings.TrimSpace(l)
		switch {
		case has(l, "Failed!  - ", "Passed!  - "):
			seen = true
			out.Failed += count(l, "Failed:")
			out.Passed += count(l, "Passed:")
			out.Skipped += count(l, "Skipped:")
			b = nil
		case strings.HasPrefix(l, "  Failed ") && strings.HasSuffix(said, "]"):
			name, _, _ := strings.Cut(said[len("Failed "):], " [")
			out.Items = append(out.Items, Item{Test: name})
			b = &body{}
		case b != nil && len(out.Items) > 0:
			b.add(said)
			name := out.Items[len(out.Items)-1].Test
			out.Items[len(out.Items)-1] = b.item
			out.Items[len(out.Items)-1].Test = name
		}
		if len(out.Items) > maxItems {
			return out, seen
		}
	}
	return out, seen
}

// junit reads JUnit's XML inside of an output.
func junit(t text) (Tests, bool) {
	out := Tests{Runner: "junit"}
	from := strings.Index(t.s, "<testsuite")
	d := xml.NewDecoder(strings.NewReader(t.s[from:]))
	d.Strict = false
	var it Item
	seen, failed, skipped := false, false, false
	for {
		tok, err := d.Token()
		if err != nil {
			return out, seen
		}
		switch e := tok.(type) {
		case xml.StartElement:
			switch e.Name.Local {
			case "testsuite", "testsuites":
				seen = true
			case "testcase":
				it, failed, skipped = junitCase(e), false, false
			case "failure", "error":
				failed = true
				it.Message = attr(e, "message")
			case "skipped":
				skipped = true
			}
		case xml.CharData:
			if failed && strings.TrimSpace(string(e)) != "" && it.Line == 0 {
				b := body{item: it}
				b.add(string(e))
				it.File, it.Line, it.Column = b.item.File, b.item.Line, b.item.Column
				if it.Message == "" {
					it.Message = cut(strings.TrimSpace(string(e)), maxMessage)
				}
			}
		case xml.EndElement:
			if e.Name.Local != "testcase" {
				continue
			}
			switch {
			case failed:
				out.Failed++
				it.Expected, it.Received = expectation(it.Message)
				if len(out.Items) < maxItems {
					out.Items = append(out.Items, it)
				}
			case skipped:
				out.Skipped++
			default:
				out.Passed++
			}
			failed = false
		}
	}
}

func junitCase(e xml.StartElement) Item {
	it := Item{Test: attr(e, "name"), File: attr(e, "file")}
	if c := attr(e, "classname"); c != "" && !strings.HasPrefix(it.Test, c) {
		it.Test = c + "." + it.Test
	}
	it.Line, _ = number(attr(e, "line"), 0)
	return it
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
