package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

var toolchainTable = flag.Bool("toolchains", false, "write the table of docs/toolchains.md anew, of all that is installed here")

// toolchain is one of testdata/toolchains: its first lines say what it is called, which
// programs it needs, and what builds and tests the project that follows.
type toolchain struct {
	name, gate string
	needs      []string
	files      []txtar.File
}

func readToolchain(t *testing.T, path string) toolchain {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(string(archive.Comment), "\n", 4)
	if len(lines) < 4 {
		t.Fatalf("%s has no head", path)
	}
	return toolchain{name: lines[0], needs: strings.Fields(strings.TrimPrefix(lines[1], "needs:")),
		gate: strings.TrimSpace(strings.TrimPrefix(lines[2], "gate:")), files: archive.Files}
}

// Builds work in the box without a setting: the agent builds and tests a project,
// and so does the gate. In the short form the levels take turns.
func TestToolchains(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds projects of many languages")
	}
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "toolchains", "*.txt"))
	if err != nil || len(paths) == 0 {
		t.Fatal(err, paths)
	}
	const page = "../../docs/toolchains.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, table, _ := strings.Cut(string(text), "|---|---|---|---|---|\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	var written []string
	for n, path := range paths {
		tc := readToolchain(t, path)
		cells := []string{tc.name, "`" + strings.ReplaceAll(tc.gate, "|", `\|`) + "`"}
		isRow := func(row string) bool { return strings.HasPrefix(row, "| "+tc.name+" |") }
		if !slices.ContainsFunc(rows, isRow) && !*toolchainTable {
			t.Errorf("docs/toolchains.md has no row for %s: go test ./cmd/pawl -run TestToolchains -toolchains", tc.name)
		}
		for i, level := range []string{"normal", "paranoid"} {
			cell := "fails"
			t.Run(tc.name+" at "+level, func(t *testing.T) {
				if !*toolchainTable && n%2 != i {
					t.Skip("the other level's turn")
				}
				tc.build(t, level)
				cell = "works"
			})
			cells = append(cells, cell)
		}
		version := "not installed here"
		if missing := tc.missing(); len(missing) > 0 {
			cells[2], cells[3] = "not tried", "not tried"
		} else {
			version = "installed here"
		}
		written = append(written, "| "+strings.Join(append(cells, version), " | ")+" |")
	}
	if *toolchainTable {
		out := head + "|---|---|---|---|---|\n" + strings.Join(written, "\n") + "\n"
		if err := os.WriteFile(page, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// missing are the programs that are not installed.
func (tc toolchain) missing() []string {
	return slices.DeleteFunc(slices.Clone(tc.needs), func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// build has an agent and a gate build and test the project, at a level.
func (tc toolchain) build(t *testing.T, level string) {
	if missing := tc.missing(); len(missing) > 0 {
		t.Skipf("not installed: %s", strings.Join(missing, ", "))
	}
	top, err := outsideFolder()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+rwx", top).Run()
		_ = os.RemoveAll(top)
	})
	work := filepath.Join(top, "work")
	files := append(slices.Clone(tc.files),
		txtar.File{Name: "agent.sh", Data: []byte("set -e\n{ " + tc.gate + "; } >&2\necho '<promise>COMPLETE</promise>'\n")},
		txtar.File{Name: "gate.sh", Data: []byte("set -e\n" + tc.gate + "\n")},
		txtar.File{Name: "pawl.yaml", Data: []byte("agent: m\nagents: {m: {command: [sh, agent.sh], output: text}}\n" +
			"verification: [sh gate.sh]\n" +
			"safety: {limits: {paranoid: {max_duration_per_iteration: 1h, max_total_duration: 2h}}}\nprocedures: {build: {act: [{content: Work.}]}}\n")})
	for _, f := range files {
		path := filepath.Join(work, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+top+"/state", "XDG_CONFIG_HOME="+top+"/config",
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("sh", "-c", "git init -q && git add -A && git commit -qm start"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := run("pawl", "run", "build", "-n", "1", "--safety", level)
	if err == nil && strings.Contains(out, " passed") {
		return
	}
	logs, _ := run("pawl", "logs", "build", "-i", "1")
	if outside, err := run("sh", "gate.sh"); err != nil {
		t.Skipf("it fails without a box as well: %v: %s", err, outside)
	}
	t.Fatalf("%v: %s\n%s", err, out, logs)
}
