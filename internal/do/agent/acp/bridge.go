package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/jsonline"
)

// Command is the hidden command of pawl that [Main] stands behind.
const Command = "__acp"

// The exit codes of the bridge, beside those of a shell for a program that
// cannot be started.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitStopped = 143
)

// maxPrompt is the longest prompt in bytes. Readers of the protocol often take
// lines of 10 MiB, and text grows as JSON.
const maxPrompt = 8 << 20

// protocol is the version of the protocol that is spoken.
const protocol = 1

// bounds are how long the bridge waits. What the prompt may take is the
// supervisor's to say.
type bounds struct {
	start  time.Duration // for the answers that come before the prompt
	cancel time.Duration // for the answer to the prompt after session/cancel
	end    time.Duration // for the program's end after its stdin was closed, and again after TERM
}

var usual = bounds{start: 2 * time.Minute, cancel: 4 * time.Second, end: 2 * time.Second}

// bridge is one run of a program.
type bridge struct {
	bounds  bounds
	out     *printer
	stderr  io.Writer
	conn    *conn
	session *session
	signals <-chan os.Signal
	// cancelling is true once the program was asked to stop; why it stops does not matter then.
	cancelling bool
	obeyed     bool // it did

	keys   []string // the variables with keys that the program is given
	export []string // prints the session; nil is not known
	cmd    *exec.Cmd
	exited chan struct{}
	how    error // it exited; after exited is closed
}

// problem is the reason of a failed run, as it is printed.
type problem struct {
	err  failure.APIError
	code int // exit status
}

func (p *problem) Error() string { return p.err.Message }

func newProblem(kind, format string, args ...any) *problem {
	return &problem{failure.APIError{Type: kind, Message: fmt.Sprintf(format, args...)}, exitFailed}
}

// errStopped is a signal before there was anything to cancel.
var errStopped = errors.New("stopped")

// Main is the bridge: it runs the program after "--" with the prompt on stdin,
// and returns the exit status. Before "--" are the flags that [Adapter] sets.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, env []string) int {
	o, err := parseOptions(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "pawl: %v\n", err)
		return exitUsage
	}
	// Caught before the program is there: a TERM that comes early must not leave it behind.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	b := &bridge{bounds: usual, out: &printer{w: stdout}, stderr: stderr, signals: signals}
	return b.runAgent(o, stdin, env)
}

// options come from the bridge's command line.
type options struct {
	readOnly bool
	count    bool // the tokens are counted here only
	model    string
	mode     string // "" is the widest
	safety   string // the level that permissions are judged by; "" grants all
	program  []string
	dir      string // "" is the bridge's own
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet(Command, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&o.readOnly, "read-only", false, "")
	flags.BoolVar(&o.count, "count", false, "")
	flags.StringVar(&o.model, "model", "", "")
	flags.StringVar(&o.mode, "mode", "", "")
	flags.StringVar(&o.safety, "safety", "", "")
	if err := flags.Parse(args); err != nil {
		return o, fmt.Errorf("%s: %v; only pawl starts this command", Command, err)
	}
	o.program = flags.Args()
	if before := len(args) - len(o.program); len(o.program) == 0 || before == 0 || args[before-1] != "--" {
		return o, errors.New(Command + " has no program; only pawl starts this command")
	}
	return o, nil
}

// runAgent does the whole run. The end is always the last line that it prints.
func (b *bridge) runAgent(o options, stdin io.Reader, env []string) int {
	prompt, err := io.ReadAll(io.LimitReader(stdin, maxPrompt+1))
	switch {
	case err != nil:
		return b.reportProblem(newProblem("", "cannot read the prompt: %v", err))
	case len(prompt) > maxPrompt:
		return b.reportProblem(newProblem("invalid_request", "the prompt is longer than %d bytes", maxPrompt))
	}
	dir, err := os.Getwd()
	if err != nil {
		return b.reportProblem(newProblem("", "cannot find the working folder: %v", err))
	}
	rules := safety.Rules{Level: safety.Level(o.safety), Root: dir}
	for _, variable := range env {
		if home, isHome := strings.CutPrefix(variable, "HOME="); isHome {
			rules.Home = home
		}
	}
	b.session = newSession(b.out, o.readOnly, rules)
	if err := b.startProgram(o, env); err != nil {
		return b.reportProblem(err)
	}
	stop, err := b.runPrompt(o, dir, strings.ToValidUTF8(string(prompt), "\uFFFD"))
	defer func() { b.endProgram(err == nil || b.obeyed) }()
	if err != nil {
		return b.reportProblem(err)
	}
	b.out.printStopReason(nil, stop)
	if stop == stopDone {
		return exitOK
	}
	return exitFailed
}

// reportProblem prints a problem and the end.
func (b *bridge) reportProblem(err error) int {
	if errors.Is(err, errStopped) {
		b.out.printStopReason(nil, stopCancelled)
		return exitStopped
	}
	p := new(problem)
	if !errors.As(err, &p) {
		p = newProblem("", "%v", err)
	}
	b.out.printStopReason(&p.err, stopError)
	_, _ = fmt.Fprintf(b.stderr, "pawl: %s\n", p.err.Message)
	return p.code
}

