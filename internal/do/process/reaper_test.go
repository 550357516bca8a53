package process

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A tree as agents make it: each part stands for something seen in the wild.
func TestTerminateLeavesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("orphans that left their session are only found on Linux")
	}
	const wait = "sleep 1000"
	trees := map[string]string{
		"a child":              wait + " & echo ready; wait",
		"ignores TERM":         "trap '' TERM; echo ready; while :; do " + wait + "; done",
		"own session":          "setsid " + wait + " & echo ready; wait",
		"double fork":          "(setsid sh -c 'trap \"\" TERM; " + wait + " & echo ready; wait' &) ; " + wait,
		"stopped child":        "sh -c 'kill -STOP $$; " + wait + "' & echo ready; wait",
		"closed pipes":         "setsid sh -c 'exec >&- 2>&-; " + wait + "' & echo ready; wait",
		"cleared environment":  "env -i setsid /bin/sleep 1000 & echo ready; wait",
		"respawner":            "(setsid sh -c 'trap \"\" TERM; while :; do sh -c \"trap : TERM; " + wait + "\"; done' &); echo ready; " + wait,
		"two hundred":          "i=0; while [ $i -lt 200 ]; do setsid " + wait + " & i=$((i+1)); done; echo ready; wait",
		"goes on forking":      "trap '' TERM; echo ready; while :; do (sleep 1000 &) ; (setsid sleep 1000 &); done",
		"parent ended at once": "(" + wait + " &); echo ready",
	}
	for name, script := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := reap(t, order{Script: script, Ready: true, Grace: 20 * time.Millisecond})
			if rep.Out != "ready\n" {
				t.Fatalf("the tree did not start: %+v", rep)
			}
			if !rep.Idle || rep.Ended.Left != 0 || rep.Ended.Found == 0 {
				t.Errorf("got %+v, want everything found and ended", rep)
			}
		})
	}
}

func TestTerminateAsksBeforeItKills(t *testing.T) {
	t.Parallel()
	rep := reap(t, order{
		Script: "trap 'exit 7' TERM; echo ready; while :; do sleep 1000 & wait $!; done",
		Ready:  true, Grace: time.Minute,
	})
	if rep.Code != 7 || rep.Ended.Killed != 0 {
		t.Errorf("got %+v, want exit 7 by its own trap and nothing killed", rep)
	}
}

func TestTerminateOfNothing(t *testing.T) {
	t.Parallel()
	rep := reap(t, order{Script: "exit 3", Grace: time.Minute})
	if rep.Code != 3 || !rep.Idle || rep.Ended != (Ended{}) {
		t.Errorf("got %+v, want exit 3 and nothing to end", rep)
	}
}

// A shell starts background jobs with INT ignored; the agent must not be.
func TestIgnoredSignalsAreNotHandedDown(t *testing.T) {
	t.Parallel()
	rep := reap(t, order{Script: "kill -INT $$; exit 5", Handback: true})
	if rep.Signal != "interrupt" {
		t.Errorf("got %+v, want an end by INT", rep)
	}
}

func TestStartErrorsSayWhatToDo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := dir + "/" + name
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("plain", "text", 0o600)
	tests := []struct {
		name string
		c    Command
		code int
		want string
	}{
		{"empty", Command{}, 127, "empty"},
		{"not in PATH", Command{Args: []string{"no-such-program"}, Env: []string{"PATH=/usr/bin:/bin"}}, 127, "not found in PATH"},
		{"relative PATH", Command{Args: []string{"plain"}, Dir: dir, Env: []string{"PATH=.:"}}, 127, "not found in PATH"},
		{"in PATH, not executable", Command{Args: []string{"plain"}, Env: []string{"PATH=" + dir}}, 126, "chmod +x"},
		{"no such file", Command{Args: []string{"./absent"}, Dir: dir}, 127, "does not exist"},
		{"not executable", Command{Args: []string{"./plain"}, Dir: dir}, 126, "make it executable, chmod +x "},
		{"a folder", Command{Args: []string{dir}}, 126, "is a folder"},
		{"bad interpreter", Command{Args: []string{write("bad", "#!/no/such/sh\n", 0o700)}}, 126, "names the interpreter /no/such/sh, which does not exist"},
		{"Windows lines", Command{Args: []string{write("crlf", "#!/bin/sh\r\n", 0o700)}}, 126, "Windows line end"},
		{"no program", Command{Args: []string{write("data", "hello", 0o700)}}, 126, "a script with a first line such as #!"},
		{"no folder", Command{Args: []string{"/bin/true"}, Dir: dir + "/gone"}, -1, "working folder"},
		{"long argument", Command{Args: []string{"/bin/true", strings.Repeat("x", 200_000)}}, -1, "argument: it is longer than the system takes: it has 200000 bytes"},
		{"long variable", Command{Args: []string{"/bin/true"}, Env: []string{"BIG=" + strings.Repeat("x", 200_000)}}, -1, "the variable BIG is longer than the system takes"},
		{"many arguments", Command{Args: append([]string{"/bin/true"}, strings.Split(strings.Repeat(strings.Repeat("y", 100_000)+" ", 100), " ")...)}, -1, "longer than the system takes"},
		{"zero byte", Command{Args: []string{"/bin/true", "a\x00b"}}, -1, "invalid argument"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := StartDetached(tt.c)
			start, ok := err.(*StartError) //nolint:errorlint // it is documented as this very type
			if !ok || start.Code != tt.code || !strings.Contains(start.Message, tt.want) {
				t.Errorf("got %#v, want code %d and %q", err, tt.code, tt.want)
			}
		})
	}
}

func TestTheLastOfEqualVariablesCounts(t *testing.T) {
	got := keepLastOfName([]string{"A=1", "B=2", "A=3", "broken"})
	if strings.Join(got, " ") != "A=3 B=2" {
		t.Errorf("got %q", got)
	}
}

func TestAStartedProcessGetsNoOtherDescriptors(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	r, w, err := Pipe(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	d, err := StartDetached(Command{Args: []string{"/bin/sh", "-c", "exec ls /proc/self/fd"}, Env: os.Environ(), Stdout: w})
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	Drain(r, make([]byte, 512), func(p []byte) { out = append(out, p...) })
	<-d.Done()
	// 3 is the folder that ls reads.
	if got := strings.Fields(string(out)); strings.Join(got, " ") != "0 1 2 3" {
		t.Errorf("descriptors %q, want 0 1 2 and that of ls itself", got)
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Error("the program's own children are disturbed")
	}
}
