package acp

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
)

// play is one run of the fake.
type play struct {
	scenario, kind, prompt, model, mode string
	safety                              string
	call                                string // what the program asks permission for
	key                                 string // NAME=VALUE of a variable
	readOnly                            bool
	bounds                              bounds
	// onText is called with the run's signals when the agent says something.
	onText func(chan<- os.Signal)
}

// played is what came of it.
type played struct {
	agent.Outcome

	code   int
	log    string // what reached the fake
	events []agent.Event
}

func (p play) run(t *testing.T) played {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	if p.bounds == (bounds{}) {
		p.bounds = bounds{time.Minute, time.Minute, time.Minute}
	}
	signals := make(chan os.Signal, 2)
	got := played{}
	parser, c := NewParser(), agent.NewCollector()
	take := func(e agent.Event) {
		got.events = append(got.events, e)
		c.Add(e)
	}
	var once sync.Once
	lines := agent.NewLines(0, func(b []byte, cut bool) {
		parser.Line(b, cut, take)
		if p.onText != nil && bytes.Contains(b, []byte(`"kind":"text"`)) {
			once.Do(func() { p.onText(signals) })
		}
	})
	b := &bridge{bounds: p.bounds, out: &printer{w: lines}, stderr: os.Stderr, signals: signals}
	env := append(os.Environ(), "ACP_FAKE="+p.scenario, "ACP_LOG="+log, "ACP_KIND="+p.kind, "ACP_CALL="+p.call, p.key)
	got.code = b.runAgent(options{
		readOnly: p.readOnly, model: p.model, mode: p.mode, safety: p.safety, count: true,
		program: []string{os.Args[0], "acp"},
	}, strings.NewReader(p.prompt), env)
	lines.Flush()
	parser.Close(take)
	got.Outcome = c.Outcome()
	said, _ := os.ReadFile(log)
	got.log = string(said)
	return got
}

// A program that tells the tokens of its last call only is asked for its session.
func TestAllCallsCount(t *testing.T) {
	t.Parallel()
	got := play{scenario: "exports"}.run(t)
	want := agent.Usage{Input: 300, Output: 36, CacheRead: 50, CacheWrite: 4}
	if got.code != 0 || got.Usage != want || !strings.Contains(got.log, "export s1") {
		t.Errorf("it used %+v, exit %d\n%s", got.Usage, got.code, got.log)
	}
	for _, scenario := range []string{"exports-rubbish", "exports-nothing", "story"} {
		if got := (play{scenario: scenario}).run(t); got.code != 0 || got.Usage != (agent.Usage{Input: 70, Output: 20, CacheRead: 30}) {
			t.Errorf("%s: it used %+v, exit %d\n%s", scenario, got.Usage, got.code, got.log)
		}
	}
}

