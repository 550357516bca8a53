package trial

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/ask/cli/command"
	"github.com/pawl-dev/pawl/internal/decide/trial"
)

// What a trial shows is proposed with its evidence, and written only after a yes: the agent, and the keys of the file
// that was tried.
func TestApply(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pawl.yaml")
	const before = "agent: idle # for now\n\nagents:\n  idle: {command: [\"true\"]}\n  busy: {command: [\"true\"]}\n" +
		"loop: {max_iterations: 1}\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	a := &command.App{Dir: dir, Env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, Stdin: strings.NewReader(""),
		Stdout: &out, Stderr: &notes, Keys: &command.Keys{}}
	b := &bench{app: a, dir: trialDir(a, dir), maxCost: -1}
	if b.board, err = a.LocalDatabase(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	defer b.board.Close()
	w, err := b.openWallet(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := plan{Settings: map[string]string{"two.yaml": "loop: {max_iterations: 2, max_cost: 1}\n"}}
	for n := range 6 {
		for _, v := range []trial.Variant{{Agent: "idle", Setting: trial.AsIs}, {Agent: "busy", Setting: "two.yaml"}} {
			task := trial.Task{Commit: strconv.Itoa(n)}
			one := planned{Variant: v, Task: task, Key: v.Agent + task.Commit}
			p.Tasks, p.Attempts = append(p.Tasks, task), append(p.Attempts, one)
			made := trial.Attempt{Variant: v, Task: task.Commit, Solved: v.Agent == "busy", CostKnown: true}
			_, isOurs, err := w.holdMoney(purchase{key: one.Key})
			if err = errors.Join(err, w.storePaidResult(one.Key, 0, made)); err != nil || !isOurs {
				t.Fatal(isOurs, err)
			}
		}
	}
	if err := storeJSON(filepath.Join(b.dir, "last.json"), p); err != nil {
		t.Fatal(err)
	}
	written := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := applyLast(t.Context(), a, false); err == nil || written() != before {
		t.Errorf("without a yes: %v\n%s", err, written())
	}
	if text := out.String(); !strings.Contains(text, "Proposed for pawl.yaml: busy with two.yaml, instead of idle.") ||
		!strings.Contains(text, "busy with two.yaml solved 6 of 6 attempts") || !strings.Contains(text, "(p = 0.031)") {
		t.Error(text)
	}
	if err := applyLast(t.Context(), a, true); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("agent: idle #", "agent: busy #", "{max_iterations: 1}", "{max_iterations: 2, max_cost: 1}").
		Replace(before)
	if got := written(); got != want {
		t.Errorf("got:\n%s", got)
	}
	out.Reset()
	if err := applyLast(t.Context(), a, true); err != nil || !strings.Contains(out.String(), "no attempt of what pawl.yaml says now (busy)") {
		t.Errorf("again: %v: %s", err, &out)
	}
}
