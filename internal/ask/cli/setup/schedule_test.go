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
		"every night 02:00": "*-*-* 02:00:00|0 2 * * *", "daily 2:05": "*-*-* 02:05:00|5 2 * * *",
		"18:30": "*-*-* 18:30:00|30 18 * * *", "every day at 00:00": "*-*-* 00:00:00|0 0 * * *",
		"Weekdays 09:15": "Mon..Fri *-*-* 09:15:00|15 9 * * 1-5", "every Sunday 23:59": "Sun *-*-* 23:59:00|59 23 * * 0",
		"every wednesday 7:00": "Wed *-*-* 07:00:00|0 7 * * 3", "hourly": "*-*-* *:00:00|0 * * * *",
		"every hour": "*-*-* *:00:00|0 * * * *", "every 15 minutes": "*-*-* *:00/15:00|*/15 * * * *",
		"every 30min": "*-*-* *:00/30:00|*/30 * * * *",
		"":            "", "25:00": "", "02:60": "", "every 7 minutes": "", "every 1 minutes": "", "every 0 minutes": "", "every 60 minutes": "",
		"every 99999999999999999999 minutes": "", "someday 02:00": "", "02:00\n* * * * * root": "", "monday": "",
	} {
		m, ok := readWhen(text)
		if got := m.systemd + "|" + m.cron; ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A line of a crontab runs the command as it was given, in a shell with nothing in its environment
// but what cron has.
func TestCrontab(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), `a 'b" $(x) %d`)
	if err := os.MkdirAll(filepath.Join(dir, "pawl"), 0o700); err != nil {
		t.Fatal(err)
	}
	bait := filepath.Join(dir, "bait")
	keys := filepath.Join(dir, "pawl", "env")
	if err := os.WriteFile(keys, []byte("MY_API_KEY=a $(touch '"+bait+"') '\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "exe")                                                                                    // says how it was started
	if err := os.WriteFile(exe, []byte("#!/bin/sh\nprintf '%s|' \"$X\" \"$MY_API_KEY\" \"$@\"\n"), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	one := timer{moment: moment{cron: "0 2 * * *"}, root: dir, config: dir, env: []string{"PATH=/bin:/usr/bin", "X=" + dir},
		line: []string{exe, "run", "it's 100%", `$HOME "\`}}
	line, ok := strings.CutPrefix(one.crontab(), "0 2 * * * ")
	if !ok || strings.Contains(strings.ReplaceAll(line, `\%`, ""), "%") {
		t.Fatal(line)
	}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.ReplaceAll(line, `\%`, "%"))
	cmd.Env = []string{"HOME=/nowhere"}
	got, err := cmd.Output()
	if want := dir + "||with-env|" + keys + `|run|it's 100%|$HOME "\|`; err != nil || string(got) != want {
		t.Errorf("%v %s, want %s\n%s", err, got, want, line)
	}
	if _, err := os.Stat(bait); err == nil {
		t.Error("a shell has read the file of keys")
	}
	for _, want := range []string{`"it's 100%%"`, `"$$HOME \"\\"`, `Environment="PATH=/bin:/usr/bin"`, `" "with-env" "`} {
		if !strings.Contains(one.service(), want) {
			t.Errorf("no %s in %s", want, one.service())
		}
	}
}
