package main

import (
	"errors"
	"strings"
	"testing"
)

// line makes one event; out is its Output.
func line(action, pkg, test, out string) string {
	var fields []string
	for _, f := range [][2]string{{"Action", action}, {"Package", pkg}, {"Test", test}, {"Output", strings.ReplaceAll(out, "\n", `\n`)}} {
		if f[1] != "" {
			fields = append(fields, `"`+f[0]+`":"`+f[1]+`"`)
		}
	}
	return "{" + strings.Join(fields, ",") + "}\n"
}

func TestSum(t *testing.T) {
	tests := []struct {
		name   string
		run    []string
		want   string
		failed bool
	}{
		{"green, with a skip that says why", []string{
			line("start", "p", "", ""),
			line("run", "p", "TestA", ""), line("output", "p", "TestA", "chatter\n"), line("pass", "p", "TestA", ""),
			line("run", "p", "TestB", ""), line("output", "p", "TestB", "=== RUN TestB\n"),
			line("output", "p", "TestB", "    b_test.go:3: no npm here\n"), line("output", "p", "TestB", "--- SKIP: TestB\n"), line("skip", "p", "TestB", ""),
			line("output", "p", "", "PASS\n"), line("output", "p", "", "ok p 0.1s\n"), line("pass", "p", "", ""),
			line("output", "q", "", "? q [no test files]\n"), line("skip", "q", "", ""),
		}, "ok p 0.1s\n? q [no test files]\nskipped: p TestB: b_test.go:3: no npm here\n" +
			"1 packages ok, 0 failed, 1 without tests\n1 passed, 0 failed, 1 skipped\n", false},
		{"red: what the test said is shown", []string{
			line("run", "p", "TestA", ""), line("output", "p", "TestA", "=== RUN TestA\n"), line("output", "p", "TestA", "a_test.go:3: wrong\n"),
			line("fail", "p", "TestA", ""), line("output", "p", "", "FAIL p\n"), line("fail", "p", "", ""),
		}, "a_test.go:3: wrong\nFAIL p\n0 packages ok, 1 failed, 0 without tests\n0 passed, 1 failed, 0 skipped\n", true},
		{"a package that does not build", []string{
			`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: syntax error\n"}` + "\n",
			line("output", "p", "", "FAIL p [build failed]\n"), line("fail", "p", "", ""),
		}, "p.go:1: syntax error\nFAIL p [build failed]\n0 packages ok, 1 failed, 0 without tests\n0 passed, 0 failed, 0 skipped\n", true},
		{"a test that took the process with it", []string{
			line("run", "p", "TestA", ""), line("output", "p", "TestA", "panic: no\n"),
		}, "did not end: p TestA\npanic: no\n0 packages ok, 0 failed, 0 without tests\n0 passed, 1 failed, 0 skipped\n", true},
		{"a word of the go command, and no newline at the end", []string{
			"go: downloading x\n", strings.TrimSuffix(line("pass", "p", "TestA", ""), "\n"),
		}, "go: downloading x\n0 packages ok, 0 failed, 0 without tests\n1 passed, 0 failed, 0 skipped\n", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			failed, err := sum(strings.NewReader(strings.Join(tt.run, "")), &out, false)
			if err != nil {
				t.Fatal(err)
			}
			if failed != tt.failed || out.String() != tt.want {
				t.Errorf("failed = %v, output:\n%s\nwant %v and:\n%s", failed, out.String(), tt.failed, tt.want)
			}
		})
	}
}

// Nothing that ran is nothing that passed.
func TestNothing(t *testing.T) {
	for _, in := range []string{"", "no packages to test\n", line("skip", "p", "", "")} {
		if _, err := sum(strings.NewReader(in), &strings.Builder{}, false); err == nil {
			t.Errorf("sum(%q) found a run", in)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("gone") }

func TestBrokenPipe(t *testing.T) {
	if _, err := sum(broken{}, &strings.Builder{}, false); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("err = %v", err)
	}
}

// With -v a test is heard while it runs, and only once.
func TestVerbose(t *testing.T) {
	in := line("run", "p", "TestA", "") + line("output", "p", "TestA", "chatter\n") + line("fail", "p", "TestA", "")
	var out strings.Builder
	if _, err := sum(strings.NewReader(in), &out, true); err != nil || strings.Count(out.String(), "chatter\n") != 1 {
		t.Errorf("err = %v, output:\n%s", err, out.String())
	}
}
