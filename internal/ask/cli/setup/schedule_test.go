package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadWhen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"every night 02:00": "0 2 * * *", "daily 2:05": "5 2 * * *",
		"18:30": "30 18 * * *", "every day at 00:00": "0 0 * * *",
		"Weekdays 09:15": "15 9 * * 1-5", "every Sunday 23:59": "59 23 * * 0",
		"every wednesday 7:00": "0 7 * * 3", "hourly": "0 * * * *",
		"every hour": "0 * * * *", "every 15 minutes": "*/15 * * * *",
		"every 30min": "*/30 * * * *",
		"":            "", "25:00": "", "02:60": "", "every 7 minutes": "", "every 1 minutes": "", "every 0 minutes": "", "every 60 minutes": "",
		"every 99999999999999999999 minutes": "", "someday 02:00": "", "02:00\n* * * * * root": "", "monday": "",
	} {
		if got, ok := readWhen(text); ok != (want != "") || got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A line of a crontab runs the command as it was given, in a shell with nothing in its environment
// but what cron has.
func TestCrontab(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), `a 'b" $(x) %d`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "exe")                                                                    // says how it was started
	if err := os.WriteFile(exe, []byte("#!/bin/sh\nprintf '%s|' \"$X\" \"$@\"\n"), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	one := timer{at: "0 2 * * *", root: dir, env: []string{"PATH=/bin:/usr/bin", "X=" + dir},
		line: []string{exe, "run", "it's 100%", `$HOME "\`}}
	line, ok := strings.CutPrefix(one.crontabLine(), "0 2 * * * ")
	if !ok || strings.Contains(strings.ReplaceAll(line, `\%`, ""), "%") {
		t.Fatal(line)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.ReplaceAll(line, `\%`, "%"))
	cmd.Env = []string{"HOME=/nowhere"}
	got, err := cmd.Output()
	if want := dir + `|run|it's 100%|$HOME "\|`; err != nil || string(got) != want {
		t.Errorf("%v %s, want %s\n%s", err, got, want, line)
	}
}
