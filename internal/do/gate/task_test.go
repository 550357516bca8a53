package gate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// The files of a check stand in the place of an agent's, whatever that left there, and go again.
func TestLayFiles(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "own.sh"), []byte("own"), 0o600),
		os.Symlink(out, filepath.Join(dir, "led")),
		os.WriteFile(filepath.Join(dir, "file"), []byte("file"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	list := map[string]string{"own.sh": "#!/bin/sh\n", "led/a.sh": "a", "file/b.sh": "b", "new/deep/c.sh": "c"}
	_, back, err := LayFiles(dir, list)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range list {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != text {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if left, _ := os.ReadDir(out); len(left) > 0 {
		t.Errorf("a link of the agent's led to %v", left)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	if own, _ := os.ReadFile(filepath.Join(dir, "own.sh")); string(own) != "own" {
		t.Errorf("the agent's file is %q", own)
	}
	if to, _ := os.Readlink(filepath.Join(dir, "led")); to != out {
		t.Errorf("the agent's link leads to %q", to)
	}
	if left, _ := os.ReadDir(dir); len(left) != 3 {
		t.Errorf("left: %v", left)
	}
}

// Of a sealed check nothing but its criterion goes on.
func TestSealedFailure(t *testing.T) {
	t.Parallel()
	task := board.Case{ID: "task-001", Checks: board.Checks{
		Verify: []board.TaskCheck{{Command: "make accept"}},
		Sealed: []board.TaskCheck{{Name: "secret", Command: "sh secret.sh", Criterion: "all is counted"}},
	}}
	specs := TaskSpecs(&task, Spec{})
	if specs[0].Name != "task-001: make accept" || specs[0].Origin != loop.OfTask || specs[0].OnCopy() || !specs[1].OnCopy() {
		t.Errorf("%+v", specs)
	}
	run := func(_ context.Context, _ int, s Spec) (Exec, error) {
		if s.Origin == loop.Sealed {
			return Exec{ExitCode: 1, Output: "--- FAIL: TestSecret (0.00s)\n", Changed: []string{"secret.txt"}}, nil
		}
		return Exec{}, nil
	}
	r, err := Verify(t.Context(), specs, run, clock)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Summary + r.Failure.Summary + r.Failure.Items[0].Message + r.Gates[1].Name + r.Gates[1].Note
	if want := "task-001: sealed check 1: this does not hold yet: all is counted"; r.Summary != want || strings.Contains(got, "ecret") {
		t.Errorf("%q", got)
	}
}

func TestIsTest(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"a/b_test.go": true, "test_x.py": true, "conftest.py": true, "src/a.test.ts": true, "x_spec.rb": true,
		"FooTest.java": true, "tests/it.rs": true, "testdata/x.json": true, "latest.go": false, "contest.py": false,
		"src/attest.ts": false, "Latest.java": false, "protest/x.go": false,
	} {
		if IsTest(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}
