// Package command runs git. It has what every call needs: a clean environment, no hooks, no
// transports, limits of time, memory and output, a process group of its own, and errors with what
// git said. It knows no subcommand and no repository: that is the room git above it. No other
// room starts git.
package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

const (
	callLimit   = 10 * time.Minute // no local git command is waited for longer
	outputLimit = 256 << 20        // bytes of output that a listing may have
	stderrLimit = 16 << 10         // bytes of messages that are kept
	memoryLimit = 8 << 30          // bytes of memory that a command may have; half of the machine's, if that is less
	slowCall    = 2 * time.Second  // after it a pipe in the work tree may be what git waits for
)

// ErrNoGit is returned when there is no git command on the path.
var ErrNoGit = errors.New("git is not installed")

// Error is a git command that ended with a status other than 0.
type Error struct {
	Command string // the subcommand, such as "update-ref"
	Code    int    // exit status; -1 when the command was killed
	Signal  int    // that killed it; 0 when it ended by itself
	Stderr  string // its messages, at most 16 KB
}

func (e *Error) Error() string {
	said := strings.TrimSpace(e.Stderr)
	if e.Signal != 0 {
		said = strings.TrimPrefix(fmt.Sprintf("%s; killed by signal %d", said, e.Signal), "; ")
	}
	said = cmp.Or(said, fmt.Sprintf("exit status %d", e.Code))
	return "git " + e.Command + ": " + said
}

// Call is one git command to run.
type Call struct {
	Dir      string
	Env      []string // added to the clean environment
	Args     []string // subcommand first
	Settings []string // of git's own, beside those of every call
	Trees    []string // in which agents work, beside the one of dir: no program is taken from there
	Stdin    io.Reader
	Max      int64         // bytes of output; 0 is outputLimit
	Memory   uint64        // bytes of memory; 0 is memoryLimit
	Into     *os.File      // gets the output; nil keeps it in memory
	Warned   *bytes.Buffer // gets git's messages too; may be nil
	Lock     *os.File      // inherited by git, so that a lock on it outlives pawl as long as git runs
}

// CanRepeat readies the call for a second try, after its command was killed: the index that is its
// own has no other user. It is false when the input was used up.
func (c *Call) CanRepeat() bool {
	for _, v := range c.Env {
		if index, ok := strings.CutPrefix(v, "GIT_INDEX_FILE="); ok {
			_ = os.Remove(index + ".lock") // or git says that it is there
		}
	}
	if c.Into != nil {
		_, err := c.Into.Seek(0, io.SeekStart)
		if err = errors.Join(err, c.Into.Truncate(0)); err != nil {
			return false
		}
	}
	if c.Stdin == nil {
		return true
	}
	s, ok := c.Stdin.(io.Seeker)
	if !ok {
		return false
	}
	_, err := s.Seek(0, io.SeekStart)
	return err == nil
}

// running is a call under way.
type running struct {
	ctx    context.Context // with the limit of the call
	cmd    *exec.Cmd
	cancel context.CancelFunc
	memory uint64 // bytes that it may have
	out    capped
	errs   capped
	name   string
}

// capped keeps the first max bytes and calls full when there are more. The
// buffer is not embedded: its ReadFrom would take everything.
type capped struct {
	buf  bytes.Buffer
	max  int64
	over bool
	full func()
}

func (c *capped) Write(p []byte) (int, error) {
	room := c.max - int64(c.buf.Len())
	if int64(len(p)) <= room {
		return c.buf.Write(p)
	}
	c.buf.Write(p[:max(room, 0)])
	c.over = true
	if c.full != nil {
		c.full()
	}
	return len(p), nil
}

// quiet are the settings that hold for every call, over any configuration file.
var quiet = []string{
	"--no-pager", "--no-replace-objects",
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
	"-c", "protocol.allow=never", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	// Milliseconds to wait for who has the lock of a ref: it may be syncing.
	"-c", "core.filesRefLockTimeout=10000", "-c", "core.packedRefsTimeout=10000",
}

// noProgram is looked for, and not found, where git is in trees only.
const noProgram = "git-outside-of-the-work-tree"

