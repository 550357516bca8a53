package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// controller is what limits one thing in a control group.
type controller struct {
	name, file, old string // old is the file of version 1
}

var (
	pids   = controller{"pids", "pids.max", "pids.max"}
	memory = controller{"memory", "memory.max", "memory.limit_in_bytes"}
)

// groupRoot is where the hierarchies are mounted.
const groupRoot = string(filepath.Separator) + "sys/fs/cgroup"

// LimitGroup puts this process, and with it all that it starts from now on,
// into a control group with the limits for processes and memory, where it may:
// with version 1 below its own group, with version 2 in the nearest group above
// that hands the controllers down. To change the group takes the kernel
// milliseconds, so it is done once and not for each box.
//
// held is whether there is a limit now. leave goes back and removes the group.
func LimitGroup(l Limits) (held bool, leave func()) {
	var in []groupPlace
	own := map[controller][]groupPlace{pids: groupPlacesFor(pids), memory: groupPlacesFor(memory)}
	for _, c := range []struct {
		controller
		limit int64
	}{{pids, int64(l.Processes)}, {memory, l.Memory}} {
		if c.limit > 0 {
			in = enterGroup(in, own[c.controller], c.limit)
		}
	}
	return len(in) > 0, func() {
		for _, p := range in {
			if p.moveProcessTo(p.was) == nil {
				_ = os.Remove(p.dir)
			}
		}
	}
}

// enterGroup tries the places in turn; in are those that this process is in.
func enterGroup(in, tries []groupPlace, limit int64) []groupPlace {
	for _, p := range tries {
		removeDead(filepath.Dir(p.dir))
		made := os.Mkdir(p.dir, 0o755) == nil
		text := []byte(strconv.FormatInt(limit, 10))
		err := os.WriteFile(filepath.Join(p.dir, p.file), text, 0o644) //nolint:gosec // a file of the kernel
		switch {
		case err == nil && !made:
			return in // made for the other controller
		case err == nil && p.moveProcessTo(p.dir) == nil:
			return append(in, p)
		}
		if made {
			_ = os.Remove(p.dir)
		}
	}
	return in
}

// removeDead removes the groups of processes that did not live to do it.
func removeDead(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, "pawl-*"))
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "pawl-"))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.Remove(dir)
		}
	}
}

// groupPlace is a folder in which a group can be tried: the group's own, the
// file with its limit, and the group that this process is in.
type groupPlace struct{ dir, file, was string }

func (groupPlace) moveProcessTo(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644) //nolint:gosec // a file of the kernel
}

// groupPlacesFor are where a group with that controller may be made.
func groupPlacesFor(c controller) []groupPlace {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	name := fmt.Sprintf("pawl-%d", os.Getpid())
	var out []groupPlace
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			out = append(out, groupPlacesVersion2(c, parts[2], name)...)
			continue
		}
		for one := range strings.SplitSeq(parts[1], ",") {
			if one == c.name {
				was := filepath.Join(groupRoot, parts[1], parts[2])
				out = append(out, groupPlace{filepath.Join(was, name), c.old, was})
			}
		}
	}
	return out
}

// groupPlacesVersion2 are those of version 2: a group with processes has no children with
// controllers, so the group is made beside this process's or above.
func groupPlacesVersion2(c controller, own, name string) []groupPlace {
	var out []groupPlace
	for path := filepath.Dir(own); ; path = filepath.Dir(path) {
		dir := filepath.Join(groupRoot, path)
		control, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err == nil && strings.Contains(" "+strings.TrimSpace(string(control))+" ", " "+c.name+" ") {
			out = append(out, groupPlace{filepath.Join(dir, name), c.file, filepath.Join(groupRoot, own)})
		}
		if path == "/" {
			return out
		}
	}
}

// groupsWork is whether a control group that limits processes can be made.
func groupsWork() bool {
	for _, p := range groupPlacesFor(pids) {
		if os.Mkdir(p.dir, 0o755) == nil {
			_ = os.Remove(p.dir)
			return true
		}
	}
	return false
}