// A program that needs a login and offers one by key gets the key that is there.
func TestLogin(t *testing.T) {
	t.Parallel()
	got := play{scenario: "login", key: "FAKE_API_KEY=k"}.run(t)
	if got.code != 0 || got.Terminal != loop.TerminalOK || !strings.Contains(got.log, `authenticate {"methodId":"fake-key"}`) {
		t.Errorf("outcome is %+v, exit %d\n%s", got.Outcome, got.code, got.log)
	}
	got = play{scenario: "login", key: "OTHER_API_KEY=k"}.run(t)
	if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, "it does not take the one in OTHER_API_KEY (it offers: Browser, Key)") {
		t.Errorf("outcome is %+v", got.Outcome)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	got := play{scenario: "story", prompt: "Do \"it\".\n\xff"}.run(t)
	const said = "Done.\n<promise>COMPLETE</promise>"
	if got.code != 0 || got.Terminal != loop.TerminalOK || got.Message != said || got.Session != "s1" || len(got.Errors) != 0 || got.Unknown != 1 {
		t.Errorf("outcome is %+v, exit %d", got.Outcome, got.code)
	}
	if want := (agent.Usage{Input: 70, Output: 20, CacheRead: 30}); got.Usage != want || got.Cost != 250_000 || got.Calls != 3 || got.Turns != 3 {
		t.Errorf("outcome is %+v", got.Outcome)
	}
	var tools []string
	for _, e := range got.events {
		switch e.Kind {
		case agent.ToolStart:
			tools = append(tools, "> "+e.Tool+" "+e.Command+strings.Join(e.Files, ","))
		case agent.ToolEnd:
			tools = append(tools, "< "+e.Tool+" "+strconv.FormatBool(e.Failed)+" "+e.Result)
		}
	}
	if want := []string{"> execute go test", "< execute true <promise>COMPLETE</promise>", "> edit /r/a.go,/r/b.go", "< edit false "}; !slices.Equal(tools, want) {
		t.Errorf("tools are %q", tools)
	}
	dir, _ := os.Getwd()
	for _, want := range []string{`"protocolVersion":1`, `"terminal":false`, `"readTextFile":false`, `new {"cwd":` + strconv.Quote(dir) + `,"mcpServers":[]}`, "prompt ", "EOF"} {
		if !strings.Contains(got.log, want) {
			t.Errorf("the program did not get %s in\n%s", want, got.log)
		}
	}
	if strings.Contains(got.log, "TERM") {
		t.Errorf("a signal where closing stdin was enough:\n%s", got.log)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	short := bounds{start: 100 * time.Millisecond, cancel: time.Minute, end: 50 * time.Millisecond}
	for _, test := range []struct {
		play     play
		terminal loop.Terminal
		status   int
		kind     string
		message  string
	}{
		{play{scenario: "mute", bounds: short}, loop.TerminalFailed, 0, "timeout", "did not answer initialize within 100ms"},
		{play{scenario: "future"}, loop.TerminalFailed, 0, "invalid_protocol", "speaks version 2 of ACP, and pawl 1"},
		{play{scenario: "dies"}, loop.TerminalFailed, 0, "", "ended (exit status 7) before it answered initialize"},
		{play{scenario: "garbage"}, loop.TerminalFailed, 0, "invalid_protocol", `lines that are not messages; it printed`},
		{play{scenario: "huge-answer"}, loop.TerminalFailed, 0, "invalid_protocol", "a message of more than 16777216 bytes"},
		{play{scenario: "login"}, loop.TerminalFailed, 0, "authentication_error", "log in, or set its key in agents.NAME.env (it offers: Browser, Key)"},
		{play{scenario: "limit"}, loop.TerminalFailed, 429, "rate_limit", "Too many requests"},
		{play{scenario: "cut"}, loop.TerminalFailed, 0, "", "ended before it answered the prompt"},
		{play{scenario: "disguise"}, loop.TerminalFailed, 429, "rate_limit", "429 rate limit exceeded"},
		{play{scenario: "stop-max_tokens"}, loop.TerminalFailed, 0, "max_output_tokens", "cut off"},
		{play{scenario: "stop-max_turn_requests"}, loop.TerminalFailed, 0, "max_turns", "own limit"},
		{play{scenario: "stop-refusal"}, loop.TerminalFailed, 0, "refusal", "refused"},
		{play{scenario: "stop-later"}, loop.TerminalFailed, 0, "", "later"},
		{play{scenario: "ask-again", kind: "execute"}, loop.TerminalFailed, 0, "asked_in_circles", "more than 20 times"},
		{play{scenario: "deaf"}, loop.TerminalFailed, 0, "invalid_protocol", "without reading the answers"},
		{play{scenario: "story", prompt: strings.Repeat("x", maxPrompt+1)}, loop.TerminalFailed, 0, "invalid_request", "longer than"},
		{play{scenario: "story", model: "m"}, loop.TerminalFailed, 0, "invalid_config", "no choice of models"},
		{play{scenario: "models", model: "m9"}, loop.TerminalFailed, 0, "model_not_found", `no model "m9"; it has m0, m1`},
	} {
		t.Run(test.play.scenario+test.play.model, func(t *testing.T) {
			t.Parallel()
			got := test.play.run(t)
			if (got.code == 0) != (test.play.scenario == "disguise") || got.Terminal != test.terminal || len(got.Errors) != 1 {
				t.Fatalf("exit %d, %+v", got.code, got.Outcome)
			}
			if e := got.Errors[0]; e.Status != test.status || e.Type != test.kind || !strings.Contains(e.Message, test.message) {
				t.Errorf("the error is %+v", e)
			}
		})
	}
}

func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, scenario := range []string{"banner", "huge", "files"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			got := play{scenario: scenario}.run(t)
			if got.code != 0 || got.Terminal != loop.TerminalOK {
				t.Errorf("exit %d, %+v", got.code, got.Outcome)
			}
			if scenario == "huge" && got.Message != strings.Repeat("ä", maxPiece) {
				t.Errorf("the message has %d bytes", len(got.Message))
			}
			if scenario == "files" && !strings.Contains(got.log, `"code":-32601`) {
				t.Errorf("the program got\n%s", got.log)
			}
		})
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind     string
		readOnly bool
		want     string
	}{
		{"execute", false, "ao"}, {"edit", false, "ao"}, {"", false, "ao"},
		{"read", true, "ao"}, {"search", true, "ao"}, {"execute", true, "ro"}, {"edit", true, "ro"}, {"", true, "ro"},
	} {
		got := play{scenario: "ask", kind: test.kind, readOnly: test.readOnly}.run(t)
		if got.code != 0 || !strings.Contains(got.log, `{"outcome":{"outcome":"selected","optionId":"`+test.want+`"}}`) {
			t.Errorf("%+v: exit %d, the program got\n%s", test, got.code, got.log)
		}
	}
	for want, options := range map[string][]option{"a": {{"r", "reject_once"}, {"a", "allow_always"}}, "": {{"r", "reject_once"}}} {
		if got := chooseOption(options, true); got != want {
			t.Errorf("%+v: %q", options, got)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	for scenario, want := range map[string]string{
		"models":  `session/set_model {"modelId":"m1","sessionId":"s1"}`,
		"options": `session/set_config_option {"configId":"llm","sessionId":"s1","value":"m1"}`,
	} {
		got := play{scenario: scenario, model: "m1"}.run(t)
		if got.code != 0 || got.Model != "m1" || !strings.Contains(got.log, want) {
			t.Errorf("%s: exit %d, %+v, the program got\n%s", scenario, got.code, got.Outcome, got.log)
		}
	}
}

// A stop is told by the protocol first; no signal is needed when the program
// obeys.
func TestStop(t *testing.T) {
	t.Parallel()
	got := play{scenario: "hang", onText: func(s chan<- os.Signal) { s <- syscall.SIGTERM }}.run(t)
	if got.code != exitStopped || got.Terminal != loop.TerminalFailed || got.Message != "stopped" && got.Message != "beginstopped" || got.Usage.Output != 1 {
		t.Errorf("exit %d, %+v", got.code, got.Outcome)
	}
	if !strings.HasSuffix(got.log, "cancel\nEOF\n") {
		t.Errorf("the program got\n%s", got.log)
	}
}

// One that does not obey gets TERM after it, and KILL after that.
func TestStubborn(t *testing.T) {
	t.Parallel()
	short := bounds{start: time.Minute, cancel: time.Second, end: time.Second} // for it to write down what came
	got := play{scenario: "stubborn", bounds: short, onText: func(s chan<- os.Signal) { s <- syscall.SIGTERM }}.run(t)
	if got.code != exitStopped || got.Terminal != loop.TerminalFailed {
		t.Errorf("exit %d, %+v", got.code, got.Outcome)
	}
	if _, after, ok := strings.Cut(got.log, "cancel\n"); !ok || !strings.Contains(after, "TERM\n") {
		t.Errorf("the program got\n%s", got.log)
	}
}

// A child that holds the program's output holds up nothing.
func TestDaemon(t *testing.T) {
	t.Parallel()
	got := play{scenario: "daemon"}.run(t)
	if got.code != 0 || got.Terminal != loop.TerminalOK {
		t.Errorf("exit %d, %+v", got.code, got.Outcome)
	}
	_, pid, _ := strings.Cut(got.log, "child ")
	n, err := strconv.Atoi(strings.Fields(pid)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Errorf("the child is gone: %v", err)
	}
}

func TestMissingProgram(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]int{"no-such-program-of-a-test": 127, "/dev/null": 126} {
		var out bytes.Buffer
		if got := Main([]string{"--", name}, strings.NewReader("p"), &out, os.Stderr, os.Environ()); got != code || !strings.Contains(out.String(), "cannot start "+name) {
			t.Errorf("exit %d, %s", got, &out)
		}
	}
	for _, args := range [][]string{nil, {"--"}, {"x"}, {"--model"}} {
		var errs bytes.Buffer
		if got := Main(args, strings.NewReader("p"), &errs, &errs, nil); got != exitUsage {
			t.Errorf("%q: exit %d", args, got)
		}
	}
}