// startProgram starts the program, with pipes of its own and pawl's stderr.
func (b *bridge) startProgram(o options, env []string) error {
	b.conn = newConnection(b.session)
	b.cmd = exec.CommandContext(context.Background(), o.program[0], o.program[1:]...) // it is ended in steps, by finish
	b.cmd.Dir, b.cmd.Env, b.cmd.Stdout, b.cmd.Stderr = o.dir, env, b.conn, b.stderr
	b.cmd.WaitDelay = 500 * time.Millisecond // for what its children hold open
	in, err := b.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %v", err)
	}
	if err := b.cmd.Start(); err != nil {
		p := newProblem("", "cannot start %s: %v", o.program[0], err)
		if p.code = 126; errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			p.code = 127
		}
		return p
	}
	b.exited = make(chan struct{})
	b.conn.works.Go(func() { b.conn.writeQueue(in) })
	b.conn.works.Go(func() {
		if b.how = b.cmd.Wait(); errors.Is(b.how, exec.ErrWaitDelay) {
			b.how = nil
		}
		close(b.exited)
		b.conn.endOutput()
	})
	return nil
}

// endProgram ends the program: by closing its stdin, by TERM, by KILL. One that does not behave
// gets TERM at once: it may be blocked on its output.
func (b *bridge) endProgram(behaves bool) {
	b.conn.closeQueue()
	if !behaves {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
	}
	steps := []func(){
		func() { _ = b.cmd.Process.Signal(syscall.SIGTERM) },
		func() { _ = b.cmd.Process.Kill() },
	}
	for _, step := range steps {
		timer := time.NewTimer(b.bounds.end)
		select {
		case <-b.exited:
		case <-timer.C:
			step()
		}
		timer.Stop()
	}
	b.conn.works.Wait()
}

// askProgram sends a request and waits for its answer.
func (b *bridge) askProgram(method string, params any) (answer, error) {
	id, err := b.conn.sendRequest(method, params)
	if err != nil {
		return answer{}, err
	}
	timer := time.NewTimer(b.bounds.start)
	defer timer.Stop()
	a, err := b.waitAnswer(id, method, timer.C)
	if errors.Is(err, errLate) {
		return a, newProblem("timeout", "the program did not answer %s within %v%s; does its command line start ACP?",
			method, b.bounds.start, b.conn.noiseText())
	}
	return a, err
}

// errLate is a wait that was too long.
var errLate = errors.New("no answer")

// waitAnswer waits for one answer.
func (b *bridge) waitAnswer(id int64, method string, late <-chan time.Time) (answer, error) {
	stuck := b.session.loop
	if b.cancelling {
		stuck = nil
	}
	for {
		select {
		case a := <-b.conn.answers:
			if a.id == id {
				return a, nil
			}
		case err := <-b.conn.broken:
			return b.lastAnswer(id, method, err)
		case <-b.signals:
			return answer{}, errStopped
		case <-stuck:
			return answer{}, newProblem("asked_in_circles",
				"the program asked more than %d times for permission to do the same", maxAsked)
		case <-late:
			return answer{}, errLate
		}
	}
}

// lastAnswer returns the answer, if it was the last output of the program.
func (b *bridge) lastAnswer(id int64, method string, err error) (answer, error) {
	for len(b.conn.answers) > 0 {
		if a := <-b.conn.answers; a.id == id {
			return a, nil
		}
	}
	if err != nil {
		return answer{}, newProblem("invalid_protocol", "%v%s", err, b.conn.noiseText())
	}
	<-b.exited
	how := "ended"
	if b.how != nil {
		how = "ended (" + b.how.Error() + ")"
	}
	return answer{}, newProblem("", "the program %s before it answered %s%s", how, method, b.conn.noiseText())
}

// runPrompt opens a session and has the prompt done. It returns the program's reason to stop.
func (b *bridge) runPrompt(o options, dir, prompt string) (stop string, err error) {
	info, err := b.agreeProtocol()
	if err != nil {
		return "", err
	}
	b.out.putEvent(agent.Event{Kind: agent.Session, Text: strings.TrimSpace(info.Name + " " + info.Version)})
	b.keys = providerKeysIn(b.cmd.Env)
	id, err := b.openSession(o, dir, info.Login)
	if err != nil {
		return "", err
	}
	if o.count {
		b.export = exportCommand(info.Name, o.program, id)
	}
	return b.sendPrompt(o, id, prompt)
}

// about is a program's description of itself.
type about struct {
	Name, Version string  // "" when the program does not give it
	Login         []login // the ways to log in that it offers, which may not be needed
}

