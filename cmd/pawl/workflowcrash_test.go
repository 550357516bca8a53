package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// crashing has steps side by side, one after the other, and one that asks for
// the outputs of others.
const crashing = `
config: {parallelism: 2}
steps:
  - {id: a, run: "echo a >> effects; echo out a"}
  - {id: b, run: "echo b >> effects"}
  - id: c
    run: echo "c ${{ steps.a.output }}" >> effects
    needs: [a, b]
    verify: ["grep -q c effects"]
  - {id: d, run: "echo d >> effects", needs: c}
`

// Pawl is killed at each thing that it tells, and resumed: every step has its
// effect exactly once. The supervisor outlives pawl, so no step is in doubt.
func TestAWorkflowKilledAtEachPhase(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		if ended := killedAt(t, n); ended {
			if n < 10 {
				t.Errorf("the run told only %d things", n-1)
			}
			return
		}
	}
}

// killedAt kills pawl when it tells its n-th thing, resumes the run, and looks
// at the effects; true when the run ended before that.
func killedAt(t *testing.T, n int) (ended bool) {
	t.Helper()
	w := workflowIn(t, crashing)
	cmd := w.pawl("run", "crash.yaml", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, told := bufio.NewScanner(out), 0
	for told < n && lines.Scan() {
		told++
	}
	ended = told < n
	if !ended {
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); ended && err != nil {
		t.Fatalf("%v: %s", err, w.stderr.String())
	}
	// The last line comes when all is done; who is killed there has nothing to resume.
	if text, err := w.pawl("resume", "crash").CombinedOutput(); err != nil && !ended && !bytes.Contains(text, []byte("the run is completed")) {
		t.Errorf("killed at %d: %v: %s", n, err, text)
	}
	want := []string{"a", "b", "c out a", "d"}
	got := strings.Split(strings.TrimSpace(w.read("effects")), "\n")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("killed at %d: effects %q, want %q", n, got, want)
	}
	return ended
}

// place is a folder with a workflow, and a home of its own.
type place struct {
	t      *testing.T
	dir    string
	home   string
	stderr bytes.Buffer
}

func workflowIn(t *testing.T, text string) *place {
	t.Helper()
	w := &place{t: t, dir: t.TempDir(), home: t.TempDir()}
	if err := os.WriteFile(filepath.Join(w.dir, "crash.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *place) pawl(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), "pawl", args...)
	cmd.Dir = w.dir
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PAWL_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+w.home, "XDG_STATE_HOME="+w.home, "XDG_CONFIG_HOME="+w.home, "PAWL_LOOP_SAFETY=permissive")
	cmd.Stderr = &w.stderr
	if slices.Contains(args, "resume") {
		cmd.Stderr = nil
	}
	return cmd
}

func (w *place) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Error(fmt.Errorf("%w: %s", err, w.stderr.String()))
	}
	return string(data)
}
