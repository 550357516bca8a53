package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Within names a process other than this one whose working folder is in one of
// the folders, and is empty when there is none, or the machine does not tell.
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

// Users are the processes of a program, or of one whose name goes on after a dash,
// that may work in one of the folders: their working folder is below it, or they
// were told of it, or what they do cannot be seen. Ok is false where the machine
// does not tell.
func Users(program string, dirs ...string) (list []Identity, ok bool) {
	if _, err := os.Readlink("/proc/self/cwd"); err != nil {
		return nil, false
	}
	for _, p := range table() {
		named := p.Name == program || strings.HasPrefix(p.Name, program+"-")
		if !named || p.Zombie || !mayUse(p.PID, dirs) {
			continue
		}
		if id, err := Identify(p.PID); err == nil {
			list = append(list, id)
		}
	}
	return list, true
}

func mayUse(pid int, dirs []string) bool {
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
