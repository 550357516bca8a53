package hook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The hook of an event runs before the general one, and the events of a run
// are told in order.
func TestOrder(t *testing.T) {
	t.Parallel()
	every := sh(`echo "general $PAWL_EVENT" >>order`)
	r, h := runner(t, Options{Any: &every, Hooks: map[Name]Command{Start: sh(`echo specific >>order`), PostMerge: sh(`echo landed >>order`)}})
	for _, n := range []Name{Start, Pause, PostMerge} {
		r.Fire(t.Context(), Event{Name: n, Run: "r1"})
	}
	r.Close(t.Context())
	if got, want := content(t, filepath.Join(r.o.Root, "order")), "specific\ngeneral start\ngeneral pause\nlanded\ngeneral post_merge\n"; got != want {
		t.Errorf("told in the order\n%swant\n%s", got, want)
	}
	if h.all() != "" {
		t.Errorf("said: %s", h.all())
	}
	if left, err := os.ReadDir(r.o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind in the folder of hooks: %v %v", left, err)
	}
}

// A command gets the event in its environment, without what pawl itself was
// started with, and as JSON on stdin, in the project's root.
func TestWhatACommandGets(t *testing.T) {
	t.Parallel()
	r, _ := runner(t, Options{Hooks: map[Name]Command{Conflict: sh(`cat >event.json; env >env; pwd >pwd`)}})
	r.o.Whole = append(r.o.Whole, "PAWL_CASE=stale", "PAWL_ERROR_CODE=stale", "MINE=1")
	cost := 1.25
	e := Event{
		Name: Conflict, Case: "task-042", Title: "Parse dates", Run: "r1", Workspace: "/w", Branch: "pawl/task-042", Target: "main", Commit: "abc",
		Status: "review", Why: "two\nlines", Iterations: 3, Duration: 1500 * time.Millisecond, CostUSD: &cost,
		Conflict: &Clash{Level: "medium", Files: []string{"a b.txt", "c.txt"}},
	}
	if d := r.tryHooks(t.Context(), e); len(d) != 1 || d[0].Problem != "" || d[0].To != "hooks.on_conflict" {
		t.Fatalf("%+v", d)
	}
	env := "\n" + content(t, filepath.Join(r.o.Root, "env"))
	for _, want := range []string{
		"PAWL_EVENT=conflict", "PAWL_CASE=task-042", "PAWL_TITLE=Parse dates", "PAWL_RUN=r1", "PAWL_WORKSPACE=/w", "PAWL_BRANCH=pawl/task-042", "PAWL_TARGET=main",
		"PAWL_COMMIT=abc", "PAWL_STATUS=review", "PAWL_WHY=two\nlines", "PAWL_ITERATIONS=3", "PAWL_DURATION_MS=1500", "PAWL_COST_USD=1.25",
		"PAWL_CONFLICT_LEVEL=medium", "PAWL_CONFLICT_FILES=a b.txt\nc.txt", "MINE=1",
	} {
		if !strings.Contains(env, "\n"+want+"\n") {
			t.Errorf("%q is not in the environment", want)
		}
	}
	landing := Event{Name: PreMerge, Case: "task-042", Target: "main", Commit: "abc"}
	if got := strings.Join(programEnviron(nil, landing), "\n"); strings.Contains(got, "PAWL_ITERATIONS") || strings.Contains(got, "PAWL_DURATION_MS") {
		t.Errorf("a landing has the figures of a run: %q", got)
	}
	if strings.Contains(env, "stale") {
		t.Error("a variable of another event is in the environment")
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(content(t, filepath.Join(r.o.Root, "event.json"))), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"event": "conflict", "case": "task-042", "duration_ms": 1500.0, "iterations": 3.0, "cost_usd": 1.25,
		"text": "task-042: Parse dates (run r1) conflicts (medium) in a b.txt, c.txt: two\nlines",
	} {
		if got[key] != want {
			t.Errorf("%s on stdin is %v, want %v", key, got[key], want)
		}
	}
	actual, err := filepath.EvalSymlinks(r.o.Root)
	if err != nil {
		t.Fatal(err)
	}
	if pwd := strings.TrimSpace(content(t, filepath.Join(r.o.Root, "pwd"))); pwd != r.o.Root && pwd != actual {
		t.Errorf("it ran in %s", pwd)
	}
}