// ProgramPath returns the PATH of git and of all that it starts, and the git that is found there.
// What lies in a work tree, as in node_modules/.bin, may be an agent's.
func (c Call) ProgramPath() (path, git string) {
	trees := slices.Clone(c.Trees)
	if tree := workTreeOf(c.Dir); tree != "" {
		trees = append(trees, tree)
	}
	path = safeSearchPath(os.Getenv("PATH"), trees)
	for _, folder := range filepath.SplitList(path) {
		if git, err := exec.LookPath(filepath.Join(folder, "git")); err == nil {
			return path, git
		}
	}
	return path, noProgram
}

// workTreeOf is the work tree that a folder is in; "" for none.
func workTreeOf(dir string) string {
	for at, err := filepath.Abs(dir); err == nil && at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
	return ""
}

// keptPaths are what [files.ProgramPath] kept, by trees and PATH: only the person can change the
// folders that it keeps, or the links to them.
var keptPaths sync.Map

func safeSearchPath(path string, trees []string) string {
	key := strings.Join(append(trees, path), "\x00")
	known, _ := keptPaths.Load(key)
	if safe, ok := known.(string); ok {
		return safe
	}
	safe, _ := files.ProgramPath(path, trees...)
	keptPaths.Store(key, safe)
	return safe
}

// prepareCommand makes the command without starting it.
func prepareCommand(ctx context.Context, c Call) *running {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	p := &running{ctx: ctx, cancel: cancel, name: c.Args[0], memory: cmp.Or(c.Memory, mostMemory())}
	path, git := c.ProgramPath()
	p.cmd = exec.CommandContext(ctx, git, slices.Concat(quiet, c.Settings, c.Args)...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(append(cleanEnvironment(os.Environ()), "PATH="+path), c.Env...)
	p.cmd.Stdin = c.Stdin
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 10 * time.Second
	if c.Lock != nil {
		p.cmd.ExtraFiles = []*os.File{c.Lock}
	}
	p.out.max = cmp.Or(c.Max, outputLimit)
	p.out.full = cancel
	p.errs.max = stderrLimit
	p.cmd.Stderr = &p.errs
	if tree := workTreeOf(c.Dir); tree != "" {
		stop := files.MendAfter(slowCall, tree)
		p.cancel = func() { cancel(); stop() }
	}
	return p
}

// mostMemory keeps the machine from what a few objects can make of git: trees within
// trees that stand for more files than any disk has.
var mostMemory = sync.OnceValue(func() uint64 {
	if all := process.MachineMemory(); all > 0 {
		return min(memoryLimit, all/2)
	}
	return memoryLimit
})

func (p *running) startCommand() error {
	if err := p.cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return ErrNoGit
		}
		return fmt.Errorf("cannot run git %s: %w", p.name, err)
	}
	// Ignore rules can keep git busy for ever, also when pawl is gone. Where a limit is
	// refused, git goes without.
	_ = process.Limit(p.cmd.Process.Pid, p.memory, callLimit*time.Duration(runtime.NumCPU()))
	return nil
}

// failureOf returns the error of a command. When the context ended first, it is the context's.
func (p *running) failureOf(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("git %s was stopped: %w", p.name, ctx.Err())
	}
	if p.ctx.Err() != nil {
		return fmt.Errorf("git %s was stopped: it took longer than %s", p.name, callLimit)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		e := &Error{Command: p.name, Code: exit.ExitCode(), Stderr: strings.Map(printableRune, p.errs.buf.String())}
		if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			e.Signal = int(st.Signal())
		}
		return e
	}
	return fmt.Errorf("cannot run git %s: %w", p.name, err)
}

