package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// totals is what was counted so far. A test with subtests counts as well as
// each of them, as in go test's own reports.
type totals struct {
	passed, failed, skipped         int
	packages, failedPackages, empty int

	output  map[string]*strings.Builder // what a test printed that has not ended
	skips   []string                    // one line for each skipped test
	running map[string]bool             // tests that have begun and not ended
	verbose bool                        // print what tests say as they say it
}

// sum copies a run's readable output from r to w and adds the totals. With
// verbose, passing tests are heard too. It returns whether anything failed; an
// error means that the run cannot be judged at all.
func sum(r io.Reader, w io.Writer, verbose bool) (failed bool, err error) {
	t := &totals{output: map[string]*strings.Builder{}, running: map[string]bool{}, verbose: verbose}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if err := t.line(line, w); err != nil {
				return true, err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return true, fmt.Errorf("cannot read the test run: %w", err)
		}
	}
	if err := t.close(w); err != nil {
		return true, err
	}
	return t.failed+t.failedPackages > 0, nil
}

func (t *totals) line(line string, w io.Writer) error {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		_, err := io.WriteString(w, line) // not an event: a word of the go command
		return err
	}
	if e.Test == "" {
		return t.aboutPackage(e, w)
	}
	return t.aboutTest(e, w)
}

func (t *totals) aboutPackage(e event, w io.Writer) error {
	switch e.Action {
	case "pass":
		t.packages++
	case "fail":
		t.packages++
		t.failedPackages++
	case "skip":
		t.empty++
	case "output", "build-output":
		if e.Output == "PASS\n" {
			return nil
		}
		_, err := io.WriteString(w, e.Output)
		return err
	}
	return nil
}

func (t *totals) aboutTest(e event, w io.Writer) error {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		t.running[key] = true
	case "output":
		if t.output[key] == nil {
			t.output[key] = &strings.Builder{}
		}
		t.output[key].WriteString(e.Output)
		if t.verbose {
			_, err := io.WriteString(w, e.Output)
			return err
		}
	case "pass":
		t.passed++
		t.forget(key)
	case "skip":
		t.skipped++
		t.skips = append(t.skips, e.Package+" "+e.Test+": "+t.reason(key))
		t.forget(key)
	case "fail":
		t.failed++
		err := t.show(key, w)
		t.forget(key)
		return err
	}
	return nil
}

// show prints what a test said, without the lines that only say where it is.
func (t *totals) show(key string, w io.Writer) error {
	if t.output[key] == nil || t.verbose {
		return nil
	}
	for line := range strings.Lines(t.output[key].String()) {
		if strings.HasPrefix(line, "=== ") {
			continue
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// reason is the last thing that a skipped test said.
func (t *totals) reason(key string) string {
	last := "without a reason"
	if t.output[key] == nil {
		return last
	}
	for line := range strings.Lines(t.output[key].String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			last = line
		}
	}
	return last
}

func (t *totals) forget(key string) {
	delete(t.output, key)
	delete(t.running, key)
}

func (t *totals) close(w io.Writer) error {
	lost := make([]string, 0, len(t.running))
	for key := range t.running {
		lost = append(lost, key)
	}
	slices.Sort(lost)
	for _, key := range lost {
		fmt.Fprintf(w, "did not end: %s\n", key)
		if err := t.show(key, w); err != nil {
			return err
		}
	}
	t.failed += len(lost)
	for _, line := range t.skips {
		fmt.Fprintf(w, "skipped: %s\n", line)
	}
	if t.passed+t.failed+t.skipped+t.failedPackages == 0 {
		return errors.New("no test was run")
	}
	_, err := fmt.Fprintf(w, "%d packages ok, %d failed, %d without tests\n%d passed, %d failed, %d skipped\n",
		t.packages-t.failedPackages, t.failedPackages, t.empty, t.passed, t.failed, t.skipped)
	return err
}