func (b *bridge) agreeProtocol() (info about, err error) {
	a, err := b.askProgram("initialize", map[string]any{
		"protocolVersion": protocol,
		"clientInfo":      map[string]string{"name": "pawl", "title": "pawl", "version": "1"},
		"clientCapabilities": map[string]any{
			"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false,
		},
	})
	if err != nil {
		return info, err
	}
	if a.failed != nil {
		return info, readError(a.failed)
	}
	var said struct {
		ProtocolVersion int
		AgentInfo       struct{ Name, Version string }
		AuthMethods     []login
	}
	jsonline.Read(a.result, &said)
	if v := said.ProtocolVersion; v != protocol {
		return info, newProblem("invalid_protocol", "the program speaks version %d of ACP, and pawl %d: use a release "+
			"of the program that has it", v, protocol)
	}
	info.Name, info.Version = agent.Clip(said.AgentInfo.Name, maxName), agent.Clip(said.AgentInfo.Version, maxName)
	for _, method := range said.AuthMethods[:min(len(said.AuthMethods), 10)] {
		if method.Name = agent.Clip(method.Name, maxName); method.Name != "" {
			info.Login = append(info.Login, method)
		}
	}
	return info, nil
}

// sendPrompt has the prompt done, however long that takes, or cancels it at a signal.
func (b *bridge) sendPrompt(o options, session, text string) (stop string, err error) {
	id, err := b.conn.sendRequest("session/prompt", map[string]any{
		"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}},
	})
	if err != nil {
		return "", err
	}
	a, err := b.waitAnswer(id, "the prompt", nil)
	if errors.Is(err, errStopped) || isQuestionLoop(err) {
		if a, late := b.cancelPrompt(session, id); late == nil {
			b.obeyed = true
			b.printAnswer(a)
		}
	}
	if err != nil {
		return "", err
	}
	if a.failed != nil {
		return "", readError(a.failed)
	}
	stop = b.printAnswer(a)
	if u := b.exportedUsage(o, b.export); u != (agent.Usage{}) {
		b.out.putEvent(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	}
	return stop, nil
}

func isQuestionLoop(err error) bool {
	p := new(problem)
	return errors.As(err, &p) && p.err.Type == "asked_in_circles"
}

// cancelPrompt asks the program to stop, and waits a little for it to have done so. A second signal
// ends the wait.
func (b *bridge) cancelPrompt(session string, id int64) (answer, error) {
	b.session.setCancelled()
	b.cancelling = true
	params := map[string]string{"sessionId": session}
	if err := b.conn.queueMessage(outgoing{Version: "2.0", Method: "session/cancel", Params: params}); err != nil {
		return answer{}, err
	}
	timer := time.NewTimer(b.bounds.cancel)
	defer timer.Stop()
	return b.waitAnswer(id, "session/cancel", timer.C)
}

// printAnswer prints the usage in the prompt's answer, and returns the reason to stop.
func (b *bridge) printAnswer(a answer) string {
	var result promptResult
	jsonline.Read(a.result, &result)
	if u := result.usageOfPrompt(); u != (agent.Usage{}) {
		b.out.putEvent(agent.Event{Kind: agent.UsageSeen, Cumulative: true, Usage: u})
	}
	return cmp.Or(agent.Clip(result.StopReason, maxName), stopError)
}

// OpenCode and Kilo report at the end what the last model call used. Their command "export" prints
// the session, with the use of each call.

const (
	exportTime = 20 * time.Second
	maxExport  = 64 << 20
)

// exportCommand returns the command line that prints a session of a program, which was started for
// the protocol by its command "acp"; nil where there is none.
func exportCommand(name string, program []string, session string) []string {
	at := slices.Index(program, "acp")
	switch strings.ToLower(name) {
	case "opencode", "kilo":
		if at > 0 {
			return append(slices.Clone(program[:at]), "export", session)
		}
	}
	return nil
}

// exportedUsage sums what all model calls of a session used; zero where the export fails.
func (b *bridge) exportedUsage(o options, argv []string) (sum agent.Usage) {
	if argv == nil {
		return sum
	}
	ctx, stop := context.WithTimeout(context.Background(), exportTime)
	defer stop()
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env, c.WaitDelay = o.dir, b.cmd.Env, 500*time.Millisecond
	out, err := c.StdoutPipe()
	if err != nil || c.Start() != nil {
		return sum
	}
	read := make(chan agent.Usage, 1)
	b.conn.works.Go(func() { read <- usageOfSession(io.LimitReader(out, maxExport)) })
	select {
	case sum = <-read:
	case <-b.signals:
		stop()
	}
	stop() // the session is read
	_ = c.Wait()
	return sum
}

// usageOfSession adds up what the messages of a session used.
func usageOfSession(session io.Reader) (sum agent.Usage) {
	var s struct {
		Messages []struct {
			Info struct {
				Tokens struct {
					Input, Output, Reasoning int64
					Cache                    struct{ Read, Write int64 }
				}
			}
		}
	}
	if json.NewDecoder(session).Decode(&s) != nil {
		return sum
	}
	for _, m := range s.Messages {
		t := m.Info.Tokens
		sum = sum.Plus(agent.Usage{
			Input: t.Input, Output: t.Output + t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write,
		}.Sane())
	}
	return sum
}
