package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// starting is held for reading while a detached process is started and for
// writing while orphans are looked for: between fork and exec a child looks
// like an orphan without a mark.
var starting sync.RWMutex

// known are the pids of detached processes that this process started and
// waits for itself.
var known sync.Map

// Detached is a process that may outlive this one.
type Detached struct {
	PID    int
	done   chan struct{}
	status syscall.WaitStatus
}

// Done is closed when the process has ended and was reaped.
func (d *Detached) Done() <-chan struct{} { return d.done }

// Status is how it ended; meaningful once Done is closed.
func (d *Detached) Status() syscall.WaitStatus { return d.status }

// StartDetached starts c in a session of its own and waits for its end in the
// background; that goroutine ends with the process. The error is a
// *StartError. It must not be used in a process that has a [Reaper].
func StartDetached(c Command) (*Detached, error) {
	starting.RLock()
	defer starting.RUnlock()
	prep, err := c.prepareChild()
	if err != nil {
		return nil, err
	}
	p, err := os.StartProcess(prep.path, c.Args, &os.ProcAttr{
		Dir: c.Dir, Env: prep.env, Files: prep.files, Sys: prep.sys,
	})
	if err != nil {
		return nil, c.Explain(prep.path, err)
	}
	d := &Detached{PID: p.Pid, done: make(chan struct{})}
	known.Store(d.PID, true)
	go func() {
		defer close(d.done)
		if state, err := p.Wait(); err == nil {
			d.status, _ = state.Sys().(syscall.WaitStatus)
		}
		known.Delete(d.PID)
	}()
	return d, nil
}

// Sweep ends every process whose environment holds mark, a `NAME=value`, with
// all their descendants: TERM, up to grace, then KILL. Never this process or
// one of its ancestors. A done ctx cuts the grace short.
//
// After [BecomeSubreaper] it also ends the orphans that fell to this process
// and carry no mark of that name at all (a program may clear its environment).
// An orphan differs from a child of this process in its session: so children
// that this process starts with os/exec must stay in its session, and those
// that shall not are started with [StartDetached].
func Sweep(ctx context.Context, mark string, grace time.Duration) (Ended, error) {
	name, value, ok := strings.Cut(mark, "=")
	if !ok || name == "" || value == "" {
		return Ended{}, fmt.Errorf("cannot sweep: the mark %q is not NAME=value", mark)
	}
	s := sweep{mark: []byte(mark), name: []byte(name + "=")}
	h := hunt{find: s.findMarked, wait: s.waitEnded}
	return h.endAllMembers(ctx, grace), nil
}

// ReapGroup reaps the members of a killed process group that fell to this process when their parent ended: they have
// nobody else who waits for them. What the system does not let go within a second is left.
func ReapGroup(group int) {
	for range 100 {
		switch pid, err := syscall.Wait4(-group, nil, syscall.WNOHANG, nil); {
		case err != nil && !errors.Is(err, syscall.EINTR): // there is none
			return
		case pid == 0:
			Sleep(context.Background(), 10*time.Millisecond)
		}
	}
}

type sweep struct {
	mark, name []byte
}

// waitEnded looks again in growing steps: the end of a process that is not a child
// gives no signal.
func (s sweep) waitEnded(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return pollUntil(ctx, func() bool { return len(s.findMarked()) == 0 })
}

// findMarked lists the living marked processes and orphans with their descendants,
// and reaps the orphans that have ended.
func (s sweep) findMarked() []Proc {
	starting.Lock()
	defer starting.Unlock()
	all := readTable()
	spared := ownLineage(all)
	roots := map[int]bool{}
	var out []Proc
	for _, p := range all {
		if spared[p.PID] {
			continue
		}
		orphan := isOrphan(p)
		if p.Zombie {
			if orphan {
				_, _ = syscall.Wait4(p.PID, nil, syscall.WNOHANG, nil)
			}
			continue
		}
		var env []byte
		if !p.leaving { // else it has none, as threads of the kernel have none
			env = environOf(p.PID)
		}
		marked, named := s.searchMark(env)
		if len(env) == 0 && orphan && hasEnded(p) {
			continue
		}
		bare := orphan && !named
		if marked || bare {
			roots[p.PID] = true
			out = append(out, p)
		}
	}
	below := slices.DeleteFunc(descendantsOf(all, roots), func(p Proc) bool { return spared[p.PID] })
	return append(out, below...)
}

// searchMark reports whether the mark is among the variables, and whether any
// variable of its name is.
func (s sweep) searchMark(env []byte) (marked, named bool) {
	if !bytes.Contains(env, s.name) {
		return false, false
	}
	for len(env) > 0 {
		var kv []byte
		kv, env, _ = bytes.Cut(env, []byte{0})
		if bytes.HasPrefix(kv, s.name) {
			named = true
			marked = marked || bytes.Equal(kv, s.mark)
		}
	}
	return marked, named
}

// hasEnded reports whether p has ended since it was read from the table, or is
// about to: its memory is gone by then, and its environment with it, which says
// nothing about the environment that it had.
func hasEnded(p Proc) bool {
	now, ok := readProc(p.PID)
	return !ok || now.Start != p.Start || now.Zombie || now.leaving
}

// isOrphan reports whether p fell to this process, which did not start it.
func isOrphan(p Proc) bool {
	_, ours := known.Load(p.PID)
	return isSubreaper() && p.Parent == os.Getpid() && p.Session != ownSession() && !ours
}

// ownLineage is this process and its ancestors.
func ownLineage(all []Proc) map[int]bool {
	parent := lists.ToMap(all, func(p Proc) (int, int) { return p.PID, p.Parent })
	out := map[int]bool{0: true, 1: true}
	for pid := os.Getpid(); !out[pid]; pid = parent[pid] {
		out[pid] = true
	}
	return out
}

// Within names a process other than this one whose working folder is in one of
// the folders, and is empty when there is none, or that is not known.
func Within(dirs ...string) string {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return ""
	}
	for _, link := range links {
		cwd, err := os.Readlink(link)
		in := func(dir string) bool { return cwd == dir || strings.HasPrefix(cwd, dir+"/") }
		if err != nil || !slices.ContainsFunc(dirs, in) {
			continue
		}
		proc := filepath.Dir(link)
		pid := filepath.Base(proc)
		if pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(proc, "comm")) // it may just have ended
		return fmt.Sprintf("process %s (%s) is in it", pid, strings.TrimSpace(string(name)))
	}
	return ""
}

// Users lists the processes of a program, or of one whose name continues after a dash,
// that may work in one of the folders: their working folder is below it, or their
// arguments or variables name it, or these cannot be read. Ok is false where the machine
// does not show it.
func Users(program string, dirs ...string) (list []Identity, ok bool) {
	if _, err := os.Readlink("/proc/self/cwd"); err != nil {
		return nil, false
	}
	for _, p := range readTable() {
		named := p.Name == program || strings.HasPrefix(p.Name, program+"-")
		if !named || p.Zombie || !mayUseFolders(p.PID, dirs) {
			continue
		}
		if id, err := Identify(p.PID); err == nil {
			list = append(list, id)
		}
	}
	return list, true
}

func mayUseFolders(pid int, dirs []string) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	cwd, err := os.Readlink(proc + "/cwd")
	told := cwd + "/"
	for _, name := range []string{"/cmdline", "/environ"} {
		data, rerr := os.ReadFile(proc + name)
		err = errors.Join(err, rerr)
		told += "\n" + string(data)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false // it has ended
	}
	return err != nil || slices.ContainsFunc(dirs, func(dir string) bool { return strings.Contains(told, dir) })
}