// printableRune leaves out what could steer a terminal: messages hold what a remote says.
func printableRune(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

// Run runs one command to its end. One that was killed, as when memory runs out, is run once
// more.
func Run(ctx context.Context, c Call) ([]byte, error) {
	out, more, err := RunOnce(ctx, c)
	if WasKilled(err) && c.CanRepeat() {
		out, more, err = RunOnce(ctx, c)
	}
	if more {
		return nil, fmt.Errorf("cannot read the output of git %s: it is over %d MB", c.Args[0],
			cmp.Or(c.Max, outputLimit)>>20)
	}
	return out, err
}

// Text is the output of a command, without the space around it. The error says what cannot be done.
func Text(ctx context.Context, c Call, todo string) (string, error) {
	out, err := Run(ctx, c)
	if err != nil {
		return "", fmt.Errorf("cannot %s: %w", todo, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Records are the NUL-terminated records of a command's output. The error says what cannot be done.
func Records(ctx context.Context, c Call, todo string) ([]string, error) {
	out, err := Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("cannot %s: %w", todo, err)
	}
	return SplitRecords(out), nil
}

// RunOnce runs a command. With more output than it may have it is ended, and more is true.
func RunOnce(ctx context.Context, c Call) (out []byte, more bool, err error) {
	p := prepareCommand(ctx, c)
	defer p.cancel()
	p.cmd.Stdout = &p.out
	if c.Into != nil {
		p.cmd.Stdout = c.Into
	}
	if err := p.startCommand(); err != nil {
		return nil, false, err
	}
	err = p.waitForEnd()
	if c.Warned != nil {
		c.Warned.Write(p.errs.buf.Bytes())
	}
	if p.out.over {
		return p.out.buf.Bytes(), true, nil
	}
	return p.out.buf.Bytes(), false, p.failureOf(ctx, err)
}

// Stream runs a command and hands its output to read, which takes in all of it. An error of
// read ends the command.
func Stream(ctx context.Context, c Call, read func(io.Reader) error) error {
	p := prepareCommand(ctx, c)
	defer p.cancel()
	pipe, err := p.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot read objects: %w", err)
	}
	if err := p.startCommand(); err != nil {
		return err
	}
	if err := read(pipe); err != nil {
		p.cancel()
		_ = p.waitForEnd() // killed: its status says nothing new
		return cmp.Or(ctx.Err(), err)
	}
	return p.failureOf(ctx, p.waitForEnd())
}

// waitForEnd waits for the end of the command. Where its group was killed, what git had started falls to this process.
func (p *running) waitForEnd() error {
	err := p.cmd.Wait()
	if p.ctx.Err() != nil {
		process.ReapGroup(p.cmd.Process.Pid)
	}
	return err
}

// WasKilled reports whether a command was ended by a signal that is not pawl's.
func WasKilled(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Signal != 0
}

// RunAll runs commands side by side and returns their outputs in order. Every
// one has ended when it returns; the error is that of the first which failed.
func RunAll(ctx context.Context, calls ...Call) ([][]byte, error) {
	outs, errs := make([][]byte, len(calls)), make([]error, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { outs[i], errs[i] = Run(ctx, c) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return outs, err
		}
	}
	return outs, nil
}

// inherited are the caller's variables that say where git and its configuration are.
var inherited = []string{
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM",
	"GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH",
}

// cleanEnvironment drops every GIT_ variable that would aim git at another repository, index or
// program, and adds those that keep it quiet.
func cleanEnvironment(from []string) []string {
	env := make([]string, 0, len(from)+8)
	for _, v := range from {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "GIT_") && !slices.Contains(inherited, name):
		case strings.HasPrefix(name, "LC_"), name == "LANG", name == "LANGUAGE":
		default:
			env = append(env, v)
		}
	}
	// A delta of some bytes can make an object of any size, which git keeps in memory.
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOC_LIMIT=2g",
		"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_PROTOCOL_FROM_USER=0")
}

// ExitCode is the status of a git command that failed, and 0 for any other error.
func ExitCode(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}

// Known are answers of git that never change, by what was asked.
type Known struct {
	mu      sync.Mutex
	answers map[string]string
}

const mostKnown = 10_000 // answers that are kept; then they are forgotten

// Get returns what is known, or asks for it, and keeps the answer if that never changes.
func (k *Known) Get(key string, keep bool, ask func() (string, error)) (string, error) {
	k.mu.Lock()
	answer, known := k.answers[key]
	k.mu.Unlock()
	if known {
		return answer, nil
	}
	answer, err := ask()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && keep {
		if k.answers == nil || len(k.answers) == mostKnown {
			k.answers = map[string]string{}
		}
		k.answers[key] = answer
	}
	return answer, err
}

// SplitRecords splits NUL-terminated output.
func SplitRecords(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// JoinPaths joins paths as NUL-terminated input.
func JoinPaths(paths []string) io.Reader {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return strings.NewReader(b.String())
}
