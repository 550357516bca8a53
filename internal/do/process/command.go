package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Command is a process to start. It gets a session of its own, the
// environment as given (the last of two equal names counts), and no
// descriptors but those named here.
type Command struct {
	Args []string // Args[0] is looked up in Env's PATH, or below Dir when it holds a slash
	Dir  string   // absolute; "" is the parent's
	Env  []string // K=V, the whole environment
	// Stdin, Stdout and Stderr become 0, 1 and 2; nil is the null device.
	Stdin, Stdout, Stderr *os.File
	Extra                 []*os.File // become 3, 4, …
	// Path is the program when it is not to be looked up by Args[0].
	Path string
	// Sys are further attributes of the process; it leads a session anyway.
	Sys *syscall.SysProcAttr
	// Init: the process is the first of a process namespace. It leaves when all
	// others in it have ended, and its own end is the end of all of them.
	Init bool
}

// StartError says why a process could not be started. Code is what a shell
// would exit with: 127 for not found, 126 for not executable; -1 otherwise.
type StartError struct {
	Code    int
	Message string
}

func (e *StartError) Error() string { return e.Message }

// forkChild starts c and returns its pid, or a *StartError.
func forkChild(c Command) (int, error) {
	p, err := c.prepareChild()
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: p.env, Sys: p.sys, Files: lists.Each(p.files, (*os.File).Fd)}
	pid, err := syscall.ForkExec(p.path, c.Args, attr)
	if err != nil {
		return 0, c.Explain(p.path, err)
	}
	return pid, nil
}

// prepared has the input of a fork.
type prepared struct {
	path  string
	env   []string
	files []*os.File
	sys   *syscall.SysProcAttr
}

// nullDevice stays open: it is needed for nearly every start.
var nullDevice = sync.OnceValues(func() (*os.File, error) { return os.OpenFile(os.DevNull, os.O_RDWR, 0) })

// closeInherited marks what this process itself inherited, once.
var closeInherited = sync.OnceFunc(CloseOnExec)

// prepareChild resolves the program and the descriptors.
func (c Command) prepareChild() (prepared, error) {
	path, err := c.Resolve()
	if err != nil {
		return prepared{}, err
	}
	closeInherited()
	var sys syscall.SysProcAttr
	if c.Sys != nil {
		sys = *c.Sys
	}
	sys.Setsid = true
	null, err := nullDevice()
	if err != nil {
		return prepared{}, &StartError{Code: -1, Message: fmt.Sprintf("cannot start %s: %v", c.Args[0], err)}
	}
	files := append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, c.Extra...)
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	return prepared{
		path: path, env: keepLastOfName(c.Env), files: files, sys: &sys,
	}, nil
}

// Resolve returns the program that a start of c would execute. The error is a
// *StartError.
func (c Command) Resolve() (string, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return "", &StartError{Code: 127, Message: "cannot start a process: the command is empty"}
	}
	return c.findProgram(keepLastOfName(c.Env))
}

// Environ is the environment that a start of c would hand over.
func (c Command) Environ() []string { return keepLastOfName(c.Env) }

// findProgram finds the program. Relative entries of PATH are skipped, so that a
// file of the repository never stands in for a program of the system.
func (c Command) findProgram(env []string) (string, error) {
	if c.Path != "" {
		return c.Path, nil
	}
	name := c.Args[0]
	if strings.ContainsRune(name, '/') {
		if filepath.IsAbs(name) || c.Dir == "" {
			return name, nil
		}
		return filepath.Join(c.Dir, name), nil
	}
	denied := ""
	for _, dir := range filepath.SplitList(lists.Getenv(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			continue
		}
		if info.Mode()&0o111 != 0 {
			return path, nil
		}
		denied = path
	}
	if denied != "" {
		return "", &StartError{Code: 126, Message: fmt.Sprintf("cannot start %s: %s is not executable (chmod +x?)",
			name, denied)}
	}
	return "", &StartError{Code: 127, Message: fmt.Sprintf("cannot start %s: not found in PATH", name)}
}

// longestText is the most that Linux takes of one argument or variable, in bytes.
const longestText = 128 << 10

// tooLongText names the argument or the variable that is longer than the system takes.
func (c Command) tooLongText() string {
	for _, kv := range c.Env {
		if name, _, _ := strings.Cut(kv, "="); len(kv) >= longestText {
			const text = "invalid environment: the variable %s is longer than the system takes: it has %d bytes, and " +
				"%d are allowed; hand it over in a file"
			return fmt.Sprintf(text, name, len(kv), longestText)
		}
	}
	for _, arg := range c.Args {
		if len(arg) >= longestText {
			const text = "invalid argument: it is longer than the system takes: it has %d bytes, and %d are allowed; " +
				"pass a prompt on stdin or with {prompt_file}"
			return fmt.Sprintf(text, len(arg), longestText)
		}
	}
	return "invalid arguments: all of them and the environment together are longer than the system takes"
}

// Explain makes a *StartError, for the person who must act, of the system's error
// when path, which Resolve returned, could not be executed.
func (c Command) Explain(path string, err error) error {
	fail := func(code int, format string, args ...any) error {
		return &StartError{Code: code, Message: "cannot start " + c.Args[0] + ": " + fmt.Sprintf(format, args...)}
	}
	if c.Dir != "" {
		if info, dirErr := os.Stat(c.Dir); dirErr != nil || !info.IsDir() {
			return fail(-1, "its working folder %s does not exist", c.Dir)
		}
	}
	info, gone := os.Stat(path)
	switch why := ReasonNotExecuted(path); {
	case errors.Is(err, syscall.E2BIG):
		return fail(-1, "%s", c.tooLongText())
	case errors.Is(err, fs.ErrNotExist) && gone != nil:
		return fail(127, "%s does not exist", path)
	case why != "":
		return fail(126, "%s", strings.TrimPrefix(path+": ", c.Args[0]+": ")+why)
	case gone == nil && info.IsDir():
		return fail(126, "%s is a folder", path)
	}
	return fail(-1, "%v", err)
}

