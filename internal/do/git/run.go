package git

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

// machineSays are messages of git and the system about a machine that lacks a resource.
var machineSays = []string{
	"No space left on device", "Disk quota exceeded", "Out of diskspace", "File too large", "Input/output error",
	"Read-only file system", "Cannot allocate memory", "Out of memory", "out of memory", "Too many open files",
	"Resource temporarily unavailable",
}

// OfMachine reports whether an error of this package is the machine's: git was killed, or met a
// full disk or the like. The same may work later.
func OfMachine(err error) bool {
	if err == nil || wasKilled(err) {
		return err != nil
	}
	text := err.Error()
	return slices.ContainsFunc(machineSays, func(part string) bool { return strings.Contains(text, part) })
}

// call is one git command to run.
type call struct {
	dir      string
	env      []string // added to the clean environment
	args     []string // subcommand first
	settings []string // of git's own, beside those of every call
	trees    []string // in which agents work, beside the one of dir: no program is taken from there
	stdin    io.Reader
	max      int64    // bytes of output; 0 is outputLimit
	memory   uint64   // bytes of memory; 0 is memoryLimit
	into     *os.File // gets the output; nil keeps it in memory
	warned   *capped  // gets git's messages too; may be nil
	lock     *os.File // inherited by git, so that a lock on it outlives pawl as long as git runs
}

// canRepeat readies the call for a second try, after its command was killed: the index that is its
// own has no other user. It is false when the input was used up.
func (c *call) canRepeat() bool {
	for _, v := range c.env {
		if index, ok := strings.CutPrefix(v, "GIT_INDEX_FILE="); ok {
			_ = os.Remove(index + ".lock") // or git says that it is there
		}
	}
	if c.into != nil {
		_, err := c.into.Seek(0, io.SeekStart)
		if err = errors.Join(err, c.into.Truncate(0)); err != nil {
			return false
		}
	}
	if c.stdin == nil {
		return true
	}
	s, ok := c.stdin.(io.Seeker)
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

// programPath returns the PATH of git and of all that it starts, and the git that is found there.
// What lies in a work tree, as in node_modules/.bin, may be an agent's.
func (c call) programPath() (path, git string) {
	trees := slices.Clone(c.trees)
	if tree := treeOf(c.dir); tree != "" {
		trees = append(trees, tree)
	}
	path = keptPath(os.Getenv("PATH"), trees)
	for _, folder := range filepath.SplitList(path) {
		if git, err := exec.LookPath(filepath.Join(folder, "git")); err == nil {
			return path, git
		}
	}
	return path, noProgram
}

// treeOf is the work tree that a folder is in; "" for none.
func treeOf(dir string) string {
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

func keptPath(path string, trees []string) string {
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
func prepareCommand(ctx context.Context, c call) *running {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	p := &running{ctx: ctx, cancel: cancel, name: c.args[0], memory: cmp.Or(c.memory, mostMemory())}
	path, git := c.programPath()
	p.cmd = exec.CommandContext(ctx, git, slices.Concat(quiet, c.settings, c.args)...)
	p.cmd.Dir = c.dir
	p.cmd.Env = append(append(cleanEnvironment(os.Environ()), "PATH="+path), c.env...)
	p.cmd.Stdin = c.stdin
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 10 * time.Second
	if c.lock != nil {
		p.cmd.ExtraFiles = []*os.File{c.lock}
	}
	p.out.max = cmp.Or(c.max, outputLimit)
	p.out.full = cancel
	p.errs.max = stderrLimit
	p.cmd.Stderr = &p.errs
	if c.warned != nil {
		c.warned.max = stderrLimit
		p.cmd.Stderr = io.MultiWriter(&p.errs, c.warned)
	}
	if tree := treeOf(c.dir); tree != "" {
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
		return startError(p.name, err)
	}
	// Ignore rules can keep git busy for ever, also when pawl is gone. Where a limit is
	// refused, git goes without.
	_ = process.Limit(p.cmd.Process.Pid, p.memory, callLimit*time.Duration(runtime.NumCPU()))
	return nil
}

func startError(name string, err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNoGit
	}
	return fmt.Errorf("cannot run git %s: %w", name, err)
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

// runGit runs one command to its end. One that was killed, as when memory runs out, is run once
// more.
func runGit(ctx context.Context, c call) ([]byte, error) {
	out, more, err := runOnce(ctx, c)
	if wasKilled(err) && c.canRepeat() {
		out, more, err = runOnce(ctx, c)
	}
	if more {
		return nil, fmt.Errorf("cannot read the output of git %s: it is over %d MB", c.args[0],
			cmp.Or(c.max, outputLimit)>>20)
	}
	return out, err
}

// runOnce runs a command. With more output than it may have it is ended, and more is true.
func runOnce(ctx context.Context, c call) (out []byte, more bool, err error) {
	p := prepareCommand(ctx, c)
	defer p.cancel()
	p.cmd.Stdout = &p.out
	if c.into != nil {
		p.cmd.Stdout = c.into
	}
	if err := p.startCommand(); err != nil {
		return nil, false, err
	}
	err = p.cmd.Wait()
	if p.out.over {
		return p.out.buf.Bytes(), true, nil
	}
	return p.out.buf.Bytes(), false, p.failureOf(ctx, err)
}

// wasKilled reports whether a command was ended by a signal that is not pawl's.
func wasKilled(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Signal != 0
}

// runAll runs commands side by side and returns their outputs in order. Every
// one has ended when it returns; the error is that of the first which failed.
func runAll(ctx context.Context, calls ...call) ([][]byte, error) {
	outs, errs := make([][]byte, len(calls)), make([]error, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() { outs[i], errs[i] = runGit(ctx, c) })
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

// NamesRepository reports whether a variable names the repository, index or objects that git works
// on, as git's hooks have it. It reaches no program that pawl starts.
func NamesRepository(variable string) bool { return slices.Contains(ofRepository, variable) }

var ofRepository = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_INDEX_VERSION", "GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE",
	"GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX",
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

// exitCode is the status of a git command that failed, and 0 for any other error.
func exitCode(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return 0
}

// splitRecords splits NUL-terminated output.
func splitRecords(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// joinPaths joins paths as NUL-terminated input.
func joinPaths(paths []string) io.Reader {
	var b strings.Builder
	for _, p := range paths {
		b.WriteString(p)
		b.WriteByte(0)
	}
	return strings.NewReader(b.String())
}
