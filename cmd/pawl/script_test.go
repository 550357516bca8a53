package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl/internal/ask/cli"
	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/test/pgtest"
)

// The scripts of testdata/script run the whole program: each shows one thing
// that a person does, in a home and a state folder of its own. They wait for
// events, through fifos and ended commands, and never for time.
//
// Beside the commands of testscript there are:
//
//	repo [DIR]            make DIR a git repository with all its files committed
//	exits CODE [WORD]     the last pawl command that ended (with WORD in its
//	                      arguments) had this exit status
//	lines FILE            the lines of progress in the last stderr are those of
//	                      FILE, exactly and in order, times and durations aside
//	signal NAME           send a signal to the last background command
//	until REGEXP COMMAND  run COMMAND until its stdout matches, again after each change
//	outside VAR           set VAR to a folder that is in no temporary one
//	collect VAR FILE      serve on loopback at $VAR; what is posted goes to FILE
//	workspace take|collect|keep|land VAR ID [WHY]
//	                      what a loop does with the workspace of a task; VAR is
//	                      set to its folder, or to the commit
//	workspace of VAR NAME VAR is set to the folder in which runs of NAME work
//	exec fetch METHOD PATH [BODY]   ask the server of 'pawl serve'; see fetch_test.go
//	exec tools TOOL ARGUMENTS …      call the tools of 'pawl mcp'; see tools_test.go
//	flaky VAR             serve on loopback at $VAR; /down never answers
//	forge                 a GitHub on loopback at $FORGE, to push to at $FORGE_REMOTE
//	forge METHOD PATH [BODY]   a call there, in a reviewer's name
//	sources VAR           serve on loopback at $VAR: /primary hangs, /mirror answers, /count counts
//	exec download DURATION URL      what is there, if it comes in time
//	exec nolinks COMMAND …           on a file system without hard links, as exFAT
//	nothing-runs          no process that a run started is left
//
// When a script ends, nothing-runs is checked again, whatever happened in it.

func TestMain(m *testing.M) {
	// Pawl starts itself again, as supervisor and as scripted agent; that copy
	// goes by the name of pawl too, so it ends up here as well.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if filepath.Base(os.Args[0]) != "pawl" && signal.Ignored(s) {
			// Whoever started the tests ignores it, as a shell does in the background. The
			// scripts must not inherit that, since pawl would: what is caught is not ignored.
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	pretend()
	testscript.Main(m, programs)
}

// programs are what the tests run by name, beside the machine's own.
var programs = map[string]func(){"pawl": func() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") {
		os.Exit(cli.Main(nil, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	var printed bytes.Buffer
	code := cli.Main(nil, os.Args[1:], os.Stdin, watched(os.Stdout, &printed), watched(os.Stderr, &printed), os.Environ())
	noteExit(code, os.Args[1:])
	tryPrinted(printed.String())
	os.Exit(code)
}, "fetch": fetch, "tools": tools, "gh": gh, "download": download, "callmodel": callModel, "lowly": lowly, "nolinks": noLinks}

var proofTasks = flag.Int("proof-tasks", 8, "how many tasks the board of the script proof_board has; 'make proof' gives it 40")

func TestScripts(t *testing.T) {
	t.Parallel()
	scripts(t, "script", "")
}

// The scripts about boards that several machines share have a server of PostgreSQL.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs PostgreSQL")
	}
	t.Parallel()
	scripts(t, "cluster", pgtest.Start(t).Address("postgres"))
}

// scripts plays those of a folder; each has a board of its own on the server of PostgreSQL, if there is one.
func scripts(t *testing.T, folder, server string) {
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("..", "..", "testdata", folder),
		RequireUniqueNames: true,
		Setup:              func(env *testscript.Env) error { return setup(env, server) },
		Condition:          condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"repo":         repo,
			"exits":        exits,
			"lines":        lines,
			"signal":       signalLast,
			"until":        until,
			"collect":      collect,
			"sources":      sources,
			"flaky":        flaky,
			"forge":        atForge,
			"nothing-runs": nothingRuns,
			"outside":      outside,
			"workspace":    workspace,
		},
	})
}

// exitsVar names the file that exit statuses are noted in, so that scripts can
// ask for more than success.
const exitsVar = "SCRIPT_EXITS"

func noteExit(code int, args []string) {
	path := os.Getenv(exitsVar)
	if path == "" || len(args) > 0 && strings.HasPrefix(args[0], "__") {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, "%d %s\n", code, strings.Join(args, " "))
		_ = f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot note the exit status:", err)
	}
}