// ReasonNotExecuted explains why the system would not execute the file at path, with the remedy; ""
// if it would, or the reason is not known.
func ReasonNotExecuted(path string) string {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return ""
	}
	if syscall.Access(path, 1) != nil {
		return "make it executable, chmod +x " + path + ", unless its file system is mounted noexec"
	}
	f, err := os.Open(path)
	if err != nil {
		return "" // a program may be executed and not read
	}
	defer f.Close()
	start, _ := io.ReadAll(io.LimitReader(f, 256)) // what cannot be read says nothing
	line, isScript := strings.CutPrefix(string(start), "#!")
	line, _, _ = strings.Cut(line, "\n")
	switch words := strings.Fields(line); {
	case !isScript && bytes.IndexByte(start, 0) < 0:
		return "it is neither a program for this machine nor a script with a first line such as #!/bin/sh"
	case !isScript:
		return ""
	case strings.HasSuffix(line, "\r"):
		return "its first line has a Windows line end; remove these: sed -i 's/\\r$//' " + path
	case len(words) == 0:
		return "its first line names no interpreter"
	default:
		info, err := os.Stat(words[0])
		switch {
		case err != nil:
			return "its first line names the interpreter " + words[0] + ", which does not exist"
		case info.IsDir() || syscall.Access(words[0], 1) != nil:
			return "its first line names the interpreter " + words[0] + ", which is not a program"
		}
		return reasonNoWord(words)
	}
}

// reasonNoWord names the interpreter that a first line has env look for, where env would not find it.
func reasonNoWord(words []string) string {
	isEnv := len(words) == 2 && filepath.Base(words[0]) == "env"
	if !isEnv || strings.HasPrefix(words[1], "-") || strings.ContainsAny(words[1], "=/") {
		return ""
	}
	if _, err := exec.LookPath(words[1]); err != nil {
		return "its first line names the interpreter " + words[1] + ", which is not in PATH"
	}
	return ""
}

// keepLastOfName drops all but the last of equal names, as programs disagree about
// which of two counts.
func keepLastOfName(env []string) []string {
	at := make(map[string]int, len(env))
	out := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		if i, dup := at[name]; dup {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// HandDownDefaults makes children start with the default action of signals
// that this process inherited as ignored (a shell's `&` does that with INT,
// nohup with HUP). From then on this process itself ignores them by catching.
// It is for a supervisor; a program that must honour nohup does not call it.
func HandDownDefaults() {
	var ignored []os.Signal
	for sig := syscall.Signal(1); sig < 32; sig++ {
		switch sig {
		case syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGCHLD, syscall.SIGURG:
			continue
		}
		if signal.Ignored(sig) || inheritedIgnored(sig) {
			ignored = append(ignored, sig)
		}
	}
	if len(ignored) > 0 {
		// A caught signal is reset by exec, an ignored one is not. It is not read.
		signal.Notify(make(chan os.Signal, 1), ignored...)
	}
}

// Pipe makes a pipe for a child's output of about size bytes (best effort;
// some programs lose at exit what does not fit). The reading end can be given
// a deadline, the writing end blocks as programs expect. Neither is inherited
// except through a [Command].
func Pipe(size int) (r, w *os.File, err error) {
	var fds [2]int
	if err := pipeCloseOnExec(&fds); err != nil {
		return nil, nil, fmt.Errorf("cannot create a pipe: %v", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		_, _ = syscall.Close(fds[0]), syscall.Close(fds[1])
		return nil, nil, fmt.Errorf("cannot create a pipe: %v", err)
	}
	enlargePipe(fds[1], size)
	return os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe"), nil
}

// SocketPair makes two connected sockets, which no program that is started inherits.
func SocketPair() (fds [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	return fds, err
}

// Channel is like [Pipe], but no other process opens the writing end: what a child starts
// could open a pipe by the child's /proc/PID/fd, and write in its name.
func Channel(size int) (r, w *os.File, err error) {
	fds, err := SocketPair()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a channel: %v", err)
	}
	_ = syscall.SetsockoptInt(fds[1], syscall.SOL_SOCKET, syscall.SO_SNDBUF, size) // as much as it gets
	if err = syscall.Shutdown(fds[0], syscall.SHUT_WR); err == nil {
		err = syscall.SetNonblock(fds[0], true)
	}
	if err != nil {
		_, _ = syscall.Close(fds[0]), syscall.Close(fds[1])
		return nil, nil, fmt.Errorf("cannot make a channel: %v", err)
	}
	return os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel"), nil
}

// rest is the most that is read from a pipe after its time is over: what was
// in it then, and not what is still written.
const rest = 2 << 20

// Drain reads r to its end in pieces of buf and hands each to take. After a
// deadline set on r it takes what is in the pipe and returns, so an unknown
// writer cannot hold it up.
func Drain(r *os.File, buf []byte, take func([]byte)) {
	for {
		n, err := r.Read(buf)
		if n > 0 {
			take(buf[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drainRest(r, buf, take)
			return
		}
		if err != nil {
			return
		}
	}
}

func drainRest(r *os.File, buf []byte, take func([]byte)) {
	if r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	raw, err := r.SyscallConn()
	if err != nil {
		return
	}
	for left := rest; left > 0; {
		n := 0
		err := raw.Read(func(fd uintptr) bool {
			n, _ = syscall.Read(int(fd), buf) //nolint:gosec // a descriptor fits
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		take(buf[:n])
		left -= n
	}
}