// The widest mode is entered: the box is the fence. A reviewer stays in the program's own.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		play play
		want string // the mode that is asked for; "" is none
		fail string
	}{
		{"the widest", play{scenario: "modes"}, "full-access", ""},
		{"a reviewer", play{scenario: "modes", readOnly: true}, "", ""},
		{"the person's", play{scenario: "modes", mode: "read-only"}, "read-only", ""},
		{"the one it is in", play{scenario: "modes", mode: "auto"}, "", ""},
		{"one that it has not", play{scenario: "modes", mode: "fast"}, "", `the program has no mode "fast"; it has: read-only, auto, full-access`},
		{"a program without modes", play{scenario: "story"}, "", ""},
		{"no modes, and one is wanted", play{scenario: "story", mode: "fast"}, "", `the program has no mode "fast"; it has: none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := test.play.run(t)
			asked := ""
			if _, rest, ok := strings.Cut(got.log, `session/set_mode {"modeId":"`); ok {
				asked, _, _ = strings.Cut(rest, `"`)
			}
			if asked != test.want {
				t.Errorf("the mode %q is asked for", asked)
			}
			if failed := got.Terminal == loop.TerminalFailed; failed != (test.fail != "") ||
				failed && !strings.Contains(got.Errors[0].Message, test.fail) {
				t.Errorf("%s, %+v", got.Terminal, got.Errors)
			}
		})
	}
}