// setup gives a script its own home, and checks at its end that nothing is left.
func setup(env *testscript.Env, server string) error {
	home := env.WorkDir + ".home" // beside the script's files, not among them
	vars, err := ownHome(home)
	if err != nil {
		return err
	}
	env.Vars = slices.DeleteFunc(env.Vars, func(kv string) bool { return strings.HasPrefix(kv, "PAWL_") })
	for k, v := range vars {
		env.Setenv(k, v)
	}
	pawl, err := exec.LookPath("pawl")
	if err != nil {
		return err
	}
	env.Setenv("PAWL", pawl)
	env.Setenv("TEST_TASKS", strconv.Itoa(*proofTasks))
	env.Setenv("TEST_GOCACHE", goCache())
	if server != "" {
		env.Setenv("PAWL_CLUSTER_STORE", server+"&repository="+url.QueryEscape(home))
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		return err
	}
	env.Setenv("EXAMPLES", examples)
	t := env.T()
	env.Defer(func() {
		races := races(home)
		for _, r := range races {
			t.Log(r)
		}
		processes := left(env.WorkDir)
		for _, p := range processes {
			t.Log("left running: " + p.text)
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		bad := badPrinted(filepath.Join(home, "exits"))
		if bad != "" {
			t.Log("does not work as printed: " + bad)
		}
		if len(processes)+len(races) > 0 || bad != "" {
			t.FailNow()
		}
	})
	return nil
}

// ownHome makes a home without anything of the person's who runs the tests, and
// returns the variables that lead to it.
func ownHome(home string) (map[string]string, error) {
	for _, dir := range []string{home, filepath.Join(home, "state"), filepath.Join(home, "config"), filepath.Join(home, "tmp")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	gitconfig := "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(gitconfig), 0o644); err != nil {
		return nil, err
	}
	// What scripts tell agents and gates, and what testscript has besides.
	allow := "safety: {env: {allow: [CHAT, COMMIT, FAR, OTEL_*, SOURCE, UNIQUE, URL, WS, DEED, GATE, WHAT, TOLD, NEXT, BIN, ID, FILE, PRECIOUS, PAWL, RUN, EXAMPLES, SCRIPT_EXITS, WORK, devnull, exe]}}\n"
	if err := files.ReplaceBelow(home, "config/pawl/config.yaml", []byte(allow), 0o644, false); err != nil {
		return nil, err
	}
	return map[string]string{
		"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "state"), "XDG_CONFIG_HOME": filepath.Join(home, "config"),
		"GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8",
		"TMPDIR": filepath.Join(home, "tmp"), // and not in the checkout
		"GOGC":   os.Getenv("GOGC"), exitsVar: filepath.Join(home, "exits"),
		"GOPROXY": "off", // no test downloads a module; without it pawl asks Go, 600 times in the scripts
		"GORACE":  "atexit_sleep_ms=0 log_path=" + filepath.Join(home, "race"),
	}, nil
}

// races are the reports of the race detector, also those of pawls in the
// background, to which nobody listens.
func races(home string) []string {
	files, _ := filepath.Glob(filepath.Join(home, "race.*"))
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			text = []byte(err.Error())
		}
		out = append(out, string(text))
	}
	return out
}

// boxed is whether this machine gives pawl a mount namespace. How doctor ends says
// nothing about that: it fails where no agent is installed.
var boxed = sync.OnceValue(func() bool {
	out, _ := exec.Command("pawl", "doctor", "--quick").Output()
	return strings.Contains(string(out), "mount")
})

// ownLoopback reports whether boxes have one at the level normal here.
var ownLoopback = sync.OnceValue(func() bool {
	out, _ := exec.Command("pawl", "doctor", "--quick").Output()
	return strings.Contains(string(out), "a loopback of its own")
})

// condition knows [root]: the tests run as root, and [sandbox]: the level normal
// is enforced in full here, and [tun]: with a loopback of its own.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Getuid() == 0, nil
	case "tun":
		return ownLoopback(), nil
	case "sandbox":
		return boxed(), nil
	case "loop":
		return loopDisk(), nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// loopDisk reports whether a file can be mounted as a disk here.
var loopDisk = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "loop")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	const try = "truncate -s 8m disk && mkfs.ext4 -q disk && mkdir on && mount -o loop disk on"
	c := exec.Command("unshare", "-m", "sh", "-c", try)
	c.Dir = dir
	return c.Run() == nil
})

