package failure

import "strings"

// What linters, formatters and type checkers say.
var linterRules = []rule{
	{Validation, 90, "error ts5|error ts6|error ts18003", `error TS(5\d{3}|18003|6046|6053|6231|6304):`, "", inside, nil},
	{Lint, 88, "error ts", `(?i)\berror TS\d{3,5}:`, "", inside, nil},
	{Lint, 88, "problem (|problems (", `(?i)\d+ problems? \(\d+ errors?, \d+ warnings?`, "", 0, nil},
	{Lint, 83, "error|warning", `^\s+\d+:\d+\s+(error|warning)\s+.+\s{2,}(\(?[@\w/-]+\)?)\s*$|^\S+: line \d+, col \d+, (Error|Warning) - `, "", loud, numberedProblem},
	{Lint, 86, "clippy::|rust-clippy", "", "", loud, nil},
	{Lint, 84, "offenses detected|offense detected|code style issues|--check-formatted|would reformat|would be reformatted|not gofmt|not gofmt'd|not gofmt-ed|not goimported|not gofumpt|is not formatted|not properly formatted|not formatted|formatting issues|formatting errors|needs formatting|imports are incorrectly sorted|shellcheck.net|typos found|files were modified by this hook|code formatting check failed|run prettier|forgot to run prettier|file would be reformatted|files would be reformatted|is not properly formatted|wrong formatting|does not match the formatting|clang-format|fixable with the|potentially fixable", "", `^\s*(>|\$|\+|run)`, loud | stated, without("no issues", "0 offenses", "0 fixable", "0 errors and 0 warnings potentially")},
	{Lint, 84, "mypy|stylelint|pylint|flake8|golangci-lint|swiftlint|ktlint|checkstyle|biome|ruff|detekt|pmd|yamllint|markdownlint|credo|dialyzer|hadolint|actionlint|ansible-lint|spotbugs|phpstan|psalm|eslint|standardjs|pyright|vale|tflint|sqlfluff|cpplint", "", `(?i)^\s*(>|\$|\+|run|added|installing|all checks passed)|exit(ed)? (status|with)|@`, loud | stated, both(with("error", "fail", "violation", "issue", "found", "problem"), without("no issues", "0 errors", "config", "plugin", "cannot find", "couldn't find", "oops", "not found", "executable", "could not find", "failed to load"))},
	{Lint, 85, "has arg|wrong type|possible misuse|unreachable code|result of|copies lock|passes lock by value|self-assignment|struct field tag|unkeyed fields|should have signature|loop variable|lostcancel|call needs|cancel function|format %", "", "", inside, goProblem("has arg", "format %", "format string", "possible misuse", "unreachable code", "not used", "copies lock", "passes lock", "self-assignment", "struct field tag", "unkeyed fields", "should have signature", "loop variable", "cancel function", "call needs", "wrong type")},
	{Lint, 84, ".go:|.py:|.js:|.ts:|.rb:|.kt:|.swift:|.java:|.c:|.cpp:|.h:|.sh:|.rs:|.proto:|.tf:|.tsx:|.jsx:|.php:|.scala:|.yaml:|.yml:|.md:", "", `(?i)panic|exception|(\W|^)error: |assertion`, loud, lintLine},
	{Lint, 85, "error:|warning:|note:", `(?i)^\S+\.\w+:\d+(:\d+)?: (error|warning|note): .+\s+\[[a-z][a-z0-9.,-]+\]\s*$`, `-W|\[-|\[INFO\]`, loud, located},
	{Lint, 83, "error:|warning:|information:", `^\s+\S+:\d+:\d+ - (error|warning|information): `, `TS\d+`, loud, located},
	{Lint, 84, "lint|format|assist|organizeimports|suppressions", `^\S+\.\w+(:\d+:\d+)? (lint|format|assist|organizeImports|suppressions)(/| ━)`, "", loud, nil},
	{Lint, 84, ".rb:|.py:", `^\S+:\d+:\d+: [CWEFRN]: |^\S+\.py:\d+:\d+: [CWEFR]\d{4}: `, "", 0, located},
	{Lint, 82, "sc1|sc2|sc3", `(?i)\bSC[1-3]\d{3}\b`, "", inside | loud, nil},
	{Lint, 82, "violation|violations", `(?i)^\S+:\d+(:\d+)?: (error|warning): .*violation|you have \d+ \S+ violations?|\d+ (style |lint )?violations? found|found \d+ (style |lint )?violations?`, "", loud, nil},
	{Lint, 80, "warning:|error:", `^\S+:\d+:(\d+)?:? ?(error|warning): .*\(\w+\)\s*$`, "", loud, located},
	{Lint, 79, "no-|prefer-|react-hooks|react/|import/|@typescript-eslint|jsx-a11y", `^\s*\d+:\d+\s+\S.+\s+\(?@?[a-z]+([-/][a-z0-9]+)+\)?\s*$`, "", inside | loud, numberedProblem},
	{Lint, 83, "-->", "", "", 0, both(arrow([]string{"A", "B", "C", "D", "E", "F", "G", "I", "N", "P", "Q", "R", "S", "T", "U", "W", "Y"}, "py", "pyi", "ipynb"), afterCode)},
	{Lint, 82, ".py:|.pyi:", `\.pyi?:\d+:\d+:? \[?[A-Z]{1,4}\d{2,4}\b`, "", 0, located},
	{Lint, 80, "tldr|md0|dl3|dl4", `^\S+:\d+(:\d+)?:? ?(error )?(TLDR|MD|DL)\d{3,4}\b`, "", inside, nil},
	{Lint, 80, "error -|info -|warning -|error •|info •|warning •", `(?i)^\s*(error|warning|info)\s+[-•] .* [-•] \S+\.dart:\d+:\d+ [-•] `, "", loud, nil},
	{Lint, 80, "is a misspelling|misspelling|misspelled|==>", `(?i)is a misspelling|^\S+:\d+: \S+\s+==> \S+`, "", 0, nil},
	{Lint, 88, "ts1|ts2|ts7", `^error: TS\d{4,5} \[ERROR\]`, "", inside, nil},
	{Lint, 80, "error -|info -|warning -", `^\s*(error|warning|info) - \S+\.dart:\d+:\d+ - `, "", loud, nil},
	{Lint, 84, "found", `^FOUND [1-9]\d* (ERROR|WARNING)S?\b.* AFFECTING`, "", 0, starts},
	{Lint, 84, "diff", `^diff \S+\.orig \S+\s*$`, "", 0, starts},
	{Lint, 80, "--- old/", `^--- old/\S+$`, "", inside, nil},
	{Lint, 80, "finding|findings", `(?i)\b[1-9]\d* (code |blocking )?findings?\b`, "", loud, nil},
	{Lint, 84, "diff in", `^Diff in .*:\d+`, "", 0, nil},
	{Lint, 83, "....failed", `^[\w ,.()/-]+\.{5,}.*Failed\s*$`, "", inside, nil},
	{Lint, 80, "found", `(?i)^\W*(\[ERROR\] )?Found [1-9]\d* errors?(\.|$| in \d+ (file|source))|found [1-9]\d* [a-z ]*(code|style|format\w*|lint\w*|readability|consistency|design|refactoring) [a-z ]*(issue|warning|problem|opportunit)`, "", closing, nil},
	{Lint, 88, "type error:", "", "", 0, both(starts, belowPlace)},
	{Lint, 84, "[error]|[warn]", `^\[(ERROR|WARN)\] \S+\.\w+:\[?\d+[:,]\d+\]?:? .+ (\[[A-Z][A-Za-z]+\]|\([a-z][a-z-]+\)( [A-Z]\w+)?)\s*$`, "", loud | inside, nil},
	{Lint, 70, "- hook id:", "", "", 0, nil},
	{Lint, 60, "lint|fmt|format|style", `(?i)^(npm (ERR!|error)|error Command|make: \*\*\*|error:|ELIFECYCLE|g?make\[\d\]: \*\*\*).*\b\S*(lint|fmt|format|style)\S*\b.*(script|failed|Error \d)`, "", inside, nil},
	{Lint, 66, "linting failed|lint failed|lint errors|lint error|linter|code quality check|type errors|type checking failed|lint check failed|style check failed|formatting check failed", "", "", stated, with("fail", "error", "violation")},
}

// afterCode holds where the line above begins with the code of a check, "F401".
func afterCode(p spot) bool {
	said := strings.TrimLeft(p.previous(), " ")
	n := 0
	for n < len(said) && isUpper(said[n]) {
		n++
	}
	return n > 0 && n < 5 && n+2 < len(said) && isDigit(said[n]) && isDigit(said[n+1])
}

// belowPlace holds where the line above is nothing but a place.
func belowPlace(p spot) bool {
	at, ok := placeIn(p.previous())
	return ok && strings.TrimSpace(at.rest) == ""
}
