package survey

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// The line that init prints for several folders works as printed: each command of every kind of project runs in its
// folder.
func TestSetupLineRuns(t *testing.T) {
	t.Parallel()
	kinds := [][]string{(&python{tools: []string{"pytest"}}).makeVenv(".venv")}
	for _, r := range rulesFor("setup", "manager", "lock", "bare") {
		kinds = append(kinds, []string{r.command})
	}
	for _, setup := range kinds {
		dir := tempDir(t)
		var p part
		want := ""
		for _, name := range []string{"libs/one", "libs/two"} {
			write(t, filepath.Join(dir, name), map[string]string{"autogen.sh": stub, "configure": stub, ".bundle/x": "",
				".venv/bin/pip": stub})
			for _, script := range []string{"autogen.sh", "configure", ".venv/bin/pip"} {
				if err := os.Chmod(filepath.Join(dir, name, script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			addPartOfFolder(&p, name, &part{setup: setup})
			for _, command := range strings.Split(strings.Join(setup, " && "), " && ") {
				if !strings.HasPrefix(command, "echo") {
					want += filepath.Join(dir, name) + "\n"
				}
			}
		}
		bin := tempDir(t)
		for _, command := range p.setup {
			for _, one := range strings.Split(command, " && ") {
				word, _, _ := strings.Cut(one, " ")
				if filepath.Base(word) == word && word != "cd" && word != "echo" {
					write(t, bin, map[string]string{word: stub})
					if err := os.Chmod(filepath.Join(bin, word), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		line := fault.ShellLine(p.setup)
		cmd := exec.Command("/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + bin + ":/usr/bin:/bin", "LOG=" + filepath.Join(bin, "log")}
		out, err := cmd.CombinedOutput()
		got, _ := os.ReadFile(filepath.Join(bin, "log"))
		if err != nil || string(got) != want {
			t.Errorf("%s\n%v: %s\nworked in:\n%swant:\n%s", line, err, out, got, want)
		}
	}
}

// stub is a program that writes down where it works.
const stub = "#!/bin/sh\npwd >> \"$LOG\"\n"