func repo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: repo [DIR]")
	}
	dir := append(args, ".")[0]
	for _, c := range [][]string{
		{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", "start"},
	} {
		ts.Check(ts.Exec("git", append([]string{"-C", ts.MkAbs(dir)}, c...)...))
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: exits CODE [WORD]")
	}
	data, err := os.ReadFile(ts.Getenv(exitsVar))
	ts.Check(err)
	noted := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range slices.Backward(noted) {
		words := strings.Fields(line)
		if len(args) == 2 && !slices.Contains(words[1:], args[1]) {
			continue
		}
		if words[0] != args[0] {
			ts.Fatalf("pawl %s: exit status %s, want %s", strings.Join(words[1:], " "), words[0], args[0])
		}
		return
	}
	ts.Fatalf("no such command has ended")
}

var (
	progressLine = regexp.MustCompile(`^\[\d\d:\d\d:\d\d\] `)
	clocks       = regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`)
	spans        = regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b`)
)

func lines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lines FILE")
	}
	got, want := progress(ts.ReadFile("stderr")), progress(ts.ReadFile(args[0]))
	if len(want) == 0 {
		ts.Fatalf("%s has no lines of progress", args[0])
	}
	if !slices.Equal(got, want) {
		ts.Fatalf("lines of progress differ.\ngot:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// progress are the lines of progress in text, times and durations aside.
func progress(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if progressLine.MatchString(line) {
			out = append(out, spans.ReplaceAllString(clocks.ReplaceAllString(strings.TrimRight(line, "\n"), "00:00:00"), "0s"))
		}
	}
	return out
}

func signalLast(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{
		"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT,
	}
	running := ts.BackgroundCmds()
	if neg || len(args) != 1 || signals[args[0]] == 0 || len(running) == 0 {
		ts.Fatalf("usage: signal INT|TERM|HUP|KILL|STOP|CONT, with a background command")
	}
	ts.Check(running[len(running)-1].Process.Signal(signals[args[0]]))
}

// manyTimes bounds until: minutes at least.
const manyTimes = 10_000

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until REGEXP COMMAND")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	seen := watch(ts.Getenv("WORK"), ts.Getenv("XDG_STATE_HOME"))
	defer seen.Close()
	for range manyTimes {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		seen.await()
	}
	ts.Fatalf("%s did not print %s", strings.Join(args[1:], " "), args[0])
}

// outside makes a folder that is in no temporary one, which every sandbox may
// write; everything else in a script is in one.
func outside(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: outside VAR")
	}
	dir, err := outsideFolder()
	ts.Check(err)
	ts.Defer(func() { _ = os.RemoveAll(dir) })
	ts.Setenv(args[0], dir)
}

// outsideFolder makes one in the cache of whoever runs the tests, or where a
// home folder is temporary itself, among the machine's.
func outsideFolder() (string, error) {
	parents := []string{"/var/cache", "/opt"}
	if me, err := user.Current(); err == nil {
		parents = append([]string{filepath.Join(me.HomeDir, ".cache")}, parents...)
	}
	err := errors.New("no folder is left")
	for _, parent := range parents {
		if slices.ContainsFunc([]string{"/tmp/", "/var/tmp/", os.TempDir() + "/"}, func(temp string) bool { return strings.HasPrefix(parent+"/", temp) }) {
			continue
		}
		if err = os.MkdirAll(parent, 0o700); err != nil {
			continue
		}
		var dir string
		if dir, err = os.MkdirTemp(parent, "pawl-test-"); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("the sandbox lets everybody write in temporary folders, and outside of them this user may write nowhere: %w", err)
}

func nothingRuns(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: nothing-runs")
	}
	if p := left(ts.Getenv("WORK")); len(p) > 0 {
		ts.Fatalf("left running: %s", p[0].text)
	}
}

// process is one that a run of a script started.
type process struct {
	pid  int
	text string
}

// left finds the processes that carry the mark of a run and the environment of
// the script in work. It needs /proc.
func left(work string) []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []process
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue // it has ended
		}
		vars := strings.Split(string(environ), "\x00")
		marked := slices.ContainsFunc(vars, func(kv string) bool { return strings.HasPrefix(kv, "PAWL_RUN=") })
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		marked = marked || strings.Contains(string(cmdline), "\x00__supervise\x00")
		if !marked || !slices.Contains(vars, "WORK="+work) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		out = append(out, process{pid, fmt.Sprintf("%d %s", pid, strings.ReplaceAll(string(cmdline), "\x00", " "))})
	}
	return out
}