// A request for permission is judged as a tool call is, wherever it shows what it is about.
func TestDangerousPermissions(t *testing.T) {
	t.Parallel()
	const refused, granted = `"optionId":"ro"`, `"optionId":"ao"`
	for call, want := range map[string]string{
		`{"toolCallId":"t","kind":"execute","rawInput":{"command":"rm -rf /home"}}`:                                  refused,
		`{"toolCallId":"t","kind":"execute","rawInput":{"cmd":["git","push","--force"]}}`:                            refused,
		`{"toolCallId":"t","kind":"other","title":"view it","rawInput":{"command":"rm -rf /home"}}`:                  refused,
		"{\"toolCallId\":\"t\",\"kind\":\"execute\",\"title\":\"`rm -rf /home`\"}":                                   refused,
		`{"toolCallId":"t","kind":"execute","title":"rm -rf /home [current working directory /w] (Tidy the house)"}`: refused,
		`{"toolCallId":"t","kind":"edit","locations":[{"path":"/etc/hosts"}]}`:                                       refused,
		`{"toolCallId":"t","kind":"edit","content":[{"type":"diff","path":"/etc/hosts"}]}`:                           refused,
		`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"execute","status":"pending","rawInput":{"command":"rm -rf /home"}}` + "\n" +
			`{"toolCallId":"t"}`: refused,
		`{"toolCallId":"t","kind":"execute","rawInput":{"command":"go test ./..."}}`:  granted,
		`{"toolCallId":"t","kind":"execute","title":"Run the tests"}`:                 granted,
		`{"toolCallId":"t","kind":"read","locations":[{"path":"/etc/hosts"}]}`:        granted,
		`{"toolCallId":"t","kind":"edit","locations":[{"path":"a.go"}]}`:              granted,
		`{"toolCallId":"t","kind":"fetch","title":"https://example.com"}`:             granted,
		`{"toolCallId":"t","kind":"execute","rawInput":{"command":"echo rm -rf /x"}}`: granted,
	} {
		got := play{scenario: "ask", safety: "normal", call: call}.run(t)
		if !strings.Contains(got.log, want) {
			t.Errorf("%s: want %s\n%s", call, want, got.log)
		}
		told := slices.ContainsFunc(got.events, func(e agent.Event) bool {
			_, found := safety.Rules{Level: safety.Normal, Root: "/w"}.Tool(e.Tool, e.Command, e.Files)
			return e.Kind == agent.ToolStart && found
		})
		isRefused, hasReason := want == refused, strings.Contains(got.log, `"_meta":{"reason":"Safety violation: `)
		if told != isRefused || isRefused != hasReason {
			t.Errorf("%s: the supervisor sees it: %v\n%s", call, told, got.log)
		}
		got = play{scenario: "ask", safety: "permissive", call: call}.run(t)
		if !strings.Contains(got.log, granted) {
			t.Errorf("%s at permissive:\n%s", call, got.log)
		}
	}
}
