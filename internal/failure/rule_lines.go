package failure

import "strings"

// This file knows forms of lines that are too common to be looked at with an
// expression.

// begins makes a condition: the line begins with prefix.
func begins(prefix string) func(string) bool {
	return func(l string) bool { return strings.HasPrefix(l, prefix) }
}

// countsFailures tells whether l is a test runner's summary that counts at
// least one failure.
func countsFailures(l string) bool {
	s := strings.Trim(l, " =\t│")
	if len(s) > 300 || !strings.ContainsAny(s, "123456789") {
		return false
	}
	if i := strings.Index(s, "Tests run: "); i >= 0 && i < 20 {
		return count(s, "Failures:")+count(s, "Errors:") > 0
	}
	switch {
	case strings.HasPrefix(s, "FAILED ("):
		return count(s, "failures=")+count(s, "errors=") > 0
	case strings.HasPrefix(s, "Failed!"), strings.HasPrefix(s, "Failed:"):
		return count(s, "Failed:") > 0
	case has(s, "Assertions: "):
		return count(s, "Failures:")+count(s, "Errors:") > 0
	case strings.HasPrefix(s, "[ OK:"), strings.HasPrefix(s, "[ FAIL "): // testthat
		return count(s, "FAILED:") > 0 || !strings.HasPrefix(s, "[ FAIL 0") && s[2] == 'F'
	case strings.HasPrefix(s, "Failed ") && strings.HasSuffix(s, "subtests"):
		return true
	}
	failed := count(s, " failed") + count(s, " failure") + count(s, " errored") + count(s, " FAILED") + count(s, " failing")
	switch {
	case failed == 0:
		return count(s, " error") > 0 && has(s, " runs, ", " tests, ") && has(s, " failures")
	case strings.HasPrefix(s, "Tests"), strings.HasPrefix(s, "Executed "), strings.HasPrefix(s, "Test Suites:"):
		return true
	}
	if i := strings.LastIndex(s, " in "); i > 0 && isDigit(s[0]) && isDigit((s[i+4:] + " ")[0]) { // pytest
		return strings.HasSuffix(s, "s") || strings.HasSuffix(s, ")")
	}
	return has(s, " example", " tests, ", " test, ", " runs, ", " scenario", " specs, ", " spec, ", " passed", " passing", " successful", " pass,")
}

// countsErrors tells whether l is pytest's word for a test that could not run.
func countsErrors(l string) bool {
	if strings.HasPrefix(l, "ERROR ") {
		return has(l, "::", ".py")
	}
	return strings.HasPrefix(l, "=") && strings.Contains(l, " in ") && count(l, " error") > 0
}

// namesException tells whether l begins with the name of an exception:
// "KeyError: 'id'", "botocore.exceptions.ClientError: …", "TypeError [CODE]: …".
func namesException(l string) bool {
	s := strings.TrimLeft(l, " |\t")
	if len(s) == 0 || !isUpper(s[0]) && !isLower(s[0]) {
		return false
	}
	n, last := 0, 0
	for n < len(s) && (wordByte(s[n]) || s[n] == '.') {
		if s[n] == '.' {
			last = n + 1
		}
		n++
	}
	name := s[last:n]
	if name == "" || !isUpper(name[0]) || !has(name, "Error", "Exception", "Interrupt") {
		return false
	}
	return n == len(s) || s[n] == ':' || strings.HasPrefix(s[n:], " [") || strings.HasPrefix(s[n:], " (")
}

// compilerLine tells whether l is an error of a compiler at its place:
// "a.c:6:34: error: …", "A.java:1: error: …".
func compilerLine(l string) bool {
	if l == "" || l[0] == ' ' || l[0] == '\t' {
		return false
	}
	p, ok := placeIn(l)
	if !ok || p.from > 40 {
		return false
	}
	rest := strings.TrimLeft(p.rest, ": ")
	rest = strings.TrimPrefix(rest, "fatal ")
	if len(rest) < 5 || !strings.EqualFold(rest[:5], "error") {
		return false
	}
	switch strings.ToLower(p.file[strings.LastIndexByte(p.file, '.')+1:]) {
	case "c", "cc", "cpp", "cxx", "h", "hpp", "hh", "m", "mm", "cu", "f90", "f95", "f", "for", "s", "swift", "kt", "kts", "java",
		"scala", "hs", "zig", "d", "nim", "cr", "vala", "ml", "mli", "proto", "adb", "ads", "pas", "dart", "groovy", "sol":
		return true
	}
	return false
}

// numberedProblem tells whether l begins with "12:3", as linters print below
// the name of a file.
func numberedProblem(l string) bool {
	s := strings.TrimLeft(l, " \t")
	n, i := number(s, 0)
	return n > 0 && i < len(s)-1 && s[i] == ':' && isDigit(s[i+1]) || located(l) && strings.Contains(l, ": line ")
}

// located tells whether l begins with a place.
func located(l string) bool {
	p, ok := placeIn(l)
	return ok && strings.TrimSpace(l[:p.from]) == ""
}

// reportsError tells whether l says that something is wrong, not only that
// something would be.
func reportsError(l string) bool {
	s := strings.ToLower(l)
	return has(s, "error", "fatal", "failed", "exception", "problem") || strings.HasPrefix(strings.TrimLeft(s, " \t>*-"), "invalid ")
}