// A boxed command inherits what the level lets through, and no more.
func TestEnvironmentOfALevel(t *testing.T) {
	t.Parallel()
	boxed := sh(`env >env`)
	boxed.Boxed = true
	r, _ := runner(t, Options{Hooks: map[Name]Command{Start: boxed}})
	r.o.Whole = append(r.o.Whole, "MY_TOKEN=secret")
	r.tryHooks(t.Context(), Event{Name: Start})
	if env := content(t, filepath.Join(r.o.Root, "env")); strings.Contains(env, "MY_TOKEN") || !strings.Contains(env, "BOXED=yes") {
		t.Errorf("environment:\n%s", env)
	}
}

// A person who relied on a folder of the tree in the PATH is told why it does not count.
func TestProgramLeftOut(t *testing.T) {
	t.Parallel()
	boxed := sh("exec tool")
	boxed.Boxed = true
	r, _ := runner(t, Options{
		Hooks:   map[Name]Command{Start: sh("tool"), Error: sh("none"), Complete: sh("exit 127"), Pause: boxed},
		LeftOut: []string{"none/yet", "node_modules/.bin"},
	})
	at := filepath.Join(r.o.Root, "node_modules", ".bin")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "tool"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, said := range map[Name]bool{Start: true, Error: false, Complete: false, Pause: false} {
		d := r.tryHooks(t.Context(), Event{Name: name})
		told := "tool is found only in node_modules/.bin, where an agent may put programs"
		if len(d) != 1 || !strings.Contains(d[0].Problem, "exit status 127") || strings.Contains(d[0].Problem, told) != said {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A command that does not end is ended at its time limit.
func TestHangingHook(t *testing.T) {
	t.Parallel()
	r, _ := runner(t, Options{Hooks: map[Name]Command{Error: {Line: `echo here; trap "" TERM; while :; do sleep 1; done`, Timeout: 50 * time.Millisecond}}})
	d := r.tryHooks(t.Context(), Event{Name: Error})
	if len(d) != 1 || !strings.HasPrefix(d[0].Problem, "ended after its time limit of 50ms") {
		t.Errorf("%+v", d)
	}
}

// What a command that hangs started, in sessions of their own and deaf to
// TERM, is gone with it.
func TestHangingHookThatForks(t *testing.T) {
	t.Parallel()
	hang := sh(`
		for name in one two; do
			setsid sh -c 'trap "" TERM HUP INT; echo $$ >'$name'; echo up >fifo; while :; do sleep 1; done' >/dev/null 2>&1 </dev/null &
		done
		trap "" TERM
		while :; do sleep 1; done`)
	r, h := runner(t, Options{Hooks: map[Name]Command{Error: hang}})
	fifo := filepath.Join(r.o.Root, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r.Fire(t.Context(), Event{Name: Error})
	up, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	for n, lines := 0, bufio.NewReader(up); n < 2; n++ {
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	r.Close(now)
	if !strings.Contains(h.all(), "hooks.on_error: ended because pawl ends") {
		t.Errorf("said: %s", h.all())
	}
	for _, name := range []string{"one", "two"} {
		pid, err := strconv.Atoi(strings.TrimSpace(content(t, filepath.Join(r.o.Root, name))))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d of the hook is still there: %v", pid, err)
		}
	}
}

// A pawl that begins takes away the folders that killed ones left, and not
// that of another pawl's command, however long it takes.
func TestFoldersOfOthers(t *testing.T) {
	t.Parallel()
	ours, _ := runner(t, Options{Hooks: map[Name]Command{Start: sh("echo up >fifo; read go <go; echo $? >ended")}})
	for _, name := range []string{"fifo", "go"} {
		if err := syscall.Mkfifo(filepath.Join(ours.o.Root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours.Fire(t.Context(), Event{Name: Start})
	content(t, filepath.Join(ours.o.Root, "fifo"))
	left := filepath.Join(ours.o.Dir, "hook-left")
	if err := os.Mkdir(left, 0o700); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(ours.o.Dir)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	old := time.Now().Add(-2 * abandoned)
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(ours.o.Dir, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	others, h := runner(t, Options{Hooks: map[Name]Command{Start: sh("true")}})
	others.o.Dir = ours.o.Dir
	others.Fire(t.Context(), Event{Name: Start})
	others.Close(t.Context())
	now, err := os.ReadDir(ours.o.Dir)
	if err != nil || len(now) != 1 || now[0].Name() == "hook-left" {
		t.Errorf("of %v there are %v, %v", entries, now, err)
	}
	if err := os.WriteFile(filepath.Join(ours.o.Root, "go"), []byte("on\n"), 0); err != nil {
		t.Fatal(err)
	}
	ours.Close(t.Context())
	if got := content(t, filepath.Join(ours.o.Root, "ended")); got != "0\n" || h.all() != "" {
		t.Errorf("ended with %q; said: %s", got, h.all())
	}
}

// A child that holds the output open holds nobody up.
func TestHookThatLeavesAChild(t *testing.T) {
	t.Parallel()
	r, _ := runner(t, Options{Hooks: map[Name]Command{Start: sh(`(while :; do sleep 1; done) & echo $! >pid; echo done`)}})
	d := r.tryHooks(t.Context(), Event{Name: Start})
	if len(d) != 1 || d[0].Problem != "" || strings.TrimSpace(d[0].Output) != "done" {
		t.Errorf("%+v", d)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(content(t, filepath.Join(r.o.Root, "pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child is still there: %v", err)
	}
}

// Output without end ends the command; what is kept of it stays small.
func TestFloodingHook(t *testing.T) {
	t.Parallel()
	r, _ := runner(t, Options{Hooks: map[Name]Command{Start: sh(`yes "much too much"`)}})
	d := r.tryHooks(t.Context(), Event{Name: Start})
	if len(d) != 1 || d[0].Problem != "ended because it printed more than 64 MiB" {
		t.Fatalf("%+v", d)
	}
	if len(d[0].Output) > shownOutput {
		t.Errorf("%d bytes of its output are kept", len(d[0].Output))
	}
}

// Of much output the end is told, where programs say what went wrong.
func TestOutputOfAHook(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"echo the end", "yes begin | head -c 600000; echo the end"} {
		r, _ := runner(t, Options{Hooks: map[Name]Command{Start: sh(line)}})
		d := r.tryHooks(t.Context(), Event{Name: Start})
		if len(d) != 1 || d[0].Problem != "" || !strings.HasSuffix(d[0].Output, "the end\n") {
			t.Errorf("%s: %+v", line, d)
		}
	}
}

func TestProblemsOfCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"echo one; echo two; exit 3": "exit status 3: two",
		"kill -KILL $$":              "ended by",
		"exit 1":                     "exit status 1",
		`printf 'bad \033[31mred\033[0m text\n'; exit 2`: "exit status 2: bad [31mred[0m text",
		"no-such-program-of-pawl":                        "exit status 127",
	} {
		r, h := runner(t, Options{Hooks: map[Name]Command{Pause: sh(line)}})
		r.Fire(t.Context(), Event{Name: Pause})
		r.Fire(t.Context(), Event{Name: Pause})
		r.Close(t.Context())
		if !strings.HasPrefix(h.all(), "hooks.on_pause: "+want) || strings.Count(h.all(), "hooks.on_pause") != 1 {
			t.Errorf("%s: said %q, want %q, once", line, h.all(), want)
		}
	}
}

// Fire returns while a hook is under way, and the hooks of another run do not
// wait for it.
func TestFireDoesNotWait(t *testing.T) {
	t.Parallel()
	r, _ := runner(t, Options{Hooks: map[Name]Command{
		Start:    sh(`mkfifo gate; echo ready >ready; cat gate; echo start >>order`),
		Complete: sh(`while ! [ -e ready ]; do sleep 0.01; done; echo complete >>order; echo >gate`),
	}})
	r.Fire(t.Context(), Event{Name: Start, Run: "slow"})
	r.Fire(t.Context(), Event{Name: Complete, Run: "other"})
	r.Close(t.Context())
	if got := content(t, filepath.Join(r.o.Root, "order")); got != "complete\nstart\n" {
		t.Errorf("order %q", got)
	}
}

// Await comes back when the hook is over, or with its ctx.
func TestAwait(t *testing.T) {
	t.Parallel()
	r, _ := runner(t, Options{Flush: time.Millisecond, Hooks: map[Name]Command{PreMerge: sh(`echo over >over; exit 1`), PostMerge: sh(`sleep 60`)}})
	r.Await(t.Context(), Event{Name: PreMerge})
	if content(t, filepath.Join(r.o.Root, "over")) != "over\n" {
		t.Error("Await came back before the hook was over")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Await(ctx, Event{Name: PostMerge})
}

// Close ends what does not end by itself, and says so.
func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	r, h := runner(t, Options{Flush: time.Millisecond, Hooks: map[Name]Command{Start: sh(`while :; do sleep 1; done`)}})
	r.Fire(t.Context(), Event{Name: Start})
	r.Fire(t.Context(), Event{Name: Start})
	r.Close(t.Context())
	if !strings.Contains(h.all(), "pawl ends") {
		t.Errorf("said: %q", h.all())
	}
	r.Fire(t.Context(), Event{Name: Start})
	if !strings.Contains(h.all(), "not sent") {
		t.Errorf("said of an event after the end: %q", h.all())
	}
}

// What does not fit into the queue is dropped and said; nothing waits.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	l := newLanes(2, 3)
	gate, ran := make(chan struct{}), make(chan int, 10)
	for i := range 5 {
		ok := l.enqueueTask(strconv.Itoa(i), func() {
			<-gate
			ran <- i
		})
		if ok != (i < 3) {
			t.Errorf("task %d taken: %t", i, ok)
		}
	}
	close(gate)
	<-l.closeLanes()
	if len(ran) != 3 {
		t.Errorf("%d tasks ran, want 3", len(ran))
	}
	if l.enqueueTask("late", func() {}) {
		t.Error("a task was taken after the end")
	}
}

func TestNobodyToTell(t *testing.T) {
	t.Parallel()
	r := New(Options{})
	if r != nil {
		t.Fatal("a runner that tells nobody")
	}
	r.Fire(t.Context(), Event{Name: Start})
	r.Await(t.Context(), Event{Name: Start})
	if d := r.tryHooks(t.Context(), Event{Name: Start}); d != nil {
		t.Error(d)
	}
	r.Close(t.Context())
}

// A receiver is told of the events that it wants; the log has all that
// happened.
func TestReceivers(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r, _ := runner(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Receivers: []Receiver{
		{Label: "notify[0]", Events: []Name{Escalation}, Command: &Command{Line: `echo "$PAWL_TEXT" >>"$PAWL_ROOT/told"`, Timeout: time.Minute}},
		{Label: "notify[1]", Events: []Name{Pause}, Command: &Command{Line: `exit 9`, Timeout: time.Minute}},
	}})
	r.Fire(t.Context(), Event{Name: Start, Subject: "build"})
	r.Fire(t.Context(), Event{Name: Escalation, Subject: "build", Question: &Question{Text: "Which port?", Options: []string{"80", "81"}, Answer: "pawl answer build 1"}})
	r.Fire(t.Context(), Event{Name: Pause, Subject: "build"})
	r.Close(t.Context())
	if got, want := content(t, filepath.Join(r.o.Root, "told")), "build needs you: Which port?\n1. 80\n2. 81\nAnswer with: pawl answer build 1\n"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if s := log.String(); strings.Count(s, "msg=told") != 1 || strings.Count(s, `msg="not sent"`) != 1 || !strings.Contains(s, "exit status 9") {
		t.Errorf("log:\n%s", s)
	}
}

// The desktop's program gets what it shows as arguments.
func TestDesktop(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >\"$PAWL_ROOT/shown\"\n"
	if err := os.WriteFile(filepath.Join(bin, "notify-send"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r, h := runner(t, Options{Receivers: []Receiver{{Label: "notify[0]", Events: []Name{Escalation}, Desktop: true, Timeout: time.Minute}}})
	r.o.Whole = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	r.Fire(t.Context(), Event{Name: Escalation, Text: "-title $(x)\n<b>a & b</b>"})
	r.Close(t.Context())
	if got, want := content(t, filepath.Join(r.o.Root, "shown")), "--app-name=pawl\n--urgency=critical\n--\n-title $(x)\n&lt;b&gt;a &amp; b&lt;/b&gt;\n"; got != want {
		t.Errorf("shown %q, want %q; said %s", got, want, h.all())
	}
	args := desktopCommand(Event{Text: "title\nbody"}, "osascript")
	if got := fmt.Sprint(args[len(args)-3:]); got != "[-- title body]" {
		t.Errorf("osascript is told %s", got)
	}
}

// Without a program it is said once, however much there is to show.
func TestNoDesktop(t *testing.T) {
	t.Parallel()
	r, h := runner(t, Options{Receivers: []Receiver{{Label: "notify[0]", Events: Names(), Desktop: true, Timeout: time.Minute}}})
	r.o.Whole = []string{"PATH=" + t.TempDir()}
	r.Fire(t.Context(), Event{Name: Start})
	r.Fire(t.Context(), Event{Name: Pause})
	r.Close(t.Context())
	if h.all() != "notify[0]: "+NoDesktop {
		t.Errorf("said: %s", h.all())
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]Event{
		"task-1: A (run r) landed on main as 0123456789ab":   {Name: PostMerge, Case: "task-1", Title: "A", Run: "r", Target: "main", Commit: "0123456789abcdef"},
		"build is complete after 1 iteration, 2s: it passed": {Name: Complete, Subject: "build", Iterations: 1, Duration: 2 * time.Second, Why: "it passed"},
		"build ended: aborted after 4 iterations, 1m0s: x":   {Name: Error, Subject: "build", Status: "aborted", Iterations: 4, Duration: time.Minute, Why: "x"},
		"pawl is paused: 3 tasks failed in a row":            {Name: Pause, Why: "3 tasks failed in a row"},
		"run r: cost $8.00 is over 80 % of the limit":        {Name: Budget, Run: "r", Why: "cost $8.00 is over 80 % of the limit"},
		"sprint 2026-01-02-001: done":                        {Name: SprintEnd, Subject: "sprint 2026-01-02-001", Why: "done"},
		"sprint 2026-01-02-001: it has started":              {Name: SprintStart, Subject: "sprint 2026-01-02-001", Why: "it has started"},
		"task-1 is about to land on main":                    {Name: PreMerge, Case: "task-1", Target: "main"},
		"said by the sender":                                 {Name: Start, Text: "said\x07 by\x1b the sender"},
	} {
		if got := e.completeEvent(time.Now()).Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	long := Event{Name: Start, Text: strings.Repeat("ä", maxText)}.completeEvent(time.Now()).Text
	if len(long) > maxText || !strings.HasSuffix(long, "…") {
		t.Errorf("a long text is %d bytes", len(long))
	}
}

// What others wrote is words for who is told: no mention, no link with another
// text, no control.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;t\a<!channel> <http://evil|here> @everyone [ok](http://evil) \u202ebidi\u2066\u009b2J"
	got := make(chan string, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		data, _ := io.ReadAll(req.Body)
		got <- string(data)
	}))
	t.Cleanup(s.Close)
	to := Receiver{Label: "notify[0]", Events: Names(), Timeout: time.Minute, Webhook: &Webhook{Address: s.URL, Timeout: time.Minute}}
	r, h := runner(t, Options{Receivers: []Receiver{to}})
	r.Fire(t.Context(), Event{Name: Start, Text: hostile})
	r.Close(t.Context())
	var sent body
	if err := json.Unmarshal([]byte(<-got), &sent); err != nil {
		t.Fatal(err, h.all())
	}
	want := "]0;t‹!channel› ‹http://evil|here› @\u200beveryone [ok] (http://evil) bidi2J"
	if sent.Text != want || sent.Content != want {
		t.Errorf("sent %q and %q, want %q", sent.Text, sent.Content, want)
	}
}
